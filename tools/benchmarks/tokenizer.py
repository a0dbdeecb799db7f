"""Compares tokenizers, sentence splitters, or learners of vocabularies, side by side in one run.

--task=tokenizer: speed and exactness. All read the same lines of text in batches of 1,024, in
turns, on one thread. The table shows the median and the best speed of the rounds in MB a second of
processor time (so that other work on the machine counts little), and on how many lines the ids
differ from the plain reference's. After the table: the time for one short line and start-up in
processor time, and what one and two threads reach by the clock (on an idle machine).

--task=sentences: right on hard cases, and how fast. The hard cases are paragraphs whose sentences
were marked by hand (tests/golden/sentences). Speed is in MB of UTF-8 a second of processor time, in
one process. Libraries that are not installed are left out; all of them: pip install nupunkt pysbd
blingfire kiwipiepy

--task=vocabulary: quality on held-out text, and time. `tokenizers` joins frequent pairs (byte-pair
encoding), bottom up; tensorflow-text's learner cuts frequent words down, top down. Both get the
same counted words, and the same words that they were not learned from judge them: every eighth
paragraph is held out.

Example:
  python -m tools.benchmarks.tokenizer --vocab_file=vocab.txt --input_file=wiki.jsonl.xz
  python -m tools.benchmarks.tokenizer --task=sentences --language=korean --input_file=wiki.jsonl.xz
  python -m tools.benchmarks.tokenizer --task=vocabulary --input_file=wiki.jsonl.xz --megabytes=40
"""

import importlib
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import check_options, option
from tools.benchmarks.measuring import Table, first_texts, in_turns, seconds_of, show_json
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """The options of the comparison."""

    task: str = option(
        "tokenizer", "What to compare.", choices=("tokenizer", "sentences", "vocabulary")
    )
    input_file: tuple[str, ...] = option((), "The text: paths or glob patterns.")
    text_field: str = option("text", "The field of JSON lines; empty for plain lines.")
    do_lower_case: bool = option(True, "Whether text is lower-cased.")
    vocab_file: str | None = option(None, "The tokenizers' vocabulary: one token a line.")
    num_lines: int = option(30 * 1024, "How many lines tokenizers read.", at_least=1024)
    rounds: int = option(5, "How often each tokenizer reads all lines.", at_least=1)
    megabytes: float = option(
        4.0,
        "How many millions of characters splitters and learners read; slow splitters get a "
        "fraction of them.",
        more_than=0,
    )
    language: str = option("english", "Which sentences to split.", choices=("english", "korean"))
    cases_dir: Path = option(
        Path(__file__).parents[2] / "tests" / "golden" / "sentences",
        "The folder with english.txt and korean.txt; ‖ stands between two sentences.",
    )
    show_wrong: bool = option(False, "Whether to print the sentences that came out wrong.")
    vocab_size: int = option(30_000, "How many tokens to learn.", at_least=100)
    limit_alphabet: int = option(1000, "How many characters a learner keeps.", at_least=1)

    def __post_init__(self) -> None:
        check_options(self)
        if self.task == "tokenizer" and not self.vocab_file:
            raise UserError("tokenizers need a vocabulary; give `vocab_file`.")


FLAGS = ConfigFlags(__doc__, TextConfig)

_BATCH, _SLOW_SHARE, _REPEATS = 1024, 8, 4
_SHORT_LINE = "The quick brown fox jumps over the lazy dog."
_CODES = {"english": "en", "korean": "ko"}
_HELD_OUT = 8
_Cut = Callable[[list[str]], Any]
_Split = Callable[[str], list[str]]
_Learn = Callable[[Mapping[str, int], int, int], list[str]]


def _settings(vocab_file: str, do_lower_case: bool) -> "TextSettings":
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    return TextSettings(Vocabulary.load(vocab_file), do_lower_case)


def _tokenizer(vocab_file: str, do_lower_case: bool) -> "Tokenizer":
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

    return Tokenizer(_settings(vocab_file, do_lower_case))


def _bytes_of(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def tokenizers_of(vocab_file: str, do_lower_case: bool) -> dict[str, tuple[_Cut, Callable]]:
    """Each tokenizer as a function of a batch, and what turns its result into lists of ids."""
    import tensorflow as tf
    import tensorflow_text as tf_text
    import tokenizers

    from keras_bert_impl.tokenization import reference
    from keras_bert_impl.tokenization.preprocessor import GraphTokenizer

    settings = _settings(vocab_file, do_lower_case)
    vocabulary, ours = settings.vocabulary, _tokenizer(vocab_file, do_lower_case)
    graph = tf.function(
        GraphTokenizer(settings),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tokens = list(vocabulary.tokens)
    fast = tf_text.FastBertTokenizer(tokens, lower_case_nfd_strip_accents=do_lower_case)
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(tokens, tf.range(len(tokens), dtype=tf.int64)), 1
    )
    bert = tf_text.BertTokenizer(table, lower_case=do_lower_case)
    rust = tokenizers.BertWordPieceTokenizer(vocab_file, lowercase=do_lower_case)

    def in_python(lines: list[str]) -> list[list[int]]:
        cut = (reference.tokenize(line, vocabulary, do_lower_case) for line in lines)
        return [[vocabulary.id_of(token) for token in line] for line in cut]

    def rows(block: Any) -> list[list[int]]:
        bounds = block.offsets
        return [block.ids[a:b].tolist() for a, b in pairwise(bounds)]

    return {
        "this project": (ours.encode_lines, rows),
        "this project, in a graph": (
            lambda lines: graph(tf.constant(lines)),
            lambda ids: ids.to_list(),
        ),
        "tf_text.FastBertTokenizer": (
            fast.tokenize,
            lambda ids: ids.merge_dims(1, -1).to_list() if ids.ragged_rank > 1 else ids.to_list(),
        ),
        "tf_text.BertTokenizer": (bert.tokenize, lambda ids: ids.merge_dims(1, -1).to_list()),
        "tokenizers, encode_batch": (
            lambda lines: rust.encode_batch(lines, add_special_tokens=False),
            lambda encodings: [encoding.ids for encoding in encodings],
        ),
        "tokenizers, encode_batch_fast": (
            lambda lines: rust._tokenizer.encode_batch_fast(lines, add_special_tokens=False),
            lambda encodings: [encoding.ids for encoding in encodings],
        ),
        "plain reference": (in_python, lambda ids: ids),
    }


def measure(
    cuts: dict[str, tuple[_Cut, Callable]], batches: list[list[str]], rounds: int
) -> dict[str, list[float]]:
    """MB of UTF-8 a second of processor time, for each tokenizer and round."""

    def speed(cut: _Cut, share: list[list[str]]) -> float:
        size = _bytes_of(text for batch in share for text in batch)
        return size / seconds_of(lambda: list(map(cut, share)), time.process_time) / 1e6

    for cut, _ in cuts.values():
        cut(batches[0])
    ways = {
        name: partial(
            speed, cut, batches[:: _SLOW_SHARE if name.startswith(("tokenizers", "plain")) else 1]
        )
        for name, (cut, _) in cuts.items()
    }
    first = in_turns(ways)
    ways = {name: way for name, way in ways.items() if not name.startswith("plain")}
    further = in_turns(ways, rounds - 1)  # once is enough for what takes as long as the reference
    return {name: [*found, *further.get(name, ())] for name, found in first.items()}


def differing_lines(
    cuts: dict[str, tuple[_Cut, Callable]], batches: list[list[str]], settings: "TextSettings"
) -> dict[str, int]:
    """On how many lines each tokenizer's ids are not the reference's."""
    from keras_bert_impl.tokenization.certificate import RememberingReference

    reference = RememberingReference(settings)
    counts = dict.fromkeys(cuts, 0)
    for batch in batches:
        expected = [reference.encode(line) for line in batch]
        for name, (cut, rows) in cuts.items():
            if name != "plain reference":
                found = rows(cut(batch))
                counts[name] += sum(a != b for a, b in zip(found, expected, strict=True))
    return counts


def _start_up_seconds(vocab_file: str, do_lower_case: bool) -> tuple[float, float]:
    """From the vocabulary's file to the first token, without and with the cache; imports apart."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KERAS_BERT_CACHE"] = folder
        cold, cached = (
            seconds_of(
                lambda: _tokenizer(vocab_file, do_lower_case).encode(_SHORT_LINE),
                time.process_time,
            )
            for _ in range(2)
        )
        del os.environ["KERAS_BERT_CACHE"]
    return cold, cached


def _one_line_milliseconds(tokenizer: "Tokenizer") -> float:
    """The mean time of one call with one short line."""
    calls = 5000
    every = seconds_of(
        lambda: [tokenizer.encode(_SHORT_LINE) for _ in range(calls)], time.process_time
    )
    return 1000 * every / calls


def _in_threads(tokenizer: "Tokenizer", batches: list[list[str]]) -> Iterator[tuple[str, float]]:
    """MB a second of one thread and of two, by the clock."""
    size = _REPEATS * _bytes_of(text for batch in batches for text in batch) / 1e6
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            work = partial(pool.map, tokenizer.encode_lines, batches * _REPEATS)
            seconds = seconds_of(lambda: list(work()))  # noqa: B023 -- called at once
            yield f"{threads} thread{'s' * (threads > 1)}", size / seconds


def compare_tokenizers(config: TextConfig) -> None:
    """Prints the speeds of tokenizers, and where they differ from the reference."""
    os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    import tensorflow as tf

    from pipelines.corpora.tokenize_text import read_all_lines

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    files = read_all_lines(config.input_file, config.text_field or None)
    found = islice(files, config.num_lines)
    lines = [line if isinstance(line, str) else line.decode("utf-8", "ignore") for line in found]
    batches = [lines[start : start + _BATCH] for start in range(0, len(lines), _BATCH)]

    given = str(config.vocab_file), config.do_lower_case
    cuts = tokenizers_of(*given)
    speeds = measure(cuts, batches, config.rounds)
    differing = differing_lines(cuts, batches, _settings(*given))
    our_speed = statistics.median(speeds["this project"])
    size = _bytes_of(lines) / 1e6
    print(f"{len(lines)} lines, {size:.1f} MB, do_lower_case={config.do_lower_case}\n")
    columns = {"median": ".1f", "best": ".1f", "ours/it": ".2f", "differing lines": ""}
    table = Table({"tokenizer": "", **columns}, first=31)
    for name, values in speeds.items():
        median = statistics.median(values)
        table.row(name, median, max(values), our_speed / median, differing[name])
    (cold, cached), ours = _start_up_seconds(*given), _tokenizer(*given)
    extra = {
        "start_up_seconds": round(cold, 3),
        "start_up_seconds_cached": round(cached, 3),
        "one_line_milliseconds": round(_one_line_milliseconds(ours), 4),
        **{f"mb_per_second_{name}": round(v, 1) for name, v in _in_threads(ours, batches)},
    }
    print("\n" + "\n".join(f"{name}: {value}" for name, value in extra.items()) + "\n")
    for name, values in speeds.items():
        row = {"tokenizer": name, "mb_per_second": [round(value, 2) for value in values]}
        show_json(row | {"lines": len(lines), "differing_lines": differing[name]})
    show_json(extra)


def splitters_of(code: str) -> dict[str, tuple[_Split, float]]:
    """Each way to split, and the share of the text it can be asked to read."""
    from pipelines.corpora.sentences import split_paragraph

    found: dict[str, tuple[_Split, float]] = {
        "this project": (lambda text: split_paragraph(text, code), 1.0)
    }
    for name, make, share in (
        ("sentencex", lambda m: lambda text: m.segment(code, text), 1.0),
        ("nupunkt", lambda m: m.sent_tokenize, 0.1),
        ("blingfire", lambda m: lambda text: m.text_to_sentences(text).split("\n"), 0.3),
        ("pysbd", lambda m: m.Segmenter(language="en", clean=False).segment, 0.005),
        ("kiwipiepy", _kiwi, 0.01),
    ):
        try:
            found[name] = make(importlib.import_module(name)), share
        except ImportError:
            continue
    if code != "ko":
        found.pop("kiwipiepy", None)
    return found


def marked_cases(path: Path) -> list[tuple[str, list[str]]]:
    """The hard cases: a paragraph and its sentences."""
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = (line.replace(" ‖ ", " ").replace("‖", "") for line in lines)
    sentences = ([part.strip() for part in line.split("‖")] for line in lines)
    return list(zip(texts, sentences, strict=True))


def right_cases(split: _Split, cases: list[tuple[str, list[str]]], show_wrong: bool = False) -> int:
    """How many cases come out as they were marked."""
    right = 0
    for text, sentences in cases:
        found = [part.strip() for part in split(text) if part.strip()]
        right += found == sentences
        if show_wrong and found != sentences:
            print(f"    {found}")
    return right


def _kiwi(module: object) -> _Split:
    kiwi = module.Kiwi()  # type: ignore[attr-defined]
    return lambda text: [sentence.text for sentence in kiwi.split_into_sents(text)]


def compare_splitters(config: TextConfig) -> None:
    """Prints how many hard cases splitters get right, and their speeds."""
    code, rows = _CODES[config.language], []
    cases = marked_cases(config.cases_dir / f"{config.language}.txt")
    field = config.text_field or None
    files = config.input_file
    paragraphs = first_texts(files, config.megabytes, field) if files else []
    table = Table({"splitter": "", f"right of {len(cases)}": "", "MB a second": ""}, first=14)
    for name, (split, share) in splitters_of(code).items():
        right = right_cases(split, cases, config.show_wrong)
        part = paragraphs[: max(20, int(len(paragraphs) * share))]
        seconds = seconds_of(lambda: [list(split(text)) for text in part], time.process_time)  # noqa: B023 -- called at once
        speed = round(_bytes_of(part) / seconds / 1e6, 2) if part else None
        table.row(name, right, speed)
        rows.append({"splitter": name, "right": right, "cases": len(cases), "mb_per_second": speed})
    for row in rows:
        show_json(row)


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


LEARNERS: Mapping[str, _Learn] = {
    "tokenizers": learn_bottom_up,
    "tensorflow-text": learn_top_down,
}


def compare_learners(config: TextConfig) -> None:
    """Prints what learners of vocabularies need, and how they do on words that were held out."""
    from keras_bert_impl.tokenization.learner import coverage
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    lines = first_texts(config.input_file, config.megabytes, config.text_field or None)
    held_out = count_words(lines[::_HELD_OUT], config.do_lower_case)
    learned = (line for number, line in enumerate(lines) if number % _HELD_OUT)
    counts = count_words(learned, config.do_lower_case)
    print(f"{counts.total()} words, {len(counts)} different; held out: {held_out.total()}\n")
    columns = {"seconds": ".1f", "tokens/word": ".4f", "whole": ".2%", "[UNK]": ".3%"}
    table = Table({"learner": "", "tokens": "", **columns}, first=20)
    for name, learn in LEARNERS.items():
        wall, start = time.perf_counter(), time.process_time()
        tokens = learn(counts, config.vocab_size, config.limit_alphabet)
        seconds, wall = time.process_time() - start, time.perf_counter() - wall
        judged = coverage(held_out, Vocabulary(tokens))
        shares = judged.tokens_per_word, judged.whole_share, judged.unknown_share
        table.row(name, len(tokens), seconds, *shares)
        row = {"learner": name, "tokens": len(tokens), "wall_seconds": round(wall, 1)}
        show_json(row | {"processor_seconds": round(seconds, 1)} | judged._asdict())


TASKS: Mapping[str, Callable[[TextConfig], None]] = {
    "tokenizer": compare_tokenizers,
    "sentences": compare_splitters,
    "vocabulary": compare_learners,
}


def _run(config: TextConfig) -> None:
    TASKS[config.task](config)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
