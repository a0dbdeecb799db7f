"""The folder of what can be made again."""

from pathlib import Path

import pytest

from keras_bert_impl.user_cache import user_cache


@pytest.mark.parametrize(
    ("named", "root", "expected"),
    [
        ("/fast/cache", "/elsewhere", Path("/fast/cache")),
        ("", "/elsewhere", None),
        (None, "/elsewhere", Path("/elsewhere/keras_bert_impl")),
        (None, "not/absolute", Path("/home/a/.cache/keras_bert_impl")),
        (None, None, Path("/home/a/.cache/keras_bert_impl")),
    ],
)
def test_variables_name_it(monkeypatch, named, root, expected):
    monkeypatch.setenv("HOME", "/home/a")
    for name, value in (("KERAS_BERT_CACHE", named), ("XDG_CACHE_HOME", root)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert user_cache() == expected
