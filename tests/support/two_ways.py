"""The two ways to one answer, held against each other: inside a graph, and rows made outside it."""

import math

import numpy as np

from keras_bert_impl.serving.answerer import ask, instances_of

MORE = {"num_truncated", "label_probabilities"}
"""What answers have outside a graph only."""

ODD_TEXTS = [
    *("", "   ", "\n\n", "\t", "the dog runs. a cat sleeps", "THE DOG\u0301 runs", "the\u200b dog"),
    *(
        "😀 the 👩\u200d🚀 dog",
        "\u202ethe dog\u202c \u200fruns",
        "ΑΣ Σ the",
        "the\u00a0dog\u3000runs",
    ),
    *("(the) dog, runs.", "...", "the dog. " * 20, "the" * 90, "[MASK] the [SEP] dog", "東京the각"),
    *("the dog\nruns\r\nthe\tcat", "a\0b the", "\ufffd\ufeff the", "the list\u2028value s dogs"),
]
"""Whatever people type; for tiny models, whose rows are short, some of it is very long."""


def served_answers(served, signature, instances):
    """The answers of a signature inside a graph, without padding, as JSON values."""
    names = list(instances[0])
    inputs = {name: [one[name] for one in instances] for name in names}
    found = {name: x.numpy() for name, x in served.call(signature, inputs).items()}
    return [_unpadded({name: x[row] for name, x in found.items()}) for row in range(len(instances))]


_COUNTED = {
    "mask_counts": ("tokens", "probabilities"),
    "answer_counts": ("answers", "starts", "ends", "starts_utf16", "ends_utf16", "scores"),
    "count": ("type", "text", "start", "end", "start_utf16", "end_utf16", "score"),
}


def _unpadded(answer):
    for count, names in _COUNTED.items():
        if count in answer:
            answer |= {name: answer[name][: answer[count]] for name in names}
    answer = {name: _plain(np.asarray(value).tolist()) for name, value in answer.items()}
    if "labels" in answer:
        answer["labels"] = [label for label in answer["labels"] if label]
    return answer


def _plain(value):
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.decode("utf-8") if isinstance(value, bytes) else value


def check_same(answers, expected, tolerance=1e-5):
    """Answers have the same names, texts and positions, and numbers as close as rounding leaves.

    Outside a graph they say besides what was cut, and each label with its probability.
    """
    assert len(answers) == len(expected)
    for number, (one, other) in enumerate(zip(answers, expected, strict=True)):
        assert one.keys() - (MORE - other.keys()) == other.keys(), number
        for name, value in other.items():
            assert _alike(one[name], value, tolerance), (number, name, one[name], value)


def _alike(one, other, tolerance):
    if isinstance(one, list):
        same = isinstance(other, list) and len(one) == len(other)
        return same and all(_alike(*pair, tolerance) for pair in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return type(one) is type(other) and one == other


def answers_of(model, signature, texts):
    """What an answerer of a model gives."""
    answerer = model.answerers[signature]
    return ask(answerer, instances_of(answerer, texts))
