"""A tiny study from its text to its tables, with the real tools."""

import json

import pytest

from pipelines.studies.ablations import run_ablations
from pipelines.studies.recipe import RunAblationsConfig
from tools.table import ToolPrograms

WORDS = (
    "the", "old", "dog", "saw", "a", "small", "red", "fox",
    "near", "warm", "blue", "water", "under", "that", "big", "tree",
)  # fmt: skip


def sentences(count, shift=0):
    for number in range(count):
        words = [WORDS[(number * 7 + shift + place * (number % 5 + 1)) % 16] for place in range(6)]
        yield " ".join(words).capitalize() + "."


@pytest.fixture
def data(tmp_path):
    lines = (json.dumps({"text": " ".join(sentences(8, 3 * page))}) for page in range(40))
    (tmp_path / "text.jsonl").write_text("\n".join(lines) + "\n")
    rows = [f"{text}\t{'yes' if 'fox' in text else 'no'}" for text in sentences(32)]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    return tmp_path


@pytest.mark.long
@pytest.mark.slow
def test_a_study_goes_from_text_to_its_table(data):
    recipe = RunAblationsConfig(
        output_dir=data / "study",
        data_dir=data,
        input_file="{data}/text.jsonl",
        num_shards=2,
        vocab_size=60,
        vocabulary_flags="--do_lower_case --min_frequency=1",
        data_flags="--do_lower_case --max_seq_length=32 --max_predictions_per_seq=5 --num_workers=0"
        " --dupe_factor=1",
        model_settings='{"max_position_embeddings": 32}',
        size=("tiny 1 16 2",),
        pretraining_flags="--max_seq_length=32 --max_predictions_per_seq=5 --train_batch_size=8"
        " --num_train_steps=4 --num_warmup_steps=1 --save_checkpoints_steps=2 --kernels=plain"
        " --eval_batch_size=8",
        task=(
            "fox eval_accuracy run_classifier --train_file={data}/train.tsv"
            " --dev_file={data}/dev.tsv",
        ),
        fine_tuning_flags="--max_seq_length=16 --train_batch_size=16 --num_train_epochs=1"
        " --kernels=plain --notrim_padding",
        tables=("sizes",),
        seeds=(1,),
    )
    lines, _ = run_ablations(recipe, ToolPrograms())
    report = json.loads((data / "study" / "ablations.json").read_text())
    (row,) = report["tables"]["sizes"]
    assert len(row["scores"]) == 1
    assert all("figures" in run for run in report["runs"])
    (line,) = (line for line in lines if line.startswith("| tiny "))
    assert [cell.strip() for cell in line.split("|")][2:5] == ["1", "16", "2"]
