"""Writes a model directory as a SavedModel: another name of export_model --format=saved_model.

A pre-trained model gets the signatures serving_default (ids to vectors), masked_lm (ids and
positions to scores), fill_mask_text (text with [MASK] to the best tokens) and next_sentence_text
(two texts to the probability that the second follows); a fine-tuned one serving_default (ids),
text and text_pair (to labels and probabilities, or a score); one for questions serving_default and
answers (question and passage to answers with their positions); one for entities text and raw_text
(to entities with their positions); one for endings text (context and endings to probabilities).
Batch size and length are free. A program that loads it for raw text imports tensorflow_text first.
The result is loaded again, compared with the model and timed. client.py next to it is
a program in plain Python that asks it with texts.

Example:
  keras-bert export_saved_model --model=run/model --output_dir=saved_model
"""

from tools.table import made

FLAGS, main = made(__name__)
