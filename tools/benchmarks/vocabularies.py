"""Compares vocabularies on text that none of them was learned from.

Learns a vocabulary of every size with every alphabet from --input_file, cuts the words of
--held_out_file with each, and with the published ones of --vocab_file: tokens a word (of the words
that are not [UNK]), the share of words that are [UNK], of words that are one token, and of the
vocabulary's tokens that are single characters. An alphabet that a size cannot hold has no row.

Example:
  python -m tools.benchmarks.vocabularies --input_file='ko/train-*.txt' --held_out_file=ko/held.txt
      --vocab_size=8192,16384,32000 --limit_alphabet=1000,2500,6000 --nodo_lower_case
      --vocab_file=koelectra/vocab.txt,kr-bert/vocab.txt
"""

import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from tools.benchmarks.measuring import Table, show_json
from tools.config_flags import ConfigFlags


@dataclass(frozen=True, kw_only=True)
class VocabulariesConfig:
    """The options of the comparison."""

    input_file: tuple[str, ...] = option(REQUIRED, "The text to learn from.")
    held_out_file: tuple[str, ...] = option(REQUIRED, "The text whose words are cut.")
    vocab_size: tuple[int, ...] = option((16384,), "Sizes.")
    limit_alphabet: tuple[int, ...] = option((1000, 2500), "How many characters are kept.")
    vocab_file: tuple[str, ...] = option((), "Other vocabularies, of the same casing.")
    do_lower_case: bool = option(True, "Whether words are lower-cased.")
    num_workers: int | None = option(None, "How many processes count words.", at_least=1)
    json: bool = option(False, "Print a JSON object for each.")

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, VocabulariesConfig)


def _run(config: VocabulariesConfig) -> None:
    from keras_bert_impl.tokenization.learner import (
        LearnerOptions,
        coverage,
        learn_tokens,
        single_share,
    )
    from keras_bert_impl.tokenization.vocabulary import Vocabulary
    from pipelines.corpora.learn_vocabulary import LearnVocabularyConfig, count_words
    from pipelines.corpora.sources import find_sources

    def counts_of(files: tuple[str, ...]) -> dict[str, int]:
        asked = LearnVocabularyConfig(
            input_file=files,
            vocab_file="",
            do_lower_case=config.do_lower_case,
            num_workers=config.num_workers,
        )
        return count_words(asked, find_sources(files, asked.reading.input_format))[0]

    counts, held_out = counts_of(config.input_file), counts_of(config.held_out_file)
    print(f"{sum(counts.values()):,} words to learn from, {sum(held_out.values()):,} held out")
    table = Table(
        {
            "vocabulary": "",
            "size": ",d",
            "alphabet": ",d",
            "singles": ".1%",
            "tokens/word": ".3f",
            "[UNK]": ".2%",
            "whole": ".1%",
        }
    )

    def show(name: str, vocabulary: Vocabulary, alphabet: int | None) -> None:
        found, singles = coverage(held_out, vocabulary), single_share(vocabulary)
        figures = (found.tokens_per_word, found.unknown_share, found.whole_share)
        table.row(name, len(vocabulary), alphabet, singles, *figures)
        if config.json:
            show_json({"vocabulary": name, "singles": singles, **found._asdict()})

    for path in config.vocab_file:
        show(Path(path).name, Vocabulary.load(path), None)
    for size, alphabet in product(config.vocab_size, config.limit_alphabet):
        options = LearnerOptions(size, limit_alphabet=alphabet)
        try:
            learned = learn_tokens(counts, options)
        except UserError as error:
            print(error)
            continue
        show("learned", learned.vocabulary, alphabet)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
