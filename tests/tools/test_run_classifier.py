"""What a user may do wrong with run_classifier: one sentence each, exit code 1, no traceback."""

import json
import shutil
from pathlib import Path

import pytest

from keras_bert_impl.training.learning_curve import Guess
from pipelines.fine_tuning.run import FineTuningResults
from tests.support.glue_files import write_cola
from tests.support.model_folders import WORD_VOCABULARY, tiny_config, write_encoder
from tools import run_classifier
from tools.table import tool_named

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    write_encoder(folder / "model")
    write_cola(folder / "cola")
    (folder / "bert_config.json").write_text(json.dumps(tiny_config().to_google()))
    WORD_VOCABULARY.write(folder / "vocab.txt")
    return folder


@pytest.fixture
def inputs(originals, tmp_path):
    """A copy of everything a run reads, to be spoilt."""
    return shutil.copytree(originals, tmp_path / "inputs")


def run(inputs, capsys, *flags, start="directory", own=False):
    """Runs the tool; gives its exit code and the sentence that it ends with."""
    starts = {
        "directory": [f"--init_checkpoint={inputs}/model"],
        "flags": [
            f"--bert_config_file={inputs}/bert_config.json",
            f"--vocab_file={inputs}/vocab.txt",
        ],
    }
    code = run_classifier.main(
        [
            *([] if own else ["--task_name=cola", f"--data_dir={inputs}/cola"]),
            f"--output_dir={inputs}/run",
            "--max_seq_length=12",
            "--do_train",
            *starts[start],
            *flags,
        ]
    )
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert error.count("Error: ") <= 1
    return code, error.strip().splitlines()[-1] if error.strip() else ""


def spoil(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


LINE = "src\t1\t\tthe dog\n"
TWICE = "\n".join([*WORD_VOCABULARY.tokens[:-1], "dog"])


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("cola/train.tsv", LINE + "src\t1\tthe dog\n", "cola/train.tsv: line 2 has 3 columns"),
        (
            "cola/train.tsv",
            LINE + "src\tyes\t\tthe dog\n",
            "line 2: unknown label 'yes'; it must be",
        ),
        (
            "cola/train.tsv",
            LINE.encode() + b"src\t1\t\t\xff\n",
            "cola/train.tsv: line 2 is not UTF-8",
        ),
        ("vocab.txt", TWICE, "vocab.txt: token 7, 'dog', stands again as token 17"),
        ("bert_config.json", '{"hidden_size": 16}', "bert_config.json: has no vocab_size"),
    ],
)
def test_a_bad_file_is_named(inputs, capsys, file, content, sentence):
    spoil(inputs / file, content)
    code, error = run(inputs, capsys, start="flags")
    assert code == 1
    assert sentence in error
    assert not (inputs / "run" / "model").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--task_name=boolq"], "--task_name=boolq: there is no such task; choose CoLA, SST-2"),
        (["--max_seq_length=64"], "--max_seq_length=64 is more than the 12 positions of the model"),
        (["--nodo_train"], "nothing to do; give --do_train, --do_eval or --do_predict."),
        (["--do_lower_case=false"], "--nodo_lower_case contradicts"),
        (["--learning_rate=0"], "--learning_rate=0.0 must be more than 0"),
        (["--num_train_epochs=0"], "make no step; lower --train_batch_size"),
        (["--nodo_train", "--do_eval"], "holds no trained head for CoLA"),
    ],
)
def test_a_bad_flag_is_named(inputs, capsys, flags, sentence):
    code, error = run(inputs, capsys, *flags)
    assert code == 1
    assert sentence in error


def test_the_recipe_for_small_data_is_eight_runs_with_every_remedy():
    recipe = f"--flagfile={ROOT}/tools/recipes/small_data.cfg"
    tool_named("run_classifier").flags.parse(
        [recipe, "--task_name=MRPC", "--data_dir=x", "--output_dir=y"]
    )
    config = tool_named("run_classifier").flags.config()
    assert (config.many.num_seeds, config.many.search) == (8, None)
    assert (config.training.bias_correction, config.training.layer_decay) == (True, 0.95)
    assert config.num_train_epochs == 20


def test_a_figure_stands_beside_guessing(tmp_path, capsys, monkeypatch):
    results = FineTuningResults(
        evaluation={"eval_accuracy": 0.66, "eval_loss": 0.5},
        guesses={"eval_accuracy": Guess("always the most frequent class", 0.527)},
    )
    monkeypatch.setattr("pipelines.fine_tuning.start.check_run", lambda _config, _task: None)
    monkeypatch.setattr("pipelines.fine_tuning.run.fine_tune_checked", lambda _checked: results)
    words = ["--task_name=RTE", f"--data_dir={tmp_path}", f"--output_dir={tmp_path}"]
    assert run_classifier.main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        "eval_accuracy = 0.66  (always the most frequent class: 0.527)",
        "eval_loss = 0.5",
    ]


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_text_that_the_vocabulary_does_not_fit_leaves_no_folder(inputs, capsys, split):
    lines = "".join(f"src\t{n % 2}\t\t비가 온다 하루 종일\n" for n in range(20))
    spoil(inputs / "cola" / "dev.tsv", lines)
    code, error = run(inputs, capsys, "--do_eval")
    assert code == 1
    assert "cola/dev.tsv: 100.0 % of the words of a sample become [UNK] with" in error
    assert error.endswith("; or give --allow_unknown_words to go on all the same.")
    assert not (inputs / "run").exists()


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        ("text,label\nx,a\n", "train.csv: there must be two labels or more"),
        (
            "text,label\nx,a\ny,b\n",
            "dev.csv: rows with labels that the model does not know: 1, the first 'c'",
        ),
    ],
)
def test_bad_labelled_files_are_named_before_training(inputs, capsys, train, sentence):
    (inputs / "train.csv").write_text(train)
    (inputs / "dev.csv").write_text("text,label\nx,a\ny,c\n")
    files = [f"--{split}_file={inputs}/{split}.csv" for split in ("train", "dev")]
    code, error = run(inputs, capsys, *files, own=True)
    assert (code, sentence in error) == (1, True)
    assert not (inputs / "run").exists()
