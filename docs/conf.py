"""How Sphinx builds the site: `make docs`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from keras_bert_impl import __version__  # noqa: E402 - the checkout's, wherever Sphinx starts

project = "keras_bert_impl"
author = "the authors of keras_bert_impl"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx' name
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docs.extensions.examples",
    "docs.extensions.front_door",
    "docs.extensions.from_the_top",
    "docs.extensions.notebooks",
    "docs.extensions.search_words",
]
exclude_patterns = ["_run"]
default_role = "code"

html_theme = "furo"
html_title = "keras_bert_impl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 4
nitpicky = False  # Keras and TensorFlow are not to be reached when the site is built

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
