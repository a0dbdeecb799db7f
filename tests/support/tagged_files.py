"""Files of tagged words that a tiny model can learn: "dog list" is a PER, "cat" a LOC."""

import numpy as np

from pipelines.tasks.tagging.schemes import IOB2, SCHEMES

WORDS = ["the", "dog", "cats", "runs", "a", "list", "value", ".", ",", "cat", "values"]


def tagged_sentence(draw, most_words=9):
    """Words with their tags in IOB2."""
    words = draw.choice(WORDS, draw.integers(2, most_words + 1)).tolist()
    tags = []
    for number, word in enumerate(words):
        in_front = words[number - 1] if number else ""
        second = word == "list" and in_front == "dog"
        tags.append("I-PER" if second else {"dog": "B-PER", "cat": "B-LOC"}.get(word, "O"))
    return words, tags


def write_tagged(path, sentences, seed=1, scheme="iob2", per_document=4, separator="\t"):
    """Sentences in documents; with `per_document=0` there are no documents.

    The scheme "short" is B_PER and I, with remarks in front of each sentence.
    """
    draw, lines = np.random.default_rng(seed), []
    for number in range(sentences):
        if per_document and number % per_document == 0:
            lines += [f"-DOCSTART-{separator}O", ""]
        words, tags = tagged_sentence(draw)
        entities = IOB2.entities(tags)
        short = scheme == "short"
        if short:
            tags = [tag.replace("B-", "B_").replace("I-PER", "I") for tag in tags]
        else:
            tags = SCHEMES[scheme].write(entities, len(words))
        lines += [f"; {' '.join(words)}", f"${' '.join(words)}"] * short
        lines += [f"{word}{separator}{tag}" for word, tag in zip(words, tags, strict=True)] + [""]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
