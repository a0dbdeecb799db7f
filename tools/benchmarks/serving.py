"""Compares how fast texts become vectors: here, and with what people serve with, in one run.

Raw text in, one mean vector a text out. Three workloads: mixed, texts of the file as they are;
equal, texts of so many tokens; one, a text at a time. Every contender is a process of its own with
the same threads, opened once; they take turns, round after round, so that a slow minute of the
machine does not hit one of them alone. The figures are medians of the rounds. The products are the
matrix products alone, whatever computes them: nothing that multiplies like that can be faster.

same_bytes is the share of texts whose vector has the same bytes computed alone and among 64.

All are open at the same time: of a base model each takes 1 to 3 GB, so name those of one precision
there. A contender that is not installed, or that fails, is left out with a sentence. Peers need
sentence-transformers, torch, optimum-intel, ctranslate2, onnx, onnxruntime and keras-hub.

Examples:
  python -m tools.benchmarks.serving --model=all-MiniLM-L6-v2 --input_file=lines.txt
  python -m tools.benchmarks.serving --model=all-MiniLM-L6-v2 --random_size=base
      --input_file=lines.txt --contenders=ours_openvino_bfloat16,onnxruntime_int8
"""

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import text_lines
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.progress import Progress
from tools import command_line
from tools.config_flags import ConfigFlags

MIXED, EQUAL, ONE, SAME_BYTES = "mixed", "equal", "one", "same_bytes"
_SPEEDS = (MIXED, EQUAL, ONE)
_AMONG = 64
_CALIBRATION = 300
_WARM_UP = 300


@dataclass(frozen=True, kw_only=True)
class ServingConfig:
    """What is compared."""

    model: str = option(REQUIRED, "The model: a directory, or a name on the Hugging Face hub.")
    input_file: str = option(REQUIRED, "UTF-8 text, one text a line; texts are spread over it.")
    contenders: tuple[str, ...] = option((), "Who takes part; by default all.")
    random_size: str | None = option(
        None, "Take random weights of this size (such as base) in place of the model's."
    )
    num_mixed: int = option(2000, "Texts of the workload mixed.", at_least=1)
    num_equal: int = option(500, "Texts of the workload equal.", at_least=1)
    num_one: int = option(100, "Texts of the workload one.", at_least=1)
    num_same_bytes: int = option(10000, "Texts whose bytes are compared; 0 for none.", at_least=0)
    length: int = option(128, "Tokens of an equal text, and the most of any.", at_least=8)
    threads: int = option(2, "Threads of every contender.", at_least=1)
    rounds: int = option(5, "How often they take turns.", at_least=1)
    child: str | None = option(None, "Runs one contender (used by the tool itself).")

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, ServingConfig)


class LeftOutError(Exception):
    """A contender cannot take part; the message says why."""


class Child:
    """A contender in a process of its own.

    Args:
        name: the contender.
        setting: what it gets, as JSON.
        folder: where its messages go.
    """

    def __init__(self, name: str, setting: Mapping[str, Any], folder: Path) -> None:
        self.name, self._errors = name, folder / f"{name}.log"
        words = json.dumps({"contender": name, "setting": setting})
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tools.benchmarks.serving", "--model=", "--input_file=",
                 f"--child={words}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            )  # fmt: skip

    def ask(self, workload: str, texts: Sequence[str]) -> float:
        """Runs a workload; gives its figure.

        Raises:
            LeftOutError: the process ended.
        """
        try:
            _send(self._process.stdin, {"workload": workload, "texts": list(texts)})
            answer = self._process.stdout.readline() if self._process.stdout else ""
        except OSError:
            answer = ""
        if not answer:
            lines = self._errors.read_text(errors="replace").strip().splitlines()
            raise LeftOutError((lines or ["it gave no reason"])[-1])
        return float(json.loads(answer))

    def end(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait()


def _send(file: IO[str] | None, message: Mapping[str, Any]) -> None:
    assert file is not None
    file.write(json.dumps(message) + "\n")
    file.flush()


def serve_child(words: str) -> None:
    """The child: opens its contender, then answers workloads with a figure each."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    from tools.benchmarks.serving_contenders import CONTENDERS, Setting

    given = json.loads(words)
    contender = CONTENDERS[given["contender"]]
    cores = sorted(os.sched_getaffinity(0))[: given["setting"]["threads"]]
    os.sched_setaffinity(0, cores)
    embed = contender.make(Setting(**given["setting"], precision=contender.precision))
    for line in sys.stdin:
        asked = json.loads(line)
        figure = figure_of(embed, asked["workload"], asked["texts"])
        answers.write(f"{json.dumps(figure)}\n")
        answers.flush()


def figure_of(embed: Any, workload: str, texts: Sequence[str]) -> float:
    """What a workload gives: texts a second; of one milliseconds; of same_bytes a share."""
    if workload == SAME_BYTES:
        import numpy as np

        starts = range(0, len(texts), _AMONG)
        among = np.concatenate([embed(texts[start : start + _AMONG]) for start in starts])
        alone = np.concatenate([embed([text]) for text in texts])
        return float((among.view(np.uint32) == alone.view(np.uint32)).all(axis=1).mean())
    if workload == ONE:
        return 1000 * statistics.median(_seconds(embed, [text]) for text in texts)
    return len(texts) / _seconds(embed, texts)


def _seconds(embed: Any, texts: Sequence[str]) -> float:
    start = time.perf_counter()
    embed(texts)
    return time.perf_counter() - start


def read_texts(config: ServingConfig) -> dict[str, list[str]]:
    """The texts of each workload.

    Raises:
        UserError: the file has too few.
    """
    lines = [line for line in text_lines(config.input_file) if line.strip()]
    if len(lines) < config.num_mixed:
        raise UserError(
            f"{config.input_file}: has {len(lines)} texts; give one with {config.num_mixed}, or "
            "lower `num_mixed`."
        )
    mixed = _spread(lines, config.num_mixed)
    # Every word is a token at least, so these have more tokens than are read.
    words = " ".join(lines[: config.num_equal * config.length]).split()
    equal = [
        " ".join(words[(number * config.length + n) % len(words)] for n in range(config.length))
        for number in range(config.num_equal)
    ]
    one = _spread(mixed, min(config.num_one, len(mixed)))
    return {
        MIXED: mixed,
        EQUAL: equal,
        ONE: one,
        SAME_BYTES: _spread(lines, min(config.num_same_bytes, len(lines))),
        "calibration": _spread(lines, min(_CALIBRATION, len(lines))),
    }


def _spread(items: Sequence[str], count: int) -> list[str]:
    return [items[number * len(items) // count] for number in range(count)]


def write_model(config: ServingConfig, folder: Path) -> None:
    """The model as every contender opens it: with mean pooling, not scaled."""
    from keras_bert_impl.config import named_config
    from keras_bert_impl.models.embedder import BertEmbedder
    from keras_bert_impl.serving.embedder import Embedder

    embedder = Embedder.from_pretrained(config.model, pooling="mean", normalize=False)
    if config.random_size:
        sizes = named_config(config.random_size, len(embedder.text.vocabulary))
        embedder = Embedder(BertEmbedder(sizes.replace(hidden_act="gelu_erf")), embedder.text)
    embedder.save_pretrained(folder)


Figures = dict[str, dict[str, list[float]]]


def compare(config: ServingConfig, folder: Path) -> Figures:
    """The figures of every contender by workload, a round each."""
    from tools.benchmarks.serving_contenders import CONTENDERS

    unknown = sorted(set(config.contenders) - set(CONTENDERS))
    if unknown:
        raise UserError(f"`contenders`: {unknown[0]} is none; choose of {', '.join(CONTENDERS)}.")
    texts = read_texts(config)
    write_model(config, folder / "model")
    setting = {
        "model": str(folder / "model"),
        "threads": config.threads,
        "length": config.length,
        "calibration": texts["calibration"],
    }
    figures: Figures = {}
    with contextlib.ExitStack() as stack:
        children: list[Child] = []
        names = config.contenders or tuple(CONTENDERS)
        opening = Progress("open", len(names), "contenders")
        for name in names:
            child = Child(name, setting, folder)
            stack.callback(child.end)
            with _left_out(name):  # the first texts open it, one after the other, and warm it up
                child.ask(MIXED, texts[MIXED][:_WARM_UP])
                child.ask(ONE, texts[ONE][:2])
                children.append(child)
            opening.advance(note=name)
        opening.close()
        turns = Progress("compare", config.rounds * len(children), "turns")
        for number in range(config.rounds):
            for child in [*children]:
                with _left_out(child.name, children, child):
                    _ask_all(child, texts, figures, with_bytes=number == 0)
                turns.advance(note=child.name)
        turns.close()
    return figures


def _ask_all(
    child: Child, texts: Mapping[str, Sequence[str]], figures: Figures, *, with_bytes: bool
) -> None:
    own = figures.setdefault(child.name, {})
    real = not child.name.startswith("products")
    wanted = _SPEEDS + ((SAME_BYTES,) if with_bytes and real and texts[SAME_BYTES] else ())
    for workload in wanted:
        own.setdefault(workload, []).append(child.ask(workload, texts[workload]))


@contextlib.contextmanager
def _left_out(
    name: str, children: list[Child] | None = None, child: Child | None = None
) -> Iterator[None]:
    """Says in a sentence why a contender does not take part, and goes on without it."""
    try:
        yield
    except LeftOutError as error:
        sys.stderr.write(f"{name} is left out: {error}\n")
        if children is not None and child is not None:
            children.remove(child)


def table(figures: Figures) -> list[str]:
    """The medians, and each of ours beside the best peer of its precision.

    Example:
        >>> for line in table({"ours_openvino_int8": {"mixed": [4.0], "one": [2.0]},
        ...                    "onnxruntime_int8": {"mixed": [2.0], "one": [3.0]}}):
        ...     print(line.rstrip())
        contender                                  mixed    equal   one ms  same_bytes
        ours_openvino_int8                           4.0              2.00
          beside the best peer                      2.00              1.50
        onnxruntime_int8                             2.0              3.00
    """
    lines = [f"{'contender':38} {MIXED:>9}{EQUAL:>9}{'one ms':>9}{SAME_BYTES:>12}"]
    medians = {
        name: {workload: statistics.median(values) for workload, values in own.items()}
        for name, own in figures.items()
    }
    for name, own in medians.items():
        lines.append(_row(name, own, {MIXED: ".1f", EQUAL: ".1f", ONE: ".2f", SAME_BYTES: ".1%"}))
        if name.startswith("ours"):
            beside = _beside_the_best(name, medians)
            if beside:
                lines.append(_row("  beside the best peer", beside, dict.fromkeys(_SPEEDS, ".2f")))
    return lines


def _row(name: str, own: Mapping[str, float], forms: Mapping[str, str]) -> str:
    widths = {MIXED: 9, EQUAL: 9, ONE: 9, SAME_BYTES: 12}
    cells = [
        f"{own[workload]:{forms[workload]}}".rjust(width)
        if workload in own and workload in forms
        else " " * width
        for workload, width in widths.items()
    ]
    return f"{name:38} {''.join(cells)}"


def _beside_the_best(name: str, medians: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """How many times as fast as the fastest peer of the same precision, by workload."""
    from tools.benchmarks.serving_contenders import CONTENDERS

    peers = [
        own
        for other, own in medians.items()
        if CONTENDERS[other].is_peer and CONTENDERS[other].precision == CONTENDERS[name].precision
    ]
    ratios = {}
    for workload in _SPEEDS:
        theirs = [own[workload] for own in peers if workload in own]
        if theirs and workload in medians[name]:
            mine = medians[name][workload]
            ratios[workload] = min(theirs) / mine if workload == ONE else mine / max(theirs)
    return ratios


def _run() -> None:
    config = FLAGS.config()
    if config.child:
        serve_child(config.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = compare(config, Path(folder))
    options = {k: str(v) for k, v in dataclasses.asdict(config).items() if v not in (None, ())}
    print(f"# {json.dumps(options)}")
    for line in table(figures):
        print(line)
    for name, own in figures.items():
        print(json.dumps({"contender": name, **own}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
