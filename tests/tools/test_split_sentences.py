import pytest

from tests.support.text_tools import assert_output_is_no_input, run
from tools import split_sentences


def test_documents_become_sentences(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("The first sentence. The second one!\n\nAnother document.\n")
    sentences = tmp_path / "s.txt"
    assert run(split_sentences, f"--input_file={tmp_path}/a.txt", f"--output_file={sentences}") == 0
    assert capsys.readouterr().out == "2 documents, 3 sentences\n"
    assert sentences.read_text().split("\n\n")[0] == "The first sentence.\nThe second one!"


def test_what_is_said_is_not_written_into_the_data(tmp_path, capfd):
    (tmp_path / "a.txt").write_text("One. Two.\n")
    assert run(split_sentences, f"--input_file={tmp_path}/a.txt", "--output_file=/dev/stdout") == 0
    out, said = capfd.readouterr()
    assert out == "One.\nTwo.\n\n"
    assert "1 documents, 2 sentences" in said


@pytest.mark.parametrize(
    ("flags", "output"),
    [
        (["--input_file={}/text.txt", "--output_file={}/text.txt"], "text.txt"),
        (["--input_file={}", "--output_file={}/out.txt"], "out.txt"),
        (["--input_file={}/", "--output_dir={}", "--num_shards=2"], "sentences-00000-of-00002.txt"),
    ],
)
def test_what_it_has_written_is_not_its_input_the_next_time(flags, output, tmp_path, capsys):
    flags = [*flags, "--num_workers=1"]
    assert_output_is_no_input(split_sentences, flags, output, tmp_path, capsys)
