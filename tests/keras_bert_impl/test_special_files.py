import os
import socket
import threading
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import (
    check_file,
    check_output,
    followed,
    open_input,
    open_whole,
    text_lines,
    whole_files,
    whole_folder,
)


@pytest.fixture(params=["pipe", "device", "socket", "folder"])
def no_file(request, tmp_path):
    """Something that is no file."""
    path = tmp_path / "it"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    elif request.param == "folder":
        path.mkdir()
    else:
        folder = os.open(tmp_path, os.O_RDONLY)  # names of sockets are short, those of tests not
        socket.socket(socket.AF_UNIX).bind(f"/proc/self/fd/{folder}/it")
        os.close(folder)
    return path


def test_what_is_no_file_is_refused_at_once_where_a_file_is_needed(no_file):
    with pytest.raises(UserError, match=r"it: (is a|cannot be read)"):
        check_file(no_file)


def test_a_folder_does_not_take_the_place_of_anything_else(no_file):
    before = no_file.lstat().st_mode
    if no_file.is_dir():
        pytest.skip("a folder may take the place of a folder")
    with pytest.raises(UserError, match=r"it: .* but a folder is written"), whole_folder(no_file):
        pass
    with pytest.raises(UserError, match="it: is a"), whole_files(no_file.parent, "it"):
        pass
    with pytest.raises(UserError, match="it: is a"):
        check_output(no_file, grows=True)
    assert no_file.lstat().st_mode == before


def written_by(path, *parts):
    """Writes to a pipe from a thread."""

    def write():
        with path.open("wb") as file:
            for part in parts:
                file.write(part)
                file.flush()

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def test_text_comes_through_a_pipe_where_it_is_read_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = written_by(tmp_path / "pipe", b"\xef\xbb\xbfon", b"e\n", b"two" * 50_000)
    assert list(text_lines(tmp_path / "pipe", stream=True)) == ["one", "two" * 50_000]
    writer.join()


def test_a_pipe_is_written_to_and_stays(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    with open_whole(path) as file:
        file.write("words\n")
    reader.join()
    assert read == ["words\n"]
    assert path.is_fifo()


def test_what_standard_output_leads_to_is_not_replaced(tmp_path):
    (tmp_path / "log").write_text("before\n")
    number = (tmp_path / "log").stat().st_ino
    descriptor = os.open(tmp_path / "log", os.O_WRONLY)
    os.write(descriptor, b"Before\n")
    with open_whole(f"/dev/fd/{descriptor}") as file:
        file.write("words\n")
    os.write(descriptor, b"after\n")
    os.close(descriptor)
    assert (tmp_path / "log").read_text() == "Before\nwords\nafter\n"
    assert (tmp_path / "log").stat().st_ino == number


@pytest.mark.parametrize("is_named", [True, False])
def test_a_link_that_the_user_names_is_followed_and_another_one_is_replaced(tmp_path, is_named):
    (tmp_path / "real/folder").mkdir(parents=True)
    for name in ("file", "folder/weights"):
        (tmp_path / "real" / name).write_text("before")
    for name in ("file", "folder"):
        (tmp_path / name).symlink_to(f"real/{name}")
    at = followed if is_named else Path
    with open_whole(at(tmp_path / "file")) as file:
        file.write("words")
    with whole_folder(at(tmp_path / "folder")) as folder:
        (folder / "weights").write_text("words")
    for name in ("file", "folder/weights"):
        assert (tmp_path / name).read_text() == "words"
        assert (tmp_path / "real" / name).read_text() == ("words" if is_named else "before")
    assert (tmp_path / "file").is_symlink() == (tmp_path / "folder").is_symlink() == is_named
    assert {path.name for path in tmp_path.iterdir()} == {"real", "file", "folder"}


@pytest.mark.parametrize("name", ["n" * 300, "a\0b"])
def test_a_name_that_no_file_can_have_is_a_sentence(tmp_path, name):
    for write in (
        lambda: check_output(tmp_path / name),
        lambda: open_whole(tmp_path / name).__enter__(),
        lambda: whole_folder(tmp_path / name).__enter__(),
        lambda: whole_files(tmp_path, name).__enter__(),
        lambda: whole_files(tmp_path / name, "x").__enter__(),
    ):
        with pytest.raises(UserError, match=r"File name too long|NUL|cannot be read"):
            write()
    with pytest.raises(UserError):
        open_input(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
