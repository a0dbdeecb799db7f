"""Compares how fast texts become vectors, here and with sentence-transformers; tries an index.

Raw text in, one mean vector a text out. Three workloads: mixed, texts of the file as they are;
equal, texts of so many tokens; one, a text at a time. Every contender is a process of its own with
the same threads, opened once; they take turns, so that a slow minute of the machine does not hit
one of them alone. The figures are medians of the rounds. Each contender runs as its documentation
says, tokenizing included; none pads more than it must.

All are open at the same time: of a base model each takes 1 to 3 GB, so name those of one precision
there. A contender that is not installed, or that fails, is left out with a sentence. Peers need
sentence-transformers, torch, optimum-intel and optimum-onnx.

With --vectors_file, vectors that embed wrote, their index is tried instead: 200 of them are left
out of it and searched for, one at a time; by the graph on one core, exactly on so many as threads.

Examples:
  python -m tools.benchmarks.vectors --model=all-MiniLM-L6-v2 --input_file=lines.txt
  python -m tools.benchmarks.vectors --model=all-MiniLM-L6-v2
      --input_file=lines.txt --contenders=ours_openvino_int8,sentence_transformers_onnx_float32
  python -m tools.benchmarks.vectors --vectors_file=lines.npy
"""

import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import Options, option
from pipelines.vectors.index import VectorIndex
from tools.benchmarks import measuring
from tools.config_flags import ConfigFlags

MIXED, EQUAL, ONE = "mixed", "equal", "one"
_WORKLOADS = {MIXED: "mixed, /s", EQUAL: "equal, /s", ONE: "one, ms"}
_CALIBRATION = 300
_WARM_UP = 300
_SEARCHED, _ADDED = 200, 100_000

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, kw_only=True)
class VectorsConfig(Options):
    """The options of the comparison."""

    model: str = option("", "The model: a directory, or a name on the Hugging Face hub.")
    input_file: str = option("", "UTF-8 text, one text a line; texts are spread over it.")
    vectors_file: Path | None = option(None, "Vectors whose index is tried (.npy), and no model.")
    contenders: tuple[str, ...] = option((), "Who takes part; by default all.")
    num_mixed: int = option(2000, "Texts of the workload mixed.", at_least=1)
    num_equal: int = option(500, "Texts of the workload equal.", at_least=1)
    num_one: int = option(100, "Texts of the workload one.", at_least=1)
    length: int = option(128, "Tokens of an equal text, and the most of any.", at_least=8)
    threads: int = option(2, "Threads of every contender.", at_least=1)
    rounds: int = option(5, "How often they take turns.", at_least=1)
    child: str | None = option(None, "Runs one contender (used by the tool itself).")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.vectors_file and not (self.model and self.input_file):
            raise UserError("give `model` and `input_file`, or `vectors_file`.")


FLAGS = ConfigFlags(__doc__, VectorsConfig)


@dataclass(frozen=True)
class ContenderSetting:
    """The input of every contender; `model` is a sentence-transformers directory.

    TensorFlow and our OpenVINO see the threads by the process' cores.
    """

    model: str
    threads: int
    length: int
    precision: str
    calibration: Sequence[str] = ()


def ours(engine: str, deterministic: bool, setting: ContenderSetting) -> Embed:
    """`kb.Embedder`, with an engine."""
    from keras_bert_impl.serving.embedder import Embedder

    embedder = Embedder.from_pretrained(
        setting.model,
        engine=engine,
        precision=setting.precision,
        max_seq_length=setting.length,
        deterministic=deterministic,
        calibration_texts=setting.calibration,
    )
    return embedder.embed


def sentence_transformers(backend: str, setting: ContenderSetting) -> Embed:
    """sentence-transformers on PyTorch; on OpenVINO or ONNX Runtime through optimum."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(setting.threads)
    options: dict[str, Any] = {}
    if backend == "openvino":
        hint = {"float32": "f32", "bfloat16": "bf16"}[setting.precision]
        settings = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": setting.threads}
        options = {"ov_config": settings, "export": True}
    elif backend == "onnx":
        import onnxruntime

        session = onnxruntime.SessionOptions()
        session.intra_op_num_threads = setting.threads
        options = {"session_options": session, "export": True}
    model = SentenceTransformer(
        setting.model, device="cpu", backend=backend, model_kwargs=options or None
    )
    model.max_seq_length = setting.length
    if backend == "torch" and setting.precision == "bfloat16":
        model = model.bfloat16()
    return lambda texts: np.asarray(model.encode(list(texts), show_progress_bar=False), np.float32)


def _contenders() -> Mapping[str, tuple[Callable[[ContenderSetting], Embed], str]]:
    """What makes each contender's function of texts, and its precision, by its name."""
    found = {}
    for precision, engines, backends in (
        ("float32", ("tensorflow", "openvino"), ("torch", "openvino", "onnx")),
        ("bfloat16", ("tensorflow", "openvino"), ("torch", "openvino")),
        ("int8", ("openvino",), ()),
    ):
        for engine in engines:
            for alone in (False, True):
                name = f"ours_{engine}_{precision}{'_alone' if alone else ''}"
                found[name] = partial(ours, engine, alone), precision
        for backend in backends:
            name = f"sentence_transformers_{backend}_{precision}"
            found[name] = partial(sentence_transformers, backend), precision
    return found


CONTENDERS = _contenders()


def serve_child(words: str) -> None:
    """The child: opens its contender, then answers workloads with a figure each."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    given = json.loads(words)
    make, precision = CONTENDERS[given["contender"]]
    os.sched_setaffinity(0, measuring.cores()[: given["setting"]["threads"]])
    embed = make(ContenderSetting(**given["setting"], precision=precision))
    for line in sys.stdin:
        asked = json.loads(line)
        figure = figure_of(embed, asked["workload"], asked["texts"])
        answers.write(f"{json.dumps(figure)}\n")
        answers.flush()


def figure_of(embed: Any, workload: str, texts: Sequence[str]) -> float:
    """The unit of a workload: texts a second; alone, milliseconds."""
    if workload == ONE:
        return 1000 * statistics.median(
            measuring.seconds_of(partial(embed, [text])) for text in texts
        )
    return len(texts) / measuring.seconds_of(partial(embed, texts))


def read_texts(config: VectorsConfig) -> dict[str, list[str]]:
    """The texts of each workload."""
    mixed = measuring.spread_texts(config.input_file, config.num_mixed)
    # Every word is a token at least, so these have more tokens than are read.
    words = " ".join(mixed[: config.num_equal * config.length]).split()
    equal = [
        " ".join(words[(number * config.length + n) % len(words)] for n in range(config.length))
        for number in range(config.num_equal)
    ]
    return {
        MIXED: mixed,
        EQUAL: equal,
        ONE: measuring.spread_over(mixed, min(config.num_one, len(mixed))),
        "calibration": measuring.spread_over(mixed, min(_CALIBRATION, len(mixed))),
    }


def write_model(config: VectorsConfig, folder: Path) -> None:
    """The model as every contender opens it: with mean pooling, not scaled."""
    from keras_bert_impl.serving.embedder import Embedder

    embedder = Embedder.from_pretrained(config.model, pooling="mean", normalize=False)
    embedder.save_pretrained(folder)


def compare(config: VectorsConfig, folder: Path) -> dict[str, list[dict[str, float]]]:
    """The figures of every contender, round by round."""
    unknown = sorted(set(config.contenders) - set(CONTENDERS))
    if unknown:
        raise UserError(f"`contenders`: {unknown[0]} is unknown; name {', '.join(CONTENDERS)}.")
    texts = read_texts(config)
    write_model(config, folder / "model")
    setting = {
        "model": str(folder / "model"),
        "threads": config.threads,
        "length": config.length,
        "calibration": texts["calibration"],
    }
    with contextlib.ExitStack() as stack:

        def opened(name: str) -> measuring.Child:
            case = {"contender": name, "setting": setting}
            child = measuring.Child("tools.benchmarks.vectors", case, "--model=", "--input_file=")
            stack.callback(child.end)
            # The first texts open it, one after the other, and warm it up.
            child.ask({"workload": MIXED, "texts": texts[MIXED][:_WARM_UP]})
            # All of them: some compile for lengths in the background.
            child.ask({"workload": ONE, "texts": texts[ONE]})
            return child

        names = config.contenders or tuple(CONTENDERS)
        children = measuring.in_turns({name: partial(opened, name) for name in names}, label="open")

        def ask(name: str) -> dict[str, float]:
            (child,) = children[name]
            return {
                unit: child.ask({"workload": what, "texts": texts[what]})
                for what, unit in _WORKLOADS.items()
            }

        return measuring.in_turns({name: partial(ask, name) for name in children}, config.rounds)


def try_index(config: VectorsConfig, folder: Path) -> dict[str, float]:
    """What an index of the vectors of a file takes, and finds."""
    vectors = np.load(config.vectors_file or "", mmap_mode="r")
    held_out = np.unique(np.linspace(0, len(vectors) - 1, _SEARCHED).astype(int))
    index = VectorIndex.create(folder / "index", size=vectors.shape[1])
    for start in range(0, len(vectors), _ADDED):
        numbers = np.setdiff1d(np.arange(start, min(start + _ADDED, len(vectors))), held_out)
        index.add(vectors=vectors[numbers])
    figures = {"vectors": float(len(index)), "build_seconds": measuring.seconds_of(index.build)}
    own = index.recall
    assert own is not None, "it was built"
    figures |= {"ef": own["ef"], "own_recall": own["recall"]}
    figures["graph_bytes"] = (folder / "index" / "graph").stat().st_size
    queries = np.array(vectors[held_out])[:, None]
    found = dict[bool, list[Any]]()
    for exact, number in ((True, config.threads), (False, 1)):
        os.sched_setaffinity(0, measuring.cores()[:number])
        ask = partial(index.nearest, count=10, exact=exact)
        found[exact] = [ask(query)[1] for query in queries]  # also warms it up
        ms = [1000 * measuring.seconds_of(partial(ask, query)) for query in queries]
        figures["exact_ms" if exact else "graph_ms"] = statistics.median(ms)
    least = np.concatenate(found[True])[:, -1:] - 1e-6
    figures["recall"] = float(np.mean(np.concatenate(found[False]) >= least))
    return figures


def _run(config: VectorsConfig) -> None:
    if config.child:
        serve_child(config.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        if config.vectors_file:
            print(json.dumps(try_index(config, Path(folder))))
            return
        found = compare(config, Path(folder))
    measuring.report(found, **{k: str(v) for k, v in asdict(config).items() if v not in (None, ())})


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
