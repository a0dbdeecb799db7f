"""Puts the answers to GLUE's test sets into the archive that GLUE's server takes.

Collects CoLA.tsv, MNLI-m.tsv, AX.tsv and so on from output folders of run_classifier, checks them,
and says which of the eleven files are missing.

Example:
  keras-bert glue_submission --run_dir=glue_runs --output_file=submission.zip
"""

import sys
from collections.abc import Sequence

from pipelines.tasks.labels.submission import SubmissionConfig, write_submission_archive
from tools import command_line
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, SubmissionConfig)


def _run() -> None:
    submission = write_submission_archive(FLAGS.config())
    for name, path in submission.files.items():
        print(f"{name:12} {path}")
    if submission.missing:
        print(f"missing: {', '.join(submission.missing)}; the server wants all eleven files")
    print(f"wrote {submission.path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
