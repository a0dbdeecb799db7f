"""Documents of a corpus with a deciding sentence after the model's limit."""

import json

from tests.support import long_documents


def test_documents_of_a_corpus_hide_their_deciding_sentence_in_it(tmp_path):
    """What tests/support/long_documents.py writes for RESULTS.md, which trains on it."""
    for split in ("train", "dev"):
        lines = [f"a {('dull', 'fine')[n % 2]} film of {split} {n}\t{n % 2}\n" for n in range(40)]
        (tmp_path / f"{split}.tsv").write_text("sentence\tlabel\n" + "".join(lines))
    filler = [f"sentence {number} says nothing much.\n\nHeading\n" for number in range(400)]
    (tmp_path / "filler.txt").write_text("".join(filler))
    flags = [f"--data_dir={tmp_path}", f"--filler_file={tmp_path}/filler.txt", "--num_train=20"]
    flags += ["--num_dev=10", "--words_before=30", "--words_after=12", "--least_words=5"]
    written = []
    for _ in range(2):
        long_documents.main([*flags, f"--output_dir={tmp_path}/long"])
        written.append((tmp_path / "long" / "train.jsonl").read_bytes())
    assert written[0] == written[1]
    seen = set()
    for split, count in (("train", 20), ("dev", 10)):
        text = (tmp_path / "long" / f"{split}.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        assert [row["label"] for row in rows] == ["negative", "positive"] * (count // 2)
        for row in rows:
            words = row["text"].split()
            word = {"negative": "dull", "positive": "fine"}[row["label"]]
            assert words.index(word) == row["words_before"] + 1 >= 31
            assert len(words) - row["words_before"] - 6 <= 12 + 4
            assert f"film of {split}" in row["text"]
            assert "Heading" not in words
            numbers = {words[at + 1] for at, one in enumerate(words) if one == "sentence"}
            assert not seen & numbers  # no document shares filler with another
            seen |= numbers
