import json
import shutil
import socket
from fnmatch import fnmatch
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from keras_bert_impl.checkpoints.formats.peft_adapter import read_base_name
from keras_bert_impl.checkpoints.hub import find_on_hub, may_be_hub_name
from keras_bert_impl.checkpoints.model_source import find_model, locate
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.elsewhere import ELSEWHERE
from tests.support.model_folders import WORD_VOCABULARY, write_encoder
from tests.support.tiny_bert import GOLDEN

REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no way to the internet."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(socket, "create_connection", _no_internet)
    return tmp_path / "hub"


def _no_internet(*_, **__):
    raise OSError("no internet")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("made") / "model")


def put_into(cache, name, folder):
    """Lays a model into the cache as huggingface_hub does."""
    repository = cache / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    return shutil.copytree(folder, repository / "snapshots" / REVISION)


def test_a_cached_model_opens_without_internet(cache, model):
    snapshot = put_into(cache, "klue/bert-base", model)
    source = find_model("klue/bert-base")
    assert source.checkpoint == snapshot
    assert source.text == TextSettings(WORD_VOCABULARY)
    assert BertEncoder.from_pretrained("klue/bert-base").config == source.config


def test_one_opening_asks_once(cache, model, monkeypatch):
    put_into(cache, "klue/bert-base", model)
    asked, download = [], huggingface_hub.snapshot_download
    note = lambda name, **options: asked.append(name) or download(name, **options)  # noqa: E731
    monkeypatch.setattr(huggingface_hub, "snapshot_download", note)
    assert Embedder.from_pretrained("klue/bert-base", pooling="mean").text.vocabulary
    assert asked == ["klue/bert-base"]


def test_the_base_of_an_adapter_is_the_revision_that_it_was_trained_on(cache, model, tmp_path):
    snapshot = put_into(cache, "klue/bert-base", model)
    old = shutil.copytree(snapshot, snapshot.with_name("f" * 40))
    adapter = shutil.copytree(GOLDEN / "peft" / "encoder_patterns" / "adapter", tmp_path / "lora")
    path, found = adapter / "adapter_config.json", {}
    for revision in (None, old.name):
        entries = {"base_model_name_or_path": "klue/bert-base", "revision": revision}
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))
        found[revision] = locate(*read_base_name(adapter))
    assert found == {None: snapshot, old.name: old}
    with pytest.raises(UserError, match=r"hf download klue/bert-base \(revision v9\) elsewhere"):
        find_on_hub("klue/bert-base", "v9")


def test_a_name_without_an_owner_is_a_name(cache, model):
    snapshot = put_into(cache, "bert-base-uncased", model)
    assert find_on_hub("bert-base-uncased") == snapshot


def test_what_is_not_cached_gives_one_sentence_with_a_remedy():
    with pytest.raises(UserError, match=r"no such file or folder.*hf download klue/bert-base") as e:
        find_model("klue/bert-base")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("missing", ["model.safetensors", "vocab.txt", "config.json"])
def test_a_half_cached_model_is_fetched_anew(cache, model, missing, monkeypatch):
    snapshot = put_into(cache, "klue/bert-base", model)
    (snapshot / missing).unlink()
    asked = []

    def download(name, revision, allow_patterns, local_files_only=False):
        if not local_files_only:
            asked.append((name, allow_patterns))
            shutil.copy(model / missing, snapshot)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert find_on_hub("klue/bert-base") == snapshot
    assert {name for name, _ in asked} == {"klue/bert-base"}
    assert asked[0][1] == ["config.json"]
    patterns = [pattern for _, patterns in asked for pattern in patterns]
    assert not any(pattern.endswith((".bin", ".py", ".h5", "*")) for pattern in patterns)


def test_what_is_no_bert_is_refused_before_its_weights_are_fetched(tmp_path, monkeypatch):
    asked = []

    def download(name, revision, allow_patterns, local_files_only=False):
        if local_files_only:
            raise OSError("not cached")
        asked.append(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    (tmp_path / "config.json").write_text('{"model_type": "llama", "vocab_size": 9}')
    with pytest.raises(UserError, match=r"config.json: model_type is 'llama'; name a model where"):
        find_on_hub("meta/llama")
    assert asked == [["config.json"]]


def test_a_model_that_is_only_a_pickle_is_refused(cache, model, monkeypatch):
    snapshot = put_into(cache, "old/bert", model)
    (snapshot / "model.safetensors").unlink()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(snapshot))
    with pytest.raises(UserError, match=r"has no model\.safetensors of it.*never opened"):
        find_on_hub("old/bert")


@pytest.mark.parametrize(
    "text", ["", "/a/b", "./a", "../a", "a/b/c", "a b", "x/model.ckpt", "a\\b", "-x/y", "~/model"]
)
def test_paths_are_no_names(text):
    assert not may_be_hub_name(text)


def test_a_path_into_a_folder_is_no_name(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)
    assert not may_be_hub_name("run/modle")
    assert may_be_hub_name("rnu/model")


def test_shards_of_weights_are_whole_with_their_index(cache, model):
    snapshot = put_into(cache, "big/bert", model)
    (snapshot / "model.safetensors").rename(snapshot / "model-00001-of-00001.safetensors")
    index = {"weight_map": {"x": "model-00001-of-00001.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    assert find_on_hub("big/bert") == snapshot


def test_shards_that_are_missing_are_fetched_or_named(cache, model, monkeypatch):
    snapshot = put_into(cache, "big/bert", model)
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    (snapshot / "model.safetensors").rename(snapshot / names[0])
    index = {"weight_map": dict(zip("xy", names, strict=True))}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    asked = []

    def download(name, revision, allow_patterns, local_files_only=False):
        asked.append(local_files_only)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(UserError, match=f"has no {names[1]} of it"):
        find_on_hub("big/bert")
    assert asked == [True, False, False]
    shutil.copy(snapshot / names[0], snapshot / names[1])
    assert find_on_hub("big/bert") == snapshot


@pytest.mark.parametrize("place", ["", "0_StaticEmbedding"])
def test_static_vectors_are_whole_with_the_files_of_their_module(
    cache, tmp_path, place, monkeypatch
):
    folder, names = tmp_path / "static", ("model.safetensors", "tokenizer.json")
    files = [str(Path(place, name)) for name in names]
    (folder / place).mkdir(parents=True)
    modules = [{"type": "sentence_transformers.models.StaticEmbedding", "path": place}]
    (folder / "modules.json").write_text(json.dumps(modules))
    for file in files:
        (folder / file).write_text("x")
    snapshot = put_into(cache, "some/static", folder)
    assert find_on_hub("some/static") == snapshot

    def download(name, revision, allow_patterns, local_files_only=False):
        for file in files:
            if not local_files_only and any(fnmatch(file, one) for one in allow_patterns):
                shutil.copy(folder / file, snapshot / file)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    for file in files:
        (snapshot / file).unlink()
        assert find_on_hub("some/static") == snapshot
        assert (snapshot / file).is_file()


@pytest.mark.parametrize("made_by", ["transformers_tf/classification", "keras_hub/classifier"])
def test_what_has_no_safetensors_is_fetched_as_it_is(cache, made_by, monkeypatch):
    folder, asked = ELSEWHERE / made_by, []

    def download(name, revision, allow_patterns, local_files_only=False):
        del name
        if local_files_only:
            raise OSError("not cached")
        asked.append(allow_patterns)
        return str(shutil.copytree(folder, cache, ignore=unnamed_by(allow_patterns, folder)))

    def unnamed_by(patterns, root):
        def ignored(where, names):
            paths = {name: Path(where, name).relative_to(root).as_posix() for name in names}
            return [
                name
                for name, path in paths.items()
                if (root / path).is_file() and not any(fnmatch(path, one) for one in patterns)
            ]

        shutil.rmtree(cache, ignore_errors=True)
        return ignored

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    source = find_model("old/bert")
    assert source.architecture == "BertForSequenceClassification"
    assert len(asked) == 3
