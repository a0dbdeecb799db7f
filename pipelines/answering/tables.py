"""Answers as people read them: a few lines for each, by their kind."""

from collections.abc import Callable, Iterator
from typing import Any

from keras_bert_impl.serving.answerer import Answer, Answerer, Instance
from pipelines.tables.writing import digits

_MOST_SHOWN = 5
_LONGEST = 100
_NUMBERS = 6


def table_of(answerer: Answerer, labels: list[str], instance: Instance, answer: Answer) -> str:
    """An instance and its answer in lines."""
    asked = " | ".join(_shown(instance[one.name]) for one in answerer.inputs)
    lines = _LINES[answerer.kind](answer, labels, instance)
    return "\n".join([asked, *(f"  {line}" for line in lines)])


def _shown(text: Any) -> str:
    words = " / ".join(map(_shown, text)) if isinstance(text, list) else " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _of_label(answer: Answer, labels: list[str], _: Instance) -> Iterator[str]:
    if len(labels) != len(answer["probabilities"]):
        yield f"{max(answer['probabilities']):7.2%}  {answer['label']}"
        return
    pairs = zip(answer["probabilities"], labels, strict=True)
    for share, label in sorted(pairs, key=lambda pair: -pair[0])[:_MOST_SHOWN]:
        yield f"{share:7.2%}  {label}"


def _of_labels(answer: Answer, labels: list[str], _: Instance) -> Iterator[str]:
    shares = dict(zip(labels, answer["probabilities"], strict=False))
    for label in answer["labels"]:
        yield f"{shares[label]:7.2%}  {label}" if label in shares else label
    if not answer["labels"]:
        yield "no label"


def _of_number(answer: Answer, *_: Any) -> Iterator[str]:
    yield digits(answer["score"])


def _of_answer(answer: Answer, _: list[str], instance: Instance) -> Iterator[str]:
    if "answers" not in answer:
        found = _shown(answer["answer"])
        yield f"{found}  (characters {answer['start']}-{answer['end']})" if found else "no answer"
        return
    if not answer["has_answer"]:
        yield "no answer" + ("; the best guesses:" if answer["answers"] else "")
    columns = (answer["answers"], answer["starts"], answer["ends"], answer["scores"])
    for text, start, end, score in list(zip(*columns, strict=True))[:_MOST_SHOWN]:
        line = instance["passage"].count("\n", 0, start) + 1
        yield f"{score:8.2f}  {_shown(text)}  (line {line}, characters {start}-{end})"


def _of_entities(answer: Answer, *_: Any) -> Iterator[str]:
    columns = (answer[name] for name in ("score", "type", "text", "start", "end"))
    for score, kind, text, start, end in zip(*columns, strict=True):
        yield f"{score:7.2%}  {kind}  {_shown(text)}  (characters {start}-{end})"
    if not answer["count"]:
        yield "no entity"


def _of_choice(answer: Answer, _: list[str], instance: Instance) -> Iterator[str]:
    pairs = enumerate(zip(answer["probabilities"], instance["endings"], strict=True))
    for number, (share, ending) in sorted(pairs, key=lambda pair: -pair[1][0]):
        yield f"{share:7.2%}  {number}  {_shown(ending)}"


def _of_masked_words(answer: Answer, *_: Any) -> Iterator[str]:
    for number, (words, shares) in enumerate(
        zip(answer["tokens"], answer["probabilities"], strict=True), 1
    ):
        if answer["mask_counts"] > 1:
            yield f"[MASK] {number}"
        for word, share in zip(words[:_MOST_SHOWN], shares, strict=False):
            yield f"{share:7.2%}  {word}"
    if not answer["mask_counts"]:
        yield "no [MASK]"


def _of_next_sentence(answer: Answer, *_: Any) -> Iterator[str]:
    yield f"{answer['probability']:7.2%}  the second text follows the first one"


def _of_vector(answer: Answer, *_: Any) -> Iterator[str]:
    vector = answer["embedding"]
    some = ", ".join(f"{number:.4g}" for number in vector[:_NUMBERS])
    yield f"[{some}{', ...' if len(vector) > _NUMBERS else ''}]  ({len(vector)} numbers)"


_LINES: dict[str, Callable[[Answer, list[str], Instance], Iterator[str]]] = {
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
