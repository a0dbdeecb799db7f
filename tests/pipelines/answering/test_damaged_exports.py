"""A damaged export, and one mixed of two, is refused: by its client, by `predict` and by `serve`.

Both open models by `open_answering_model`.
"""

import contextlib
import functools
import logging
import random
import runpy
import shutil

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import remove
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.serving.export import export_portable, export_saved_model
from keras_bert_impl.serving.exported import DIGESTS_FILE
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.opening import open_answering_model
from pipelines.tasks.register import open_and_serve
from tests.support.damage import damage, other_files
from tests.support.model_folders import tiny_config, write_any

FORMS = ["openvino", pytest.param("saved_model", marks=pytest.mark.slow)]
FILES = {
    "openvino": (
        *("model.xml", "model.bin", "settings.json", "tokenizer.json", "vocab.txt"),
        *("config.json", "tokenizer_config.json", "client.py"),
    ),
    "saved_model": (
        *("saved_model.pb", "fingerprint.pb", "client.py"),
        *("variables/variables.index", "variables/variables.data-00000-of-00001"),
        *("assets/vocab.txt", "assets/tokenizer_config.json", "assets/settings.json"),
    ),
}


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """Gives one of two exports of a form, alike but for their weights and labels."""
    root = tmp_path_factory.mktemp("exports")

    @functools.cache
    def made(form, labels=("no", "yes")):
        config = tiny_config(extra={"id2label": dict(enumerate(labels))})
        model = write_any(root / "-".join((form, *labels)), BertClassifier(config, 2))
        found, served = open_and_serve(model)
        folder = model.with_suffix(".exported")
        if form == "openvino":
            export_portable(found, folder, form, verify=False)
        else:
            export_saved_model(served, found, folder, verify=False)
        return folder

    return made


def opened(folder):
    """A SavedModel is opened by its client alone."""
    if (folder / "assets").is_dir():
        return runpy.run_path(str(folder / "client.py"))["opened"]()
    return open_answering_model(AnsweringConfig(model=str(folder)))


def refusals(folder):
    """The sentences with which the client and the opener refuse an export; none is ''."""
    try:
        opened(folder)
        by_opener = ""
    except (OSError, UserError) as error:
        by_opener = str(error)
    try:
        runpy.run_path(str(folder / "client.py"))["opened"]()
        by_client = ""
    except OSError as error:
        by_client = str(error)
    return by_client, by_opener


@pytest.mark.parametrize("form", FORMS)
def test_what_is_whole_is_opened_and_lists_all_its_files(export, form):
    folder = export(form)
    lines = (folder / DIGESTS_FILE).read_text().splitlines()
    assert {line.split()[1] for line in lines} == {*FILES[form]}
    opened(folder)


@pytest.mark.parametrize("form", FORMS)
def test_a_flipped_bit_in_any_file_is_refused_in_a_sentence_that_names_it(export, form, tmp_path):
    folder = shutil.copytree(export(form), tmp_path / "export")
    draw = random.Random(0)
    for name in FILES[form]:
        content = (folder / name).read_bytes()
        # Of the client one of its first words: with another one it may be no program any more.
        end, bits = (12, 1) if name == "client.py" else (len(content), 8)
        for _ in range(3):
            damaged = bytearray(content)
            damaged[draw.randrange(3, end)] ^= 1 << draw.randrange(bits)
            (folder / name).write_bytes(damaged)
            for sentence in refusals(folder):
                assert sentence == (
                    f"{folder / name}: is not the file that SHA256SUMS is about; copy or export "
                    "the model again."
                )
        (folder / name).write_bytes(content)
    opened(folder)


def test_a_file_of_another_export_is_refused(export, tmp_path):
    form = "openvino"
    folder = shutil.copytree(export(form), tmp_path / "export")
    for name in (*FILES[form], DIGESTS_FILE):
        content, other = (
            (folder / name).read_bytes(),
            (export(form, ("bad", "good")) / name).read_bytes(),
        )
        (folder / name).write_bytes(other)
        for sentence in refusals(folder) if content != other else ():
            assert "is not the file that SHA256SUMS is about; copy or export" in sentence
        (folder / name).write_bytes(content)


def test_a_missing_file_and_damaged_digests_are_one_sentence(export, tmp_path):
    folder = shutil.copytree(export("openvino"), tmp_path / "export")
    path = folder / DIGESTS_FILE
    content = path.read_bytes()
    for how in ("empty", "cut", "first byte flipped", "no UTF-8", "zeros", "a list", "a folder"):
        path.write_bytes(content)
        damage(path, how)
        for sentence in refusals(folder):
            assert str(folder) in sentence
            assert "\n" not in sentence
        remove(path)
    path.write_bytes(content)
    (folder / "model.xml").unlink()
    for sentence in refusals(folder):
        assert "model.xml" in sentence


def test_an_export_from_before_there_were_digests_is_believed_with_a_warning(
    export, tmp_path, caplog
):
    folder = shutil.copytree(export("openvino"), tmp_path / "export")
    (folder / DIGESTS_FILE).unlink()
    with caplog.at_level(logging.WARNING):
        opened(folder)
    assert "has no SHA256SUMS, by which damaged files and" in caplog.text


@pytest.mark.parametrize("name", ["settings.json"])
def test_whatever_an_older_export_says_is_used_or_refused_in_one_sentence(export, name, tmp_path):
    folder = shutil.copytree(export("openvino"), tmp_path / "export")
    (folder / DIGESTS_FILE).unlink()
    for _ in other_files(folder / name):
        with contextlib.suppress(UserError):
            opened(folder)
