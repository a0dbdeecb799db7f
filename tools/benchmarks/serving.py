"""Compares how fast texts become vectors: here, and with what people serve with, in one run.

Raw text in, one mean vector a text out. Four workloads: mixed, texts of the file as they are;
equal, texts of so many tokens; one, a text at a time; short, the first 3 to 12 words of these, one
at a time. Every contender is a process of its own with
the same threads, opened once; they take turns, round after round, so that a slow minute of the
machine does not hit one of them alone. The figures are medians of the rounds. The products are the
matrix products alone, whatever computes them: nothing that multiplies like that can be faster.
Each contender runs as its users are told to run it, tokenizing included; none pads more than it
must.

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
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import text_lines
from keras_bert_impl.options import REQUIRED, check_options, option
from tools.benchmarks.measuring import Child, Table, cores, in_turns, seconds_of, show_json
from tools.config_flags import ConfigFlags

MIXED, EQUAL, ONE, SHORT, SAME_BYTES = "mixed", "equal", "one", "short", "same_bytes"
_ALONE = (ONE, SHORT)
_SPEEDS, _FORMATS = (MIXED, EQUAL, *_ALONE), (".1f", ".1f", ".2f", ".2f")
_SHORTEST, _SHORT = 3, 12  # words
_AMONG = 64
_CALIBRATION = 300
_WARM_UP = 300
_TOKENS_AT_ONCE = 1024

Figures = dict[str, dict[str, list[float]]]
Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]
Tokenize = Callable[[Sequence[str]], list[list[int]]]


@dataclass(frozen=True, kw_only=True)
class ServingConfig:
    """The options of the comparison."""

    model: str = option(REQUIRED, "The model: a directory, or a name on the Hugging Face hub.")
    input_file: str = option(REQUIRED, "UTF-8 text, one text a line; texts are spread over it.")
    contenders: tuple[str, ...] = option((), "Who takes part; by default all.")
    random_size: str | None = option(
        None, "Take random weights of this size (such as base) in place of the model's."
    )
    num_mixed: int = option(2000, "Texts of the workload mixed.", at_least=1)
    num_equal: int = option(500, "Texts of the workload equal.", at_least=1)
    num_one: int = option(100, "Texts of the workloads one and short.", at_least=1)
    num_same_bytes: int = option(10000, "Texts whose bytes are compared; 0 for none.", at_least=0)
    length: int = option(128, "Tokens of an equal text, and the most of any.", at_least=8)
    threads: int = option(2, "Threads of every contender.", at_least=1)
    rounds: int = option(5, "How often they take turns.", at_least=1)
    child: str | None = option(None, "Runs one contender (used by the tool itself).")

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, ServingConfig)


@dataclass(frozen=True)
class Setting:
    """The input of every contender.

    Attributes:
        model: a sentence-transformers directory with mean pooling.
        threads: how many it may use; TensorFlow and our OpenVINO see it by the process' cores.
        length: the most tokens of a text.
        precision: "float32", "bfloat16" or "int8".
        calibration: texts for the scales of int8.
    """

    model: str
    threads: int
    length: int
    precision: str
    calibration: Sequence[str] = ()


def ours(engine: str, deterministic: bool, setting: Setting) -> Embed:
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


def sentence_transformers(backend: str, setting: Setting) -> Embed:
    """sentence-transformers on PyTorch, or on OpenVINO through optimum-intel."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(setting.threads)
    options: dict[str, Any] = {}
    if backend == "openvino":
        hint = {"float32": "f32", "bfloat16": "bf16"}[setting.precision]
        settings = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": setting.threads}
        options = {"model_kwargs": {"ov_config": settings, "export": True}}
    model = SentenceTransformer(setting.model, device="cpu", backend=backend, **options)
    model.max_seq_length = setting.length
    if backend == "torch" and setting.precision == "bfloat16":
        model = model.bfloat16()
    return lambda texts: np.asarray(model.encode(list(texts), show_progress_bar=False), np.float32)


def ctranslate2(setting: Setting) -> Embed:
    """CTranslate2's encoder, texts sorted by length."""
    from ctranslate2 import Encoder
    from ctranslate2.converters import TransformersConverter

    folder = Path(tempfile.mkdtemp()) / "model"
    quantization = "int8" if setting.precision == "int8" else None
    TransformersConverter(setting.model).convert(str(folder), quantization=quantization)
    encoder = Encoder(
        str(folder), compute_type=setting.precision, intra_threads=setting.threads, inter_threads=1
    )

    def forward(rows: Sequence[list[int]]) -> Vectors:
        hidden = np.asarray(encoder.forward_batch(list(rows)).last_hidden_state)
        return _mean(hidden, [len(row) for row in rows])

    return _by_length(setting, forward)


def onnxruntime(setting: Setting) -> Embed:
    """ONNX Runtime on PyTorch's export, its graph fused for BERT; texts sorted by length."""
    import onnxruntime as ort
    import torch
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers.optimizer import optimize_model
    from transformers import AutoModel

    folder = Path(tempfile.mkdtemp())
    model = AutoModel.from_pretrained(setting.model, attn_implementation="eager").eval()
    names = ("input_ids", "attention_mask", "token_type_ids")
    ids = torch.ones([2, 8], dtype=torch.long)
    axes = {name: {0: "batch", 1: "length"} for name in (*names, "hidden")}

    class Hidden(torch.nn.Module):  # its inputs in an order, its output alone
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, mask: Any, segments: Any) -> Any:
            hidden = (1.0 - mask[:, None, None, :].float()) * -10000.0  # as its fusion knows it
            found = self.model(input_ids=ids, attention_mask=hidden, token_type_ids=segments)
            return found.last_hidden_state

    torch.onnx.export(
        Hidden().eval(),
        (ids, ids, 0 * ids),
        str(folder / "plain.onnx"),
        input_names=list(names),
        output_names=["hidden"],
        dynamic_axes=axes,
        dynamo=False,
    )
    heads, hidden = model.config.num_attention_heads, model.config.hidden_size
    fused = optimize_model(str(folder / "plain.onnx"), "bert", num_heads=heads, hidden_size=hidden)
    fused.save_model_to_file(str(folder / "float32.onnx"))
    if setting.precision == "int8":
        paths = (str(folder / name) for name in ("float32.onnx", "int8.onnx"))
        of_fused = {"DefaultTensorType": 1}  # float32: fused operations say no type
        quantize_dynamic(*paths, extra_options=of_fused)
    options = ort.SessionOptions()
    options.intra_op_num_threads = setting.threads
    session = ort.InferenceSession(
        str(folder / f"{setting.precision}.onnx"), options, providers=["CPUExecutionProvider"]
    )

    def forward(rows: Sequence[list[int]]) -> Vectors:
        padded, mask, lengths = _padded(rows, np.int64)
        (hidden,) = session.run(["hidden"], dict(zip(names, (padded, mask, 0 * mask), strict=True)))
        return _mean(hidden, lengths)

    return _by_length(setting, forward)


def keras_hub(setting: Setting) -> Embed:
    """KerasHub's encoder in a compiled graph, texts sorted by length."""
    import keras
    import keras_hub as hub
    import tensorflow as tf

    if setting.precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    encoder = hub.models.BertBackbone.from_preset(setting.model)
    compute = tf.function(lambda inputs: encoder(inputs)["sequence_output"], reduce_retracing=True)

    def forward(rows: Sequence[list[int]]) -> Vectors:
        padded, mask, lengths = _padded(rows, np.int32)
        inputs = {"token_ids": padded, "padding_mask": mask, "segment_ids": 0 * mask}
        hidden = compute({name: tf.constant(array) for name, array in inputs.items()})
        return _mean(tf.cast(hidden, tf.float32).numpy(), lengths)

    return _by_length(setting, forward)


def products(setting: Setting) -> Embed:
    """The matrix products alone of all batches (oneDNN): the ceiling; its vectors mean nothing."""
    import tensorflow as tf

    from keras_bert_impl.config import BertConfig

    config = BertConfig.from_google_file(Path(setting.model) / "config.json")
    hidden, wide, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    dtype = tf.bfloat16 if setting.precision == "bfloat16" else tf.float32
    numbers = partial(tf.random.normal, dtype=dtype)
    kernels = [
        numbers(shape)
        for shape in ((hidden, 3 * hidden), (hidden, hidden), (hidden, wide), (wide, hidden))
    ]

    @cache  # made when the contender is warmed up
    def operands(rows: int, length: int) -> tuple[Any, Any, Any]:
        narrow, broad = (numbers([rows * length, width]) for width in (hidden, wide))
        return narrow, broad, numbers([rows, heads, length, hidden // heads])

    def forward(rows: Sequence[list[int]]) -> Vectors:
        narrow, broad, parts = operands(len(rows), max(map(len, rows)))
        for _ in range(config.num_hidden_layers):
            for kernel in kernels:
                last = tf.matmul(broad if kernel.shape[0] == wide else narrow, kernel)
            last = tf.matmul(tf.matmul(parts, parts, transpose_b=True), parts)
        float(tf.cast(tf.reshape(last, [-1])[0], tf.float32))
        return np.zeros([len(rows), hidden], np.float32)

    tokenized = cache(_tokenizer(setting))  # the products alone: not tokenizing
    return _by_length(setting, forward, lambda texts: tokenized(tuple(texts)))


def _tokenizer(setting: Setting) -> Tokenize:
    """Ids of texts, by the tokenizer that most people use."""
    from tokenizers import BertWordPieceTokenizer

    lower = _lower_case(Path(setting.model))
    tokenizer = BertWordPieceTokenizer(str(Path(setting.model) / "vocab.txt"), lowercase=lower)
    tokenizer.enable_truncation(setting.length)
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]


def _by_length(
    setting: Setting,
    forward: Callable[[Sequence[list[int]]], Vectors],
    tokenize: Tokenize | None = None,
) -> Embed:
    """Texts in batches of about a thousand tokens, those of like lengths together."""
    tokenize = tokenize or _tokenizer(setting)

    def embed(texts: Sequence[str]) -> Vectors:
        rows = tokenize(texts)
        batches = list(_batches(rows))
        found = np.concatenate([forward([rows[number] for number in some]) for some in batches])
        vectors = np.empty_like(found)
        vectors[np.concatenate(batches)] = found
        return vectors

    return embed


def _lower_case(folder: Path) -> bool:
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    return bool(settings.get("do_lower_case", True))


def _batches(rows: Sequence[list[int]]) -> Iterator[list[int]]:
    """The numbers of the rows of each batch.

    Example:
        >>> list(_batches([[1], [1] * 600, [1] * 500]))
        [[1], [2, 0]]
    """
    order = sorted(range(len(rows)), key=lambda number: -len(rows[number]))
    while order:
        count = max(1, _TOKENS_AT_ONCE // len(rows[order[0]]))
        yield order[:count]
        order = order[count:]


def _padded(rows: Sequence[list[int]], dtype: Any) -> tuple[NDArray, NDArray, NDArray]:
    """Ids and mask [rows, length], and the lengths."""
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(dtype)
    padded = np.zeros_like(mask)
    padded[mask > 0] = np.concatenate(rows)
    return padded, mask, lengths


def _mean(hidden: NDArray, lengths: Any) -> Vectors:
    """The mean of each row's real tokens: [rows, length, width] -> [rows, width]."""
    counts = np.asarray(lengths)[:, None]
    real = np.arange(hidden.shape[1]) < counts  # [rows, length]
    sums = np.einsum("rlw,rl->rw", hidden.astype(np.float32), real.astype(np.float32))
    return (sums / counts).astype(np.float32)


@dataclass(frozen=True)
class Contender:
    """One row of the table.

    Attributes:
        make: makes its function of texts.
        precision: what it computes in.
        is_peer: whether we are compared with it.
    """

    make: Callable[[Setting], Embed]
    precision: str
    is_peer: bool = True


def _contenders() -> dict[str, Contender]:
    found = {f"products_{p}": Contender(products, p, False) for p in ("float32", "bfloat16")}
    for precision in ("float32", "bfloat16", "int8"):
        for engine in ("tensorflow", "openvino"):
            if (engine, precision) != ("tensorflow", "int8"):
                for alone in (False, True):
                    name = f"ours_{engine}_{precision}{'_alone' if alone else ''}"
                    found[name] = Contender(partial(ours, engine, alone), precision, False)
    for precision in ("float32", "bfloat16"):
        found[f"keras_hub_{precision}"] = Contender(keras_hub, precision)
        for backend in ("torch", "openvino"):
            name = f"sentence_transformers_{backend}_{precision}"
            found[name] = Contender(partial(sentence_transformers, backend), precision)
    for precision in ("float32", "int8"):
        found[f"ctranslate2_{precision}"] = Contender(ctranslate2, precision)
        found[f"onnxruntime_{precision}"] = Contender(onnxruntime, precision)
    return found


CONTENDERS = _contenders()


def serve_child(words: str) -> None:
    """The child: opens its contender, then answers workloads with a figure each."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    given = json.loads(words)
    contender = CONTENDERS[given["contender"]]
    os.sched_setaffinity(0, cores()[: given["setting"]["threads"]])
    embed = contender.make(Setting(**given["setting"], precision=contender.precision))
    for line in sys.stdin:
        asked = json.loads(line)
        figure = figure_of(embed, asked["workload"], asked["texts"])
        answers.write(f"{json.dumps(figure)}\n")
        answers.flush()


def figure_of(embed: Any, workload: str, texts: Sequence[str]) -> float:
    """The unit of a workload: texts a second; alone, milliseconds; of same_bytes a share."""
    if workload == SAME_BYTES:
        starts = range(0, len(texts), _AMONG)
        among = np.concatenate([embed(texts[start : start + _AMONG]) for start in starts])
        alone = np.concatenate([embed([text]) for text in texts])
        return float((among.view(np.uint32) == alone.view(np.uint32)).all(axis=1).mean())
    if workload in _ALONE:
        return 1000 * statistics.median(seconds_of(partial(embed, [text])) for text in texts)
    return len(texts) / seconds_of(partial(embed, texts))


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
        SHORT: [_cut(text, number) for number, text in enumerate(one)],
        SAME_BYTES: _spread(lines, min(config.num_same_bytes, len(lines))),
        "calibration": _spread(lines, min(_CALIBRATION, len(lines))),
    }


def _spread(items: Sequence[str], count: int) -> list[str]:
    return [items[number * len(items) // count] for number in range(count)]


def _cut(text: str, number: int) -> str:
    """The first words of a text; how many changes from number to number.

    Example:
        >>> [_cut("a b c d e", number) for number in range(2)]
        ['a b c', 'a b c d']
    """
    return " ".join(text.split()[: _SHORTEST + number % (_SHORT - _SHORTEST + 1)])


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


def compare(config: ServingConfig, folder: Path) -> Figures:
    """The figures of every contender by workload, a round each."""
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
    with contextlib.ExitStack() as stack:

        def opened(name: str) -> Child:
            case = {"contender": name, "setting": setting}
            child = Child("tools.benchmarks.serving", case, "--model=", "--input_file=")
            stack.callback(child.end)
            # The first texts open it, one after the other, and warm it up.
            child.ask({"workload": MIXED, "texts": texts[MIXED][:_WARM_UP]})
            for alone in _ALONE:  # all of them: some compile for lengths in the background
                child.ask({"workload": alone, "texts": texts[alone]})
            return child

        names = config.contenders or tuple(CONTENDERS)
        children = in_turns({name: partial(opened, name) for name in names}, label="open")

        compared = {name for name in children if name.startswith("products")}

        def ask(name: str) -> dict[str, float]:
            (child,) = children[name]
            wanted = list(_SPEEDS)
            if texts[SAME_BYTES] and name not in compared:  # once: bytes do not vary with the round
                compared.add(name)
                wanted.append(SAME_BYTES)
            return {what: child.ask({"workload": what, "texts": texts[what]}) for what in wanted}

        found = in_turns({name: partial(ask, name) for name in children}, config.rounds)
    return {
        name: {key: [one[key] for one in rounds if key in one] for key in rounds[0]}
        for name, rounds in found.items()
    }


def show(figures: Figures) -> None:
    """Prints the medians, and how much faster each of ours is than the best peer of its precision.

    Example:
        >>> show({"ours_openvino_int8": {"mixed": [4.0], "one": [2.0]},
        ...       "onnxruntime_int8": {"mixed": [2.0], "one": [3.0]}})
        contender                                  mixed     equal    one ms  short ms  same_bytes
        ours_openvino_int8                           4.0                2.00
          to the best peer                          2.00                1.50
        onnxruntime_int8                             2.0                3.00
    """
    table = Table(
        {"contender": "", MIXED: "", EQUAL: "", "one ms": "", "short ms": "", SAME_BYTES: ".1%"}, 38
    )
    medians = {
        name: {key: statistics.median(values) for key, values in own.items()}
        for name, own in figures.items()
    }
    for name, own in medians.items():
        speeds = [own.get(workload) for workload in _SPEEDS]
        cells = [f"{x:{how}}" if x else None for x, how in zip(speeds, _FORMATS, strict=True)]
        table.row(name, *cells, own.get(SAME_BYTES))
        if name.startswith("ours") and (ratios := _to_the_best(name, medians)):
            cells = [f"{ratios[key]:.2f}" if key in ratios else None for key in _SPEEDS]
            table.row("  to the best peer", *cells)


def _to_the_best(name: str, medians: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """How many times as fast as the fastest peer of the same precision, by workload."""
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
            ratios[workload] = min(theirs) / mine if workload in _ALONE else mine / max(theirs)
    return ratios


def _run(config: ServingConfig) -> None:
    if config.child:
        serve_child(config.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = compare(config, Path(folder))
    options = {k: str(v) for k, v in asdict(config).items() if v not in (None, ())}
    print(f"# {json.dumps(options)}")
    show(figures)
    for name, own in figures.items():
        show_json({"contender": name, **own})


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
