"""make_swag as a user runs it."""

from tools import make_swag


def test_it_writes_two_files_and_says_what_overlap_reaches(tmp_path, capsys):
    text = tmp_path / "text.txt"
    documents = [
        "".join(f"Sentence {n} of document {k} is here.\n" for n in range(8)) for k in range(30)
    ]
    text.write_text("\n".join(documents))
    flags = [f"--input_file={text}", f"--output_dir={tmp_path}/set", "--dev_share=0.3"]
    assert make_swag.main(flags) == 0
    out = capsys.readouterr().out
    assert "examples to train on" in out
    assert "lexical overlap chooses" in out
    assert {path.name for path in (tmp_path / "set").iterdir()} == {"train.csv", "val.csv"}


def test_a_missing_file_is_named(tmp_path, capsys):
    assert make_swag.main([f"--input_file={tmp_path}/no.txt", f"--output_dir={tmp_path}/x"]) == 1
    assert "no.txt" in capsys.readouterr().err
