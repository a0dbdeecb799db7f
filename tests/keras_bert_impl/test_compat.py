"""The private names in compat.py are there, and do what they are used for."""

import ast
import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from keras_bert_impl import compat

TREE = ast.parse(Path(compat.__file__).read_text(encoding="utf-8"))

# Each name, and the release in which it was last seen to do what compat.py says of it.
SEEN_IN = {
    "tensorflow.__internal__.distribute.interim.maybe_merge_call": "tensorflow 2.21.0",
    "tensorflow.python.distribute.distribute_lib.get_update_replica_id": "tensorflow 2.21.0",
    "tensorflow.python.distribute.values.DistributedVariable.values": "tensorflow 2.21.0",
    "tensorflow.python.ops.resource_variable_ops.ResourceVariable": "tensorflow 2.21.0",
    "tensorflow.python.eager.polymorphic_function.concrete_function._inference_name": (
        "tensorflow 2.21.0"
    ),
    "tensorflow.python.framework.ops.gradient_registry._registry": "tensorflow 2.21.0",
    "keras.optimizers.Optimizer._get_variable_index": "keras 3.15.1",
    "keras.layers.Layer._flatten_layers": "keras 3.15.1",
}
OF_OBJECTS = {"_tracker", "_value"}  # of Keras' layers and variables; see the tests of each below
SEEN_IN_TEXT = {
    "python/ops/_fast_bert_normalizer.so": "tensorflow-text 2.21.1",
    "python/ops/_fast_wordpiece_tokenizer.so": "tensorflow-text 2.21.1",
    "core/pybinds/pywrap_fast_wordpiece_tokenizer_model_builder.so": "tensorflow-text 2.21.1",
}


def gone(name, release):
    package, _, seen = release.partition(" ")
    present = importlib.metadata.version(package)
    return f"{name}, seen in {package} {seen}, is gone in {present}: change compat.py"


def find(name):
    """The object of a dotted name: its longest part that is a module, then attributes."""
    module, names = name, []
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            names.insert(0, last)
    for part in names:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", SEEN_IN)
def test_a_private_name_is_still_there(name):
    try:
        find(name)
    except AttributeError:
        pytest.fail(gone(name, SEEN_IN[name]))


@pytest.mark.parametrize("name", SEEN_IN_TEXT)
def test_a_private_library_is_still_there(name):
    assert (compat._text_package() / name).is_file(), gone(name, SEEN_IN_TEXT[name])


def test_every_private_name_of_the_file_is_looked_for_here():
    nodes = list(ast.walk(TREE))
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    used = {name for name in used if name.startswith("_") and name != "__file__"}
    imported = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    used |= {
        alias.name
        for node in imported
        if (node.module or "").startswith(("tensorflow.python", "keras.src"))
        for alias in node.names
    }
    known = {part for name in SEEN_IN for part in name.split(".")}
    assert used
    assert used <= known | OF_OBJECTS


def test_nothing_is_imported_until_a_function_is_called():
    program = (
        "import sys, keras_bert_impl.compat\n"
        "sys.exit(bool({'tensorflow', 'keras', 'tensorflow_text'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_sublayers_are_those_held_directly():
    inner = keras.Sequential([keras.layers.Dense(1, name="deep")], name="inner")
    outer = keras.Sequential([inner, keras.layers.Dense(2, name="last")])
    assert [layer.name for layer in compat.sublayers(outer)] == ["inner", "last"]


def test_a_variable_is_found_by_what_keras_or_tensorflow_calls_it():
    variables = [keras.Variable([1.0]), keras.Variable([2.0])]
    optimizer = keras.optimizers.SGD()
    optimizer.build(variables)
    assert compat.variable_index(optimizer, variables[1]) == 1
    assert compat.variable_index(optimizer, variables[1].value) == 1


def test_a_built_layer_grows_only_inside_the_block():
    layer = keras.layers.Dense(1)
    layer.build((None, 2))
    with compat.built_layer_grows(layer):
        layer.more = layer.add_weight(shape=(3,), name="more")
    assert [weight.shape for weight in layer.weights] == [(2, 1), (1,), (3,)]
    with pytest.raises(ValueError, match="already built"):
        layer.another = layer.add_weight(shape=(3,), name="another")


def test_variables_that_share_hold_the_same_numbers():
    variable, other = keras.Variable([1.0]), keras.Variable([2.0])
    compat.share(variable, other)
    other.assign([3.0])
    assert variable.value is other.value
    assert float(variable.numpy()[0]) == 3.0


def test_outside_of_an_update_a_variable_is_its_own_copy_and_plain():
    variable = tf.Variable(1.0)
    assert compat.own_copy(variable) is variable
    assert compat.is_plain_variable(variable)


def test_in_an_update_the_copy_of_the_updated_replica_is_found():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        updated, other = tf.Variable(1.0), tf.Variable(2.0)
    assert not compat.is_plain_variable(other)
    seen = []

    def update(strategy_, rate):
        strategy_.extended.update(
            updated,
            lambda variable, value: seen.append((variable, compat.own_copy(other))),
            args=(rate,),
            group=False,
        )

    strategy.run(lambda: compat.merge_call(update, strategy, tf.constant(0.5)))
    ((variable, copy),) = seen
    assert compat.is_plain_variable(variable)
    assert compat.is_plain_variable(copy)
    assert copy is other.values[0]


def test_the_operations_of_tensorflow_text_are_loaded():
    assert compat.text_operations("_fast_bert_normalizer").fast_bert_normalize
    operations = compat.text_operations("_fast_wordpiece_tokenizer")
    assert operations.fast_wordpiece_tokenize_with_offsets
    builder = compat.wordpiece_model_builder()
    assert builder is compat.wordpiece_model_builder()
    assert builder.build_fast_wordpiece_model(["[UNK]", "a"], 100, "##", "[UNK]", False, False)
