import importlib.util
import json

import pytest

from tests.support.glue_files import write_cola, write_sts
from tests.support.model_folders import write_encoder
from tests.support.squad_files import write_squad
from tools.benchmarks import transformers_parity


def test_peers_that_are_not_installed_are_named(monkeypatch, capsys):
    monkeypatch.setattr(transformers_parity, "_is_installed", lambda name: name == "torch")
    assert transformers_parity.main(["--data_dir=glue", "--init_checkpoint=model"]) == 1
    assert "transformers not installed; pip install transformers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "nothing says what to compare; give --data_dir, --train_file or --tags_dir"),
        (["--train_file=train.json"], "--train_file and --predict_file go together"),
    ],
)
def test_without_files_there_is_nothing_to_compare(capsys, flags, sentence):
    assert transformers_parity.main(["--init_checkpoint=model", *flags]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.bench
def test_both_take_the_same_steps(tmp_path, capsys):
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed; pip install 'keras_bert_impl[bench]'")
    write_cola(tmp_path / "glue" / "CoLA")
    write_sts(tmp_path / "glue" / "STS-B")
    write_squad(tmp_path / "train.json")
    write_squad(tmp_path / "dev.json", 8, seed=2)
    (tmp_path / "tags").mkdir()
    for name in ("train", "dev"):
        sentences = "the O\ndog B-ANIMAL\nruns O\n\na O\ncat B-ANIMAL\nsleeps O\n\n" * 4
        (tmp_path / "tags" / f"{name}.txt").write_text(sentences)
    arguments = [
        f"--data_dir={tmp_path}/glue", f"--init_checkpoint={write_encoder(tmp_path / 'model')}",
        "--tasks=CoLA,STS-B", f"--train_file={tmp_path}/train.json",
        f"--predict_file={tmp_path}/dev.json", f"--tags_dir={tmp_path}/tags",
        "--max_seq_length=12", "--max_query_length=4", "--train_batch_size=4", "--num_steps=10",
        "--num_warmup_steps=2", "--learning_rate=1e-3",
    ]  # fmt: skip
    assert transformers_parity.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    assert all(one["largest_loss_difference"] < 1e-5 for one in found)
    assert all(one.get("same_predictions") == one.get("predictions") for one in found)
    assert [one.get("predictions") for one in found][::3] == [10, 24]
    assert found[2]["predictions"] >= 16  # starts and ends of eight questions' windows
