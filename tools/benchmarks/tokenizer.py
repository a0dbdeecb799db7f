"""Compares tokenizers: speed and exactness side by side, in one run.

All read the same lines of text in batches of 1,024, in turns, on one thread. The table shows the
median and the best speed of the rounds in MB a second of processor time (so that other work on the
machine counts little), and on how many lines the ids differ from the plain reference's. After the
table: the time for one short line and start-up in processor time, and what one and two threads and
processes reach by the clock (on an idle machine).

Example:
  python -m tools.benchmarks.tokenizer --vocab_file=vocab.txt --input_file=wiki.jsonl.xz
"""

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from typing import Any

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_VOCAB_FILE = FLAGS.string("vocab_file", None, "The vocabulary: one token a line.", required=True)
_DO_LOWER_CASE = FLAGS.switch("do_lower_case", True, "Whether text is lower-cased.")
_INPUT_FILE = FLAGS.words("input_file", [], "The text: paths or glob patterns.")
_TEXT_FIELD = FLAGS.string("text_field", "text", "The field of JSON lines; empty for plain lines.")
_NUM_LINES = FLAGS.integer("num_lines", 30 * 1024, "How many lines to read.", lower_bound=1024)
_ROUNDS = FLAGS.integer("rounds", 5, "How often each tokenizer reads all lines.", lower_bound=1)

_BATCH, _SLOW_SHARE = 1024, 8
_SHORT_LINE = "The quick brown fox jumps over the lazy dog."
_Cut = Callable[[list[str]], Any]


def contestants(vocab_file: str, do_lower_case: bool) -> dict[str, tuple[_Cut, Callable]]:
    """Each tokenizer as a function of a batch, and what turns its result into lists of ids."""
    import tensorflow as tf
    import tensorflow_text as tf_text
    import tokenizers

    from keras_bert_impl.tokenization import reference
    from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    vocabulary = Vocabulary.load(vocab_file)
    ours = Tokenizer(TextSettings(vocabulary, do_lower_case))
    graph = tf.function(
        GraphTokenizer(TextSettings(vocabulary, do_lower_case)),
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
    """MB of UTF-8 a second of processor time, for each tokenizer and round; they take turns."""
    speeds: dict[str, list[float]] = {name: [] for name in cuts}
    for cut, _ in cuts.values():
        cut(batches[0])
    for round_number in range(rounds):
        names = list(cuts)
        in_turn = names[round_number % len(names) :] + names[: round_number % len(names)]
        for name, cut in ((name, cuts[name][0]) for name in in_turn):
            share = batches[:: _SLOW_SHARE if name.startswith(("tokenizers", "plain")) else 1]
            if name.startswith("plain") and round_number:
                continue  # once is enough for what takes so long
            size = sum(len(line.encode()) for batch in share for line in batch)
            start = time.process_time()
            for batch in share:
                cut(batch)
            speeds[name].append(size / (time.process_time() - start) / 1e6)
    return speeds


def differing_lines(
    cuts: dict[str, tuple[_Cut, Callable]],
    batches: list[list[str]],
    vocab_file: str,
    do_lower_case: bool,
) -> dict[str, int]:
    """On how many lines each tokenizer's ids are not the reference's."""
    from keras_bert_impl.tokenization.certificate import RememberingReference
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    reference = RememberingReference(TextSettings(Vocabulary.load(vocab_file), do_lower_case))
    counts = dict.fromkeys(cuts, 0)
    for batch in batches:
        expected = [reference.encode(line) for line in batch]
        for name, (cut, rows) in cuts.items():
            if name != "plain reference":
                found = rows(cut(batch))
                counts[name] += sum(a != b for a, b in zip(found, expected, strict=True))
    return counts


def start_up_seconds(vocab_file: str, do_lower_case: bool) -> tuple[float, float]:
    """From the vocabulary's file to the first token, without and with the cache; imports apart."""
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KERAS_BERT_CACHE"] = folder
        for _ in range(2):
            start = time.process_time()
            Tokenizer(TextSettings(Vocabulary.load(vocab_file), do_lower_case)).encode(_SHORT_LINE)
            seconds.append(time.process_time() - start)
        del os.environ["KERAS_BERT_CACHE"]
    return seconds[0], seconds[1]


def one_line_milliseconds(vocab_file: str, do_lower_case: bool) -> float:
    """The mean time of one call with one short line."""
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    tokenizer = Tokenizer(TextSettings(Vocabulary.load(vocab_file), do_lower_case))
    start = time.process_time()
    for _ in range(5000):
        tokenizer.encode(_SHORT_LINE)
    return (time.process_time() - start) / 5


def _cut_all(arguments: tuple[str, bool, list[list[str]], int]) -> tuple[float, float]:
    """Cuts all batches in this process; gives when it began and ended (wall clock)."""
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    vocab_file, do_lower_case, batches, repeats = arguments
    tokenizer = Tokenizer(TextSettings(Vocabulary.load(vocab_file), do_lower_case))
    tokenizer.encode_lines(batches[0])
    start = time.time()
    for batch in batches * repeats:
        tokenizer.encode_lines(batch)
    return start, time.time()


def twice(vocab_file: str, do_lower_case: bool, batches: list[list[str]]) -> dict[str, float]:
    """MB a second of one worker and of two, as threads and as processes."""
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    repeats = 4
    size = repeats * sum(len(line.encode()) for batch in batches for line in batch) / 1e6
    tokenizer = Tokenizer(TextSettings(Vocabulary.load(vocab_file), do_lower_case))
    speeds = {}
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            start = time.perf_counter()
            list(pool.map(tokenizer.encode_lines, batches * repeats))
            speeds[f"{threads} thread{'s' * (threads > 1)}"] = size / (time.perf_counter() - start)
    context = multiprocessing.get_context("spawn")
    for processes in (1, 2):
        with context.Pool(processes) as pool_of_processes:
            work = [(vocab_file, do_lower_case, batches, repeats)] * processes
            spans = pool_of_processes.map(_cut_all, work, chunksize=1)
            # Only while all of them work is it a fair race; they begin within a moment.
            seconds = max(end for _, end in spans) - min(start for start, _ in spans)
            name = f"{processes} process{'es' * (processes > 1)}"
            speeds[name] = size * processes / seconds
    return speeds


def _run() -> None:
    os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    import tensorflow as tf

    from pipelines.corpora.tokenize_text import read_all_lines

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    vocab_file, do_lower_case = _VOCAB_FILE.value, _DO_LOWER_CASE.value
    found = islice(read_all_lines(_INPUT_FILE.value, _TEXT_FIELD.value or None), _NUM_LINES.value)
    lines = [line if isinstance(line, str) else line.decode("utf-8", "ignore") for line in found]
    batches = [lines[start : start + _BATCH] for start in range(0, len(lines), _BATCH)]

    cuts = contestants(vocab_file, do_lower_case)
    speeds = measure(cuts, batches, _ROUNDS.value)
    differing = differing_lines(cuts, batches, vocab_file, do_lower_case)
    ours = statistics.median(speeds["this project"])
    size = sum(len(line.encode()) for line in lines)
    print(f"{len(lines)} lines, {size / 1e6:.1f} MB, do_lower_case={do_lower_case}\n")
    print(f"{'tokenizer':31} {'median':>7} {'best':>7}  {'ours/it':>7}  differing lines")
    for name, values in speeds.items():
        median = statistics.median(values)
        print(
            f"{name:31} {median:7.1f} {max(values):7.1f}  {ours / median:7.2f}  {differing[name]}"
        )
    cold, cached = start_up_seconds(vocab_file, do_lower_case)
    extra = {
        "start_up_seconds": round(cold, 3),
        "start_up_seconds_cached": round(cached, 3),
        "one_line_milliseconds": round(one_line_milliseconds(vocab_file, do_lower_case), 4),
        **{
            f"mb_per_second_{k}": round(v, 1)
            for k, v in twice(vocab_file, do_lower_case, batches).items()
        },
    }
    print("\n" + "\n".join(f"{name}: {value}" for name, value in extra.items()) + "\n")
    for name, values in speeds.items():
        row = {"tokenizer": name, "mb_per_second": [round(value, 2) for value in values]}
        print(json.dumps(row | {"lines": len(lines), "differing_lines": differing[name]}))
    print(json.dumps(extra))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
