"""Small files in GLUE's layouts, made in code from the words of the tiny vocabulary."""

import numpy as np

from tests.support.model_folders import WORDS


def write_cola(folder, train=24, dev=10, test=5):
    """A task that can be learned: a sentence is acceptable when it begins with "the".

    Sentences have one of two lengths: each length of a batch costs a test seconds of tracing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(3)

    def sentence(number):
        words = draw.choice(WORDS[:9], draw.choice([2, 4])).tolist()
        return " ".join(["the" if number % 2 else "a", *words])

    for split, count in (("train", train), ("dev", dev)):
        lines = [f"src\t{number % 2}\t\t{sentence(number)}\n" for number in range(count)]
        (folder / f"{split}.tsv").write_text("".join(lines))
    lines = [f"{number}\t{sentence(number)}\n" for number in range(test)]
    (folder / "test.tsv").write_text("index\tsentence\n" + "".join(lines))
    return folder


def write_sts(folder, rows=12):
    """Pairs with a score that grows with the number of equal words."""
    folder.mkdir(parents=True, exist_ok=True)
    common = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
    lines = []
    for number in range(rows):
        same = " ".join(["dog"] * (number % 6) + ["cat"] * (5 - number % 6))
        line = f"{number}\tg\tf\t2012\t{number}\tn\tn\tdog dog dog dog dog\t{same}"
        lines.append(f"{line}\t{number % 6}.000\n")
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text(f"{common}\tscore\n" + "".join(lines))
    unlabelled = [line.rsplit("\t", 1)[0] + "\n" for line in lines]
    (folder / "test.tsv").write_text(f"{common}\n" + "".join(unlabelled))
    return folder
