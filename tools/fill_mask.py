"""Says which words may stand at [MASK] in a text, with their probabilities.

The model is a SavedModel of export_saved_model (asked through its raw-text signature) or a model
directory with a masked-LM head. A text longer than the model's positions is read around its first
[MASK] only.

Example:
  keras-bert fill_mask --model=saved_model --text='The [MASK] of the list is returned.'
"""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input
from tools import command_line

if TYPE_CHECKING:
    from keras_bert_impl.serving.fill_mask import FilledText

FLAGS = command_line.FlagSet(__doc__)
_MODEL = FLAGS.string("model", None, "A SavedModel or a model directory.", required=True)
_TEXT = FLAGS.texts(
    "text", "A text with [MASK] in it, or several lines of them; give the flag again for more."
)
_INPUT_FILE = FLAGS.string("input_file", None, "A file with one text a line, UTF-8.")
_TOP_K = FLAGS.integer("top_k", 5, "How many pieces to show for each [MASK].", lower_bound=1)
_FORMAT = FLAGS.choice(
    "format", "table", ("table", "json"), "A table to read, or one JSON object a line."
)


def _read_texts() -> list[str]:
    texts = [line for text in _TEXT.value or [] for line in text.splitlines() if line.strip()]
    path = _INPUT_FILE.value
    if path:
        with open_input(path) as file:
            for number, raw in enumerate(file, start=1):
                try:
                    line = raw.decode("utf-8").strip("\r\n\ufeff")
                except UnicodeDecodeError as error:
                    raise UserError(f"{path}: line {number} is not UTF-8; convert it.") from error
                texts += [line] if line.strip() else []
    if not texts:
        raise UserError("there is no text; give --text or an --input_file with text.")
    return texts


def _show_table(filled: "FilledText") -> None:
    print(filled.text)
    for number, candidates in enumerate(filled.masks, start=1):
        if len(filled.masks) > 1:
            print(f"  [MASK] {number}")
        for candidate in candidates:
            print(f"  {candidate.probability:7.2%}  {candidate.piece}")


def _show_json(filled: "FilledText") -> None:
    masks = [
        [{"piece": c.piece, "probability": c.probability} for c in candidates]
        for candidates in filled.masks
    ]
    record = {"text": filled.text, "masks": masks, "num_truncated": filled.num_truncated}
    print(json.dumps(record, ensure_ascii=False))


def _run() -> None:
    texts = _read_texts()
    from keras_bert_impl.serving.fill_mask import FillMask

    top_k = _TOP_K.value
    show = _show_json if _FORMAT.value == "json" else _show_table
    for filled in FillMask.load(_MODEL.value, top_k).fill(texts, top_k):
        if filled.num_truncated:
            sys.stderr.write(
                f"Warning: a text is longer than the model's positions; {filled.num_truncated} "
                f"of its pieces were left out, and {len(filled.masks)} of its masks are answered.\n"
            )
        show(filled)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
