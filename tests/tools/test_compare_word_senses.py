import pytest

from tests.support.tiny_bert import GOLDEN
from tools import compare_word_senses


@pytest.fixture
def model(tmp_path):
    from keras_bert_impl.checkpoints.portable import read_portable, write_portable

    prefix, pretrain = GOLDEN / "pretrain" / "init" / "bert_model.ckpt", GOLDEN / "pretrain"
    files = (pretrain / "bert_config.json", pretrain / "vocab.txt")
    write_portable(
        read_portable(prefix, *files, do_lower_case=True), tmp_path / "m", "hugging_face"
    )
    return tmp_path / "m"


def test_uses_cosines_and_a_picture_come_out(tmp_path, capsys, model):
    picture = tmp_path / "senses.png"
    flags = [f"--init_checkpoint={model}", "--word=the", "--last_layers=2", f"--picture={picture}"]
    assert compare_word_senses.main([*flags, "--text=The old city and the new river."]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "use 1: THE old city and the"
    assert lines[1].startswith("use 2: the old city and THE new")
    assert -1 <= float(lines[2].removeprefix("cosine of uses 1 and 2: ")) < 1
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_a_checkpoint_of_the_original_will_do(capsys):
    pretrain = GOLDEN / "pretrain"
    flags = [
        f"--init_checkpoint={pretrain / 'init' / 'bert_model.ckpt'}",
        f"--bert_config_file={pretrain / 'bert_config.json'}",
        f"--vocab_file={pretrain / 'vocab.txt'}",
        "--last_layers=1",
        "--word=the",
        "--text=The old city and the new river.",
    ]
    assert compare_word_senses.main(flags) == 0
    assert "cosine of uses 1 and 2" in capsys.readouterr().out


def test_a_word_that_is_used_once_is_refused(capsys, model):
    flags = [f"--init_checkpoint={model}", "--word=river", "--last_layers=2"]
    assert compare_word_senses.main([*flags, "--text=A river."]) == 1
    assert "uses the piece 'river' 1 times" in capsys.readouterr().err
