"""The answers of a model to texts of a command line or a file, block by block."""

import contextlib
import itertools
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, followed, open_whole
from keras_bert_impl.json_files import json_text, without_nan
from keras_bert_impl.progress import Progress
from keras_bert_impl.serving.answerer import (
    NUM_TRUNCATED,
    Answer,
    Answerer,
    Instance,
    ask,
    log_left_out,
    named_otherwise,
)
from keras_bert_impl.tokenization.unknown_words import check_words
from keras_bert_impl.tokenization.vocabulary import MASK
from pipelines.answering.asked_texts import (
    Placed,
    as_trained,
    asked_texts,
    chosen_answerer,
    is_stream,
    texts_in,
)
from pipelines.answering.config import CSV, JSON, TSV, AnswerConfig, FillMaskConfig, PredictConfig
from pipelines.answering.opening import OpenAnsweringModel, no_texts, open_answering_model
from pipelines.corpora.documents import refuse_output_among_input
from pipelines.tables.writing import digits, one_line, table_writer, writable

_LOGGER = logging.getLogger(__name__)

_BLOCK = 1024
_BLOCK_OF_A_STREAM = 32
_SAMPLE = 500  # instances that the scales of int8 are chosen from
_MOST_SHOWN = 5
_LONGEST = 100
_NUMBERS = 6
_DELIMITERS = {CSV: ",", TSV: "\t"}
_MAIN = {"label": "label", "labels": "labels", "number": "score"}


def predict(config: PredictConfig, kind: str | None = None, most: int | None = None) -> int:
    """Answers everything that is asked, block by block, and gives how many instances that were.

    A model without answers of a `kind` is refused; of a question's best answers `most` are given.
    """
    model: OpenAnsweringModel
    output: contextlib.AbstractContextManager[IO[str]] = contextlib.nullcontext(sys.stdout)
    if config.output_file:
        read = filter(None, (config.input_file, config.passage_file))
        refuse_output_among_input(read, [config.output_file], "output_file")
        check_output(config.output_file)
        output = open_whole(followed(config.output_file))

    def first_texts() -> Iterable[Any]:
        if config.input_file is None or is_stream(config.input_file):
            return no_texts()
        some = asked_texts(config, chosen_answerer(model, config))
        return [dict(one.instance) for one in itertools.islice(some, _SAMPLE)]

    model = open_answering_model(config, first_texts, kind)
    with contextlib.closing(model), output as file:
        config = as_trained(config, model.columns)
        return _answer_all(config, model, file, most)


def fill_mask(config: FillMaskConfig) -> None:
    """Prints each text, and what may stand at its masks."""
    asked = PredictConfig.of(config, signature="fill_mask_text")
    predict(asked, "masked_words")


def answer(config: AnswerConfig) -> None:
    """Prints each question, and its best answers with their places in the passage."""
    asked = PredictConfig.of(config, signature="answers")
    predict(asked, "answer", config.num_answers)


def _answer_all(
    config: PredictConfig, model: OpenAnsweringModel, file: IO[str], most: int | None
) -> int:
    if most and most > (known := model.description.get("most_answers", most)):
        _LOGGER.warning(
            "the model finds %d answers to a question (n_best_size), not %d", known, most
        )
    answerer = chosen_answerer(model, config)
    labels = [str(label) for label in model.description.get("labels", ())]
    size = _BLOCK_OF_A_STREAM if is_stream(config.input_file or "") else _BLOCK
    progress = Progress("predict", None, "texts") if config.output_file else None
    where = config.input_file or "the texts"
    count = empty = cut = 0
    asked = asked_texts(config, answerer)
    delimiter, header = _DELIMITERS.get(config.written_as), list[str]()
    table = table_writer(file, delimiter) if delimiter else None
    if delimiter == "," and config.output_file:
        file.write("\ufeff")  # by which Excel knows UTF-8
    while block := list(itertools.islice(asked, size)):
        if not count:  # the first texts say whether the vocabulary fits
            texts = (text for one in block for text in texts_in(one.instance.values()))
            words = [text.replace(MASK, " ") for text in texts]
            check_words(words, model.text, where, may_refuse=False)
        for one, found in zip(block, _answers(answerer, block), strict=True):
            answer = _best(found, most) if most else found
            if table:
                row = _row(answerer.kind, one, answer)
                if not header:
                    table.writerow(header := [*row])
                table.writerow(map(row.get, header))
            else:
                file.write(writable(_written(config, answerer, labels, one, answer, most)) + "\n")
            cut += bool(answer.get(NUM_TRUNCATED))
            empty += not any(text.strip() for text in texts_in(one.instance.values()))
        count += len(block)
        file.flush()
        if progress:
            progress.advance(len(block))
    if progress:
        progress.close()
    log_left_out(where, count, empty=empty, cut=cut, most=answerer.most_tokens)
    return count


def _row(kind: str, asked: Placed, answer: Answer) -> dict[str, str]:
    """What is asked as its file names it, and the answer, its JSON where it is none of `_MAIN`."""
    main = answer.get(_MAIN.get(kind, ""), answer)
    found = {"prediction": digits(main) if kind == "number" else main}
    if kind == "label":
        found["probability"] = digits(max(answer["probabilities"]))
    row = {**(asked.row or asked.instance), **found}
    return {name: value if isinstance(value, str) else _json(value) for name, value in row.items()}


def _json(value: Any) -> str:
    return json_text(without_nan(value), ensure_ascii=False)


def _written(
    config: PredictConfig,
    answerer: Answerer,
    labels: list[str],
    asked: Placed,
    answer: Answer,
    most: int | None,
) -> str:
    columns = {"columns": asked.columns} if asked.columns else {}
    if config.written_as == JSON:
        return _json({"input": asked.instance, "answer": answer, **columns})
    others = ", ".join(f"{name}: {_shown(str(value))}" for name, value in asked.columns.items())
    lines = table_of(answerer, labels, asked.instance, answer, most or _MOST_SHOWN)
    return f"{lines}\n  ({others})" if others else lines


def _best(answer: Answer, most: int) -> Answer:
    """The answer with the first `most` of the best ones."""
    kept = {name: value[:most] for name, value in answer.items() if isinstance(value, list)}
    return {**answer, **kept, "answer_counts": len(kept["answers"])}


def _answers(answerer: Answerer, block: list[Placed]) -> list[Answer]:
    try:
        return ask(answerer, [one.instance for one in block])
    except UserError as error:
        raise named_otherwise(error, lambda number: block[number].where) from None


def table_of(
    answerer: Answerer,
    labels: list[str],
    instance: Instance,
    answer: Answer,
    most: int = _MOST_SHOWN,
) -> str:
    """An instance and its answer in lines."""
    asked = " | ".join(_shown(instance[one.name]) for one in answerer.inputs)
    lines = [*_LINES[answerer.kind](answer, labels, instance, most)]
    if left := answer.get(NUM_TRUNCATED):
        lines.append(f"(longer than the model reads: {left} tokens left out)")
    return "\n".join([asked, *(f"  {line}" for line in lines)])


def _shown(text: Any) -> str:
    words = " / ".join(map(_shown, text)) if isinstance(text, list) else one_line(text)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _of_label(answer: Answer, labels: list[str], _: Instance, most: int) -> Iterator[str]:
    if len(labels) != len(answer["probabilities"]):
        yield f"{max(answer['probabilities']):7.2%}  {answer['label']}"
        return
    pairs = zip(answer["probabilities"], labels, strict=True)
    for share, label in sorted(pairs, key=lambda pair: -pair[0])[:most]:
        yield f"{share:7.2%}  {label}"


def _of_labels(answer: Answer, labels: list[str], *_: Any) -> Iterator[str]:
    shares = dict(zip(labels, answer["probabilities"], strict=False))
    for label in answer["labels"]:
        yield f"{shares[label]:7.2%}  {label}" if label in shares else label
    if not answer["labels"]:
        yield "no label"


def _of_number(answer: Answer, *_: Any) -> Iterator[str]:
    yield digits(answer["score"])


def _of_answer(answer: Answer, _: list[str], instance: Instance, most: int) -> Iterator[str]:
    if "answers" not in answer:
        found = _shown(answer["answer"])
        yield f"{found}  (characters {answer['start']}-{answer['end']})" if found else "no answer"
        return
    if not answer["has_answer"]:
        yield "no answer" + ("; the best guesses:" if answer["answers"] else "")
    columns = (answer["answers"], answer["starts"], answer["ends"], answer["scores"])
    for text, start, end, score in list(zip(*columns, strict=True))[:most]:
        line = instance["passage"].count("\n", 0, start) + 1
        yield f"{score:8.2f}  {_shown(text)}  (line {line}, characters {start}-{end})"


def _of_entities(answer: Answer, *_: Any) -> Iterator[str]:
    columns = (answer[name] for name in ("score", "type", "text", "start", "end"))
    for score, kind, text, start, end in zip(*columns, strict=True):
        yield f"{score:7.2%}  {kind}  {_shown(text)}  (characters {start}-{end})"
    if not answer["count"]:
        yield "no entity"


def _of_choice(answer: Answer, _: list[str], instance: Instance, *__: Any) -> Iterator[str]:
    pairs = enumerate(zip(answer["probabilities"], instance["endings"], strict=True))
    for number, (share, ending) in sorted(pairs, key=lambda pair: -pair[1][0]):
        yield f"{share:7.2%}  {number}  {_shown(ending)}"


def _of_masked_words(answer: Answer, *_: Any) -> Iterator[str]:
    for number, (words, shares) in enumerate(
        zip(answer["tokens"], answer["probabilities"], strict=True), 1
    ):
        if answer["mask_counts"] > 1:
            yield f"[MASK] {number}"
        for word, share in zip(words, shares, strict=True):
            yield f"{share:7.2%}  {word}"
    if not answer["mask_counts"]:
        yield "no [MASK]"


def _of_next_sentence(answer: Answer, *_: Any) -> Iterator[str]:
    yield f"{answer['probability']:7.2%}  the second text follows the first one"


def _of_vector(answer: Answer, *_: Any) -> Iterator[str]:
    vector = answer["embedding"]
    some = ", ".join(f"{number:.4g}" for number in vector[:_NUMBERS])
    yield f"[{some}{', ...' if len(vector) > _NUMBERS else ''}]  ({len(vector)} numbers)"


_LINES: dict[str, Callable[[Answer, list[str], Instance, int], Iterator[str]]] = {
    "label": _of_label,
    "labels": _of_labels,
    "number": _of_number,
    "answer": _of_answer,
    "entities": _of_entities,
    "choice": _of_choice,
    "masked_words": _of_masked_words,
    "next_sentence": _of_next_sentence,
    "vector": _of_vector,
}
