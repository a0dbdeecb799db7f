"""Small labelled files, made in code from the words of the tiny vocabulary: they can be learned."""

import csv
import json

import numpy as np

from tests.support.model_folders import WORDS

FIRST = ("the", "a", "dog")
OTHERS = [word for word in WORDS[3:] if word != "##s"]  # of one token each
CLASSES = ("good", "bad", "so-so")


def texts(count, seed=3):
    """Texts whose first word is the first, second or third of `FIRST` by turns.

    They have one of two lengths: each length of a batch costs a test seconds of tracing.
    """
    draw = np.random.default_rng(seed)
    return [
        " ".join([FIRST[number % 3], *draw.choice(OTHERS, draw.choice([2, 4]))])
        for number in range(count)
    ]


def write_classes(path, count, seed=3):
    """CSV with three classes, some texts with line breaks and quotation marks."""
    rows = [
        (f'{text}\n"{text}"' if number % 5 == 0 else text, CLASSES[number % 3])
        for number, text in enumerate(texts(count, seed))
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


def write_several(path, count, seed=3):
    """JSON lines with any number of two labels: is the first word "the", is it not "dog"?"""
    held = {"the": ["the", "no dog"], "a": ["no dog"], "dog": []}
    with path.open("w") as file:
        for text in texts(count, seed):
            file.write(json.dumps({"text": text, "label": held[text.split()[0]]}) + "\n")
    return path


def write_numbers(path, count, seed=3, mean=0.5, apart=1.0):
    """TSV without a header: a number that the first word gives, then the text."""
    rows = [
        f"{mean + apart * (FIRST.index(text.split()[0]) - 1)}\t{text}\n"
        for text in texts(count, seed)
    ]
    path.write_text("".join(rows))
    return path
