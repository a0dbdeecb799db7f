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

import sys

from pipelines.answering.config import PredictConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, PredictConfig)


def _run(config: PredictConfig) -> None:
    from pipelines.answering.predict import predict

    count = predict(config)
    if config.output_file:
        print(f"{count} answer{'s' * (count != 1)}: {config.output_file}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
