"""Compares learners of WordPiece vocabularies on the same text: quality on held-out text, and time.

`tokenizers` joins frequent pairs (byte-pair encoding), bottom up; tensorflow-text's learner cuts
frequent words down, top down. Both get the same counted words, and the same words that they were
not learned from judge them: every eighth paragraph is held out.

Example:
  python -m tools.benchmarks.vocabulary --input_file=wiki.jsonl.xz --megabytes=40 --vocab_size=30000
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.words("input_file", [], "The text: JSON lines with a field `text`.")
_MEGABYTES = FLAGS.number("megabytes", 40.0, "How much of it to read, in millions of characters.")
_VOCAB_SIZE = FLAGS.integer("vocab_size", 30_000, "How many tokens to learn.", lower_bound=100)
_DO_LOWER_CASE = FLAGS.switch("do_lower_case", True, "Whether words are lower-cased.")
_LIMIT_ALPHABET = FLAGS.integer("limit_alphabet", 1000, "How many characters to keep.")

_HELD_OUT = 8


def count_words(lines: Iterable[str], do_lower_case: bool) -> Counter[str]:
    """How often each word occurs."""
    from keras_bert_impl.tokenization import reference

    parts: Counter[str] = Counter()
    for line in lines:
        parts.update(line.split(" "))
    words: Counter[str] = Counter()
    for part, count in parts.items():
        for word in reference.split_words(part, do_lower_case):
            words[word] += count
    return words


def learn_bottom_up(counts: Mapping[str, int], vocab_size: int, limit_alphabet: int) -> list[str]:
    """This project's learner, on the trainer of `tokenizers`."""
    from keras_bert_impl.tokenization.learner import LearnerOptions, learn_tokens

    options = LearnerOptions(vocab_size, limit_alphabet=limit_alphabet)
    return list(learn_tokens(counts, options).vocabulary.tokens)


def learn_top_down(counts: Mapping[str, int], vocab_size: int, limit_alphabet: int) -> list[str]:
    """tensorflow-text's learner; the size it gives is near the asked one."""
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as library

    from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS

    tokens = library.learn(
        sorted(counts.items()),
        vocab_size=vocab_size,
        reserved_tokens=list(SPECIAL_TOKENS),
        max_unique_chars=limit_alphabet,
    )
    return list(dict.fromkeys(tokens))


def _run() -> None:
    from keras_bert_impl.tokenization.learner import coverage
    from keras_bert_impl.tokenization.vocabulary import Vocabulary
    from pipelines.corpora.tokenize_text import read_all_lines

    seen = 0
    limit = _MEGABYTES.value * 1e6

    def fits(line: str | bytes) -> bool:
        nonlocal seen
        seen += len(line)
        return seen <= limit

    lines = [str(line) for line in takewhile(fits, read_all_lines(_INPUT_FILE.value, "text"))]
    do_lower_case = _DO_LOWER_CASE.value
    held_out = count_words(lines[::_HELD_OUT], do_lower_case)
    counts = count_words(
        (line for number, line in enumerate(lines) if number % _HELD_OUT), do_lower_case
    )
    print(f"{counts.total()} words, {len(counts)} different; held out: {held_out.total()}\n")
    print(
        f"{'learner':20} {'tokens':>7} {'seconds':>8} {'tokens/word':>12} {'whole':>8} {'[UNK]':>8}"
    )
    size, alphabet = _VOCAB_SIZE.value, _LIMIT_ALPHABET.value
    for name, learn in (("tokenizers", learn_bottom_up), ("tensorflow-text", learn_top_down)):
        wall, start = time.perf_counter(), time.process_time()
        tokens = learn(counts, size, alphabet)
        seconds, wall = time.process_time() - start, time.perf_counter() - wall
        judged = coverage(held_out, Vocabulary(tokens))
        print(
            f"{name:20} {len(tokens):7} {seconds:8.1f} {judged.tokens_per_word:12.4f} "
            f"{judged.whole_share:8.2%} {judged.unknown_share:8.3%}"
        )
        row = {"learner": name, "tokens": len(tokens), "wall_seconds": round(wall, 1)}
        print(json.dumps(row | {"processor_seconds": round(seconds, 1)} | judged._asdict()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
