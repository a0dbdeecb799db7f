"""Files of endings that a tiny model can learn to choose: the right one has the context's noun."""

import csv
import json

import numpy as np

NOUNS = ["dog", "cat", "list", "value"]
OTHERS = ["the", "a", "runs", "sleeps", ","]


def made_choices(count, seed=1, choices=4):
    """(context, endings, label): the context and its right ending name one animal or thing."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        nouns = draw.permutation(NOUNS)[:choices].tolist()
        label = int(draw.integers(choices))
        fill = [" ".join(draw.choice(OTHERS, 2)) for _ in range(choices + 1)]
        endings = [f"{words} {noun}" for words, noun in zip(fill, nouns, strict=False)]
        yield f"{fill[-1]} {nouns[label]}", endings, label


def write_swag(path, count, seed=1, choices=4, labelled=True):
    """SWAG's columns."""
    names = [f"ending{number}" for number in range(choices)]
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["", "fold-ind", "sent1", "sent2", *names, *["label"] * labelled])
        for number, (context, endings, label) in enumerate(made_choices(count, seed, choices)):
            row = [number, f"row{number}", context, "the", *endings]
            table.writerow([*row, label] if labelled else row)
    return path


def write_json_lines(path, count, seed=1, choices=4):
    """One object a line, endings as a list."""
    with path.open("w", encoding="utf-8") as file:
        for context, endings, label in made_choices(count, seed, choices):
            values = {"context": context, "endings": endings, "label": label}
            file.write(json.dumps(values) + "\n")
    return path
