"""run_ner as a user runs it: refused in a sentence; saved taggers of features are served."""

import json

import pytest

from pipelines.metrics.entities import EntityScorer
from pipelines.tasks.tagging.schemes import SCHEMES
from tests.support.model_folders import write_encoder
from tests.support.tagged_files import write_tagged
from tools import run_ner

ONE_LENGTH = "--notrim_padding"  # each length of a batch costs seconds of tracing
RATES = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_encoder(folder / "encoder", max_position_embeddings=16, **RATES)
    (folder / "iob2").mkdir()
    for seed, (split, count) in enumerate({"train": 400, "dev": 40, "test": 20}.items()):
        write_tagged(folder / "iob2" / f"{split}.txt", count, seed, "iob2")
    return folder


def words(inputs, output, *flags):
    return [
        f"--init_checkpoint={inputs}/encoder",
        f"--data_dir={inputs}/iob2",
        f"--output_dir={output}",
        "--max_seq_length=16",
        "--train_batch_size=16",
        ONE_LENGTH,
        "--learning_rate=2e-3",
        "--num_train_epochs=15",
        "--do_train",
        "--do_predict",
        "--do_eval",
        *flags,
    ]


def figures(folder):
    lines = (folder / "eval_results.txt").read_text().splitlines()
    return {name: float(value) for name, value in (line.split(" = ") for line in lines)}


def official_report(path):
    """The scorer's report of a file of predictions, read as the official script reads it."""
    scorer = EntityScorer()
    for block in path.read_text().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line]
        tags = [[SCHEMES["iob2"].as_iob(row[column]) for row in rows] for column in (-2, -1)]
        scorer.add(*tags)
    return scorer.report()


def served_entities(served, texts):
    found = served.call("text", {"text": texts})
    rows = {name: array.numpy() for name, array in found.items()}
    return [
        [
            {
                "type": rows["type"][text, n].decode(),
                "text": rows["text"][text, n].decode(),
                "start": int(rows["start"][text, n]),
                "end": int(rows["end"][text, n]),
                "score": pytest.approx(float(rows["score"][text, n]), abs=1e-4),
            }
            for n in range(rows["count"][text])
        ]
        for text in range(len(texts))
    ]


@pytest.mark.slow
def test_it_learns_scores_and_tags(inputs, tmp_path):
    run = tmp_path / "run"
    assert run_ner.main(words(inputs, run)) == 0
    found = figures(run)
    assert found["eval_f1"] > 70
    assert found["eval_test_f1_LOC"] > 50

    # The file keeps its own columns; the scorer says of it what the results say.
    given = (inputs / "iob2" / "dev.txt").read_text().splitlines()
    written = (run / "dev_predictions.txt").read_text().splitlines()
    assert [x.rpartition("\t")[0] for x in written if x] == [x for x in given if x]
    report = official_report(run / "dev_predictions.txt")
    assert (run / "dev_conlleval.txt").read_text() == report
    assert f"FB1: {found['eval_f1']:6.2f}" in report

    # Every entity stands in its text where it is said to.
    lines = [json.loads(line) for line in (run / "dev_entities.jsonl").read_text().splitlines()]
    for line in lines:
        for entity in line["entities"]:
            assert line["text"][entity["start"] : entity["end"]] == entity["text"]
    # Words without tags are tagged.
    (tmp_path / "new.txt").write_text("the\ndog\nruns\n\ncat\n")
    new = [f"--test_file={tmp_path}/new.txt", f"--output_dir={run}", "--do_predict"]
    assert run_ner.main(new) == 0
    tagged = (run / "test_predictions.txt").read_text().splitlines()
    assert [line.split(" ")[0] for line in tagged] == ["the", "dog", "runs", "", "cat", ""]
    assert all(len(line.split(" ")) == 2 for line in tagged if line)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--dev_file=/no/dev.txt"], "/no/dev.txt: no such file"),
        (["--nodo_train"], "are no tags of entities"),
        (["--tag_column=3"], "has 2 columns, but --tag_column is 3"),
    ],
)
def test_a_bad_flag_is_named(inputs, tmp_path, capsys, flags, sentence):
    assert run_ner.main([*words(inputs, tmp_path / "run"), *flags]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error
