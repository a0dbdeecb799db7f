"""Documents whose deciding sentence stands after the end of a model's input.

The deciding sentence is one of SST-2's, and its label the document's. Sentences of a corpus stand
around it, which say nothing of the label; no document shares one with another. A model that reads
only its beginning can but guess (50 %, for the labels alternate). RESULTS.md has figures of:

  python -m tests.support.long_documents --data_dir=glue_data/SST-2 --filler_file=sentences.txt
      --output_dir=long --words_before=460 --words_after=20 --least_words=12
  keras-bert run_classifier --train_file=long/train.jsonl --dev_file=long/dev.jsonl --do_train
      --do_eval --output_dir=windows --long_text=windows --max_seq_length=512 --doc_stride=384
      --init_checkpoint=all-MiniLM-L6-v2
"""

import argparse
import json
from pathlib import Path

import numpy as np

from pipelines.tasks.labels.glue import SST_2

LABELS = {"0": "negative", "1": "positive"}
LEAST_FILLER_WORDS = 4  # what is shorter is mostly a heading


def documents(deciding, filler, words_before, words_after, draw):
    """Puts each (sentence, label) into a document of its own, as run_classifier reads them.

    `words_before` are the fewest words before it, `words_after` the most after it, but for the
    last sentence. `filler` is an iterator of sentences; each is taken once.
    """

    def taken(words):
        some = []
        while sum(map(num_words, some)) < words:
            some.append(next(filler))
        return some

    for sentence, label in deciding:
        before = taken(words_before)
        text = " ".join([*before, sentence, *taken(int(draw.integers(words_after + 1)))])
        yield {"text": text, "label": label, "words_before": sum(map(num_words, before))}


def by_turns(examples, count, least_words, draw):
    """Draws (sentence, label) pairs that are long enough, whose labels alternate."""
    groups = {}
    for sentence, label in examples:
        if num_words(sentence) >= least_words:
            groups.setdefault(label, []).append(sentence)
    labels, needed = sorted(groups), -(-count // len(groups))
    chosen = {label: draw.permutation(len(groups[label]))[:needed] for label in labels}
    return [(groups[label][chosen[label][n]], label) for n in range(needed) for label in labels]


def num_words(text):
    return len(text.split())


def filler_of(path):
    with Path(path).open(encoding="utf-8") as lines:
        yield from (line.strip() for line in lines if num_words(line) >= LEAST_FILLER_WORDS)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("data_dir", "filler_file", "output_dir"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    numbers = {"num_train": 1600, "num_dev": 400, "words_before": 512, "words_after": 100}
    for name, default in (numbers | {"least_words": 8, "seed": 1}).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args(arguments)
    task, draw = SST_2.at(given.data_dir), np.random.default_rng(given.seed)
    filler = filler_of(given.filler_file)
    given.output_dir.mkdir(parents=True, exist_ok=True)
    for split, count in (("dev", given.num_dev), ("train", given.num_train)):
        examples = ((one.text_a, LABELS[str(one.label)]) for one in task.examples(split))
        deciding = by_turns(examples, count, given.least_words, draw)
        made = documents(deciding, filler, given.words_before, given.words_after, draw)
        lines = [json.dumps(document, ensure_ascii=False) + "\n" for document in made]
        (given.output_dir / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
