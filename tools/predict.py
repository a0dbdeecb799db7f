"""Answers texts by any model: labels, numbers, entities, answers, choices, words, vectors.

The model is a model directory, a TF1 checkpoint, a run's folder, a name on the Hugging Face hub, or
an export for OpenVINO, which needs no TensorFlow and starts in a second. What is asked is what the
model was trained for: a text, a pair, a question about a passage, endings of a context. Files are
read line by line, or by columns.

Examples:
  keras-bert predict --model=mrpc/model --text='It rains.' --text_pair='The street is wet.'
  keras-bert predict --model=reviews/model --input_file=reviews.csv --text_column=review
      --format=json --output_file=answers.jsonl --engine=openvino
  keras-bert predict --model=squad/model --question='When did it rain?' --passage_file=weather.txt
"""

from tools.table import made

FLAGS, main = made(__name__)
