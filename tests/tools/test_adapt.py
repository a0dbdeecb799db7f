import pytest

from tests.support.adaptation import toy_adaptation
from tools import adapt

main = adapt.main


@pytest.fixture
def flags(tmp_path):
    config = toy_adaptation(tmp_path)
    return [
        f"--init_checkpoint={config.init_checkpoint}",
        f"--input_file={config.input_file[0]}",
        f"--output_dir={config.output_dir}",
        "--max_seq_length=32",
    ]


def test_a_dry_run_prints_the_commands_and_leaves_nothing(flags, tmp_path, capsys):
    assert main([*flags, "--num_train_steps=50", "--dry_run"]) == 0
    out = capsys.readouterr().out
    assert "trained\n    keras-bert run_pretraining " in out
    assert "--num_train_steps=50 " in out
    assert not (tmp_path / "adapted").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("--input_file=/no/such/text", "/no/such/text: no such file"),
        ("--init_checkpoint=/no/such/model", "/no/such/model: no such file or folder"),
        ("--max_seq_length=64", "--max_seq_length=64 is more than the 32 positions"),
        ("--pretraining_flags=--precision=float3", "precision"),
        ("--task=run_classifier --lerning_rate=1", "lerning_rate"),
        ("--task=serve", "--task=serve: begin with one of run_classifier, run_ner"),
        ("--output_dir=MODEL", "would be replaced"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_starts(flags, tmp_path, capsys, more, words):
    kept = [word for word in flags if word.partition("=")[0] != more.partition("=")[0]]
    more = more.replace("MODEL", str(tmp_path))
    assert main([*kept, more]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error
    assert not (tmp_path / "adapted").exists()
