"""What a user may do wrong with run_classifier: one sentence each, exit code 1, no traceback."""

import json
import shutil
from pathlib import Path

import pytest

from keras_bert_impl.training.guesses import Guess
from pipelines.fine_tuning.run import FineTuningResults
from tests.support.glue_files import write_cola
from tests.support.model_folders import WORD_VOCABULARY, tiny_config, write_encoder
from tools import run_classifier

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


def run(inputs, capsys, *flags, start="directory"):
    """Runs the tool; gives its exit code and the sentence that it ends with."""
    starts = {
        "directory": [f"--init_checkpoint={inputs}/model"],
        "flags": [
            f"--bert_config_file={inputs}/bert_config.json",
            f"--vocab_file={inputs}/vocab.txt",
        ],
        "nothing": [],
    }
    code = run_classifier.main(
        [
            "--task_name=cola",
            f"--data_dir={inputs}/cola",
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
WITHOUT_MASK = "\n".join(token for token in WORD_VOCABULARY.tokens if token != "[MASK]")
TWICE = "\n".join([*WORD_VOCABULARY.tokens[:-1], "dog"])


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("cola/train.tsv", "", "cola/train.tsv: is empty"),
        (
            "cola/train.tsv",
            LINE + "src\t1\tthe dog\n",
            "cola/train.tsv: line 2 has 3 tab-separated",
        ),
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
        ("vocab.txt", WITHOUT_MASK, "vocab.txt: has no [MASK] token"),
        ("vocab.txt", TWICE, "vocab.txt: token 7, 'dog', stands again as token 17"),
        ("vocab.txt", "", "vocab.txt: is empty"),
        ("bert_config.json", "{", "bert_config.json: is not JSON"),
        ("bert_config.json", '{"hidden_size": 16}', "bert_config.json: has no vocab_size"),
    ],
)
def test_a_bad_file_is_named(inputs, capsys, file, content, sentence):
    spoil(inputs / file, content)
    code, error = run(inputs, capsys, start="flags")
    assert code == 1
    assert sentence in error
    assert not (inputs / "run" / "model").exists()


@pytest.mark.parametrize("file", ["cola/train.tsv", "vocab.txt", "bert_config.json"])
def test_a_missing_file_is_named(inputs, capsys, file):
    (inputs / file).unlink()
    code, error = run(inputs, capsys, start="flags")
    assert (code, f"{inputs}/{file}: no such file; check the path." in error) == (1, True)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_missing_set_is_noticed_before_training(inputs, capsys, split):
    (inputs / "cola" / f"{split}.tsv").unlink()
    code, error = run(inputs, capsys, "--do_eval", "--do_predict")
    assert (code, f"{split}.tsv: no such file" in error) == (1, True)
    assert not (inputs / "run" / "checkpoints").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--task_name=boolq"], "--task_name=boolq: there is no such task; choose CoLA, SST-2"),
        (["--max_seq_length=64"], "--max_seq_length=64 is more than the 12 positions of the model"),
        (["--max_seq_length=4"], "max_seq_length"),
        (["--nodo_train"], "nothing to do; give --do_train, --do_eval or --do_predict."),
        (["--do_lower_case=false"], "--nodo_lower_case contradicts"),
        (["--train_batch_size=0"], "train_batch_size"),
        (["--learning_rate=0"], "--learning_rate=0.0 must be more than 0"),
        (["--num_train_epochs=0"], "make no step; lower --train_batch_size"),
        (
            ["--init_checkpoint=/no/bert_model.ckpt", "--vocab_file=v"],
            "/no/bert_model.ckpt: no such file or folder; check the path",
        ),
        (["--nodo_train", "--do_eval"], "holds no trained head for CoLA"),
    ],
)
def test_a_bad_flag_is_named(inputs, capsys, flags, sentence):
    code, error = run(inputs, capsys, *flags)
    assert code == 1
    assert sentence in error


def test_a_checkpoint_that_is_not_there_is_named(inputs, capsys):
    code, error = run(inputs, capsys, "--init_checkpoint=/no/bert_model.ckpt", start="flags")
    assert (code, error.startswith("Error: /no/bert_model.ckpt")) == (1, True)


def test_no_start_at_all_says_what_is_missing(inputs, capsys):
    code, error = run(inputs, capsys, start="nothing")
    assert (code, "--bert_config_file is missing" in error) == (1, True)


def test_a_checkpoint_of_another_shape_is_refused(inputs, capsys):
    larger = tiny_config(hidden_size=32).to_google()
    spoil(inputs / "bert_config.json", json.dumps(larger))
    code, error = run(inputs, capsys, f"--bert_config_file={inputs}/bert_config.json")
    assert code == 1
    assert "has the shape" in error


def test_an_output_folder_that_cannot_be_written_is_named(inputs, capsys):
    spoil(inputs / "file", "")
    code, error = run(inputs, capsys, f"--output_dir={inputs}/file/run")
    assert (code, f"{inputs}/file/run: this folder cannot be written to" in error) == (1, True)


def test_a_changed_task_does_not_continue_an_old_run(inputs, capsys):
    assert run(inputs, capsys, "--train_batch_size=8")[0] == 0
    code, error = run(inputs, capsys, "--train_batch_size=8", "--max_seq_length=10")
    assert code == 1
    assert "max_seq_length was 12 and is 10" in error


def test_the_recipe_for_small_data_is_eight_runs_with_every_remedy():
    recipe = f"--flagfile={ROOT}/tools/recipes/small_data.cfg"
    run_classifier.FLAGS.parse([recipe, "--task_name=MRPC", "--data_dir=x", "--output_dir=y"])
    config = run_classifier.FLAGS.config()
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


def run_own(folder, capsys, *flags):
    """Trains on `folder`'s train.csv; gives the exit code and the last line of what is said."""
    code = run_classifier.main(
        [
            f"--train_file={folder}/train.csv",
            f"--output_dir={folder}/run",
            f"--init_checkpoint={folder}/model",
            "--max_seq_length=12",
            "--do_train",
            *flags,
        ]
    )
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return code, error.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("train", "dev", "flags", "sentence"),
    [
        ("text,label\nx,a\n", None, [], "train.csv: there must be two labels or more"),
        ("text,label\nx,a\ny\n", None, [], "train.csv: line 3 has 1 columns instead of 2"),
        ("text,label\nx,a\ny,\n", None, [], "train.csv: line 3 has no label"),
        ("text,label,label\nx,a,b\n", None, ["--label_column=label"], "'label' 2 times"),
        ("a,b,c\nx,y,z\n", None, [], "which column is the label; name it with --label_column"),
        ("text,label\nx,1\ny,nan\n", None, ["--regression"], "line 3: the label 'nan' is no"),
        (
            "text,label\nx,a\ny,b\n",
            "text,label\nx,a\ny,c\n",
            [],
            "dev.csv: line 3: the label 'c' is none of those that are learned",
        ),
        ("text,label\nx,a\ny,b\n", None, ["--do_eval"], "name one with --dev_file"),
        ("text,label\nx,a\ny,b\n", None, ["--do_predict"], "name one with --test_file"),
        ("text,label\nx,a\ny,b\n", None, ["--task_name=CoLA"], "exclude each other"),
        ("text,label\nx,a\ny,b\n", None, ["--class_weights=c=2"], "there is no label 'c'"),
        ("", None, [], "train.csv: is empty"),
        ("text,label\n", None, [], "train.csv: has no rows"),
    ],
)
def test_bad_labelled_files_are_named_before_training(inputs, capsys, train, dev, flags, sentence):
    (inputs / "train.csv").write_text(train)
    if dev is not None:
        (inputs / "dev.csv").write_text(dev)
        flags = [*flags, f"--dev_file={inputs}/dev.csv"]
    code, error = run_own(inputs, capsys, *flags)
    assert code == 1
    assert sentence in error
    assert not (inputs / "run").exists()


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_text_that_the_vocabulary_does_not_fit_leaves_no_folder(inputs, capsys, split):
    lines = "".join(f"src\t{n % 2}\t\t비가 온다 하루 종일\n" for n in range(20))
    spoil(inputs / "cola" / f"{split}.tsv", lines)
    code, error = run(inputs, capsys, "--do_eval")
    assert code == 1
    assert f"cola/{split}.tsv: 100.0 % of the words of a sample become [UNK] with" in error
    assert error.endswith("; or give --allow_unknown_words to go on all the same.")
    assert not (inputs / "run").exists()
