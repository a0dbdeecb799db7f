"""Writes a page that shows how the tokens of some texts attend to each other.

The page is one file, which a browser opens without a server and without a network: one head with
lines between tokens, and all heads of all layers side by side. The model is a model directory, or
another form that has its weights by their names; an export gives its outputs only.

Examples:
  keras-bert explain --model=run/model --text='The dog is tired because it ran.'
      --output_file=page.html
  keras-bert explain --model=mrpc/model --text='He left.' --text_pair='He went away.'
      --output_file=page.html
"""

from tools.table import made

FLAGS, main = made(__name__)
