"""Nothing of a user's is replaced by a checkpoint but an older one of its kind."""

import json
import shutil

import pytest

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.model_directory import write_adapter, write_model_directory
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.adapters import AdapterConfig, add_adapters
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from tests.support.tiny_bert import TINY, VOCABULARY, scatter_weights


def write(folder, **changes):
    model = scatter_weights(BertEncoder(TINY.replace(**changes)))
    write_model_directory(folder, model, TextSettings(VOCABULARY))
    return folder


@pytest.fixture
def model(written, tmp_path):
    return read_portable(shutil.copytree(written[1], tmp_path / "input" / "model"))


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(model, output, form, words):
    """Sees that nothing was written; gives the sentence."""
    folder = output.parent
    before = contents(folder)
    with pytest.raises(UserError, match=words) as caught:
        write_portable(model, output, form)
    assert contents(folder) == before
    assert "\n" not in str(caught.value)


def test_a_folder_that_holds_something_else_is_left_alone(model, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years of work")
    refused(model, tmp_path / "work", "hugging_face", "exists and is no model directory; name ano")
    with pytest.raises(UserError, match="exists and is no model directory"):
        write(tmp_path / "work")
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["thesis.txt"]


def test_a_file_is_left_alone(model, tmp_path):
    (tmp_path / "work").write_text("years of work")
    refused(model, tmp_path / "work", "hugging_face", "exists and is no model directory")


def test_an_empty_folder_and_an_older_model_directory_are_written_to(model, tmp_path):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "older", hidden_act="relu")
    for name in ("empty", "older"):
        write_portable(model, tmp_path / name, "hugging_face")
        assert read_portable(tmp_path / name).config == TINY


@pytest.mark.parametrize("form", ["hugging_face", "keras_hub"])
def test_what_appears_while_a_model_is_written_is_left_alone(model, tmp_path, monkeypatch, form):
    output, write_words = tmp_path / "output", Vocabulary.write

    def write(vocabulary, path):
        output.mkdir()
        (output / "thesis.txt").write_text("years of work")
        write_words(vocabulary, path)

    monkeypatch.setattr(Vocabulary, "write", write)
    with pytest.raises(UserError, match="output: is there already; name a new folder"):
        write_portable(model, output, form)
    assert [path.name for path in output.iterdir()] == ["thesis.txt"]


def test_the_input_is_never_the_output(model, tmp_path):
    folder = tmp_path / "input" / "model"
    refused(model, folder, "hugging_face", "the input .* lies there and would be replaced")
    refused(model, tmp_path / "other" / ".." / "input" / "model", "hugging_face", "lies there")


def test_a_folder_that_the_input_lies_in_is_not_replaced(tmp_path):
    inner = write(write(tmp_path / "outer") / "best")
    refused(read_portable(inner), tmp_path / "outer", "hugging_face", "the input .* lies there")


def test_a_download_of_the_original_is_never_replaced_by_its_own_conversion(model, tmp_path):
    prefix = tmp_path / "google" / "bert_model.ckpt"
    write_portable(model, prefix, "google_tf1")
    google = read_portable(prefix.parent, do_lower_case=True)
    refused(google, prefix.parent, "hugging_face", "the input .* lies there and would be replaced")
    refused(google, prefix, "google_tf1", "the input .* lies there and would be replaced")


@pytest.mark.parametrize("name", ["vocab.txt", "bert_config.json", "tokenizer_config.json"])
def test_files_of_another_model_beside_a_tf1_checkpoint_are_left_alone(model, tmp_path, name):
    (tmp_path / "google").mkdir()
    (tmp_path / "google" / name).write_text("{}\n")
    prefix = tmp_path / "google" / "mine.ckpt"
    refused(model, prefix, "google_tf1", f"{name}: exists and does not describe this model")
    (tmp_path / "google" / name).unlink()
    (tmp_path / "google" / name).mkdir()
    refused(model, prefix, "google_tf1", f"{name}: exists and does not describe this model")


def test_a_checkpoint_without_its_files_beside_is_left_alone(model, tmp_path):
    prefix = tmp_path / "google" / "mine.ckpt"
    write_portable(model, prefix, "google_tf1")
    (prefix.parent / "vocab.txt").unlink()
    refused(model, prefix, "google_tf1", r"mine\.ckpt: exists, without its vocab\.txt beside it")


def test_the_casing_is_added_beside_a_checkpoint_of_google_s(model, tmp_path):
    prefix = tmp_path / "google" / "mine.ckpt"
    write_portable(model, prefix, "google_tf1")
    (prefix.parent / "tokenizer_config.json").unlink()
    write_portable(model, prefix, "google_tf1")
    assert read_portable(prefix).text == model.text


def test_files_that_say_the_same_stay_as_they_are(model, tmp_path):
    prefix = tmp_path / "google" / "mine.ckpt"
    write_portable(model, prefix, "google_tf1")
    before = (prefix.parent / "vocab.txt").stat()
    for name in ("mine.ckpt", "second.ckpt"):
        write_portable(model, prefix.with_name(name), "google_tf1")
        read_portable(prefix.with_name(name))
    assert (prefix.parent / "vocab.txt").stat().st_mtime_ns == before.st_mtime_ns


def test_files_that_say_the_same_in_other_words_stay_as_they_are(model, tmp_path):
    folder = tmp_path / "google"
    write_portable(model, folder / "mine.ckpt", "google_tf1")
    values = json.loads((folder / "bert_config.json").read_text())
    (folder / "bert_config.json").write_text(json.dumps(dict(reversed(values.items()))))
    (folder / "vocab.txt").write_bytes((folder / "vocab.txt").read_bytes().replace(b"\n", b"\r\n"))
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    before = contents(folder)
    write_portable(model, folder / "second.ckpt", "google_tf1")
    assert before.items() <= contents(folder).items()
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    refused(model, folder / "third.ckpt", "google_tf1", "tokenizer_config.json: exists and does no")


@pytest.mark.parametrize("named", ["the adapter", "its base"])
def test_an_adapter_s_base_is_never_the_output(written, tmp_path, named):
    base = shutil.copytree(written[1], tmp_path / "base")
    adapted, how = BertEncoder.from_pretrained(base), AdapterConfig(lora_rank=2)
    folder = tmp_path / "adapter"
    add_adapters(adapted, how)
    write_adapter(folder, adapted, TextSettings(VOCABULARY), how, str(base))
    source, adapter = (folder, None) if named == "the adapter" else (base, folder)
    merged = read_portable(source, adapter=adapter)
    refused(merged, base, "hugging_face", "the input .*base.* lies there")
    write_portable(merged, tmp_path / "merged", "hugging_face")


def test_a_copy_of_the_input_may_be_replaced(model, tmp_path):
    shutil.copytree(tmp_path / "input" / "model", tmp_path / "copy")
    write_portable(model, tmp_path / "copy", "hugging_face")
    assert read_portable(tmp_path / "copy").text.vocabulary == VOCABULARY


@pytest.mark.parametrize("name", ["checkpoint-500", "optimizer.pt", ".git"])
def test_what_else_lies_in_a_model_directory_is_not_lost(model, tmp_path, name):
    shutil.copytree(tmp_path / "input" / "model", tmp_path / "trained")
    (tmp_path / "trained" / name).mkdir()
    refused(model, tmp_path / "trained", "hugging_face", f"holds {name}, which would be lost")
