"""Opens a page to try models on: what they answer, the tokens they see, their attention.

It is the server of keras-bert serve with one page, at the address that is printed; any browser
shows it, also without a network. Of each model it has the panels of what the model can do: words
for [MASK], labels, numbers, answers, entities, choices, similarity, the next sentence. A link of
the page holds the input. Attention needs a model directory: an export gives its outputs only.

Examples:
  keras-bert playground --model=run/model
  keras-bert playground --model=mrpc/model --model=minilm=all-MiniLM-L6-v2 --engine=openvino
"""

from tools.table import made

FLAGS, main = made(__name__)
