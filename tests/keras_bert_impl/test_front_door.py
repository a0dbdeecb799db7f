"""The package as a notebook sees it: its names, and what a first-time user does with them.

Each flow is under fifteen lines. Those of the README are run as they stand there.
"""

import functools
import re
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert_impl as kb
from keras_bert_impl.serving.export import serve_model
from keras_bert_impl.serving.opened_model import open_model
from tests.support import programs
from tests.support.model_folders import write_encoder, write_start

ROOT = Path(__file__).parent.parent.parent
TEXTS = ["the dog runs", "the dogs run .", "word", "the dog ."] * 2
LABELS = [0, 1, 0, 1] * 2
COMPILE = keras.Model.compile
HOMES = ("keras_bert_impl.", "pipelines.answering.", "pipelines.vectors.")  # the second knows tasks


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A small model directory in the place of a published one."""
    return str(write_encoder(tmp_path_factory.mktemp("published") / "model"))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """What a flow writes goes to an empty folder."""
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(1)


def in_new_process(program, *arguments):
    return programs.run(["-c", program, *arguments], cwd=Path.cwd(), check=True).stdout


# The names


def test_the_import_is_instant_and_loads_nothing_heavy():
    program = (
        "import sys, time; start = time.perf_counter(); import keras_bert_impl as kb\n"
        "print(time.perf_counter() - start)\n"
        "names = dir(kb), kb.__version__\n"
        "heavy = {'tensorflow', 'keras', 'numpy', 'jax', 'huggingface_hub'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    command = [sys.executable, "-c", program]
    times = [
        float(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(times) < 0.2


def test_every_name_is_there_and_tab_completion_knows_it():
    assert dir(kb) == sorted(kb.__all__)
    for name in kb.__all__:
        value = getattr(kb, name)
        assert value is not None
        if name == "losses":
            assert value.__name__ == "keras_bert_impl.losses"
        elif name != "__version__":
            assert value.__name__ == name
            assert value.__module__.startswith(HOMES)


# The flows


def test_the_snippets_of_the_readme_do_what_they_say(tmp_path, monkeypatch):
    """All of "In a notebook", one after the other, with a small model for the published one."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    section = page.partition("\n## In a notebook\n")[2].partition("\n## ")[0]
    snippets = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(snippets) == 4
    model = write_start(tmp_path / "published", max_position_embeddings=128)
    data = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS))
    numbers = [float(label) for label in LABELS]
    given = {
        "train_data": data,
        "dev_data": data.take(4),
        "pairs": tf.data.Dataset.from_tensor_slices((TEXTS, TEXTS[::-1], numbers)),
    }
    for snippet in snippets:
        exec(snippet.replace("klue/bert-base", str(model)), given)
        if "model" in given:  # XLA has compiled one classifier, and compiling is most of the time
            quickly = functools.partialmethod(COMPILE, jit_compile=False)
            monkeypatch.setattr(keras.Model, "compile", quickly)

    mask = given["tokenizer"](["첫 문장", "둘째 문장"])["input_mask"][..., None]
    means = (given["outputs"]["sequence_output"] * mask).sum(axis=1) / mask.sum(axis=1)
    np.testing.assert_allclose(given["vectors"], means, atol=1e-5)
    assert given["model"].history.params["epochs"] == 3
    assert given["scores"].shape == (1,)
    again = kb.load_model("classifier.keras")
    opened = kb.BertClassifier.from_pretrained("classifier")
    assert again.labels == opened.labels == ("negative", "positive")
    rows = given["preprocessor"](TEXTS[:4])
    logits = again.predict(rows, verbose=0)["logits"]
    np.testing.assert_allclose(opened.predict(rows, verbose=0)["logits"], logits, atol=1e-6)
    served = tf.saved_model.load("saved_model").signatures["text"](tf.constant(TEXTS[:4]))
    np.testing.assert_allclose(served["logits"].numpy(), logits, atol=1e-4)
    assert set(served["label"].numpy()) <= {b"negative", b"positive"}


def test_a_regression_s_numbers_are_compared_one_to_one(published):
    """A loss of [batch, 1] and [batch] that broadcasts would teach the mean of a batch."""
    model = kb.BertClassifier.from_pretrained(published, num_labels=1)
    model.compile(loss={"logits": "mean_squared_error"})
    inputs = kb.Tokenizer.from_pretrained(published)(TEXTS)
    expected = model.predict(inputs, verbose=0)["logits"][:, 0] - np.array(LABELS)
    loss = model.evaluate(inputs, np.array(LABELS, "float32"), batch_size=32, verbose=0)
    np.testing.assert_allclose(loss, np.mean(expected**2), rtol=1e-5)


def test_the_exported_model_packs_texts_as_the_preprocessor_did(published):
    preprocessor = kb.BertPreprocessor.from_pretrained(
        published, max_seq_length=6, special_tokens="keep"
    )
    model = kb.BertClassifier.from_pretrained(published, num_labels=2)
    model.save_pretrained("classifier", preprocessor)
    texts = tf.constant(["the [MASK] dog", "the dog runs . the cat sleeps ."])
    served = serve_model(open_model("classifier"))
    logits = model.predict(preprocessor(texts), verbose=0)["logits"]
    np.testing.assert_allclose(served.call("text", {"text": texts})["logits"], logits, atol=1e-5)


def test_a_model_of_strings_or_pairs_of_strings(published):
    preprocessor = kb.BertPreprocessor.from_pretrained(published, pad_to_longest=True)
    encoder = kb.BertEncoder.from_pretrained(published)
    first, second = keras.Input((), dtype="string"), keras.Input((), dtype="string")
    vectors = encoder(preprocessor(first, second))["pooled_output"]
    model = keras.Model([first, second], vectors)
    model.export("vectors_of_pairs", verbose=False)

    served = tf.saved_model.load("vectors_of_pairs")
    found = served.serve([tf.constant(["the dog", "dogs"]), tf.constant(["the dog runs", "word"])])

    inputs = kb.Tokenizer.from_pretrained(published)(
        [("the dog", "the dog runs"), ("dogs", "word")]
    )
    np.testing.assert_allclose(found, encoder(inputs)["pooled_output"], atol=1e-5)


OPENED_AGAIN = """
import keras_bert_impl as kb
model = kb.load_model("classifier.keras")
inputs = kb.Tokenizer.from_pretrained("classifier")("the dog")
print(type(model).__name__, *model.labels, type(model.optimizer).__name__)
print(*model.predict(inputs, verbose=0)["logits"][0])
"""


def test_a_keras_file_opens_in_a_new_process(published):
    model = kb.BertClassifier.from_pretrained(published, labels=["short", "long"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = kb.WarmupSchedule(1e-3, 10, 2)
    model.compile(kb.BertAdamW(rate), {"logits": loss}, jit_compile=False)
    model.save("classifier.keras")
    model.save_pretrained("classifier")
    said, logits = in_new_process(OPENED_AGAIN).strip().splitlines()
    inputs = kb.Tokenizer.from_pretrained(published)("the dog")
    assert said == "BertClassifier short long BertAdamW"
    expected = model.predict(inputs, verbose=0)["logits"][0]
    np.testing.assert_allclose([float(x) for x in logits.split()], expected, atol=1e-5)


def test_a_head_of_ones_own(published):
    tokenizer = kb.Tokenizer.from_pretrained(published)
    encoder = kb.BertEncoder.from_pretrained(published)
    ids = keras.Input((None,), dtype="int32", name="input_ids")
    hidden = encoder({"input_ids": ids})["sequence_output"]
    scores = keras.layers.Dense(1)(keras.layers.GlobalMaxPooling1D()(hidden))
    model = keras.Model(ids, scores)
    model.compile(kb.Lamb(1e-3), loss="mse", jit_compile=False)
    inputs = tokenizer(TEXTS)["input_ids"]
    history = model.fit(inputs, np.array(LABELS, "float32"), epochs=5, verbose=0)
    model.save("scorer.keras")
    again = keras.saving.load_model("scorer.keras")

    assert history.history["loss"][-1] < history.history["loss"][0]
    expected = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(again.predict(inputs, verbose=0), expected, atol=1e-6)
