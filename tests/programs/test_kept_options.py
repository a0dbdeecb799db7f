"""Each family, trained with every option off its default: evaluated again without a flag, the
figures and files are the same, and so is what the model answers when it is served."""

import csv
import json
import shutil

import numpy as np
import pytest

from pipelines.tables.files import open_table
from pipelines.tasks.register import open_and_serve
from tests.support.model_folders import WORDS, write_start
from tests.support.squad_files import write_squad
from tests.support.tagged_files import write_tagged
from tools import run_classifier, run_ner, run_squad

pytestmark = pytest.mark.slow

WINDOWS = ["--long_text=windows", "--doc_stride=3", "--window_answers=max"]


def write_reviews(path, count, seed):
    """Long texts in the third column of a file without a header, labels in the first one."""
    draw = np.random.default_rng(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter="\t")
        for number in range(count):
            label = ["good", "bad", "so-so"][number % 3]
            words = " ".join(draw.choice(WORDS[:9], draw.integers(4, 30)))
            rows.writerow([label, number, words])
    return path


def labels(folder):
    files = [f"--train_file={write_reviews(folder / 'train.tsv', 30, 1)}"]
    options = ["--text_column=3", "--label_column=1", "--noheader"]
    options += ["--dev_share=0.4", "--dev_seed=5", "--pooling=mean"]
    options += ["--class_weights=good=3,bad=2", *WINDOWS]
    return files, options


def questions(folder):
    files = [
        f"--train_file={write_squad(folder / 'train.json', 24, negative=True)}",
        f"--predict_file={write_squad(folder / 'dev.json', 24, seed=2, negative=True)}",
    ]
    options = ["--doc_stride=2", "--max_query_length=2", "--version_2_with_negative"]
    options += ["--n_best_size=3", "--max_answer_length=2", "--null_score_diff_threshold=0.0625"]
    return files, options


def tags(folder):
    for seed, split in enumerate(("train", "dev", "test")):
        path = write_tagged(folder / f"{split}.txt", 48, seed)
        lines = [line.split("\t") for line in path.read_text().splitlines()]
        turned = [f"{x[1]}\tx\t{x[0]}" if len(x) > 1 else "" for x in lines]
        path.write_text("\n".join(turned) + "\n")
    options = ["--word_column=3", "--tag_column=1", "--context=sentence", "--doc_stride=2"]
    return [f"--data_dir={folder}"], [*options, "--num_train_epochs=12"]  # until it finds some


def check_labels(output, call):
    path = str(output / "dev_predictions.tsv")
    rows = [record.values for record in open_table(path).records()]
    assert len(rows) == 12
    found = call("text", text=[row["text"] for row in rows])
    offline = [[float(row[column]) for column in row if column[:2] == "P("] for row in rows]
    np.testing.assert_allclose(found["probabilities"], offline, atol=3e-6)


def check_questions(output, call):
    data = json.loads((output.parent / "dev.json").read_text())["data"][0]["paragraphs"]
    asked = [(qa, entry["context"]) for entry in data for qa in entry["qas"]]
    found = call(
        "answers",
        question=[qa["question"] for qa, _ in asked],
        passage=[context for _, context in asked],
    )
    best = json.loads((output / "predictions.json").read_text())
    for number, (qa, _) in enumerate(asked):
        served = found["answers"][number, 0].decode() if found["has_answer"][number] else ""
        assert served == best[qa["id"]]
    assert found["answers"].shape[1] <= 3
    assert len(set(best.values())) > 2


def check_tags(output, call):
    lines = [json.loads(line) for line in (output / "test_entities.jsonl").open()]
    found = call("text", text=[line["text"] for line in lines])
    for number, line in enumerate(lines):
        positions = [found[name][number, : found["count"][number]] for name in ("start", "end")]
        offline = [(entity["start"], entity["end"]) for entity in line["entities"]]
        assert list(zip(*positions, strict=True)) == offline
    assert sum(len(line["entities"]) for line in lines) > 5


FAMILIES = {
    "labels": (run_classifier, labels, check_labels),
    "questions": (run_squad, questions, check_questions),
    "tags": (run_ner, tags, check_tags),
}

# Each length of a batch costs seconds of tracing.
EVALUATE = ["--do_eval", "--do_predict", "--notrim_padding"]
NO_FIGURES = ("global_step", "test_")
LEFT = ("eval_results.txt", "*predictions*", "*.tsv", "*odds.json", "*entities*", "*conlleval*")


@pytest.fixture(scope="module", params=FAMILIES)
def run(request, tmp_path_factory):
    """A family's name, its tool, the flags of its files, and the folder of a run of it."""
    folder = tmp_path_factory.mktemp(request.param)
    tool, make, _ = FAMILIES[request.param]
    files, options = make(folder)
    training = [
        *(f"--init_checkpoint={write_start(folder / 'encoder')}", "--train_batch_size=8"),
        *("--learning_rate=5e-3", "--do_train", "--max_seq_length=8"),
    ]
    output = folder / "run"
    words = [*files, f"--output_dir={output}", *training, *options, *EVALUATE]
    assert tool.main(words) == 0
    return request.param, tool, files, output


def left_by(folder):
    """What an evaluation wrote, the step of the training left out."""
    files = {path.name: path.read_bytes() for name in LEFT for path in folder.glob(name)}
    lines = files["eval_results.txt"].splitlines()
    files["eval_results.txt"] = [line for line in lines if not line.startswith(b"global_step")]
    return files


def test_without_a_flag_the_same_model_is_evaluated_alike(run, tmp_path, capsys):
    _, tool, files, output = run
    before = left_by(output)
    kept = (output / "model" / "config.json").read_bytes()
    again = shutil.copytree(output, tmp_path / "run")
    for name in before:
        (again / name).unlink()
    assert tool.main([*files, f"--output_dir={again}", *EVALUATE]) == 0
    assert left_by(again) == before
    assert (again / "model" / "config.json").read_bytes() == kept
    err = capsys.readouterr().err
    assert f"as {again}/model was trained: " in err
    assert " replaces " not in err


def test_the_same_model_is_served_alike(run):
    name, _, _, output = run
    served = open_and_serve(output / "model")[1]

    def call(signature, **texts):
        return {key: value.numpy() for key, value in served.call(signature, texts).items()}

    *_, check = FAMILIES[name]
    check(output, call)


def test_the_model_says_how_many_texts_it_reads(run):
    name, _, _, output = run
    config = json.loads((output / "model" / "config.json").read_text())
    settings = config["task_specific_params"]["keras_bert_impl"]
    assert settings.get("num_texts") == {"labels": 1}.get(name)
