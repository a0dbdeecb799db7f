"""The program beside an exported model: plain Python, that knows nothing of this package."""

from keras_bert_impl.errors import UserError

ONNX, OPENVINO = "onnx", "openvino"

LABEL, LABELS, SCORE, EMBEDDING, OUTPUTS = "label", "labels", "score", "embedding", "outputs"
"""What a client answers: the best label, all labels that hold, a number, a vector; or what the
model gives for the ids, where the answer is made of it in a way that only a SavedModel holds."""

_HEAD = '''"""Asks the model beside it: python client.py 'a text'. It needs {packages}."""

import json
import sys
from pathlib import Path

import numpy as np
{imports}
from tokenizers import BertWordPieceTokenizer

HERE = Path(__file__).parent
SETTINGS = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
TOKENIZER = BertWordPieceTokenizer(str(HERE / "vocab.txt"), **SETTINGS["tokenizer"])
TOKENIZER.enable_truncation(SETTINGS["max_seq_length"])
TOKENIZER.enable_padding(pad_id=SETTINGS["pad_id"])
{model}


def answer(texts):  # a list of texts, or of pairs of texts
    rows = TOKENIZER.encode_batch({texts})
    ids, mask, segments = (
        np.array([values(row) for row in rows], np.int32)
        for values in (lambda r: r.ids, lambda r: r.attention_mask, lambda r: r.type_ids)
    )
    features = {{"input_ids": ids, "input_mask": mask, "segment_ids": segments}}
{compute}
{finish}


if __name__ == "__main__":
    for one in answer(sys.argv[1:]):
        print(one)
'''

_RUNTIMES = {
    ONNX: (
        "onnxruntime",
        "import onnxruntime",
        'MODEL = onnxruntime.InferenceSession(str(HERE / "model.onnx"), '
        'providers=["CPUExecutionProvider"])\n'
        "NAMES = [output.name for output in MODEL.get_outputs()]",
        "    outputs = dict(zip(NAMES, MODEL.run(NAMES, features)))",
    ),
    OPENVINO: (
        "openvino",
        "import openvino",
        'MODEL = openvino.Core().compile_model(HERE / "model.xml", "CPU", '
        '{"INFERENCE_PRECISION_HINT": "f32"})',
        "    outputs = {port.any_name: value for port, value in MODEL(features).items()}",
    ),
}

_FINISHES = {
    LABEL: """    logits = outputs["logits"] - outputs["logits"].max(axis=-1, keepdims=True)
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return [(SETTINGS["labels"][row.argmax()], row.tolist()) for row in shares]""",
    LABELS: """    shares = 1 / (1 + np.exp(-outputs["logits"]))
    names, threshold = SETTINGS["labels"], SETTINGS["threshold"]
    held = [[n for n, share in zip(names, row) if share >= threshold] for row in shares]
    return list(zip(held, shares.tolist()))""",
    SCORE: '    return outputs["logits"][:, 0].tolist()',
    EMBEDDING: '    return outputs["embedding"].tolist()',
    OUTPUTS: """    numbers = range(len(rows))
    return [{name: value[n] for name, value in outputs.items()} for n in numbers]""",
}


def client_program(runtime: str, answers: str, has_prompt: bool = False) -> str:
    """The program's text.

    It reads `settings.json` beside it: `tokenizer` (casing), `max_seq_length`, `pad_id`, and as the
    answer needs them `labels`, `threshold` and `prompt`.

    Args:
        runtime: "onnx" or "openvino".
        answers: one of this module's names for what it gives.
        has_prompt: whether something stands in front of every text.

    Raises:
        UserError: there is no such runtime.

    Example:
        >>> program = client_program("onnx", LABEL)
        >>> program.count("import onnxruntime"), program.count("keras")
        (1, 0)
    """
    if runtime not in _RUNTIMES:
        raise UserError(f"`format={runtime}` is unknown; choose {' or '.join(_RUNTIMES)}.")
    package, imports, model, compute = _RUNTIMES[runtime]
    return _HEAD.format(
        packages=f"numpy, tokenizers and {package}",
        imports=imports,
        model=model,
        texts='[SETTINGS["prompt"] + text for text in texts]' if has_prompt else "texts",
        compute=compute,
        finish=_FINISHES[answers],
    )
