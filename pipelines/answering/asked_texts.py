"""What a command asks: instances of a model's inputs, each with its place for messages."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import open_input, text_lines
from keras_bert_impl.serving.answerer import Answerer, AnsweringModel, Input, Instance
from keras_bert_impl.tokenization.reference import as_name
from pipelines.answering.config import PredictConfig
from pipelines.corpora.encodings import TextEncoding
from pipelines.tables.columns import check_columns, check_first_row, choose_columns, value_of
from pipelines.tables.files import Record, TableFile, form_by_name, open_table
from pipelines.tables.lines import read_lines, read_text

_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/", "-")


class Placed(NamedTuple):
    """An instance, and where it stands: a file and a line, or an option and its number."""

    instance: Instance
    where: str


def chosen_answerer(model: AnsweringModel, config: PredictConfig) -> Answerer:
    """The answerer that suits what is asked.

    Raises:
        UserError: the model has no such signature, or answers nothing of the kind.
    """
    known = ", ".join(model.answerers)
    if config.signature is not None:
        if config.signature not in model.answerers:
            raise UserError(
                f"`signature={config.signature}` is none of this model's; choose {known}."
            )
        return model.answerers[config.signature]
    main = next(iter(model.answerers.values()))
    fitting = [one for one in model.answerers.values() if _fits(one, config)]
    if not fitting:
        names = " and ".join(f"`{one.name}`" for one in main.inputs)
        raise UserError(f"this model is asked with {names}; give these, or name another model.")
    # Entities are asked of text as people write it, with marks at the ends of words.
    return next((one for one in fitting if one.signature == "raw_text"), fitting[0])


def _fits(answerer: Answerer, config: PredictConfig) -> bool:
    """Whether an answerer takes what is given."""
    if config.question or answerer.kind == "answer":
        of_question = bool(config.question or config.input_file)
        return of_question and answerer.kind == "answer"
    if config.context or answerer.kind == "choice":
        return bool(config.context or config.input_file) and answerer.kind == "choice"
    if config.input_file and not (config.text_column or config.text_pair_column):
        return True
    has_pair = bool(config.text_pair or config.text_pair_column)
    return len(answerer.inputs) == (2 if has_pair else 1)


def asked_texts(config: PredictConfig, answerer: Answerer) -> Iterator[Placed]:
    """All that is asked, read while it is asked for.

    Raises:
        UserError: a file is not what it should be.
    """
    names = [one.name for one in answerer.inputs]
    if config.input_file:
        return _of_file(config, config.input_file, answerer)
    if config.question:
        passage = read_text(str(config.passage_file), config.text_encoding)
        asked: Iterable[tuple[Any, ...]] = ((one, passage) for one in config.question)
        option = "question"
    elif config.context:
        asked, option = [(config.context, list(config.ending))], "context"
    else:
        pairs = zip(config.text, config.text_pair, strict=True)
        asked, option = (pairs if config.text_pair else ((one,) for one in config.text)), "text"
    return (
        Placed(dict(zip(names, one, strict=True)), f"`{option}` {number}")
        for number, one in enumerate(asked, 1)
    )


def is_stream(name: str) -> bool:
    """Whether a file is read while somebody writes it."""
    return name.startswith(_STREAMS)


def _of_file(config: PredictConfig, name: str, answerer: Answerer) -> Iterator[Placed]:
    first = answerer.inputs[0].name
    columns = config.text_column or config.text_pair_column
    if columns is None and (is_stream(name) or form_by_name(name) is None):
        if len(answerer.inputs) > 1:
            raise UserError(
                f"{name}: lines hold one text each, but this model is asked with "
                f"{' and '.join(one.name for one in answerer.inputs)}; give CSV, TSV or JSON lines."
            )
        read = _streamed_lines if is_stream(name) else read_lines
        lines = read(name, config.text_encoding)
        return (Placed({first: line}, f"{name}: line {number}") for number, line in lines)
    header = columns is None or not columns.isdecimal()
    file = open_table(name, header=header, encoding=config.text_encoding)
    found = _columns_of(config, file, answerer.inputs)
    return (_of_record(file, record, answerer.inputs, found) for record in file.records())


def _streamed_lines(name: str, encoding: TextEncoding) -> Iterator[tuple[int, str]]:
    return enumerate(_streamed("/dev/stdin" if name == "-" else name, encoding), 1)


def _streamed(name: str, encoding: TextEncoding) -> Iterator[str]:
    """The lines of a pipe, each as soon as it is there."""
    if encoding.is_utf8:
        yield from map(encoding.composed, text_lines(name, stream=True))
        return
    with open_input(name, stream=True) as file:
        for line in encoding.recoded_lines(name, file):
            yield line.decode().rstrip("\r\n")


def _columns_of(config: PredictConfig, file: TableFile, inputs: Sequence[Input]) -> list[str]:
    """The columns of the inputs, in their order."""
    given = [config.text_column, config.text_pair_column]
    if not any(given) and all(_has(file, one) for one in inputs):
        return [one.name for one in inputs]
    if len(inputs) == 1 and config.text_pair_column:
        raise UserError(
            f"`text_pair_column={config.text_pair_column}`: this model is asked with one text; "
            "leave it out."
        )
    if any(one.is_list for one in inputs):
        names = " and ".join(one.name for one in inputs)
        raise UserError(
            f"{file.name}: has no columns {names}; name them so (of a list NAME0, NAME1, ...)."
        )
    if len(inputs) == 1 and config.text_column:
        column = as_name(config.text_column)
        check_columns(file, [column])
        check_first_row(file, [column], remedy="")
        return [column]
    found = choose_columns(file, given[0], given[1], (), labelled=False)
    if len(found.texts) < len(inputs):
        raise UserError(
            f"{file.name}: which column has the second text is not plain; name it with "
            "`text_pair_column`."
        )
    return found.texts[: len(inputs)]


def _has(file: TableFile, field: Input) -> bool:
    return field.name in file.columns or (field.is_list and f"{field.name}0" in file.columns)


def _of_record(
    file: TableFile, record: Record, inputs: Sequence[Input], columns: Sequence[str]
) -> Placed:
    where = f"{file.name}: line {record.line}"
    pairs = zip(inputs, columns, strict=True)
    instance = {one.name: _value(file, record, one, column) for one, column in pairs}
    return Placed(instance, where)


def _value(file: TableFile, record: Record, field: Input, column: str) -> Any:
    if field.is_list and column not in record.values:
        numbered = (record.values.get(f"{column}{number}") for number in itertools.count())
        return list(itertools.takewhile(lambda one: one is not None, numbered))
    value = value_of(file, record, column)
    if value is None and not field.is_list:
        return ""
    if not field.is_list and not isinstance(value, str):
        raise UserError(
            f"{file.name}: line {record.line} has {shown(value)} in the column {shown(column)}, "
            "which is no text; mend the line."
        )
    return value
