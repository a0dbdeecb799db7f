"""Writes a model directory as a SavedModel that takes ids and raw text.

A pre-trained model gets the signatures serving_default (ids to vectors), masked_lm (ids and
positions to scores), fill_mask_text (text with [MASK] to the best tokens) and next_sentence_text
(two texts to the probability that the second follows); a fine-tuned one serving_default (ids),
text and text_pair (to labels and probabilities, or a score); one for questions serving_default and
answers (question and passage to answers with their positions); one for entities text and raw_text
(to entities with their positions); one for endings text (context and endings to probabilities).
Batch size and length are free. A program that loads it for raw text imports tensorflow_text first.
The result is loaded in a fresh process, compared with the model and timed. client.py next to it is
a program in plain Python that asks it with texts.

Example:
  keras-bert export_saved_model --model=run/model --output_dir=saved_model
"""

import sys

from keras_bert_impl.serving.config import ExportConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, ExportConfig)


def export(config: ExportConfig) -> None:
    """Writes a SavedModel and says what it serves."""
    from pipelines.tasks.register import open_and_serve

    opened, served = open_and_serve(
        config.model,
        top_k=config.top_k,
        max_seq_length=config.max_seq_length,
        **config.description(),
    )
    from keras_bert_impl.serving.export import export_saved_model  # after the model is found

    result = export_saved_model(served, opened, config.output_dir, config.verify)
    print(f"{config.output_dir}: {result.size / 1e6:.1f} MB, with client.py, which sends texts")
    for name, (inputs, outputs) in result.signatures.items():
        print(f"  {name}: {', '.join(inputs)} -> {', '.join(outputs)}")
    if result.verification:
        print(
            f"A fresh process loaded it: {result.verification.calls} calls, largest difference "
            f"{result.verification.largest_difference:.1e}.\n"
            f"A call of {result.verification.timed} with a row of 32 tokens takes "
            f"{result.verification.milliseconds:.2f} ms there."
        )


main = FLAGS.main_of(export)


if __name__ == "__main__":
    sys.exit(main())
