"""Every kind of model, asked in two ways: by an answerer, and by its signature inside a graph."""

import random

import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from keras_bert_impl.serving.answerer import instances_of
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.export import export_portable
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.opening import open_answering_model
from pipelines.tasks.labels.rows import LABEL_PROBABILITIES
from pipelines.tasks.register import open_and_serve
from tests.support.model_folders import WORDS, tiny_config, write_any
from tests.support.two_ways import MORE, ODD_TEXTS, answers_of, check_same, served_answers

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def random_texts(count, longest=40, seed=0):
    draw = random.Random(seed)
    marks = [*WORDS, "dog.", "(cat)", "S-the", "\n", "각", "unknown"]
    texts = [" ".join(draw.choices(marks, k=draw.randrange(longest))) for _ in range(count)]
    return [*ODD_TEXTS, *texts]


def named(labels, **settings):
    """A configuration with labels and the settings of a task."""
    names = {"id2label": {str(number): label for number, label in enumerate(labels)}}
    problem = settings.pop("problem_type", None)
    if problem:  # of the classes that are named beside it
        names |= {"problem_type": problem, "architectures": ["BertForSequenceClassification"]}
    config = tiny_config(extra=names)
    return with_task_settings(config, settings)


def tagger(scheme, unit):
    labels = TAGS if scheme == "iob2" else [*TAGS, "E-PER", "S-PER", "E-LOC", "S-LOC"]
    settings = {"tagging_scheme": scheme, "tag_unit": unit, "doc_stride": 3, "max_seq_length": 9}
    return BertTokenClassifier(named(labels, task="ner", **settings), len(labels))


def questions(**settings):
    settings = {"max_query_length": 4, "doc_stride": 2, "max_answer_length": 3, **settings}
    return BertSpanLabeler(with_task_settings(tiny_config(), {"task": "squad", **settings}))


WINDOWS = {"long_text": "windows", "doc_stride": 4}
MODELS = {
    "label": lambda: BertClassifier(named(["no", "yes"]), 2),
    "label of windows": lambda: BertClassifier(named("abc", **WINDOWS), 3),
    "labels": lambda: BertClassifier(named("abcd", problem_type="multi_label_classification"), 4),
    "number": lambda: BertClassifier(named(["score"], num_texts=2), 1),
    "entities of characters": lambda: tagger("bioes", "characters"),
    "answer or none": lambda: questions(
        version_2_with_negative=True, null_score_diff_threshold=-0.3
    ),
    "choice": lambda: BertMultipleChoice(
        with_task_settings(tiny_config(), {"task": "swag", "num_choices": 3}), 3
    ),
    "masked words": lambda: BertPretrainer(tiny_config()),
}


def instances(answerer, texts):
    """Instances of an answerer, made of texts that stand around."""
    shifted = texts[5:] + texts[:5]
    names = [field.name for field in answerer.inputs]
    if names == ["context", "endings"]:
        endings = zip(texts, shifted, texts[::-1], strict=True)
        return [{"context": a, "endings": list(b)} for a, b in zip(shifted, endings, strict=True)]
    return instances_of(answerer, [*zip(*(texts, shifted)[: len(names)], strict=True)])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Model directories, each made when it is first asked for."""
    root, made = tmp_path_factory.mktemp("models"), {}

    def folder_of(name):
        if name not in made:
            made[name] = write_any(root / name.replace(" ", "_"), MODELS[name]())
        return made[name]

    return folder_of


def opened(folder, **options):
    return open_answering_model(AnsweringConfig(model=str(folder), **options))


@pytest.mark.parametrize("name", MODELS)
def test_an_answerer_gives_what_the_signature_gives(folders, name):
    _, served = open_and_serve(folders(name))
    model = opened(folders(name))
    for signature, answerer in model.answerers.items():
        asked = instances(answerer, random_texts(12))
        answers = answers_of(model, signature, asked)
        check_same(answers, served_answers(served, signature, asked))
        for answer in answers:
            assert answer.keys() - answerer.outputs.keys() <= MORE
            assert answerer.outputs.keys() <= answer.keys()


# A model for each kind of answer beside labels; the others differ in their rows alone.
OF_EACH_KIND = ("number", "entities of characters", "answer or none", "choice", "masked words")


def export(folder, target, **options):
    found, _ = open_and_serve(folder)
    export_portable(found, target, "openvino", verify=False, **options)
    return target


@pytest.mark.parametrize("name", ["label of windows", *OF_EACH_KIND])
def test_an_export_answers_as_the_model_that_it_was_made_of(folders, name, tmp_path):
    exported = opened(export(folders(name), tmp_path / "export"))
    model = opened(folders(name), engine="openvino")
    assert exported.answerers.keys() == model.answerers.keys()
    assert exported.description == model.description
    for signature, answerer in exported.answerers.items():
        asked = instances(answerer, random_texts(10))
        check_same(*(answers_of(one, signature, asked) for one in (exported, model)))
    exported.close()


def test_an_export_of_vectors_and_of_an_encoder(tmp_path):
    texts = random_texts(5)
    vectors = write_any(tmp_path / "vectors", BertEmbedder(tiny_config(), "cls", True))
    encoder = write_any(tmp_path / "encoder", BertEncoder(tiny_config()))
    for folder in (vectors, encoder):
        exported = opened(export(folder, tmp_path / f"{folder.name}_export"))
        check_same(*(answers_of(one, "embed", texts) for one in (exported, opened(folder))))


PLAIN = {
    "entities": lambda: BertTokenClassifier(named([*TAGS[:3], "S-PER"]), 4),
    "choice": lambda: BertMultipleChoice(tiny_config(), 2),
    "answer": lambda: BertSpanLabeler(tiny_config()),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_the_architecture_alone_says_what_a_model_answers(kind, tmp_path):
    model = opened(write_any(tmp_path / "model", PLAIN[kind]()))
    assert {one.kind for one in model.answerers.values()} == {kind}
    for signature, answerer in model.answerers.items():
        answers = answers_of(model, signature, instances(answerer, random_texts(3)))
        for answer in answers:
            assert answer.keys() - answerer.outputs.keys() <= {"num_truncated", LABEL_PROBABILITIES}
            assert answerer.outputs.keys() <= answer.keys()


def test_a_chooser_that_says_no_number_takes_any(tmp_path):
    plain = opened(write_any(tmp_path / "plain", PLAIN["choice"]()))
    of_three = with_task_settings(tiny_config(), {"task": "swag", "num_choices": 3})
    other = opened(write_any(tmp_path / "other", BertMultipleChoice(of_three, 3)))
    three = {"context": "the dog", "endings": ["runs", "a cat sleeps", ""]}
    asked = [three, {"context": "a", "endings": ["the", "cat"]}]
    found = answers_of(plain, "text", asked)
    assert [len(one["probabilities"]) for one in found] == [3, 2]
    check_same(found[:1], answers_of(other, "text", [three]))
    with pytest.raises(UserError, match="instance 1: `endings` has 1 texts; this model chooses"):
        answers_of(plain, "text", [{"context": "a", "endings": ["the"]}])


def test_any_model_gives_vectors_where_they_are_asked_for(folders):
    model = opened(folders("entities of characters"), vectors=True)
    assert [*model.answerers] == ["embed"]
    texts = random_texts(3)
    expected = Embedder.from_pretrained(folders("entities of characters")).embed(texts).tolist()
    check_same(answers_of(model, "embed", texts), [{"embedding": one} for one in expected])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vectors": True}, "gives no vectors"),
        ({"engine": "tensorflow"}, "is an export for OpenVINO, which tensorflow cannot compute"),
        ({"precision": "int8"}, "needs texts to find its scales on"),
    ],
)
def test_what_an_export_cannot_do_is_told(folders, tmp_path, options, sentence):
    folder = export(folders("label"), tmp_path / "export")
    with pytest.raises(UserError, match=sentence):
        answers_of(opened(folder, **options), "text", ["a"])


def test_an_export_for_another_runtime_is_told(tmp_path):
    for name in ("settings.json", "model.onnx"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match="is an export for ONNX"):
        opened(tmp_path)


def test_a_saved_model_is_asked_by_others(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"program")
    with pytest.raises(UserError, match=r"its own client\.py and TensorFlow Serving ask; name"):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["label of windows", *OF_EACH_KIND])
def test_openvino_answers_as_tensorflow_does_and_needs_it_once(folders, name):
    by_tensorflow = opened(folders(name))
    by_openvino = opened(folders(name), engine="openvino")
    assert by_openvino.answerers.keys() == by_tensorflow.answerers.keys()
    for signature, answerer in by_openvino.answerers.items():
        asked = instances(answerer, random_texts(10))
        check_same(*(answers_of(one, signature, asked) for one in (by_openvino, by_tensorflow)))
    by_openvino.close()
