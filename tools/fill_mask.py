"""Gives the words that may stand at [MASK] in a text, with their probabilities.

It is `predict` with a table of its own. The model is a model directory with a masked-LM head, or an
export for OpenVINO, which starts in a second, as a model directory does with --engine=openvino from
the second time on. A text longer than the model's positions is read around its first [MASK] only. A
text without [MASK] is named by its line on standard error; the others are filled in, and the exit
code is 1.

Example:
  keras-bert fill_mask --model=run/model --text='The [MASK] of the list is returned.'
"""

from tools.table import made

FLAGS, main = made(__name__)
