import errno

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.support.model_folders import write_encoder
from tests.support.tiny_bert import GOLDEN
from tools import compare_word_senses


@pytest.fixture
def model(tmp_path):
    from keras_bert_impl.checkpoints.convert import read_portable, write_portable

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
    assert "uses the token 'river' 1 times" in capsys.readouterr().err


def test_uses_far_into_a_text_are_found_up_to_the_model_s_positions(tmp_path, capsys):
    long = write_encoder(tmp_path / "long", max_position_embeddings=200)
    flags = [f"--init_checkpoint={long}", "--word=the", "--last_layers=1"]
    assert compare_word_senses.main([*flags, f"--text=the {'dog ' * 180}the cat"]) == 0
    assert "use 2" in capsys.readouterr().out


def test_more_layers_than_the_model_has_are_refused_by_the_flag_s_name(capsys, model):
    flags = [f"--init_checkpoint={model}", "--word=the", "--last_layers=9"]
    assert compare_word_senses.main([*flags, "--text=The old city and the new river."]) == 1
    error = capsys.readouterr().err
    assert "--last_layers: there is no layer -9; the model has 2 blocks." in error


def test_an_older_picture_stays_where_the_new_one_cannot_be_written(
    tmp_path, capsys, model, monkeypatch
):
    def fails(_, file, **_more):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FigureCanvasAgg, "print_png", fails)
    picture = tmp_path / "senses.png"
    picture.write_bytes(b"older")
    flags = [f"--init_checkpoint={model}", "--word=the", "--last_layers=2", f"--picture={picture}"]
    assert compare_word_senses.main([*flags, "--text=The old city and the new river."]) == 1
    assert "senses.png: cannot be written (No space left on device)" in capsys.readouterr().err
    assert picture.read_bytes() == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "senses.png"]
