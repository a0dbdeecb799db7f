"""Puts the answers to GLUE's test sets into the archive that GLUE's server takes.

Collects CoLA.tsv, MNLI-m.tsv, AX.tsv and so on from output folders of run_classifier, checks them,
and says which of the eleven files are missing.

Example:
  keras-bert glue_submission --run_dir=glue_runs --output_file=submission.zip
"""

import sys

from pipelines.tasks.labels.submission import ROWS, SubmissionConfig, write_submission_archive
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, SubmissionConfig)


def _run(config: SubmissionConfig) -> None:
    found = write_submission_archive(config)
    for name, path in found.items():
        print(f"{name:8} {path}")
    if missing := [f"{name}.tsv" for name in ROWS if name not in found]:
        print(f"missing: {', '.join(missing)}; the server wants all eleven files")
    print(f"wrote {config.output_file}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
