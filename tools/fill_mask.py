"""Gives the words that may stand at [MASK] in a text, with their probabilities.

It is `predict` with a table of its own. The model is a model directory with a masked-LM head, or an
export for OpenVINO, which starts in a second, as a model directory does with --engine=openvino from
the second time on. A text longer than the model's positions is read around its first [MASK] only. A
text without [MASK] is named by its line on standard error; the others are filled in, and the exit
code is 1.

Example:
  keras-bert fill_mask --model=run/model --text='The [MASK] of the list is returned.'
"""

import sys

from pipelines.answering.named import FillMaskConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, FillMaskConfig)


def _run(config: FillMaskConfig) -> None:
    from pipelines.answering.named import fill_mask

    for line in fill_mask(config):
        print(line)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
