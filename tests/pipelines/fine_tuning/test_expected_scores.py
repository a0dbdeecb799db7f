import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.fine_tuning.expected_scores import _VOCABULARIES, expected_scores, published_model
from pipelines.tasks.labels.glue import GLUE_TASKS

CASED, UNCASED = _VOCABULARIES["bert-base-cased"], _VOCABULARIES["bert-base-uncased"]
BASE = BertConfig(vocab_size=28996)


@pytest.mark.parametrize(
    ("given", "vocabulary", "name"),
    [
        ("google-bert/bert-base-cased", CASED, "bert-base-cased"),
        ("bert-base-uncased", UNCASED, "bert-base-uncased"),
        ("models/cased_L-12_H-768_A-12/bert_model.ckpt", CASED, "bert-base-cased"),
        ("models/uncased_L-12_H-768_A-12/bert_model.ckpt", UNCASED, "bert-base-uncased"),
        ("hub/models--google-bert--bert-base-cased/snapshots/1", CASED, "bert-base-cased"),
        ("google-bert/bert-base-cased", UNCASED, None),
        ("me/bert-base-cased-finetuned", CASED, None),
        ("my/model", CASED, None),
        (None, CASED, None),
    ],
)
def test_a_published_model_has_its_name_and_its_vocabulary(given, vocabulary, name):
    assert published_model(given, BASE, vocabulary) == name


def test_a_model_of_other_sizes_is_another_one():
    small = BertConfig(vocab_size=28996, num_hidden_layers=6)
    assert published_model("bert-base-cased", small, CASED) is None


@pytest.mark.data
@pytest.mark.parametrize("name", ["bert-base-cased", "bert-base-uncased"])
def test_the_vocabularies_are_the_published_ones(data_folder, name):
    vocabulary = Vocabulary.load(data_folder / "vocab" / f"{name}-vocab.txt")
    assert vocabulary.sha256 == _VOCABULARIES[name]


def test_every_expected_figure_is_one_that_the_task_gives():
    for task in GLUE_TASKS:
        for model in _VOCABULARIES:
            names = {name.removeprefix("mismatched_") for name in _metrics(task.name, model)}
            assert names <= set(task.metrics)
    assert len({task.name for task in GLUE_TASKS if _metrics(task.name, "bert-base-cased")}) == 9


def _metrics(task, model):
    return {name.removeprefix("eval_") for name in expected_scores(task, model)}


def test_the_range_is_wider_for_small_tasks():
    small = expected_scores("MRPC", "bert-base-cased")["eval_f1"]
    large = expected_scores("QQP", "bert-base-cased")["eval_f1"]
    assert (small.published, small.allowance, large.allowance) == (0.889, 0.03, 0.01)
    assert str(small).startswith("expected for bert-base-cased: 0.859 to 0.919; 0.889 in Hugging")


def test_nothing_is_expected_of_other_models_and_tasks():
    assert expected_scores("MRPC", None) == {}
    assert expected_scores("XNLI", "bert-base-cased") == {}
