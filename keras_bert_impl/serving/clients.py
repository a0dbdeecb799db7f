"""Clients of exported models: a short program in plain Python, with its files."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.tokenization.long_texts import HEAD_TAIL, TRUNCATE, WINDOWS

SETTINGS_FILE, TOKENIZER_FILE, CLIENT_FILE = "settings.json", "tokenizer.json", "client.py"
ONNX, OPENVINO, LITERT = "onnx", "openvino", "litert"

LABEL, LABELS, SCORE, EMBEDDING, OUTPUTS = "label", "labels", "score", "embedding", "outputs"
"""What a client answers: the best label with all probabilities, all labels that hold with them, a
number, a vector; or what the model gives, by name, where the answer is none of these."""

_HEAD = '''"""python client.py {usage} asks this model; needs {packages}."""

import hashlib
import json
import sys
from os.path import isfile
from pathlib import Path

{imports}

HERE = Path(__file__).parent
NEEDED = {needed}

try:  # every file is as it was exported, and none is of another export
    lines = (HERE / "SHA256SUMS").read_text("utf-8", "replace").splitlines()
    noted = {{name: digest for digest, _, name in (line.partition("  ") for line in lines)}}
    for name in sorted({{*NEEDED, *noted}}):
        if name in NEEDED or isfile(HERE / name):
            if hashlib.sha256((HERE / name).read_bytes()).hexdigest() != noted.get(name):
                raise OSError(f"{{HERE / name}}: is not the file that SHA256SUMS is about")
except OSError as error:
    sys.exit(f"{{error}}; copy or export the model again.")

'''
_OF_IDS = (
    _HEAD
    + """SETTINGS = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
TOKENIZER = Tokenizer.from_file(str(HERE / "tokenizer.json"))
MODEL = {model}
NAMES = "input_ids", "input_mask", "segment_ids"

{pairs}
def answer(texts):  # a list of {what}
{check}{prompt}    try:
        found = {encode}
    except TypeError as error:  # bytes, or half of a surrogate pair
        raise ValueError("One of these is no text that UTF-8 can hold: fix it.") from error
{long}    rows = [(r.ids, r.attention_mask, r.type_ids) for r in found]
    features = dict(zip(NAMES, np.array([*zip(*rows)], np.int32)))
{compute}
{finish}


if __name__ == "__main__":
    try:
        print(*answer({arguments}), sep="\\n")
    except ValueError as error:
        sys.exit(str(error))
"""
)
_WHAT = {1: "texts", 2: "pairs of texts", None: "texts, or of pairs of texts"}
_CHECKS = {
    1: """    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("This model was trained on single texts: give one or more of them.")
""",
    2: """    if not texts or any(isinstance(pair, str) or len(pair) != 2 for pair in texts):
        raise ValueError("This model was trained on pairs of texts: give two texts.")
""",
    None: """    if not texts:
        raise ValueError("Give one text or more.")
""",
}
_PAIRS = """
def encode(text):  # of a pair the longer text is cut first; a second one without tokens is none
    if isinstance(text, str):
        return TOKENIZER.encode(text)
    first, second = (TOKENIZER.encode(one, add_special_tokens=False) for one in text)
    if not second.ids:
        return TOKENIZER.encode(text[0])
    room, sizes = SETTINGS["max_seq_length"] - 3, (len(first), len(second))
    first.truncate(max(room - sizes[1], (room + 1) // 2))
    second.truncate(max(room - sizes[0], room // 2))
    return TOKENIZER.post_process(first, second)

"""
_ENCODE = {
    True: """[encode(text) for text in texts]
        longest = max(map(len, found))
        for row in found:
            row.pad(longest, pad_id=SETTINGS["pad_id"])""",
    False: "TOKENIZER.encode_batch(texts)",
}
_ARGUMENTS = {1: "sys.argv[1:]", 2: "[tuple(sys.argv[1:])]", None: "sys.argv[1:]"}
_USAGE = {1: "'a text'", 2: "'a text' 'another'", None: "'a text'"}
_LONG = """    if any(row.overflowing for row in found):
        raise ValueError("A text is longer than a row; only the SavedModel {how}.")
"""
_HOW = {WINDOWS: "reads it in windows", HEAD_TAIL: "keeps its two ends"}


class _Runtime(NamedTuple):
    """How a runtime opens a model, of which files, and asks it for one output or all by name."""

    package: str
    files: str
    imports: str
    model: str
    one: str
    all: str


_RUNTIMES = {
    ONNX: _Runtime(
        "onnxruntime",
        '"model.onnx"',
        "import onnxruntime",
        'onnxruntime.InferenceSession(HERE / "model.onnx", providers=["CPUExecutionProvider"])',
        'MODEL.run(["{name}"], features)[0]',
        "dict(zip((o.name for o in MODEL.get_outputs()), MODEL.run(None, features)))",
    ),
    OPENVINO: _Runtime(
        "openvino",
        '"model.xml", "model.bin"',
        'sys.modules["openvino_telemetry"] = None  # what reports each import over the network\n'
        "import openvino",
        'openvino.compile_model(HERE / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})',
        'MODEL(features)["{name}"]',
        "{port.any_name: value for port, value in MODEL(features).items()}",
    ),
    LITERT: _Runtime(
        "ai-edge-litert",
        '"model.tflite"',
        "from ai_edge_litert.interpreter import Interpreter",
        'Interpreter(str(HERE / "model.tflite")).get_signature_runner()',
        'MODEL(**features)["{name}"]',
        "MODEL(**features)",
    ),
}

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

    It reads `tokenizer.json` and `settings.json` next to it. First it holds all files against
    their digests.

    Args:
        texts: how many texts an example has, 1 or 2; None takes both, text by text.
        long_text: what the model was trained to do with texts that are longer than a row; but
            for truncating them, the program refuses such texts.

    Example:
        >>> program = client_program("onnx", LABEL)
        >>> program.count("import onnxruntime"), program.count("keras")
        (1, 0)
    """
    if runtime not in _RUNTIMES:
        raise UserError(f"`format={runtime}` is unknown; choose {', '.join(_RUNTIMES)}.")
    chosen = _RUNTIMES[runtime]
    imports = ("import numpy as np", chosen.imports, "from tokenizers import Tokenizer")
    prompt = '    texts = [SETTINGS["prompt"] + text for text in texts]\n'
    outputs = chosen.one.format(name=_NAME[answers]) if answers in _NAME else chosen.all
    return _OF_IDS.format(
        usage=_USAGE[texts],
        what=_WHAT[texts],
        check=_CHECKS[texts],
        arguments=_ARGUMENTS[texts],
        long="" if long_text == TRUNCATE else _LONG.format(how=_HOW[long_text]),
        packages=f"numpy, tokenizers and {chosen.package}",
        needed=f'{chosen.files}, "settings.json", "tokenizer.json"',
        pairs="" if texts == 1 else _PAIRS,
        encode=_ENCODE[texts != 1],
        imports="\n".join(sorted(imports, key=lambda line: (line.startswith("from"), line))),
        model=chosen.model,
        prompt=prompt if has_prompt else "",
        compute=f"    outputs = {outputs}",
        finish=_FINISHES[answers],
    )


_OF_TEXTS = (
    _HEAD.replace("import json\n", "")
    + """MODEL = tf.saved_model.load(str(HERE))
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
"""
)

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


def text_client_program(signatures: Sequence[TextSignature]) -> str:
    """The program beside a SavedModel, which takes texts.

    Example:
        >>> program = text_client_program(
        ...     [TextSignature("answers", ("question", "passage"), frozenset({"answers"}))])
        >>> 'SIGNATURES = {2: ("answers", ["question", "passage"])}' in program.splitlines()
        True
    """
    entries = (f'{len(s.inputs)}: ("{s.name}", {json.dumps(s.inputs)})' for s in signatures)
    first = min(signatures, key=lambda signature: len(signature.inputs))
    is_text = len(first.inputs) == 1
    row = "[(*sys.argv[1:2], sys.argv[2:])]" if first.endings else "[sys.argv[1:]]"
    what = "texts" if is_text else f"({', '.join(first.inputs)})"
    return _OF_TEXTS.format(
        imports="import tensorflow as tf\nimport tensorflow_text  # its kernels cut the texts",
        needed='"saved_model.pb", "variables/variables.index"',
        packages="tensorflow and tensorflow_text",
        usage="'a text'" if is_text else " ".join(first.inputs).upper(),
        signatures="{" + ", ".join(entries) + "}",
        what=what + (", or of pairs of texts" if len(signatures) > 1 else ""),
        check=_NEEDS_ENDINGS.format(count=first.endings) if first.endings else "",
        finish=_FINISHES_OF_TEXTS[_ANSWERS_BY_OUTPUTS.get(first.outputs, OUTPUTS)],
        arguments="sys.argv[1:]" if is_text else row,
    )


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
