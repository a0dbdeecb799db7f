"""Makes a set in SWAG's form out of sentences: which of four sentences of a document follows?

python tools/recipes/make_swag.py --input_file=sentences.txt --output_dir=following
"""

import argparse
import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ENDINGS = 4
HEAD = ["", "video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-source"]
HEAD += [*(f"ending{number}" for number in range(ENDINGS)), "label"]


def examples_of(
    sentences: list[str], draw: np.random.Generator, most: int, words: tuple[int, int]
) -> Iterator[tuple[str, list[str], int]]:
    """A sentence, four sentences of its document, and the number of the one that follows it."""
    fits = [words[0] <= len(sentence.split()) <= words[1] for sentence in sentences]
    starts = [n for n in range(len(sentences) - 1) if fits[n] and fits[n + 1]]
    for start in draw.permutation(np.array(starts, np.int64))[:most].tolist():
        known = {sentences[start], sentences[start + 1]}
        others = sorted({x for x, fit in zip(sentences, fits, strict=True) if fit} - known)
        if len(others) < ENDINGS - 1:
            return
        endings = [others[n] for n in draw.permutation(len(others))[: ENDINGS - 1]]
        label = int(draw.integers(ENDINGS))
        endings.insert(label, sentences[start + 1])
        yield sentences[start], endings, label


def overlap_choice(context: str, endings: list[str]) -> int:
    """The baseline: the ending that shares most of its words with the context."""
    known, *others = (set(re.findall(r"\w+", text.lower())) for text in (context, *endings))
    return int(np.argmax([len(words & known) / max(len(words), 1) for words in others]))


def main() -> None:
    """Writes train.csv, and val.csv with the examples of whole documents that are held out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input_file", type=Path, required=True, help="sentences, one a line")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--dev_share", type=float, default=0.1, help="of the documents")
    parser.add_argument("--most_per_document", type=int, default=2)
    parser.add_argument("--min_words", type=int, default=5)
    parser.add_argument("--max_words", type=int, default=40)
    parser.add_argument("--seed", type=int, default=12345)
    given = parser.parse_args()
    rows: dict[str, list[list[object]]] = {"train": [], "val": []}
    right = 0
    documents = re.split(r"\n(?:[ \t]*\n)+", given.input_file.read_text(encoding="utf-8").strip())
    for number, document in enumerate(documents):
        draw = np.random.default_rng([given.seed, number])
        split = "val" if draw.random() < given.dev_share else "train"
        sentences, words = document.split("\n"), (given.min_words, given.max_words)
        for context, endings, label in examples_of(sentences, draw, given.most_per_document, words):
            at = len(rows[split])
            rows[split].append([at, f"document-{number}", at, "", context, "", "gold"])
            rows[split][-1] += [*endings, label]
            right += split == "val" and overlap_choice(context, endings) == label
    given.output_dir.mkdir(parents=True, exist_ok=True)
    for split, some in rows.items():
        with (given.output_dir / f"{split}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEAD, *some])
    print(f"{len(rows['train'])} examples to train on, {len(rows['val'])} held out")
    share = right / max(len(rows["val"]), 1)
    print(f"lexical overlap chooses {100 * share:.1f} % of these rightly")


if __name__ == "__main__":
    main()
