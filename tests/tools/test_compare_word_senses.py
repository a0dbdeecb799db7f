import errno
import unicodedata

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.model_folders import tiny_config, write_any, write_encoder
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
    assert lines[0] == "use 1: [the] old city and the"
    assert lines[1].startswith("use 2: the old city and [the] new")
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


def test_a_model_of_two_layers_and_several_texts_will_do(tmp_path, capsys, model):
    file = tmp_path / "texts.txt"
    file.write_text("a river\n\nthe city\n")
    flags = [f"--init_checkpoint={model}", "--word=the", f"--input_file={file}"]
    assert compare_word_senses.main([*flags, "--text=the river", "--text=a city and the city"]) == 0
    out, error = capsys.readouterr()
    assert out.splitlines()[:3] == [
        "use 1 (text 1): [the] river",
        "use 2 (text 2): a city and [the] city",
        "use 3 (text 4): [the] city",
    ]
    assert error.splitlines()[-1] == "No use of 'the' in text 3."


def test_a_word_that_the_vocabulary_lacks_is_told(capsys, model):
    flags = [f"--init_checkpoint={model}", "--word=배", "--text=배 배"]
    assert compare_word_senses.main(flags) == 1
    assert "--word=배 is not in the model's vocabulary ([UNK]); name another word" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("written", ["NFC", "NFD"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_hangul_is_found_composed_and_decomposed(tmp_path, capsys, form, written):
    words = [unicodedata.normalize(form, word) for word in ("배", "##를", "##가", "타고")]
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *words])
    config = tiny_config(vocab_size=len(vocabulary))
    write_any(tmp_path / "m", BertEncoder(config), vocabulary, do_lower_case=False)
    text = unicodedata.normalize(written, "배를 타고 배가")
    flags = [f"--model={tmp_path / 'm'}", "--word=배", f"--text={text}"]
    assert compare_word_senses.main(flags) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["use 1: [배]를 타고 배가", "use 2: 배를 타고 [배]가"]


def test_a_word_of_several_tokens_has_the_mean_of_their_vectors(tmp_path, capsys):
    model = write_encoder(tmp_path / "m")  # "dogs" is dog ##s
    flags = [f"--model={model}", "--word=dogs", "--text=the dogs. a dog, dogs"]
    assert compare_word_senses.main(flags) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "use 1: the [dogs]. a dog,"
    assert lines[1] == "use 2: a dog, [dogs]"
