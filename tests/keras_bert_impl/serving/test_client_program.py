"""The clients beside exported models: short programs in plain Python."""

import ast

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving import client_program as programs

ANSWERS = (
    programs.LABEL,
    programs.LABELS,
    programs.SCORE,
    programs.EMBEDDING,
    programs.OUTPUTS,
)


@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize("runtime", ["onnx", "openvino"])
def test_a_client_imports_its_runtime_numpy_and_the_tokenizer_only(runtime, answers):
    program = programs.client_program(runtime, answers, has_prompt=answers == programs.EMBEDDING)
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(program))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    own = "onnxruntime" if runtime == "onnx" else "openvino"
    assert imported == {"json", "sys", "pathlib", "numpy", "tokenizers", own}
    assert len(program.splitlines()) <= 45


def test_an_unknown_runtime_is_refused():
    with pytest.raises(UserError, match="`format=tf` is unknown; choose onnx or openvino"):
        programs.client_program("tf", programs.LABEL)
