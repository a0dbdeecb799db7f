from pathlib import Path

import keras
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
except kb.errors.UserError:  # an empty file is no model
    print(*sys.modules)
"""


def test_every_module_that_registers_classes_is_imported(tmp_path):
    registering = {
        ".".join(("keras_bert_impl", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in PACKAGE.rglob("*.py")
        if "keras.saving.register_keras_serializable" in path.read_text(encoding="utf-8")
    }
    assert len(registering) > 10
    (tmp_path / "model.keras").touch()
    assert registering <= set(in_new_process(OPEN, str(tmp_path / "model.keras")).split())


@pytest.mark.parametrize("name", ["nothing.keras", "."])
def test_what_is_no_file_is_one_sentence(tmp_path, name):
    with pytest.raises(UserError, match=r"no such file; name a \.keras file, or open a model dir"):
        load_model(tmp_path / name)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"PK\1\2", b"PK\1\3"),
        lambda content: content.replace(b"config.json", b"konfig.json"),
        lambda _: b"damaged",
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, damage):
    path = tmp_path / "model.keras"
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]).save(path)
    assert load_model(path).count_params() == 6
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=r"model\.keras: .*; save the model again"):
        load_model(path)


def test_a_function_that_a_file_holds_is_never_run(tmp_path):
    path = tmp_path / "model.keras"
    lambda_layer = keras.layers.Lambda(lambda x: 2 * x)
    keras.Sequential([keras.Input((2,)), lambda_layer]).save(path)
    with pytest.raises(UserError, match=r"cannot be read as .*Lambda.*or give safe_mode=F"):
        load_model(path)


@pytest.mark.parametrize("path", [None, 3])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(UserError, match=f"^{path}: no such file; name a .keras file"):
        load_model(path)
