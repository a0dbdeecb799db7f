"""The directive `front_door`: the public names of rooms, with their docstrings."""

import inspect

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

import keras_bert_impl

_SHOWN: set[str] = set()
_FOR_KERAS = ("build", "compute_output_spec", "from_config", "get_config")  # called by Keras alone
_AS_IN_KERAS = ("evaluate", "predict")
_FOR_US = ("plain_weights",)
_HIDDEN = {*_FOR_KERAS, *_AS_IN_KERAS, *_FOR_US}
_OURS = ("keras_bert_impl", "pipelines")


def names_of(rooms: list[str]) -> list[str]:
    """The public names whose modules lie in these rooms: of the library, or `pipelines`.

    Example:
        >>> names_of(["optimizers"])
        ['BertAdamW', 'Lamb', 'WarmupSchedule']
    """
    homes = {**keras_bert_impl._HOMES, **keras_bert_impl._ABOVE}
    return sorted(name for name, home in homes.items() if home.split(".")[0] in rooms)


class FrontDoor(SphinxDirective):
    """Documents the public names of the rooms that its arguments list."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The names, each by autodoc."""
        names = names_of(self.arguments[0].split())
        _SHOWN.update(names)
        lines = [line for name in names for line in _documented(name)]
        return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *lines, "```"]))


def _documented(name: str) -> list[str]:
    value = getattr(keras_bert_impl, name)
    if not isinstance(value, type):
        return [f".. autofunction:: keras_bert_impl.{name}", ""]
    options = [f"   :members: {', '.join(_members(value))}"]
    if "__call__" in vars(value):
        options.append("   :special-members: __call__")
    return [f".. autoclass:: keras_bert_impl.{name}{_arguments(value)}", *options, ""]


def _arguments(kind: type) -> str:
    """The arguments of a class whose `__init__` is hidden by a `__new__` of Keras."""
    if kind.__new__ is object.__new__:
        return ""
    own = list(inspect.signature(kind.__init__).parameters.values())[1:]
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in own]
    return str(inspect.Signature(plain))


def _members(kind: type) -> list[str]:
    """What a class has of this package's own: inherited, too, but nothing of Keras' classes."""
    ours = [one for one in kind.__mro__ if one.__module__.startswith(_OURS)]
    named = {name: None for one in ours for name, value in vars(one).items() if value.__doc__}
    shown = [name for name in named if not name.startswith("_") and name not in _HIDDEN]
    return [name for name in shown if _is_described(kind, name)]


def _is_described(kind: type, name: str) -> bool:
    value = inspect.getattr_static(kind, name)
    return isinstance(value, property | staticmethod | classmethod) or inspect.isfunction(value)


def _all_are_shown(*_: object) -> None:
    """Every public name is documented, whoever adds one."""
    missing = {*keras_bert_impl._HOMES, *keras_bert_impl._ABOVE} - _SHOWN
    if _SHOWN and missing:
        raise ExtensionError(f"docs/api.md shows no room that holds {', '.join(sorted(missing))}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive to Sphinx."""
    app.add_directive("front_door", FrontDoor)
    app.connect("env-updated", _all_are_shown)
    return {"parallel_read_safe": False}
