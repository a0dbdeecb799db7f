"""What a command asks: instances of a model's inputs, each with its place for messages."""

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input, text_lines
from keras_bert_impl.serving.answerer import (
    Answerer,
    AnsweringModel,
    Input,
    Instance,
    asked_answerer,
    asked_otherwise,
)
from keras_bert_impl.tokenization.reference import as_name
from pipelines.answering.config import PredictConfig
from pipelines.corpora.encodings import TextEncoding
from pipelines.tables.columns import (
    PAIRS_OF_A_SEARCH,
    TEXTS,
    check_columns,
    check_first_row,
    choose_columns,
    pairs_in,
    text_of,
)
from pipelines.tables.files import Record, TableFile, form_by_name, open_table
from pipelines.tables.lines import read_lines, read_text
from pipelines.tasks.register import ASKED_OF_RECORDS

_LOGGER = logging.getLogger(__name__)

_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


class Placed(NamedTuple):
    """An instance, where it is (a file and a line, or an option), and the columns of a table."""

    instance: Instance
    where: str
    columns: Mapping[str, Any] = {}  # those that the instance is not made of
    row: Mapping[str, Any] = {}  # all of them


def chosen_answerer(model: AnsweringModel, config: PredictConfig) -> Answerer:
    """The answerer that suits what is asked."""
    asked = list[Any]()
    if not config.input_file:
        asked = [_of_options(config)[1][0]]
    elif _is_guessed(config) and config.signature is None:
        file = _table(config)
        fitting = (one for one in model.answerers.values() if _has_all(file, one.inputs))
        asked = [dict.fromkeys(field.name for field in one.inputs) for one in fitting][:1]
        pairs = pairs_in(file.columns)
        if len(pairs) == 1 and {*itertools.chain(*asked)} < {*pairs[0]}:  # `text` may be one of two
            asked = [("", "")]
    elif config.text_column or config.text_pair_column:
        asked = [("", "") if config.text_pair_column else ("",)]
    return asked_answerer(model.answerers, asked, config.signature)


def as_trained(config: PredictConfig, columns: Sequence[str]) -> PredictConfig:
    """Names the columns that the model was trained on, where a file has them and none is named."""
    may_be_there = columns and config.input_file and _is_guessed(config) and not config.signature
    if not may_be_there or not {*columns} <= {*_table(config).columns}:
        return config
    named: Any = dict(zip(("text_column", "text_pair_column"), columns, strict=False))
    _LOGGER.info("as %s was trained: %s", config.model, ", ".join(map(" = ".join, named.items())))
    return replace(config, **named)


def _is_guessed(config: PredictConfig) -> bool:
    """Whether the columns of a table say what is asked."""
    named = config.text_column or config.text_pair_column
    return not named and form_by_name(str(config.input_file)) is not None


def asked_texts(config: PredictConfig, answerer: Answerer) -> Iterator[Placed]:
    """All that is asked, read while it is asked for."""
    if config.input_file:
        return _of_file(config, config.input_file, answerer)
    option, asked = _of_options(config)
    if config.question:
        passage = read_text(str(config.passage_file), config.text_encoding)
        asked = [{**one, "passage": passage} for one in asked]
    several = len(asked) > 1
    numbered = enumerate(asked, start=1)
    return (Placed(one, f"`{option}`" + f" {number}" * several) for number, one in numbered)


def _of_options(config: PredictConfig) -> tuple[str, Sequence[Instance]]:
    """An option of the command line, and what is asked by it; the passage is not read yet."""
    if config.question:
        return "question", [{"question": one, "passage": ""} for one in config.question]
    if config.context:
        return "context", [{"context": config.context, "endings": list(config.ending)}]
    if not config.text_pair:
        return "text", [{"text": one} for one in config.text]
    pairs = zip(config.text, config.text_pair, strict=True)
    return "text", [{"text_a": first, "text_b": second} for first, second in pairs]


def is_stream(name: str) -> bool:
    """Whether a file is read while another program writes it."""
    return name == "-" or name.startswith(_STREAMS)


def _of_file(config: PredictConfig, name: str, answerer: Answerer) -> Iterator[Placed]:
    inputs = answerer.inputs
    if _is_guessed(config) or config.text_column or config.text_pair_column:
        file = _table(config)
        read = ASKED_OF_RECORDS.get(answerer.kind) if _is_guessed(config) else None
        read = read or partial(_of_record, inputs, _columns_of(config, file, inputs))
        asked = ((record, *read(file, record)) for record in file.records())
        where = f"{file.name}: line "
        return (Placed(x, f"{where}{row.line}", others, row.values) for row, x, others in asked)
    if len(inputs) > 1:
        raise UserError(
            f"{name}: lines hold one text each, but this model is asked with "
            f"{' and '.join(one.name for one in inputs)}; give CSV, TSV or JSON lines."
        )
    encoding = config.text_encoding
    streamed = is_stream(name)
    lines = enumerate(_streamed(name, encoding), 1) if streamed else read_lines(name, encoding)
    return (Placed({inputs[0].name: line}, f"{name}: line {number}") for number, line in lines)


def _table(config: PredictConfig) -> TableFile:
    columns = config.text_column or config.text_pair_column
    return open_table(
        str(config.input_file),
        header=columns is None or not columns.isdecimal(),
        encoding=config.text_encoding,
    )


def _streamed(name: str, encoding: TextEncoding) -> Iterator[str]:
    """The lines of a pipe, which is read once and from its beginning to its end."""
    path = "/dev/stdin" if name == "-" else name
    if encoding.is_utf8:
        yield from map(encoding.composed, text_lines(path, stream=True))
        return
    with open_input(path, stream=True) as file:
        for line in encoding.recoded_lines(path, file):
            yield line.decode().rstrip("\r\n")


def _columns_of(config: PredictConfig, file: TableFile, inputs: Sequence[Input]) -> list[str]:
    """The columns of the inputs, in their order."""
    given = [config.text_column, config.text_pair_column]
    if not any(given) and _has_all(file, inputs):
        names = [one.name for one in inputs]
        check_columns(file, names)
        return names
    if any(one.is_list for one in inputs):
        wanted = " and ".join(one.name for one in inputs)
        raise UserError(f"{file.name}: has no columns {wanted}; name them so.")
    if len(inputs) == 1 and given[1]:
        raise asked_otherwise(f"`text_pair_column={given[1]}`", "a second text", inputs)
    if len(inputs) == 1 and config.text_column:
        column = as_name(config.text_column)
        check_columns(file, [column])
        check_first_row(file, [column], remedy="")
        return [column]
    found = choose_columns(file, given[0], given[1], (), labelled=False).texts
    plain = [one for one in found if one.lower() in TEXTS]
    of_search = tuple(one.lower() for one in found) in PAIRS_OF_A_SEARCH
    if len(inputs) == 1 == len(plain) and of_search:
        found = plain
        _LOGGER.warning("%s: the model reads one text, that of %s.", file.name, found[0])
    if len(found) != len(inputs):
        raise asked_otherwise(file.name, " and ".join(found), inputs)
    return found


def _has_all(file: TableFile, inputs: Sequence[Input]) -> bool:
    return {one.name for one in inputs} <= {*file.columns}


def _of_record(
    inputs: Sequence[Input], columns: Sequence[str], file: TableFile, record: Record
) -> tuple[Instance, Mapping[str, Any]]:
    pairs = zip(inputs, columns, strict=True)
    instance = {one.name: text_of(file, record, column) for one, column in pairs}
    return instance, {name: x for name, x in record.values.items() if name not in columns}


def texts_in(values: Iterable[Any]) -> Iterator[str]:
    """The texts among values and in lists of them, whatever else stands there."""
    for value in values:
        texts = value if isinstance(value, list) else [value]
        yield from (text for text in texts if isinstance(text, str))
