"""Gives the words that may stand at [MASK] in a text, with their probabilities.

The model is a model directory with a masked-LM head, or a SavedModel of export_saved_model (asked
through its raw-text signature), which must be trusted, because it is a program. An export for
OpenVINO starts in a second, as a model directory does with --engine=openvino from the second time
on. A text longer than the model's positions is read around its first [MASK] only. A text without
[MASK] is named by its line on standard error; the others are filled in, and the exit code is 1.

Example:
  keras-bert fill_mask --model=run/model --text='The [MASK] of the list is returned.'
  keras-bert fill_mask --model=saved_model --trust_saved_model --text='The [MASK] of the list.'
"""

import json
import sys
from typing import TYPE_CHECKING

from keras_bert_impl.errors import SeveralUserError
from keras_bert_impl.serving.config import FillMaskConfig
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from keras_bert_impl.serving.fill_mask import FilledText

FLAGS = ConfigFlags(__doc__, FillMaskConfig)


def _show_table(filled: "FilledText") -> None:
    print(filled.text)
    for number, candidates in enumerate(filled.masks, start=1):
        if len(filled.masks) > 1:
            print(f"  [MASK] {number}")
        for candidate in candidates:
            print(f"  {candidate.probability:7.2%}  {candidate.token}")


def _show_json(filled: "FilledText") -> None:
    masks = [
        [{"token": c.token, "probability": c.probability} for c in candidates]
        for candidates in filled.masks
    ]
    record = {"text": filled.text, "masks": masks, "num_truncated": filled.num_truncated}
    print(json.dumps(record, ensure_ascii=False))


def _run(config: FillMaskConfig) -> None:
    from pipelines.answering.masked_texts import fill_mask

    show = _show_json if config.format == "json" else _show_table
    results = fill_mask(config)
    for filled in results.filled:
        if filled.num_truncated:
            sys.stderr.write(
                f"Warning: a text is longer than the model's positions; {filled.num_truncated} "
                f"of its tokens were left out, and {len(filled.masks)} of its masks filled in.\n"
            )
        show(filled)
    if results.refused:
        raise SeveralUserError(results.refused)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
