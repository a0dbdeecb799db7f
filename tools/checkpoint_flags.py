"""The flags of every tool that reads a checkpoint of any format, and of those that write one."""

from typing import Any

from tools.command_line import FlagSet


class DescriptionFlags:
    """Flags for what a checkpoint does not say of itself.

    Args:
        flag_set: the tool's flags.
        place: what the tool calls the checkpoint.

    Example:
        >>> flag_set = FlagSet("Reads.")
        >>> description = DescriptionFlags(flag_set, "input")
        >>> flag_set.parse(["--vocab_file=words.txt"])
        >>> description.values()["vocab_file"]
        'words.txt'
    """

    def __init__(self, flag_set: FlagSet, place: str) -> None:
        self._flags: dict[str, Any] = {
            "bert_config_file": flag_set.string(
                "bert_config_file",
                None,
                f"google's bert_config.json, where none lies beside the {place}.",
            ),
            "vocab_file": flag_set.string(
                "vocab_file", None, f"The vocabulary, where none lies beside the {place}."
            ),
            "do_lower_case": flag_set.switch(
                "do_lower_case",
                None,
                f"Whether text is lower-cased, where the {place} does not say it.",
            ),
        }

    def values(self) -> dict[str, Any]:
        """The flags' values by their names."""
        return {name: flag.value for name, flag in self._flags.items()}


class ConversionFlags(DescriptionFlags):
    """Flags of a tool that turns one checkpoint into another: what to read and where to.

    Args:
        flag_set: the tool's flags.
    """

    def __init__(self, flag_set: FlagSet) -> None:
        paths = {
            "input": flag_set.string(
                "input",
                None,
                "A model directory, or the prefix, folder or a file of a TF1 checkpoint.",
                required=True,
            ),
            "output": flag_set.string(
                "output",
                None,
                "A folder, or a prefix such as folder/bert_model.ckpt.",
                required=True,
            ),
            "output_format": flag_set.choice(
                "output_format",
                "auto",
                ("auto", "hugging_face", "google_tf1"),
                "The form to write; auto goes by the output's name.",
            ),
        }
        super().__init__(flag_set, "input")
        self._flags.update(paths)
