"""Clients of exported models: a short program in plain Python, with its files."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.tokenization.long_texts import HEAD_TAIL, TRUNCATE, WINDOWS
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import (
    CLS,
    MAX_CHARACTERS_PER_WORD,
    PAD,
    SEP,
    SPECIAL_TOKENS,
    UNK,
)

ONNX, OPENVINO, LITERT = "onnx", "openvino", "litert"

LABEL, LABELS, SCORE, EMBEDDING, OUTPUTS = "label", "labels", "score", "embedding", "outputs"
"""What a client answers: the best label with all probabilities, all labels that hold with them, a
number, a vector; or what the model gives, by name, where the answer is none of these."""

_OF_IDS = '''"""python client.py {usage} asks this model; needs {packages}."""

{standard}

{imports}

HERE = Path(__file__).parent
{settings}TOKENIZER = Tokenizer.from_file(str(HERE / "tokenizer.json"))
MODEL = {model}
NAMES = "input_ids", "input_mask", "segment_ids"


def answer(texts):  # a list of {what}
{check}{prompt}    found = TOKENIZER.encode_batch(texts)
{long}    rows = [(r.ids, r.attention_mask, r.type_ids) for r in found]
    features = dict(zip(NAMES, np.array([*zip(*rows)], np.int32)))
{compute}
{finish}


if __name__ == "__main__":
    try:
        print(*answer({arguments}), sep="\\n")
    except ValueError as error:
        sys.exit(str(error))
'''
_WHAT = {1: "texts", 2: "pairs of texts", None: "texts, or of pairs of texts"}
_CHECKS = {
    1: """    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("This model was trained on single texts: give one or more of them.")
""",
    2: """    if any(isinstance(pair, str) or len(pair) != 2 for pair in texts):
        raise ValueError("This model was trained on pairs of texts: give two texts.")
""",
    None: """    if not texts:
        raise ValueError("Give one text or more.")
""",
}
_ARGUMENTS = {1: "sys.argv[1:]", 2: "[tuple(sys.argv[1:])]", None: "sys.argv[1:]"}
_USAGE = {1: "'a text'", 2: "'a text' 'another'", None: "'a text'"}
_LONG = """    if any(row.overflowing for row in found):
        raise ValueError("A text is longer than a row; only the SavedModel {how}.")
"""
_HOW = {WINDOWS: "reads it in windows", HEAD_TAIL: "keeps its two ends"}


class _Runtime(NamedTuple):
    """How a runtime opens a model, and asks it for one output or for all by name."""

    package: str
    imports: str
    model: str
    one: str
    all: str


_RUNTIMES = {
    ONNX: _Runtime(
        "onnxruntime",
        "import onnxruntime",
        'onnxruntime.InferenceSession(HERE / "model.onnx", providers=["CPUExecutionProvider"])',
        'MODEL.run(["{name}"], features)[0]',
        "dict(zip((o.name for o in MODEL.get_outputs()), MODEL.run(None, features)))",
    ),
    OPENVINO: _Runtime(
        "openvino",
        'sys.modules["openvino_telemetry"] = None  # what reports each import over the network\n'
        "import openvino",
        'openvino.compile_model(HERE / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})',
        'MODEL(features)["{name}"]',
        "{port.any_name: value for port, value in MODEL(features).items()}",
    ),
    LITERT: _Runtime(
        "ai-edge-litert",
        "from ai_edge_litert.interpreter import Interpreter",
        'Interpreter(str(HERE / "model.tflite")).get_signature_runner()',
        'MODEL(**features)["{name}"]',
        "MODEL(**features)",
    ),
}

_LABELLED = (LABEL, LABELS)
_NAME = {LABEL: "logits", LABELS: "logits", SCORE: "logits", EMBEDDING: "embedding"}
_FINISHES = {
    LABEL: """    shares = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return [(SETTINGS["labels"][row.argmax()], row.tolist()) for row in shares]""",
    LABELS: """    labels, threshold = SETTINGS["labels"], SETTINGS["threshold"]
    shares = (1 / (1 + np.exp(-outputs))).tolist()
    held = [[label for label, x in zip(labels, row) if x >= threshold] for row in shares]
    return list(zip(held, shares))""",
    SCORE: "    return outputs[:, 0].tolist()",
    EMBEDDING: "    return outputs.tolist()",
    OUTPUTS: "    return [dict(zip(outputs, row)) for row in zip(*outputs.values())]",
}


def client_program(
    runtime: str,
    answers: str,
    has_prompt: bool = False,
    texts: int | None = None,
    long_text: str = TRUNCATE,
) -> str:
    """The program beside a model that takes ids.

    It reads `tokenizer.json` next to it and, as the answer needs them, the entries `labels`,
    `threshold` and `prompt` of `settings.json`.

    Args:
        runtime: "onnx", "openvino" or "litert".
        answers: one of this module's names for what it gives.
        has_prompt: whether something stands in front of every text.
        texts: how many texts an example has, 1 or 2; None takes both, text by text.
        long_text: what the model was trained to do with texts that are longer than a row; but
            for truncating them, the program refuses such texts.

    Raises:
        UserError: there is no such runtime.

    Example:
        >>> program = client_program("onnx", LABEL)
        >>> program.count("import onnxruntime"), program.count("keras")
        (1, 0)
    """
    if runtime not in _RUNTIMES:
        raise UserError(f"`format={runtime}` is unknown; choose {', '.join(_RUNTIMES)}.")
    chosen = _RUNTIMES[runtime]
    imports = ("import numpy as np", chosen.imports, "from tokenizers import Tokenizer")
    reads = has_prompt or answers in _LABELLED
    settings = 'SETTINGS = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))\n'
    prompt = '    texts = [SETTINGS["prompt"] + text for text in texts]\n'
    outputs = chosen.one.format(name=_NAME[answers]) if answers in _NAME else chosen.all
    return _OF_IDS.format(
        usage=_USAGE[texts],
        what=_WHAT[texts],
        check=_CHECKS[texts],
        arguments=_ARGUMENTS[texts],
        long="" if long_text == TRUNCATE else _LONG.format(how=_HOW[long_text]),
        packages=f"numpy, tokenizers and {chosen.package}",
        standard=("import json\n" if reads else "") + "import sys\nfrom pathlib import Path",
        imports="\n".join(sorted(imports, key=lambda line: (line.startswith("from"), line))),
        settings=settings if reads else "",
        model=chosen.model,
        prompt=prompt if has_prompt else "",
        compute=f"    outputs = {outputs}",
        finish=_FINISHES[answers],
    )


_OF_TEXTS = '''"""python client.py {usage} asks this model; needs {packages}."""

import sys
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # its kernels cut the texts

MODEL = tf.saved_model.load(str(Path(__file__).parent))
SIGNATURES = {signatures}


def plain(tensor):  # lists of numbers, and of texts as str
    decode = lambda x: x.decode() if isinstance(x, bytes) else x
    return tf.nest.map_structure(decode, tensor.numpy().tolist())


def answer(texts):  # a list of {what}
    rows = [[text] if isinstance(text, str) else text for text in texts]
    if {{len(row) for row in rows}} - {{*SIGNATURES}} or not rows:
        raise ValueError("This model reads {what}: give no more and no less.")
{check}    signature, names = SIGNATURES[len(rows[0])]
    columns = [tf.constant(list(column)) for column in zip(*rows)]
    found = MODEL.signatures[signature](**dict(zip(names, columns)))
    outputs = {{name: plain(found[name]) for name in sorted(found)}}
{finish}


if __name__ == "__main__":
    try:
        print(*answer({arguments}), sep="\\n")
    except ValueError as error:
        sys.exit(str(error))
'''

_NEEDS_ENDINGS = """    if any(len(endings) != {count} for _, endings in rows):
        raise ValueError("This model was trained on {count} endings: give a text and all of them.")
"""
_FINISHES_OF_TEXTS = {
    LABEL: '    return list(zip(outputs["label"], outputs["probabilities"]))',
    LABELS: """    held = [[label for label in row if label] for row in outputs["labels"]]
    return list(zip(held, outputs["probabilities"]))""",
    SCORE: '    return outputs["score"]',
    EMBEDDING: '    return outputs["embedding"]',
    OUTPUTS: _FINISHES[OUTPUTS],
}
_ANSWERS_BY_OUTPUTS = {
    frozenset({"label", "logits", "probabilities"}): LABEL,
    frozenset({"labels", "logits", "probabilities"}): LABELS,
    frozenset({"score"}): SCORE,
    frozenset({"embedding"}): EMBEDDING,
}


class TextSignature(NamedTuple):
    """A signature that takes texts.

    Attributes:
        name: its name.
        inputs: the names of its inputs, in the order of the task: a question, then a passage.
        outputs: the names of what it gives.
        endings: how many texts the last input of each example holds: the endings of a context;
            0 where it is one text.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: frozenset[str]
    endings: int = 0


def text_client_program(signatures: Sequence[TextSignature], texts: int | None = None) -> str:
    """The program beside a SavedModel, which takes texts.

    Args:
        signatures: those that are asked, each for another number of inputs.
        texts: how many texts an example of the training had; None asks all signatures.

    Example:
        >>> program = text_client_program(
        ...     [TextSignature("answers", ("question", "passage"), frozenset({"answers"}))])
        >>> print(program.splitlines()[9])
        SIGNATURES = {2: ("answers", ["question", "passage"])}
    """
    signatures = [one for one in signatures if texts in (None, len(one.inputs))] or signatures
    entries = (f'{len(s.inputs)}: ("{s.name}", {json.dumps(s.inputs)})' for s in signatures)
    first = min(signatures, key=lambda signature: len(signature.inputs))
    is_text = len(first.inputs) == 1
    row = "[(*sys.argv[1:2], sys.argv[2:])]" if first.endings else "[sys.argv[1:]]"
    what = "texts" if is_text else f"({', '.join(first.inputs)})"
    return _OF_TEXTS.format(
        packages="tensorflow and tensorflow_text",
        usage="'a text'" if is_text else " ".join(first.inputs).upper(),
        signatures="{" + ", ".join(entries) + "}",
        what=what + (", or of pairs of texts" if len(signatures) > 1 else ""),
        check=_NEEDS_ENDINGS.format(count=first.endings) if first.endings else "",
        finish=_FINISHES_OF_TEXTS[_ANSWERS_BY_OUTPUTS.get(first.outputs, OUTPUTS)],
        arguments="sys.argv[1:]" if is_text else row,
    )


SETTINGS_FILE, TOKENIZER_FILE, CLIENT_FILE = "settings.json", "tokenizer.json", "client.py"


def label_settings(opened: OpenedModel) -> dict[str, Any]:
    """The names of a model's labels in the order of its logits, and its thresholds.

    Returns:
        JSON values: `labels`, where there are several; `threshold`, the probability from which on
        a label holds, where each is a question of its own; and the thresholds of its task.
    """
    settings: dict[str, Any] = {}
    if len(opened.labels) > 1:
        settings["labels"] = list(opened.labels)
    if opened.is_multi_label:
        settings["threshold"] = 0.5
    own = task_settings(opened.source.config)
    return {**settings, **{name: x for name, x in own.items() if name.endswith("_threshold")}}


def text_settings(opened: OpenedModel, max_seq_length: int) -> dict[str, Any]:
    """How a text becomes ids, for clients in any language, as JSON values."""
    text = opened.text
    return {
        "max_seq_length": max_seq_length,
        "pad_id": text.vocabulary.pad_id,
        "tokenizer": {
            "lowercase": text.do_lower_case,
            "strip_accents": text.removes_accents,
            "unicode_form": text.unicode_form,
        },
    }


def client_tokenizer(text: TextSettings, max_seq_length: int, keeps_special_tokens: bool) -> Any:
    """The tokenizer of plain clients, in the form of the library `tokenizers`.

    It truncates to `max_seq_length` tokens, of pairs the longer text first, and pads to the longest
    row.

    Args:
        text: the vocabulary, the casing and the accents.
        max_seq_length: the most tokens of a row, with [CLS] and [SEP].
        keeps_special_tokens: whether "[MASK]" in a text is one token; else it is text.

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> text = TextSettings(Vocabulary([*SPECIAL_TOKENS, "dog", "##s"]))
        >>> tokenizer = client_tokenizer(text, 4, keeps_special_tokens=False)
        >>> tokenizer.encode("Dogs dog").tokens
        ['[CLS]', 'dog', '##s', '[SEP]']
    """
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers, processors

    vocabulary = text.vocabulary
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(ids, unk_token=UNK, max_input_chars_per_word=MAX_CHARACTERS_PER_WORD)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=text.do_lower_case, strip_accents=text.removes_accents
    )
    if text.composes:
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), tokenizer.normalizer])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = (SEP, vocabulary.sep_id), (CLS, vocabulary.cls_id)
    tokenizer.post_processor = processors.BertProcessing(*ends)
    if keeps_special_tokens:
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.enable_truncation(max_seq_length)
    tokenizer.enable_padding(pad_id=vocabulary.pad_id, pad_token=PAD)
    return tokenizer
