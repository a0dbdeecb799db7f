import json

from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tools.benchmarks import vocabularies

TEXT = "a cab, a cab, a cab, a bad cab\n"


def test_every_vocabulary_is_measured_on_the_held_out_words(tmp_path, capsys):
    (tmp_path / "text.txt").write_text(TEXT * 9)
    (tmp_path / "held.txt").write_text("a cab\nbad éé\n")
    Vocabulary([*SPECIAL_TOKENS, "a", "b", "##a", "##d"]).write(tmp_path / "other.txt")
    code = vocabularies.main([
        f"--input_file={tmp_path}/text.txt",
        f"--held_out_file={tmp_path}/held.txt", f"--vocab_file={tmp_path}/other.txt",
        "--vocab_size=14,9000", "--limit_alphabet=4,5", "--num_workers=1", "--nodo_lower_case",
        "--json",
    ])  # fmt: skip
    printed = capsys.readouterr().out
    assert code in (0, None), printed
    other, narrow, *_ = (json.loads(row) for row in printed.splitlines() if row[:1] == "{")
    assert other["unknown_share"] == 0.5  # cab and éé
    assert other["tokens_per_word"] == 2.0  # a, b ##a ##d
    assert narrow["unknown_share"] == 0.25
    assert printed.count("`vocab_size=9000` cannot be reached") == 2
