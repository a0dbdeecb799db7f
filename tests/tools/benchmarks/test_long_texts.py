import json

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from tools.benchmarks import long_texts
from tools.benchmarks.long_texts import by_turns, documents


@pytest.fixture
def files(tmp_path):
    """Films that say "fine" or "dull", and filler whose sentences are numbered."""
    for split in ("train", "dev"):
        lines = [f"a {('dull', 'fine')[n % 2]} film of {split} {n}\t{n % 2}\n" for n in range(40)]
        (tmp_path / f"{split}.tsv").write_text("sentence\tlabel\n" + "".join(lines))
    filler = [f"sentence {number} says nothing much.\n\nHeading\n" for number in range(400)]
    (tmp_path / "filler.txt").write_text("".join(filler))
    return [
        f"--data_dir={tmp_path}",
        f"--filler_file={tmp_path}/filler.txt",
        f"--output_dir={tmp_path}/long",
        "--num_train=20",
        "--num_dev=10",
        "--words_before=30",
        "--words_after=12",
        "--least_words=5",
    ]


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_deciding_sentence_stands_after_the_words_before_it(files, tmp_path):
    assert long_texts.main(files) == 0
    seen = set()
    for split, count in (("train", 20), ("dev", 10)):
        rows = read(tmp_path / "long" / f"{split}.jsonl")
        assert [row["label"] for row in rows] == ["negative", "positive"] * (count // 2)
        for row in rows:
            words = row["text"].split()
            word = {"negative": "dull", "positive": "fine"}[row["label"]]
            assert words.index(word) == row["words_before"] + 1 >= 31
            assert f"film of {split}" in row["text"]
            assert "Heading" not in words
            numbers = [words[at + 1] for at, one in enumerate(words) if one == "sentence"]
            assert not seen & set(numbers)  # no document shares filler with another
            seen.update(numbers)


def test_the_same_seed_writes_the_same_documents(files, tmp_path):
    written = []
    for _ in range(2):
        long_texts.main(files)
        written.append((tmp_path / "long" / "train.jsonl").read_bytes())
    long_texts.main([*files, "--seed=2"])
    assert written[0] == written[1] != (tmp_path / "long" / "train.jsonl").read_bytes()


def test_too_little_filler_is_said_and_nothing_half_written(files, tmp_path, capsys):
    assert long_texts.main([*files, "--words_before=300"]) == 1
    assert "--filler_file has too few sentences" in capsys.readouterr().err
    assert not (tmp_path / "long" / "dev.jsonl").exists()


def test_labels_without_enough_sentences_are_refused():
    draw = np.random.default_rng(1)
    with pytest.raises(UserError, match="fewer than 2 sentences of a label with 1 words"):
        by_turns([("a", "0"), ("b", "1"), ("c", "1")], 4, 1, draw)


def test_what_stands_after_the_sentence_has_so_many_words_at_most():
    filler = iter(["one two three"] * 1000)
    draw = np.random.default_rng(1)
    made = list(documents([("X", "0")] * 50, filler, 6, 9, draw))
    after = {len(one.text.split()) - one.words_before - 1 for one in made}
    assert after == {0, 3, 6, 9}
