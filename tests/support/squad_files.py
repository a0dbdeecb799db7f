"""Small files in SQuAD's form, made in code from the words of the tiny vocabulary."""

import json
from pathlib import Path

import numpy as np

from pipelines.tasks.questions.options import RunSquadConfig
from pipelines.tasks.questions.task import QuestionTask
from tests.support.model_folders import WORDS


def question_task(text=None, threshold=0.0, **options):
    """The task of a run with some options."""
    return QuestionTask(text, RunSquadConfig(output_dir=Path("run"), **options), threshold)


def write_squad(path, count=24, seed=1, *, negative=False):
    """Questions that can be learned: the answer is the word after "the", if there is one."""
    draw, paragraphs = np.random.default_rng(seed), []
    for number in range(count):
        words = draw.choice(["a", "list", "runs", "sleeps"], draw.integers(4, 20)).tolist()
        answers, impossible = [], negative and number % 2 == 1
        if not impossible:
            position = int(draw.integers(len(words) - 1))
            words[position : position + 2] = ["the", str(draw.choice(["dog", "cat", "value"]))]
            start = len(" ".join(words[: position + 1])) + 1
            answers = [{"text": words[position + 1], "answer_start": start}]
        question = {"id": f"q{number}", "question": "a list .", "answers": answers}
        if negative:
            question["is_impossible"] = impossible
        paragraphs.append({"context": " ".join(words), "qas": [question]})
    assert set(" ".join(x["context"] for x in paragraphs).split()) <= set(WORDS)
    path.write_text(json.dumps({"data": [{"title": "Made", "paragraphs": paragraphs}]}))
    return path


PLACES = ["Bergen", "Lima", "Osaka", "Turin"]


def write_articles(path, count=6):
    """Articles of four passages about a place each; the last passage names all of them."""
    data = []
    for number in range(count):
        texts = [f"In {place}  it rained {n} days." for n, place in enumerate(PLACES)]
        paragraphs = []
        for n, (place, text) in enumerate(zip(PLACES, texts, strict=True)):
            asked = [("where", place), ("long", f"{n} days")]
            qas = [
                {
                    "id": f"{number}-{n}-{name}",
                    "question": f"How {name} did it rain in {PLACES[(n + 1) % 4]}?",
                    "answers": [{"text": answer, "answer_start": text.index(answer)}],
                }
                for name, answer in asked
            ]
            paragraphs.append({"context": text, "qas": qas})
        everywhere = "It rained in " + ", ".join(PLACES).upper() + "."
        paragraphs.append({"context": everywhere, "qas": []})
        data.append({"title": f"Weather {number}", "paragraphs": paragraphs})
    path.write_text(json.dumps({"version": "1.1", "data": data}))
    return path
