from pathlib import Path

import pytest

import keras_bert_impl
from keras_bert_impl.errors import UserError
from keras_bert_impl.keras_file import load_model
from tests.keras_bert_impl.test_front_door import in_new_process

PACKAGE = Path(keras_bert_impl.__file__).parent
OPEN = """
import sys
import keras_bert_impl as kb
try:
    kb.load_model(sys.argv[1])
except ValueError:  # an empty file is no model
    print(*sys.modules)
"""


def test_every_module_that_registers_classes_is_imported(tmp_path):
    registering = {
        ".".join(("keras_bert_impl", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in PACKAGE.rglob("*.py")
        if "@keras.saving.register_keras_serializable" in path.read_text(encoding="utf-8")
    }
    assert len(registering) > 10
    (tmp_path / "model.keras").touch()
    assert registering <= set(in_new_process(OPEN, str(tmp_path / "model.keras")).split())


@pytest.mark.parametrize("name", ["nothing.keras", "."])
def test_what_is_no_file_is_one_sentence(tmp_path, name):
    with pytest.raises(UserError, match=r"no such file; name a \.keras file, or open a model dir"):
        load_model(tmp_path / name)
