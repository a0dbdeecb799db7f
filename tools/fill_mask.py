"""Gives the words that may stand at [MASK] in a text, with their probabilities.

It is `predict` with a table of its own. The model is a model directory with a masked-LM head, or a
SavedModel of export_saved_model, which must be trusted, because it is a program. An export for
OpenVINO starts in a second, as a model directory does with --engine=openvino from the second time
on. A text longer than the model's positions is read around its first [MASK] only. A text without
[MASK] is named by its line on standard error; the others are filled in, and the exit code is 1.

Example:
  keras-bert fill_mask --model=run/model --text='The [MASK] of the list is returned.'
  keras-bert fill_mask --model=saved_model --trust_saved_model --text='The [MASK] of the list.'
"""

from tools.table import made

FLAGS, main = made(__name__)
