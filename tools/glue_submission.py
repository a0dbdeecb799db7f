"""Puts the answers to GLUE's test sets into the archive that GLUE's server takes.

Collects CoLA.tsv, MNLI-m.tsv, AX.tsv and so on from output folders of run_classifier, checks them,
and says which of the eleven files are missing.

Example:
  keras-bert glue_submission --run_dir=glue_runs --output_file=submission.zip
"""

from tools.table import made

FLAGS, main = made(__name__)
