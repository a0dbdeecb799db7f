"""What a link leads to that came within a folder is never changed, whatever command works there.

Model directories, exports and runs come as archives and clones, which may hold links.
"""

import os
import platform
import shutil
from typing import NamedTuple

import pytest

from tests.support.adaptation import write_language, write_model
from tests.support.labelled_files import write_classes
from tests.support.model_folders import write_classifier, write_start
from tests.support.pretraining_corpus import write_corpus, write_vocabulary
from tests.support.pretraining_run import GOLDEN
from tools.table import tool_named

ASIDE = f"{platform.node().replace('.', '-')}.{os.getpid()}.incomplete"
TEXTS = (
    "--train_file=train.csv --dev_file=dev.csv --max_seq_length=12 --train_batch_size=12"
    " --num_train_epochs=1"
)
PREDICT = "predict --model=model --text=dog --engine=openvino"
EMBED = "embed --model=model --input_file=lines.txt --output_file=lines.npy"
SHARDS = (
    "create_pretraining_data --input_file=corpus.txt --vocab_file=vocab.txt --num_shards=1"
    " --max_seq_length=32 --num_workers=1 --output_file=out/train.tfrecord"
)
CONVERT = "convert_checkpoint --input=model --output=out/bert.ckpt"
TRAIN = f"run_classifier {TEXTS} --init_checkpoint=start --output_dir=run --do_train --do_eval"
PRETRAIN = (
    f"run_pretraining --input_file={GOLDEN}/train.tfrecord --vocab_file={GOLDEN}/vocab.txt"
    f" --bert_config_file={GOLDEN}/bert_config.json --max_seq_length=64 --output_dir=run"
    " --max_predictions_per_seq=10 --num_train_steps=1 --do_train"
)
ADAPT = "adapt --init_checkpoint=letters --input_file=text.txt --output_dir=run --max_seq_length=32"
GRAPHS, SHARD = "model/openvino_graphs", "out/train.tfrecord-00000-of-00001"
RUN = ("checkpoints", "best_checkpoint", "events", "model")


class Planted(NamedTuple):
    """Links, each alone: a command refuses them, or does its work all the same."""

    command: str
    links: tuple[str, ...]
    refused: bool = False


TO_FOLDERS = [
    Planted(PREDICT, (GRAPHS, f"{GRAPHS}/BertClassifier", f"{GRAPHS}/.BertClassifier.{ASIDE}")),
    Planted(EMBED, (".lines.npy.incomplete",), refused=True),
    Planted(SHARDS, (SHARD, f"out/.dataset_info.json.{ASIDE}")),
    Planted(SHARDS, ("out/.train.tfrecord.work",), refused=True),
    Planted(CONVERT, (f"out/.bert.ckpt.index.{ASIDE}",)),
    Planted("export_model --model=model --format=openvino --output_dir=out", (f".out.{ASIDE}",)),
    Planted(TRAIN, tuple(f"run/{name}" for name in RUN), refused=True),
    Planted(PRETRAIN, tuple(f"run/{name}" for name in RUN), refused=True),
    Planted(ADAPT, ("run/cells", "run/model"), refused=True),
    Planted("demo --output_dir=run", ("run/run", "run/shards"), refused=True),
]
TO_FILES = [
    Planted(PREDICT, tuple(f"{GRAPHS}/BertClassifier/{x}" for x in ("model.xml", "model.bin"))),
    Planted(EMBED, (f".lines.npy.{ASIDE}", ".lines.npy.incomplete/vectors")),
    Planted(EMBED, (".lines.npy.lock", "lines.npy.json"), refused=True),
    Planted(SHARDS, (SHARD, f"{SHARD}.index", "out/dataset_info.json", "out/features.json")),
    Planted(SHARDS, ("out/train.tfrecord.recipe.json", f"out/.features.json.{ASIDE}")),
    Planted(SHARDS, ("out/.train.tfrecord.lock",), refused=True),
    Planted(CONVERT, ("out/bert.ckpt.data-00000-of-00001",)),
    Planted("demo --output_dir=run", ("run/train.txt",), refused=True),
]
FILES_OF_A_RUN = [
    *("flags.cfg", "metrics.jsonl", "evaluations.jsonl", "eval_results.txt"),
    *("guesses.json", "learning_curve.png", "dev_classes.tsv", "dev_confusion.png"),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_classifier(folder / "model", ["so-so", "bad", "good"])
    write_start(folder / "start")
    write_classes(folder / "train.csv", 12)
    write_classes(folder / "dev.csv", 6)
    (folder / "lines.txt").write_text("the dog\na cat\n")
    write_corpus(folder, documents=5)
    write_vocabulary(folder)
    write_model(folder / "letters")
    write_language(folder / "text.txt", 40)
    return folder


@pytest.fixture
def here(inputs, tmp_path, monkeypatch):
    """Begins with a fresh copy of the inputs."""
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))

    def begin():
        for name in ("here", "cache"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        shutil.copytree(inputs, tmp_path / "here")
        precious = tmp_path / "here" / "precious"
        precious.mkdir()
        for name in ("letter.txt", "model.xml", "checkpoint.json"):
            (precious / name).write_text("dear")
        monkeypatch.chdir(tmp_path / "here")
        return tmp_path / "here"

    return begin


def plant(folder, name, target):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(folder / target)


def done(command, capfd):
    """The exit code, and what was said of a mistake."""
    tool, *flags = command.split()
    code = tool_named(tool).main(flags)
    error = capfd.readouterr().err
    assert "Traceback" not in error
    return code, error


def content(folder):
    return {
        path.relative_to(folder): path.is_file() and path.read_bytes() for path in folder.rglob("*")
    }


CASES = [
    *(
        pytest.param(one, ["precious"], id=f"folders {number}")
        for number, one in enumerate(TO_FOLDERS)
    ),
    *(
        pytest.param(one, ["precious/letter.txt", "precious/gone"], id=f"files {number}")
        for number, one in enumerate(TO_FILES)
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("planted", "targets"), CASES)
def test_what_a_planted_link_leads_to_stays_as_it_is(here, capfd, planted, targets):
    for target in targets:
        for link in planted.links:
            folder = here()
            before = content(folder / "precious")
            plant(folder, link, target)
            code, error = done(planted.command, capfd)
            assert content(folder / "precious") == before, (link, target)
            assert code == planted.refused, (link, target, error)
            if planted.refused:
                assert link.rpartition("/")[2] in error.splitlines()[-1], error


@pytest.mark.slow
def test_all_files_of_a_run_take_the_places_of_links(here, capfd):
    folder = here()
    before = content(folder / "precious")
    for name in FILES_OF_A_RUN:
        plant(folder, f"run/{name}", "precious/letter.txt")
    code, error = done(TRAIN, capfd)
    assert code == 0, error
    assert content(folder / "precious") == before
    assert not any((folder / "run" / name).is_symlink() for name in FILES_OF_A_RUN)
