r"""Compares tokenizers, certifies ours, and times the making of pre-training data.

--task=tokenizer: all read the same lines of text in batches of 1,024, in turns, on one thread. The
table shows the median speed in MB a second of processor time, and on how many lines the ids differ
from the plain reference's.

--task=certify: all code points of Unicode, and every line of --input_file if it is given, are
compared with the plain reference. The exit code is 1 where anything differs.

--task=creation: create_pretraining_data from sentences to shards, each run a fresh process, and
google's original, unmodified under TensorFlow 2's compat.v1, on the first --original_bytes.

Examples:
  python -m tools.benchmarks.tokenizer --vocab_file=vocab.txt --input_file=wiki.jsonl.xz
  python -m tools.benchmarks.tokenizer --task=certify --vocab_file=vocab.txt --input_file=mine.txt
  python -m tools.benchmarks.tokenizer --task=creation --vocab_file=vocab.txt \
      --input_file=sentences.txt --original=PATH/TO/google-research-bert
"""

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, Options, option
from tools.benchmarks.measuring import in_turns, report, seconds_of
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

TOKENIZER, CERTIFY, CREATION = "tokenizer", "certify", "creation"


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(Options):
    """The options of the comparison."""

    task: str = option(TOKENIZER, "What to measure.", choices=(TOKENIZER, CERTIFY, CREATION))
    input_file: tuple[str, ...] = option((), "The text or sentences: paths or glob patterns.")
    text_field: str | None = option(
        None, "The field of JSON lines; by default `text` for .jsonl files, else plain lines."
    )
    vocab_file: str = option(REQUIRED, "The vocabulary: one token a line.")
    do_lower_case: bool = option(True, "Whether text is lower-cased.")
    num_lines: int = option(30 * 1024, "How many lines tokenizers read.", at_least=1024)
    rounds: int = option(5, "How often each tokenizer reads all lines.", at_least=1)
    original: str | None = option(None, "The folder with google-research/bert.")
    original_bytes: int = option(
        5_000_000, "How much of the text the original gets; its cost is linear.", at_least=1
    )
    workers: tuple[int, ...] = option((1, 2), "Numbers of workers to create data with.")
    max_seq_length: int = option(128, "Tokens of an example.", at_least=8)
    dupe_factor: int = option(10, "Copies of every document.", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task != CERTIFY and not self.input_file:
            raise UserError("there is nothing to read; give `input_file`.")

    @property
    def settings(self) -> "TextSettings":
        from keras_bert_impl.tokenization.text_settings import TextSettings
        from keras_bert_impl.tokenization.vocabulary import Vocabulary

        return TextSettings(Vocabulary.load(self.vocab_file), self.do_lower_case)

    def tokenizer(self) -> "Tokenizer":
        from keras_bert_impl.tokenization.tokenizer import Tokenizer

        return Tokenizer(self.settings)

    def lines(self) -> Iterator[str | bytes]:
        from pipelines.corpora.tokenize_text import read_all_lines

        by_name = "text" if any(".json" in name for name in self.input_file) else None
        return read_all_lines(
            self.input_file, by_name if self.text_field is None else self.text_field or None
        )


FLAGS = ConfigFlags(__doc__, TokenizerConfig)

_BATCH, _SLOW_SHARE = 1024, 8
_Cut = Callable[[list[str]], Any]
_Cuts = Mapping[str, tuple[_Cut, Callable[[Any], Iterable[list[int]]]]]
_SHIM = """
import sys, types
import tensorflow as tf2
tf = tf2.compat.v1
tf.python_io = types.SimpleNamespace(TFRecordWriter=tf2.io.TFRecordWriter)
tf.gfile.GFile, tf.gfile.Glob = tf2.io.gfile.GFile, tf2.io.gfile.glob
sys.modules["tensorflow"] = tf
sys.path.insert(0, sys.argv.pop(1))
import create_pretraining_data
tf.app.run(create_pretraining_data.main)
"""


def _megabytes(texts: Iterable[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def tokenizers_of(config: TokenizerConfig) -> _Cuts:
    """Each tokenizer as a function of a batch, and what turns its result into lists of ids."""
    import tensorflow as tf
    import tensorflow_text as tf_text
    import tokenizers

    from keras_bert_impl.tokenization.preprocessor import GraphTokenizer

    settings, lower = config.settings, config.do_lower_case
    graph = tf.function(
        GraphTokenizer(settings), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    fast = tf_text.FastBertTokenizer(
        list(settings.vocabulary.tokens), lower_case_nfd_strip_accents=lower
    )
    rust = tokenizers.BertWordPieceTokenizer(config.vocab_file, lowercase=lower)
    return {
        "this project": (
            config.tokenizer().encode_lines,
            lambda block: [
                block.ids[a:b].tolist() for a, b in itertools.pairwise(block.offsets.tolist())
            ],
        ),
        "this project, in a graph": (
            lambda lines: graph(tf.constant(lines)),
            lambda ids: ids.to_list(),
        ),
        "tf_text.FastBertTokenizer": (
            fast.tokenize,
            lambda ids: ids.merge_dims(1, -1).to_list() if ids.ragged_rank > 1 else ids.to_list(),
        ),
        "tokenizers, encode_batch": (
            lambda lines: rust.encode_batch(lines, add_special_tokens=False),
            lambda encodings: [encoding.ids for encoding in encodings],
        ),
    }


def differing_lines(
    cuts: _Cuts, batches: list[list[str]], settings: "TextSettings"
) -> dict[str, int]:
    """On how many lines each tokenizer's ids are not the reference's."""
    from keras_bert_impl.tokenization.certificate import RememberingReference

    reference, counts = RememberingReference(settings), dict.fromkeys(cuts, 0)
    for batch in batches:
        expected = [reference.encode(line) for line in batch]
        for name, (cut, rows) in cuts.items():
            counts[name] += sum(a != b for a, b in zip(rows(cut(batch)), expected, strict=True))
    return counts


def _compare_tokenizers(config: TokenizerConfig) -> None:
    os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    found = itertools.islice(config.lines(), config.num_lines)
    lines = [line if isinstance(line, str) else line.decode("utf-8", "ignore") for line in found]
    batches = [lines[start : start + _BATCH] for start in range(0, len(lines), _BATCH)]
    cuts = tokenizers_of(config)

    def speed(name: str) -> float:
        cut, part = cuts[name][0], batches[:: _SLOW_SHARE if name.startswith("tokenizers") else 1]
        cut(batches[0])
        seconds = seconds_of(lambda: [cut(batch) for batch in part], time.process_time)
        return _megabytes(itertools.chain(*part)) / seconds

    speeds = in_turns({name: partial(speed, name) for name in cuts}, config.rounds)
    differing = differing_lines(cuts, batches, config.settings)
    rows = {
        name: [{"MB/s": one, "differing lines": differing[name]} for one in values]
        for name, values in speeds.items()
    }
    report(rows, lines=len(lines), megabytes=_megabytes(lines), do_lower_case=config.do_lower_case)


def _certify(config: TokenizerConfig) -> None:
    from keras_bert_impl.tokenization.certificate import certify_lines, code_point_lines
    from keras_bert_impl.tokenization.character_table import CharacterTable

    tokenizer, exact = config.tokenizer(), True
    about = {
        "do_lower_case": config.do_lower_case,
        "vocabulary_sha256": tokenizer.vocabulary.sha256,
        "unicode_version": CharacterTable.load().unicode_version,
    }
    sources: dict[str, Iterable[str | bytes]] = {"code points": code_point_lines()}
    if config.input_file:
        sources["lines"] = config.lines()
    for what, lines in sources.items():
        found = certify_lines(tokenizer, lines)
        exact &= not found.differing
        print(f"{what}: {found.differing:,} of {found.compared:,} differ", flush=True)
        row = {"compared with the reference": what, **asdict(found), **about}
        print(json.dumps(row), flush=True)
    if not exact:
        raise UserError("some tokens differ from the reference's; the first are shown above.")


def timed(command: list[str]) -> dict[str, float]:
    """Seconds of a command, and the peak MiB of its largest process."""
    start = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(f"{' '.join(command)} failed: {(result.stdout + result.stderr)[-2000:]}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"seconds": time.monotonic() - start, "peak_mib": peak / 2**10}


def time_run(config: TokenizerConfig, workers: int | None, folder: Path) -> dict[str, float]:
    """Times a run with workers, or of the original (None); it writes its shards to a folder."""
    from pipelines.records.check import find_shards
    from pipelines.records.reader import load_sizes

    target = folder / f"{workers}.tfrecord"
    flags = [
        f"--vocab_file={config.vocab_file}",
        f"--max_seq_length={config.max_seq_length}",
        f"--max_predictions_per_seq={max(1, round(config.max_seq_length * 0.15))}",
        f"--dupe_factor={config.dupe_factor}",
        f"--output_file={target}",
    ]
    if workers:
        command = ["-m", "tools.create_pretraining_data", f"--num_workers={workers}"]
        command.append(f"--input_file={','.join(config.input_file)}")
    else:
        text = Path(config.input_file[0]).read_bytes()[: config.original_bytes]
        part = folder / "part.txt"
        part.write_bytes(text[: text.rfind(b"\n\n") + 2])  # whole documents
        command = ["-c", _SHIM, str(config.original), f"--input_file={part}"]
    measured = timed([sys.executable, *command, *flags])
    examples = sum(len(load_sizes(shard.path)) for shard in find_shards([str(target)]))
    return {"examples": examples, "examples/s": examples / measured["seconds"], **measured}


def _time_creation(config: TokenizerConfig) -> None:
    found = dict[str, list[dict[str, float]]]()
    with tempfile.TemporaryDirectory() as folder:
        for workers in [*([None] if config.original else []), *config.workers]:
            who = f"ours, {workers} workers" if workers else "google's original"
            found[who] = [time_run(config, workers, Path(folder))]
    report(found, length=config.max_seq_length)


_TASKS = {TOKENIZER: _compare_tokenizers, CERTIFY: _certify, CREATION: _time_creation}


def _run(config: TokenizerConfig) -> None:
    _TASKS[config.task](config)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
