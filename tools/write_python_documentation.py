"""Writes a small real corpus that needs no download: the documentation that Python itself ships.

Example:
  keras-bert write_python_documentation --output_file=train.jsonl --held_out_file=held_out.jsonl
"""

import sys

from pipelines.corpora.python_documentation import (
    PythonDocumentationConfig,
    write_python_documentation,
)
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, PythonDocumentationConfig)


def _run(config: PythonDocumentationConfig) -> None:
    size = write_python_documentation(config.output_file, config.held_out_file)
    print(f"{size / 1e6:.2f} MB of text")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
