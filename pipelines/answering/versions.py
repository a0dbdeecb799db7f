"""A folder of numbered versions of a model, laid out as TensorFlow Serving lays them out.

The newest version that opens answers, and beside it those that have a label: a link in the folder,
such as `stable -> 3`. Versions come by a rename or a copy, and go with their folder.
"""

import contextlib
import dataclasses
import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_bert_impl.checkpoints.model_directory import GRAPHS_FOLDER
from keras_bert_impl.checkpoints.sources import CONFIG_FILE
from keras_bert_impl.errors import UserError
from pipelines.answering.config import AnsweringConfig

if TYPE_CHECKING:
    from keras_bert_impl.serving.http.rest import Versions
    from pipelines.answering.opening import OpenAnsweringModel

_LOGGER = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a path of the server may call a model, or a version by its label."""

_NUMBER = re.compile(r"[0-9]{1,18}")
Tell = Callable[["Versions"], None]


class Found(NamedTuple):
    """What a folder holds."""

    versions: Mapping[int, AnsweringConfig]  # how each is opened, the newest first
    labels: Mapping[str, int]  # the versions that they name
    ignored: Mapping[str, str]  # why a name is neither


def versions_in(how: AnsweringConfig) -> Found:
    """The versions in a model's folder; none where it is a model, or cannot be read now."""
    versions, aims, ignored = dict[int, AnsweringConfig](), dict[str, Path](), dict[str, str]()
    try:
        folder = Path(how.model or "/dev/null").expanduser()
        paths = [] if (folder / CONFIG_FILE).exists() else folder.iterdir()
        for path in sorted(paths, key=lambda one: (len(one.name), one.name)):  # 1 before 01
            if _NUMBER.fullmatch(path.name) and path.is_dir():
                if int(path.name) in versions:
                    ignored[path.name] = "another folder has its number"
                versions.setdefault(int(path.name), dataclasses.replace(how, model=str(path)))
            elif path.is_symlink() and NAME.fullmatch(path.name):
                aims[path.name] = folder / path.readlink()
    # RuntimeError: the home of a user whom there is not.
    except (OSError, RuntimeError):
        return Found({}, {}, {})  # half of a listing would close what is in the other half
    labels, here = dict[str, int](), os.path.realpath(folder)
    for label, aim in aims.items():
        is_number = _NUMBER.fullmatch(aim.name) and os.path.realpath(aim.parent) == here
        if is_number and int(aim.name) in versions:
            labels[label] = int(aim.name)
        else:
            ignored[label] = "it leads to no version in the folder"
    newest_first = {number: versions[number] for number in sorted(versions, reverse=True)}
    return Found(newest_first, labels, ignored)


class ModelVersions:
    """The versions of a model that are open: those of a folder, or a model's only one.

    `how.model` may be a folder of versions, which is to be looked at again where it `is_watched`.
    """

    def __init__(
        self,
        name: str,
        how: AnsweringConfig,
        open_model: "Callable[[AnsweringConfig], OpenAnsweringModel]",
    ) -> None:
        self.name, self._how, self._open_model = name, how, open_model
        self._found = versions_in(how)
        self.is_watched = bool(self._found.versions)
        self._open: dict[int, OpenAnsweringModel] = {}
        self._failed = dict[int, Any]()  # marks of the folders that could not be opened
        self._labels = dict[str, int]()
        self._seen: Mapping[int, Any] | None = None
        self._told: Versions | None = None
        self._ignored: Mapping[str, str] = {}

    def start(self) -> "OpenAnsweringModel":
        """Opens what the folder holds; gives the version that answers."""
        if not self.is_watched:
            self._open[1] = self._open_model(self._how)
        elif fault := self._update(self._marks(), lambda _: None):
            raise fault
        return self._open[max(self._open)]

    def look(self, tell: Tell) -> None:
        """Looks at the folder, and opens and leaves out what a change asks for.

        What differs from the last look is still being written, perhaps, and waits for the next.
        `tell` hears which versions answer now, and closes those that do so no more.
        """
        before = self._found, self._seen
        self._found = versions_in(self._how)
        self._seen = self._marks()
        if self._found.versions and before == (self._found, self._seen):
            self._update(self._seen, tell)

    def versions(self, *opening: int) -> "Versions":
        """Those that answer, with their labels, and those that do not."""
        from keras_bert_impl.serving.http.rest import Versions

        others = dict.fromkeys(self._failed, "END") | dict.fromkeys(opening, "LOADING")
        return Versions(self._open.copy(), self._labels.copy(), others)

    def close(self) -> None:
        """Closes all that are open."""
        for model in [*self._open.values()]:  # a last look may still be open another
            model.close()

    def _marks(self) -> dict[int, Any]:
        """What may have to be opened, the highest first: each with a mark of its files."""
        wanted = filter(self._is_wanted, self._found.versions)
        return {one: _mark(self._found.versions[one].model) for one in wanted}

    def _is_wanted(self, number: int) -> bool:
        newest = max(self._open.keys() & self._found.versions.keys(), default=-1)
        is_labelled = number in self._found.labels.values()
        return number not in self._open and (number > newest or is_labelled)

    def _update(self, marks: Mapping[int, Any], tell: Tell) -> Exception | None:
        """Opens what is wanted, and leaves out what is not; gives a fault if none is open."""
        for name in self._found.ignored.keys() - self._ignored.keys():
            _LOGGER.warning("%s: %s is ignored: %s.", self.name, name, self._found.ignored[name])
        self._ignored = self._found.ignored
        first: Exception | None = None
        for number, mark in marks.items():
            if not self._is_wanted(number) or self._failed.get(number) == mark:
                continue
            self._tell(tell, self.versions(number))
            try:
                self._open[number] = self._open_model(self._found.versions[number])
                _LOGGER.info("%s: version %d is ready.", self.name, number)
            except Exception as error:
                self._failed[number], first = mark, first or error
                # A bug, or what the system lacks, is told with its place.
                place = None if isinstance(error, UserError) else error
                told = (self.name, number, error)
                _LOGGER.warning("%s: version %d is not served: %s", *told, exc_info=place)
        if not self._open:
            return first
        failed = marks.keys() - self._open.keys()
        self._failed = {one: mark for one, mark in self._failed.items() if one in failed}
        # Without its folder the last one answers until there is another.
        there = self._open.keys() & self._found.versions.keys()
        # A label stays where it was until the version that it names now is open.
        labels = {
            label: number if number in there else self._labels.get(label, number)
            for label, number in self._found.labels.items()
        }
        self._labels = {label: number for label, number in labels.items() if number in there}
        kept = {max(there or self._open), *self._labels.values()}
        self._open = {one: model for one, model in self._open.items() if one in kept}
        self._tell(tell, self.versions())
        return None

    def _tell(self, tell: Tell, versions: "Versions") -> None:
        if versions != self._told:
            tell(versions)
            self._told = versions  # after it: what fails is told again at the next look


def _mark(folder: str) -> list[tuple[str, int, int]]:
    """What differs as soon as a file of a folder does, but for graphs that are kept in it."""
    marks = list[tuple[str, int, int]]()
    for where, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one != GRAPHS_FOLDER]
        for path in (Path(where) / one for one in files):
            with contextlib.suppress(OSError):  # gone meanwhile
                marks.append((str(path), path.stat().st_size, path.stat().st_mtime_ns))
    return sorted(marks)
