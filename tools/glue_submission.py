"""Puts the answers to GLUE's test sets into the archive that GLUE's server takes.

Collects CoLA.tsv, MNLI-m.tsv, AX.tsv and so on from output folders of run_classifier, checks them,
and says which of the eleven files are missing.

Example:
  keras-bert glue_submission --run_dir=glue_runs --output_file=submission.zip
"""

import sys

from pipelines.tasks.labels.submission import SubmissionConfig, write_submission_archive
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, SubmissionConfig)


def _run(config: SubmissionConfig) -> None:
    submission = write_submission_archive(config)
    for name, path in submission.files.items():
        print(f"{name:12} {path}")
    if submission.missing:
        print(f"missing: {', '.join(submission.missing)}; the server wants all eleven files")
    print(f"wrote {submission.path}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
