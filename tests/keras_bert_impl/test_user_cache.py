"""The folder of what can be made again."""

import os
import stat
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.user_cache import keep_newest, own_folder, user_cache


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


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "a" / "cache"))
    return tmp_path / "a" / "cache"


def test_a_folder_in_it_is_the_users_alone_whatever_new_files_are_otherwise(cache):
    before = os.umask(0o002)
    try:
        folder = own_folder("things")
    finally:
        os.umask(before)
    assert folder == cache / "things"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert own_folder("things") == folder


@pytest.mark.parametrize(
    "others",
    [
        lambda folder, _: folder.chmod(0o720),
        lambda folder, patch: patch.setattr(os, "geteuid", lambda: os.getuid() + 1),
        lambda folder, _: folder.rename(folder.with_name("x")) and folder.symlink_to("x"),
        lambda folder, _: folder.rmdir() or folder.parent.rmdir() or folder.parent.touch(),
    ],
)
def test_one_that_others_may_have_filled_is_refused_in_one_sentence(cache, monkeypatch, others):
    assert own_folder("things").parent == cache
    others(cache / "things", monkeypatch)
    with pytest.raises(UserError, match=r"cache/things: .*name another place in KERAS_BERT_CACHE"):
        own_folder("things")


def test_what_was_written_longest_ago_goes_first(tmp_path):
    for age, name in enumerate(["new", "middle", "old"]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(bytes(100))
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    for most, kept in ((300, 3), (299, 2), (100, 1), (0, 1)):
        keep_newest(tmp_path, most)
        assert len(list(tmp_path.iterdir())) == kept
    assert (tmp_path / "new").is_dir()
