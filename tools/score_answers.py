"""Scores the answers of any system, as the official scripts of SQuAD, KorQuAD and TriviaQA do.

Each figure comes with its 95 % interval (bootstrap over articles). A file of TriviaQA is recognised
by its content, and its evidence is not needed.

Example:
  keras-bert score_answers --data_file=dev-v2.0.json --predictions_file=predictions.json
      --null_odds_file=null_odds.json --version_2_with_negative
"""

from tools.table import made

FLAGS, main = made(__name__)
