"""Flags that hold a list."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import as_list_text, items_of


class SeveralFlag(flags.Flag):
    """A flag that holds several items: given again it adds to them.

    What a flag file says of it stands for itself: of several places that say something, the
    command line's words being one, the one that speaks last is believed.

    Attributes:
        separated: whether commas separate items; otherwise each time gives one.
        source: the place whose words are read now.
    """

    def __init__(
        self,
        name: str,
        default: list[str] | None,
        help: str,  # noqa: A002 -- absl's word
        separated: bool,
    ) -> None:
        self.separated, self.source = separated, ""
        self._given: dict[str, list[str]] = {}
        super().__init__(_Items(separated), _ItemsAsText(), name, default, help)

    def parse(self, argument: Any) -> None:
        """Adds the items to those that the same place gave before."""
        try:
            more = self._parse(argument) or []
        except UserError as error:
            raise UserError(f"--{self.name}: {error}") from error
        self.value = [*self._given.get(self.source, ()), *more]
        self._given[self.source] = self.value
        self.present += 1

    def unparse(self) -> None:
        """Forgets what was given."""
        super().unparse()
        self._given.clear()


class _Items(flags.ArgumentParser):
    def __init__(self, separated: bool) -> None:
        self._separated = separated

    def parse(self, argument: Any) -> list[str]:
        if not isinstance(argument, str):
            return list(argument)  # a default
        return items_of(argument) if self._separated else [argument]


class _ItemsAsText(flags.ArgumentSerializer):
    def serialize(self, value: Sequence[str]) -> str:
        return as_list_text(value)


def define_several(name: str, *, flag_values: flags.FlagValues, **more: Any) -> flags.FlagHolder:
    """Defines a `SeveralFlag`; `more` are its other parameters."""
    return flags.DEFINE_flag(SeveralFlag(name, **more), flag_values)
