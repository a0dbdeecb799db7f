"""Shows that a word's vector depends on its sense: cosines between the uses of one word.

The vector of a use is the sum of the last layers; if the word has several tokens, it is their
mean. The default text uses "bank" three times: twice for the place with the money and once for the
side of a river.

Examples:
  keras-bert compare_word_senses --model=bert --picture=senses.png
  keras-bert compare_word_senses --model=klue/bert-base --word=배 --text='배를 타고 섬에 갔다.'
      --text='배를 깎아 먹었다.' --text='배가 아프다.'
"""

import sys

from pipelines.vectors.options import SensesConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, SensesConfig)


def _run(config: SensesConfig) -> None:
    from pipelines.vectors.compare_senses import compare_word_senses

    print(compare_word_senses(config).text())


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
