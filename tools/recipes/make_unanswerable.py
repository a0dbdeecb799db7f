"""Adds questions without an answer to a set in SQuAD's form: SQuAD 2.0's form out of SQuAD 1.1.

A share of the questions is asked again about the passage of the same article that contains none of
their answers and most of the question's words.

python tools/recipes/make_unanswerable.py --input_file=train-v1.1.json --output_file=moved.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.json_files import json_text
from pipelines.metrics.question_answering import squad_words


def plain(text: str) -> str:
    """A text as it is searched in: without case, with single blanks."""
    return " ".join(text.casefold().split())


def move(article: dict[str, Any], draw: np.random.Generator, share: float) -> tuple[int, int]:
    """Adds moved questions to an article; gives how many, and how many answer every passage."""
    paragraphs = article["paragraphs"]
    texts = [plain(paragraph["context"]) for paragraph in paragraphs]
    words = [set(squad_words(text)) for text in texts]
    asked = [
        (own, entry)
        for own, paragraph in enumerate(paragraphs)
        for entry in paragraph["qas"]
        if entry["answers"] and not entry.get("is_impossible")
    ]
    chosen = [one for one in asked if draw.random() < share]
    moved = 0
    for own, entry in chosen:
        answers = [plain(answer["text"]) for answer in entry["answers"]]
        without = [n for n, text in enumerate(texts) if not any(a in text for a in answers)]
        fits = [n for n in without if n != own]  # its own may have the answer in another spelling
        if not fits:
            continue
        question = set(squad_words(entry["question"]))
        most = max(len(question & words[n]) for n in fits)
        fits = [n for n in fits if len(question & words[n]) == most]
        new = {"id": f"{entry['id']}-moved", "question": entry["question"], "answers": []}
        to = fits[int(draw.integers(len(fits)))]
        paragraphs[to]["qas"].append({**new, "is_impossible": True})
        moved += 1
    return moved, len(chosen) - moved


def main() -> None:
    """Reads a file, writes another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input_file", type=Path, required=True)
    parser.add_argument("--output_file", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.5, help="of the questions")
    parser.add_argument("--seed", type=int, default=12345)
    given = parser.parse_args()
    articles = json.loads(given.input_file.read_text(encoding="utf-8"))["data"]
    counts = [
        move(article, np.random.default_rng([given.seed, number]), given.share)
        for number, article in enumerate(articles)
    ]
    content = json_text({"version": "v2.0", "data": articles})
    given.output_file.write_text(content, encoding="utf-8")
    moved, stay = (sum(some) for some in zip(*counts, strict=True))
    print(f"{moved} questions also stand with another passage; {stay} could not be moved")


if __name__ == "__main__":
    main()
