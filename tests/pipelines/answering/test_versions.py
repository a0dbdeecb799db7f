"""Folders of versions: which answer, beside whom, and what becomes of those that do not open."""

import contextlib
import threading
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.versions import ModelVersions
from tests.support.asgi_client import ask
from tests.support.toy_answerer import ToyAnswerer, ToyModel

PATH = "/v1/models/toy"


class Sized(ToyAnswerer):
    """Gives the number that its version's file holds, in place of the characters."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def finish(self, prepared, outputs):
        return [{"score": float(self.number)} for _ in outputs]


def opened(how):
    """Opens a version: a file with a number."""
    content = Path(how.model, "weights").read_text()
    if not content.isdigit():
        raise UserError(f"{how.model}: has half of its weights; copy it again.")
    return ToyModel({"text": Sized(int(content))})


def write(folder, content):
    folder.mkdir(exist_ok=True)
    (folder / "weights").write_text(str(content))


class Server:
    """A server of one folder of versions, which is looked at when a test says so."""

    def __init__(self, folder):
        self.opened = []
        self.versions = ModelVersions("toy", AnsweringConfig(model=str(folder)), self._open)
        app = make_app({"toy": self.versions.start()}, ServerConfig())
        self.app, self.service = app, app.state.service
        self.service.serve("toy", self.versions.versions())

    def _open(self, how):
        model = opened(how)
        self.opened.append(model)
        return model

    def look(self):
        """Long enough for what has changed to have settled."""
        for _ in range(2):
            self.versions.look(lambda versions: self.service.serve("toy", versions))

    def answer(self, which=""):
        reply = ask(self.app, "POST", f"{PATH}{which}:predict", {"instances": ["a"]})
        return reply.json()["predictions"][0] if reply.status == 200 else reply.status

    def states(self):
        told = ask(self.app, "GET", PATH).json()["model_version_status"]
        return {one["version"]: one["state"] for one in told}


@pytest.fixture
def folder(tmp_path):
    for number in (1, 2):
        write(tmp_path / str(number), number)
    return tmp_path


def test_the_newest_answers_until_a_newer_one_is_ready(folder):
    server = Server(folder)
    assert (server.answer(), server.answer("/versions/1")) == (2, 404)
    write(folder / "10", 10)
    server.versions.look(lambda _: pytest.fail("it may still be written"))
    server.look()
    assert (server.answer(), server.answer("/versions/10"), server.answer("/versions/2")) == (
        *(10, 10),
        404,
    )
    assert [one.closed for one in server.opened] == [True, False]
    assert server.states() == {"10": "AVAILABLE"}


def test_a_link_in_the_folder_is_a_label_whose_version_stays(folder):
    (folder / "stable").symlink_to("1")
    (folder / "elsewhere").symlink_to("../1")
    server = Server(folder)
    assert (server.answer("/labels/stable"), server.answer("/versions/1"), server.answer()) == (
        *(1, 1),
        2,
    )
    assert server.answer("/labels/elsewhere") == 404
    (folder / "stable").unlink()
    server.look()
    assert server.answer("/labels/stable") == 404
    assert [one.closed for one in server.opened] == [False, True]


def test_a_label_stays_until_the_version_that_it_names_now_is_open(folder):
    (folder / "stable").symlink_to("1")
    server = Server(folder)
    (folder / "stable").unlink()
    (folder / "stable").symlink_to("3")
    write(folder / "3", "half")
    server.look()
    assert server.answer("/labels/stable") == 1
    write(folder / "3", 3)
    server.look()
    assert server.answer("/labels/stable") == 3
    assert [one.closed for one in server.opened] == [True, True, False]


def test_labels_may_be_absolute_and_the_folder_relative_or_a_link(folder, monkeypatch, caplog):
    (folder / "stable").symlink_to(folder / "1")
    (folder / "old").symlink_to("7")
    (folder / "01").mkdir()
    (folder.parent / "named").symlink_to(folder)
    monkeypatch.chdir(folder.parent)
    for name in (folder.name, "named"):
        server = Server(name)
        server.look()
        server.look()
        assert server.answer("/labels/stable") == 1
    told = [
        "toy: 01 is ignored: another folder has its number.",
        "toy: old is ignored: it leads to no version in the folder.",
    ]
    assert sorted(caplog.messages) == sorted(told * 2)


def test_what_could_not_be_told_is_told_again(folder):
    server = Server(folder)
    write(folder / "3", 3)
    faults = [OSError("no page"), OSError("no page")]

    def tell(versions):
        if 3 in versions.models and faults:
            raise faults.pop()
        server.service.serve("toy", versions)

    for _ in range(5):
        with contextlib.suppress(OSError):
            server.versions.look(tell)
    assert (server.answer(), faults) == (3, [])


def test_half_of_a_listing_closes_nothing(folder, monkeypatch):
    (folder / "stable").symlink_to("1")
    server = Server(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "readlink", lambda _: (_ for _ in ()).throw(OSError("I/O error")))
        server.look()
    assert (server.answer("/labels/stable"), server.answer()) == (1, 2)


def test_a_half_copied_version_is_told_once_and_tried_when_it_changes(folder, caplog):
    server = Server(folder)
    write(folder / "3", "half")
    for _ in range(3):
        server.look()
    (told,) = [one for one in caplog.messages if "not served" in one]
    assert told.startswith("toy: version 3 is not served: ")
    assert (server.answer(), server.states()) == (2, {"3": "END", "2": "AVAILABLE"})
    (one,) = ask(server.app, "GET", f"{PATH}/versions/3").json()["model_version_status"]
    assert (one["version"], one["status"]["error_code"]) == ("3", "UNKNOWN")
    write(folder / "3", 3)
    server.look()
    assert (server.answer(), server.states()) == (3, {"3": "AVAILABLE"})


def test_a_version_goes_with_its_folder_but_the_last_one_answers_on(folder):
    server = Server(folder)
    for number, answering in ((2, 1), (1, 1)):
        (folder / str(number) / "weights").unlink()
        (folder / str(number)).rmdir()
        server.look()
        assert server.answer() == answering
    assert [one.closed for one in server.opened] == [True, False]


def test_a_folder_without_a_version_that_opens_is_refused_with_the_newest_ones_sentence(folder):
    write(folder / "2", "half")
    assert Server(folder).answer() == 1
    write(folder / "1", "half")
    with pytest.raises(UserError, match="2: has half of its weights"):
        Server(folder)


def test_a_version_that_is_opened_is_loading_and_one_that_is_left_out_ends_what_it_began(folder):
    server = Server(folder)
    (old,) = server.opened
    slow = old.answerers["text"]
    slow.seconds = 0.3
    answers = []
    asking = threading.Thread(target=lambda: answers.append(server.answer()))
    states = []
    write(folder / "3", 3)
    server.versions._open_model = lambda how: states.append(server.states()) or opened(how)
    asking.start()
    while not slow.sizes and asking.is_alive() and not server.service._waiting("toy", "text"):
        pass
    server.look()
    assert states == [{"3": "LOADING", "2": "AVAILABLE"}]
    assert old.closed
    asking.join()
    assert (answers, server.answer()) == ([2], 3)
