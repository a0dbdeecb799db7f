"""The contenders of the serving benchmark: from a model directory to a function of texts.

Each runs as its users are told to run it, with the threads that all have: texts in, one mean vector
a text out, tokenizing included. None pads more than it must.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]
TOKENS_AT_ONCE = 1024


@dataclass(frozen=True)
class Setting:
    """What every contender gets.

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
        lengths = np.array([len(row) for row in rows])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        padded = np.zeros_like(mask)
        padded[mask > 0] = np.concatenate(rows)
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
        lengths = np.array([len(row) for row in rows])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int32)
        padded = np.zeros_like(mask)
        padded[mask > 0] = np.concatenate(rows)
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


Tokenize = Callable[[Sequence[str]], list[list[int]]]


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
    import json

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
        count = max(1, TOKENS_AT_ONCE // len(rows[order[0]]))
        yield order[:count]
        order = order[count:]


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
