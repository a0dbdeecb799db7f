"""Scores predicted tags as conlleval does, with intervals, and compares two ways of tagging.

run_ner writes dev_predictions.txt: the file's own columns and the predicted tag. The 95 %
intervals are from the bootstrap over documents (or sentences, if there is no line -DOCSTART-).

Example:
  keras-bert score_tags --predictions_file=document/seed-1/dev_predictions.txt
      --compared_with=sentence/seed-1/dev_predictions.txt
"""

from tools.table import made

FLAGS, main = made(__name__)
