"""The flags of every tool that reads documents as people have them."""

from typing import TYPE_CHECKING

from tools.command_line import FlagSet

if TYPE_CHECKING:
    from pipelines.corpora.documents import Reading


class TextFlags:
    """Adds the flags that say how text stands in the input, and reads them back.

    Args:
        flag_set: the tool's flags.

    Example:
        >>> flag_set = FlagSet("Reads.")
        >>> text = TextFlags(flag_set)
        >>> flag_set.parse(["--input_format=json_lines", "--text_field=body"])
        >>> text.input_format, text.reading().text_field
        ('json_lines', 'body')
    """

    def __init__(self, flag_set: FlagSet) -> None:
        self._input_format = flag_set.choice(
            "input_format",
            "auto",
            ["auto", "text", "json_lines", "wikiextractor", "tfds"],
            "How text stands in the input; auto looks at the beginning of each file.",
        )
        self._text_field = flag_set.string(
            "text_field",
            "text",
            "The field that holds the text in JSON lines and data sets; its lines are paragraphs.",
        )
        self._one_document_per_file = flag_set.switch(
            "one_document_per_file",
            False,
            "Whether each file of plain text is one document; empty lines then only part "
            "paragraphs.",
        )
        self._data_dir = flag_set.string(
            "data_dir",
            None,
            "The folder of TensorFlow Datasets; ~/tensorflow_datasets if not given.",
        )

    @property
    def input_format(self) -> str:
        """One of `sources.FORMS`, or "auto"."""
        return self._input_format.value

    def reading(self) -> "Reading":
        """How documents are found in the input."""
        from pipelines.corpora.documents import Reading

        return Reading(
            text_field=self._text_field.value,
            one_document_per_file=self._one_document_per_file.value,
            data_dir=self._data_dir.value,
        )
