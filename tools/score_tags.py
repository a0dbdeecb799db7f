"""Scores predicted tags as conlleval does, with intervals.

run_ner writes dev_predictions.txt: the file's own columns and the predicted tag. The 95 %
intervals are from the bootstrap over documents (or sentences, if there is no line -DOCSTART-).

Example:
  keras-bert score_tags --predictions_file=run/dev_predictions.txt
"""

from tools.table import made

FLAGS, main = made(__name__)
