"""Answers questions by a passage: the best answers, with their positions in the text.

It is `predict` with a table of its own. The model is the model/ folder of a run of run_squad, or an
export for OpenVINO, which starts in a second, as a model directory does with --engine=openvino from
the second time on. The passage may have any length. Answers are the passage's own characters, and
positions count its characters from 0, with its blanks and line breaks.

Example:
  keras-bert answer --model=squad/model --question='When did it rain?' --passage_file=weather.txt
"""

from tools.table import made

FLAGS, main = made(__name__)
