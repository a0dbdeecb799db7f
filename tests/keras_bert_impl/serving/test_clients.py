"""The clients beside exported models: short programs in plain Python."""

import ast

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving import clients as programs
from keras_bert_impl.serving.clients import TextSignature, text_client_program

ANSWERS = (
    programs.LABEL,
    programs.LABELS,
    programs.SCORE,
    programs.EMBEDDING,
    programs.OUTPUTS,
)
OWN = {
    "onnx": "onnxruntime",
    "openvino": "openvino",
    "litert": "ai_edge_litert.interpreter",
}
STANDARD = {"hashlib", "os.path", "pathlib", "sys"}
LABEL_OUTPUTS = frozenset({"label", "logits", "probabilities"})
SIGNATURES = {
    "label": [
        TextSignature("text", ("text",), LABEL_OUTPUTS),
        TextSignature("text_pair", ("text_a", "text_b"), LABEL_OUTPUTS),
    ],
    "labels": [TextSignature("text", ("text",), LABEL_OUTPUTS - {"label"} | {"labels"})],
    "score": [TextSignature("text", ("text",), frozenset({"score"}))],
    "embedding": [TextSignature("embed", ("text",), frozenset({"embedding"}))],
    "answer": [TextSignature("serving_default", ("question", "passage"), frozenset({"answer"}))],
    "ending": [TextSignature("text", ("context", "endings"), frozenset({"ending"}), 4)],
}


def imported_packages(program):
    return {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(program))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }


def is_short(program):
    lines = program.splitlines()
    return len([line for line in lines if line]) <= 60 and max(map(len, lines)) <= 100


@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize("runtime", OWN)
def test_a_client_of_ids_imports_its_runtime_numpy_and_the_tokenizer_only(runtime, answers):
    program = programs.client_program(runtime, answers, has_prompt=answers == programs.EMBEDDING)
    imported = imported_packages(program)
    assert imported == {*STANDARD, "json", "numpy", "tokenizers", OWN[runtime]}
    assert is_short(program)


@pytest.mark.parametrize("kind", SIGNATURES)
def test_a_client_of_a_saved_model_imports_tensorflow_and_its_tokenizer_only(kind):
    program = text_client_program(SIGNATURES[kind])
    assert imported_packages(program) == {*STANDARD, "tensorflow", "tensorflow_text"}
    assert is_short(program)


def test_the_first_line_says_how_it_is_asked():
    first = {kind: text_client_program(one).splitlines()[0] for kind, one in SIGNATURES.items()}
    asks = "asks this model; needs tensorflow and tensorflow_text."
    assert first["label"] == f'"""python client.py \'a text\' {asks}"""'
    assert first["answer"] == f'"""python client.py QUESTION PASSAGE {asks}"""'
    assert "answer([sys.argv[1:]])" in text_client_program(SIGNATURES["answer"])
    ending = text_client_program(SIGNATURES["ending"])
    assert "answer([(*sys.argv[1:2], sys.argv[2:])])" in ending
    assert "trained on 4 endings" in ending


@pytest.mark.parametrize("texts", [1, 2, None])
def test_a_client_of_any_number_of_texts_is_short(texts):
    assert is_short(programs.client_program("onnx", programs.LABELS, True, texts, "windows"))


def test_an_unknown_runtime_is_refused():
    with pytest.raises(UserError, match="`format=tf` is unknown; choose onnx, openvino, litert"):
        programs.client_program("tf", programs.LABEL)
