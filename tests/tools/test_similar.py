"""similar as a user runs it."""

from tests.support.model_folders import write_encoder
from tools import embed, similar


def test_the_nearest_lines_are_printed(tmp_path, capsys):
    model = write_encoder(tmp_path / "model")
    (tmp_path / "lines.txt").write_text("the dog\na cat\n")
    flags = [f"--model={model}", f"--input_file={tmp_path}/lines.txt"]
    assert embed.main([*flags, f"--output_file={tmp_path}/x.npy"]) == 0
    capsys.readouterr()
    words = [f"--vectors_file={tmp_path}/x.npy", "--query=a cat", "--top_k=1"]
    assert similar.main([*flags, *words]) == 0
    assert capsys.readouterr().out == "a cat\n  1.000  2  a cat\n"


def test_nothing_to_search_for_is_one_sentence(capsys):
    assert similar.main(["--model=m", "--input_file=x", "--vectors_file=y.npy"]) == 1
    assert "--query" in capsys.readouterr().err
