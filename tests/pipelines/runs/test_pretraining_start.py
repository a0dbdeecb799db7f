"""The start of a pre-training run: its model, and what is told before anything is loaded."""

import json

import pytest

from keras_bert_impl.config import named_config
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import Casing
from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs import pretraining_start
from pipelines.runs.pretraining_config import RunPretrainingConfig
from pipelines.runs.pretraining_start import casing_of_shards, check_start, checked_start
from tests.support.model_folders import write_pretrainer
from tests.support.pretraining_corpus import make_shards
from tests.support.pretraining_run import GOLDEN

GOLDEN_VOCABULARY = str(GOLDEN / "vocab.txt")  # 1,000 tokens


@pytest.fixture
def shards(monkeypatch):
    """Says what the shards tell of their text."""

    def tell(do_lower_case, strip_accents):
        casing = Casing(do_lower_case, strip_accents)
        monkeypatch.setattr(pretraining_start, "casing_of_shards", lambda _: casing)

    tell(None, None)
    return tell


def start(**options):
    given = {"output_dir": "run", "input_file": ("x",), "training": TrainingConfig()}
    return checked_start(RunPretrainingConfig(**given, **options))


@pytest.mark.usefixtures("shards")
def test_a_published_size_takes_the_tokens_of_the_vocabulary():
    source = start(model_size="mini", vocab_file=GOLDEN_VOCABULARY)
    assert source.config == named_config("mini", 1000)
    assert source.text.do_lower_case is True


@pytest.mark.usefixtures("shards")
def test_without_anything_the_three_ways_are_named():
    with pytest.raises(UserError, match="give `init_checkpoint`, or for a new model"):
        start()


def test_the_shards_say_the_casing_of_a_new_model(shards):
    shards(False, True)
    text = start(model_size="mini", vocab_file=GOLDEN_VOCABULARY).text
    assert (text.do_lower_case, text.strip_accents) == (False, True)


def test_an_entry_that_a_description_has_besides_is_no_matter(tmp_path):
    pattern = str(make_shards(tmp_path).output_file)
    path = tmp_path / "out" / "train.tfrecord.recipe.json"
    described = json.loads(path.read_text())
    described["tokenizer"]["of_a_later_version"] = 1
    path.write_text(json.dumps(described))
    assert casing_of_shards([pattern]) == Casing(True, None, "as_is")


def test_a_model_directory_s_casing_counts_before_the_shards(shards, tmp_path):
    shards(False, None)
    model = str(write_pretrainer(tmp_path / "m"))
    assert start(init_checkpoint=model, max_seq_length=8).text.do_lower_case is True


def asked(folder, **changes):
    options = {
        "output_dir": str(folder / "run"),
        "input_file": (str(GOLDEN / "train.tfrecord"),),
        "init_checkpoint": str(write_pretrainer(folder / "m")),
        "max_seq_length": 8,
        "do_train": True,
    }
    return RunPretrainingConfig(**{**options, **changes})


def test_the_shards_of_a_finished_run_may_be_gone(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".finished").write_text("100\n")
    check_start(asked(tmp_path, input_file=("/no/shards*",)))
