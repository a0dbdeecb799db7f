import numpy as np
import pytest

from keras_bert_impl.tokenization import kernel_models
from keras_bert_impl.tokenization.kernel_models import (
    build_kernel_models,
    characters_that_kernels_split,
    load_kernel_models,
)
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenization import expected_ids

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "a", "##b"])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_models_are_built_once_and_then_found(cache, monkeypatch):
    first = load_kernel_models(TextSettings(VOCABULARY, True, True))
    monkeypatch.setattr(kernel_models, "build_kernel_models", None)
    second = load_kernel_models(TextSettings(VOCABULARY, True, True))
    assert len(files(cache)) == 1
    for ours, theirs in zip(first, second, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_every_option_and_vocabulary_has_models_of_its_own(cache):
    load_kernel_models(TextSettings(VOCABULARY, True, True))
    load_kernel_models(TextSettings(VOCABULARY, True, False))
    load_kernel_models(TextSettings(Vocabulary([*SPECIAL_TOKENS, "b"]), True, True))
    assert len(files(cache)) == 3


def test_models_that_other_code_has_built_do_not_count(monkeypatch, tmp_path):
    """A newer version of the rules must not find what an older one has left."""
    before = kernel_models.cache_name(TextSettings(VOCABULARY, True, True))
    assert kernel_models.cache_name(TextSettings(VOCABULARY, True, True)) == before
    changed = tmp_path / "normalizer.py"
    changed.write_text("# other rules")
    monkeypatch.setattr(kernel_models, "_SHAPED_BY", (str(changed),))
    assert kernel_models.cache_name(TextSettings(VOCABULARY, True, True)) != before


@pytest.mark.parametrize("kept", [0, 6, 500, -30])
def test_a_broken_file_in_the_cache_is_replaced(cache, kept):
    expected = load_kernel_models(TextSettings(VOCABULARY, False, False))
    (name,) = files(cache)
    (cache / name).write_bytes((cache / name).read_bytes()[:kept])
    again = load_kernel_models(TextSettings(VOCABULARY, False, False))
    np.testing.assert_array_equal(again.wordpiece, expected.wordpiece)
    assert (cache / name).stat().st_size > 1000


def test_an_empty_name_turns_the_cache_off(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    load_kernel_models(TextSettings(VOCABULARY, True, True))
    assert files(tmp_path) == []


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "file"))
    assert load_kernel_models(TextSettings(VOCABULARY, True, True)).wordpiece.size > 0


def test_a_token_longer_than_any_word_is_no_obstacle():
    assert expected_ids(["a" * 201], Vocabulary([*SPECIAL_TOKENS, "a" * 201]), True) == [[1]]
    build_kernel_models(
        TextSettings(Vocabulary([*SPECIAL_TOKENS, "a" * 201, "a" * 300]), True, True)
    )


def test_marks_of_several_combining_classes_are_warned_of():
    with pytest.warns(UserWarning, match="several combining classes"):
        build_kernel_models(
            TextSettings(Vocabulary([*SPECIAL_TOKENS, "\u302e", "\ua9c0"]), True, True)
        )


def test_the_kernel_is_asked_where_it_splits():
    splits = characters_that_kernels_split()
    assert set("!$^~¿—…·") <= splits
    assert not splits & set("aé½×각\u0301 ")
