"""Writes documents whose deciding sentence stands after the end of a model's input.

The deciding sentence is one of SST-2's, and its label the document's. Sentences of a corpus stand
around it, which say nothing of the label; no document shares one with another. There are
--words_before words or more before it, so at least as many tokens: a model that reads only the
first 512 tokens can but guess (50 %, for the labels alternate). The files are for run_classifier.

Example:
  keras-bert split_sentences --input_file=articles.jsonl.xz --output_dir=text --num_shards=1
  python -m tools.benchmarks.long_texts --data_dir=glue_data/SST-2 --filler_file=text/sentences-*
      --output_dir=long
  for way in truncate windows; do
    keras-bert run_classifier --train_file=long/train.jsonl --dev_file=long/dev.jsonl --do_train
        --do_eval --output_dir=long/$way --long_text=$way --max_seq_length=512 --doc_stride=384
        --init_checkpoint=all-MiniLM-L6-v2
  done
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.options import REQUIRED, check_options, option
from pipelines.corpora.sources import expand_patterns
from pipelines.corpora.unpacking import decode, lines_of, read_line_blocks
from pipelines.tasks.labels.glue import SST_2
from tools import command_line
from tools.config_flags import ConfigFlags


@dataclass(frozen=True, kw_only=True)
class LongTextsConfig:
    """What documents are made, and of what."""

    data_dir: Path = option(REQUIRED, "GLUE's folder of SST-2, with train.tsv and dev.tsv.")
    filler_file: tuple[str, ...] = option(
        REQUIRED,
        "Sentences that say nothing of the label, one a line, plain or packed: paths or glob "
        "patterns, separated by commas.",
    )
    output_dir: Path = option(REQUIRED, "Where train.jsonl and dev.jsonl are written.")
    num_train: int = option(2000, "Documents to train on.", at_least=2)
    num_dev: int = option(400, "Documents to score.", at_least=2)
    words_before: int = option(512, "The fewest words before the deciding sentence.", at_least=0)
    words_after: int = option(100, "The most words after it, but for a sentence.", at_least=0)
    least_words: int = option(8, "The fewest words of a deciding sentence.", at_least=1)
    seed: int = option(1, "Which sentences decide, and how much stands after them.")

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, LongTextsConfig)

_LABELS = {"0": "negative", "1": "positive"}
_LEAST_FILLER_WORDS = 4  # what is shorter is mostly a heading


class Document(NamedTuple):
    """One document.

    Attributes:
        text: all of its sentences.
        label: that of the deciding sentence.
        words_before: how many words stand before it.
    """

    text: str
    label: str
    words_before: int


def documents(
    deciding: Iterable[tuple[str, str]],
    filler: Iterator[str],
    words_before: int,
    words_after: int,
    draw: np.random.Generator,
) -> Iterator[Document]:
    """Puts each deciding sentence into a document of its own.

    Args:
        deciding: sentences and labels.
        filler: sentences to stand around them; each is taken once.
        words_before: the fewest words before the deciding sentence.
        words_after: the most words after it, but for the last sentence.
        draw: how many words there are after it.

    Raises:
        UserError: there is not enough filler.

    Example:
        >>> draw = np.random.default_rng(1)
        >>> list(documents([("Fine!", "good")], iter(["It rains.", "It snows."]), 3, 0, draw))
        [Document(text='It rains. It snows. Fine!', label='good', words_before=4)]
    """
    for sentence, label in deciding:
        before = _take(filler, words_before)
        after = _take(filler, int(draw.integers(words_after + 1)))
        text = " ".join([*before, sentence, *after])
        yield Document(text, label, sum(map(_num_words, before)))


def _take(filler: Iterator[str], words: int) -> list[str]:
    """Sentences of so many words together or more."""
    taken: list[str] = []
    count = 0
    while count < words:
        sentence = next(filler, None)
        if sentence is None:
            raise UserError(
                "`filler_file` has too few sentences for so many documents; name more files, or "
                "lower `num_train`."
            )
        taken.append(sentence)
        count += _num_words(sentence)
    return taken


def by_turns(
    examples: Iterable[tuple[str, str]], count: int, least_words: int, draw: np.random.Generator
) -> list[tuple[str, str]]:
    """Draws examples that are long enough, whose labels alternate.

    Raises:
        UserError: there are not enough of a label.

    Example:
        >>> examples = [("so good", "1"), ("bad", "0"), ("so bad", "0"), ("very bad", "0")]
        >>> [label for _, label in by_turns(examples, 2, 2, np.random.default_rng(1))]
        ['0', '1']
    """
    groups: dict[str, list[str]] = {}
    for sentence, label in examples:
        if _num_words(sentence) >= least_words:
            groups.setdefault(label, []).append(sentence)
    labels = sorted(groups)
    needed = -(-count // max(1, len(labels)))
    if not labels or min(map(len, groups.values())) < needed:
        raise UserError(
            f"there are fewer than {needed} sentences of a label with {least_words} words; lower "
            "`least_words`, `num_train` or `num_dev`."
        )
    chosen = {label: draw.permutation(len(groups[label]))[:needed] for label in labels}
    drawn = [(groups[label][chosen[label][n]], label) for n in range(needed) for label in labels]
    return drawn[:count]


def _num_words(text: str) -> int:
    return len(text.split())


def _filler(names: Sequence[str]) -> Iterator[str]:
    """The sentences of files, from their beginning."""
    for name in expand_patterns(names):
        for block in read_line_blocks(name):
            for line in lines_of(block):
                text = decode(name, block.first_line, line).text.strip() if line else ""
                if _num_words(text) >= _LEAST_FILLER_WORDS:
                    yield text


def _run() -> None:
    config = FLAGS.config()
    task, draw = SST_2.at(config.data_dir), np.random.default_rng(config.seed)
    filler = _filler(config.filler_file)
    make_folder(config.output_dir)
    for split, count in (("dev", config.num_dev), ("train", config.num_train)):
        examples = ((one.text_a, _LABELS[str(one.label)]) for one in task.examples(split))
        deciding = by_turns(examples, count, config.least_words, draw)
        made = documents(deciding, filler, config.words_before, config.words_after, draw)
        path = config.output_dir / f"{split}.jsonl"
        _write(path, made)


def _write(path: Path, made: Iterable[Document]) -> None:
    count = words = 0
    with open_whole(path) as file:
        for document in made:
            file.write(json.dumps(document._asdict(), ensure_ascii=False) + "\n")
            count, words = count + 1, words + _num_words(document.text)
    print(f"wrote {path}: {count} documents of {words / count:.0f} words on average")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
