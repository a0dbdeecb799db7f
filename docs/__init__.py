"""The documentation site: pages, and in `extensions` what Sphinx needs beside them."""
