"""Writes a model directory as a SavedModel that takes ids and raw text.

A pre-trained model gets the signatures serving_default (ids to vectors), masked_lm (ids and
positions to scores) and fill_mask_text (text with [MASK] to the best pieces); a fine-tuned one
serving_default (ids), text and text_pair (to labels and probabilities, or a score). The number of
rows and their length are free. Whoever loads it for raw text imports tensorflow_text before. The
result is loaded in a fresh process and compared with the model.

Example:
  keras-bert export_saved_model --model_dir=run/model --output_dir=saved_model
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_MODEL_DIR = FLAGS.string(
    "model_dir",
    None,
    "The model directory to export, e.g. the model/ folder of a run.",
    required=True,
)
_OUTPUT_DIR = FLAGS.string("output_dir", None, "The SavedModel's folder.", required=True)
_TOP_K = FLAGS.integer(
    "top_k", 10, "How many pieces fill_mask_text gives for each [MASK].", lower_bound=1
)
_MAX_SEQ_LENGTH = FLAGS.integer(
    "max_seq_length",
    None,
    "Texts are cut to this many word pieces; by default to as many as the model has positions.",
    lower_bound=5,
)
_VERIFY = FLAGS.switch("verify", True, "Load the result in a fresh process and compare it.")


def _run() -> None:
    from keras_bert_impl.serving.export import ExportConfig, run_export

    folder = Path(_OUTPUT_DIR.value)
    result = run_export(
        ExportConfig(
            model_dir=Path(_MODEL_DIR.value),
            output_dir=folder,
            top_k=_TOP_K.value,
            max_seq_length=_MAX_SEQ_LENGTH.value,
            verify=_VERIFY.value,
        )
    )
    print(f"{folder}: {result.size / 1e6:.1f} MB")
    for name, (inputs, outputs) in result.signatures.items():
        print(f"  {name}: {', '.join(inputs)} -> {', '.join(outputs)}")
    if result.verification:
        print(
            f"A fresh process loaded it: {result.verification.calls} calls, largest difference "
            f"{result.verification.largest_difference:.1e}."
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
