"""Whether a run may go on from a checkpoint with the present settings."""

from collections.abc import Mapping
from typing import Any

from keras_bert_impl.errors import UserError


def changed_settings(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Lists the settings that differ: name, value before, value now.

    Example:
        >>> changed_settings({"seed": 1, "batch_size": 8}, {"seed": 2, "batch_size": 8})
        [('seed', 1, 2)]
    """
    names = sorted({*before, *now})
    return [
        (name, before.get(name), now.get(name))
        for name in names
        if before.get(name) != now.get(name)
    ]


def check_settings(before: Mapping[str, Any], now: Mapping[str, Any], where: str) -> None:
    """Stops a resume that would continue another run.

    Args:
        before: settings of the checkpoint.
        now: settings of the present command.
        where: the run's folder, for the sentence.

    Raises:
        UserError: a setting that changes the mathematics differs.
    """
    changed = changed_settings(before, now)
    if changed:
        listed = ", ".join(f"--{name} was {old!r} and is {new!r}" for name, old, new in changed)
        raise UserError(
            f"{where}: its checkpoint was made with other settings: {listed}; give the old values, "
            "another --output_dir, or --allow_changed_flags to continue all the same."
        )
