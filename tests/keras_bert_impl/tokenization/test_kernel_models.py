import os

import numpy as np
import pytest

from keras_bert_impl.files import remove
from keras_bert_impl.tokenization import kernel_models
from keras_bert_impl.tokenization.kernel_models import build_kernel_models, load_kernel_models
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.damage import DAMAGES, damage

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "a", "##b"])


SETTINGS, OTHER = TextSettings(VOCABULARY), TextSettings(Vocabulary([*SPECIAL_TOKENS, "b", "##a"]))


@pytest.fixture(scope="module")
def models():
    return {id(settings): build_kernel_models(settings) for settings in (SETTINGS, OTHER)}


@pytest.fixture
def built(models, monkeypatch):
    """The settings for which models were built, each in no time."""
    asked = []
    monkeypatch.setattr(
        kernel_models,
        "build_kernel_models",
        lambda settings: asked.append(settings) or models.get(id(settings), models[id(OTHER)]),
    )
    return asked


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tokenizers"


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_models_are_built_once_and_then_found(cache, built, models):
    for _ in range(2):
        found = load_kernel_models(SETTINGS)
        assert all(map(np.array_equal, found, models[id(SETTINGS)]))
    assert built == [SETTINGS]
    assert len(files(cache)) == 1


def other_models(path):
    """A sound file, of another vocabulary."""
    load_kernel_models(OTHER)
    (other,) = set(path.parent.iterdir()) - {path}
    other.replace(path)


def test_what_is_not_as_it_was_kept_is_made_again(cache, built, models):
    load_kernel_models(SETTINGS)
    (path,) = cache.iterdir()
    sound = path.read_bytes()
    for how in ("of another vocabulary", *DAMAGES):
        damage(path, how) if how in DAMAGES else other_models(path)
        built.clear()
        found = load_kernel_models(SETTINGS)
        assert built == [SETTINGS], how
        assert all(map(np.array_equal, found, models[id(SETTINGS)])), how
        if path.is_file():
            assert path.read_bytes() == sound, how
        else:  # nothing stands in the way but what was put there
            remove(path)
            path.write_bytes(sound)


def made_by(others, folder, monkeypatch):
    if others == "may write there":
        folder.chmod(0o770)
    elif others == "have made it":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    elif others == "have put a link there":
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to("elsewhere")


@pytest.mark.parametrize("others", ["may write there", "have made it", "have put a link there"])
def test_only_a_folder_of_the_users_own_is_believed(cache, built, monkeypatch, others):
    load_kernel_models(SETTINGS)
    load_kernel_models(SETTINGS)
    assert built == [SETTINGS]
    before = files(cache)
    made_by(others, cache, monkeypatch)
    load_kernel_models(SETTINGS)
    assert built == [SETTINGS] * 2
    load_kernel_models(OTHER)
    assert files(cache) == before


@pytest.mark.usefixtures("built")
def test_the_cache_does_not_grow_for_ever(cache, monkeypatch):
    monkeypatch.setattr(kernel_models, "_MOST_MEBIBYTES", 3)  # a file has 1.2
    kept = []
    for letter in "abcd":
        load_kernel_models(TextSettings(Vocabulary([*SPECIAL_TOKENS, letter])))
        kept += set(cache.iterdir()) - set(kept)
    assert set(cache.iterdir()) == set(kept[-2:])


def test_an_empty_name_turns_the_cache_off(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    load_kernel_models(TextSettings(VOCABULARY, True, True))
    assert files(tmp_path) == []
