"""The task: its figures and files; whole runs stand in the tests of the tool."""

import json
import lzma
from dataclasses import replace

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.errors import UserError
from pipelines.metrics.entities import EntityScorer
from pipelines.metrics.guessing import guesses_of
from pipelines.tasks.tagging.answers import TagAnswer, Units, answer
from pipelines.tasks.tagging.options import RunNerConfig, ScoreTagsConfig, TaggingConfig
from pipelines.tasks.tagging.schemes import BARE, BIOES, IOB1
from pipelines.tasks.tagging.scores import score_tags
from pipelines.tasks.tagging.task import task_of
from tests.support.model_folders import write_tagger
from tests.support.opened_tasks import open_tagging
from tests.support.tagged_files import write_tagged


@pytest.fixture
def task(tmp_path):
    for seed, split in enumerate(("train", "dev")):
        write_tagged(tmp_path / f"{split}.txt", 12, seed, separator=" ")
    return open_tagging(TaggingConfig(data_dir=tmp_path))


def answered(task, change=lambda tags: tags):
    """The dev documents with their own tags for answers."""
    return [
        (document, TagAnswer([change(sentence.tags) for sentence in document.sentences], []))
        for document in task.examples("dev")
    ]


def test_the_files_own_tags_score_all(task):
    scores = task.score(answered(task))
    assert (scores["accuracy"], scores["f1"], scores["f1_LOC"]) == (100, 100, 100)
    nothing = task.score(answered(task, lambda tags: ["O"] * len(tags)))
    assert (nothing["recall"], nothing["f1"]) == (0, 0)
    assert 0 < nothing["accuracy"] < 100


def test_the_predictions_are_the_file_with_a_column_that_the_scorer_reads(task, tmp_path):
    given = answered(task, lambda tags: ["O", *tags[1:]])
    columns, entities = task.write(tmp_path, "dev", given)
    (report,) = task.illustrate(tmp_path, "dev", given)
    assert (columns.name, entities.name) == ("dev_predictions.txt", "dev_entities.jsonl")
    lines = columns.read_text().splitlines()
    own = (tmp_path / "dev.txt").read_text().splitlines()
    assert [line.rpartition(" ")[0] for line in lines if line] == [line for line in own if line]
    scorer = EntityScorer()
    for block in columns.read_text().split("\n\n"):
        rows = [line.split(" ") for line in block.splitlines() if line]
        scorer.add([row[-2] for row in rows], [row[-1] for row in rows])
    assert report.read_text() == scorer.report()
    assert scorer.scores() == task.score(given)


def test_predictions_of_a_file_with_short_tags_and_remarks_score_as_they_do_here(tmp_path):
    for split in ("train", "dev"):
        write_tagged(tmp_path / f"{split}.txt", 20, scheme="short", per_document=0)
    task = open_tagging(TaggingConfig(data_dir=tmp_path))
    given = answered(task, lambda tags: ["O", *tags[1:]])
    columns, _ = task.write(tmp_path, "dev", given)
    scored = score_tags(ScoreTagsConfig(predictions_file=(columns,)))
    assert scored["f1"] == pytest.approx(task.score(given)["f1"])


def test_tags_are_guessed_by_finding_no_entity(task, tmp_path):
    lines = (tmp_path / "dev.txt").read_text().splitlines()
    tags = [line.split(" ")[1] for line in lines if line]  # -DOCSTART-, too, as `conlleval` counts
    guesses = guesses_of(task, "dev")
    guess = guesses["accuracy"]
    assert (guess.words, guesses["f1"].value) == ("no entity anywhere", 0.0)
    assert guess.value == pytest.approx(100 * tags.count("O") / len(tags))
    found = task.score(answered(task, lambda tags: ["O"] * len(tags)))
    assert found["accuracy"] == guess.value
    assert (task.curve_style.scores[:2], task.curve_style.full_score) == (("accuracy", "f1"), 100.0)


def write(folder, **texts):
    for split, text in texts.items():
        (folder / f"{split}.txt").write_text(text, encoding="utf-8")
    return TaggingConfig(data_dir=folder)


@pytest.mark.parametrize(
    ("scheme", "labels"),
    [
        (IOB1, ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")),
        (BIOES, ("O", *(f"{x}-{kind}" for kind in ("LOC", "PER") for x in "BIES"))),
        (BARE, ("O", "LOC", "PER")),
    ],
)
def test_scheme_and_tags_are_those_of_the_training_file(tmp_path, scheme, labels):
    for split in ("train", "dev"):
        write_tagged(tmp_path / f"{split}.txt", 40, scheme=scheme.name)
    task = open_tagging(TaggingConfig(data_dir=tmp_path))
    assert (task.scheme, task.labels, task.unit) == (scheme, labels, "words")
    assert (task.evaluation_splits, task.test_splits) == (["dev"], ["dev"])
    assert task.settings == {
        "tagging_scheme": scheme.name,
        "tag_unit": "words",
        "context": "document",
        "doc_stride": 0,
        "columns": 2,
        "word_column": 1,
        "tag_column": -1,
    }


def test_characters_are_noticed(tmp_path):
    config = write(tmp_path, train="## 1\tBob.\nB\tB-P\nb\tI-P\n \tO\n", dev="B\tB-P\n")
    assert open_tagging(config).unit == "characters"
    (tmp_path / "dev.txt").write_text("Bob\tB-P\n")
    with pytest.raises(UserError, match=r"dev\.txt: line 1 has several characters"):
        open_tagging(config)


@pytest.mark.parametrize(
    ("asked", "whole"), [("auto", False), ("document", True), ("sentence", False)]
)
def test_a_trained_model_keeps_its_context_unless_another_is_asked_for(tmp_path, asked, whole):
    (tmp_path / "dev.txt").write_text("Bob B-P\n")
    folder = write_tagger(tmp_path / "model", ["O", "B-P", "I-P"])
    source = find_model(folder, do_lower_case=True)
    known = {"task": "ner", "tagging_scheme": "iob2", "context": "sentence"}
    source = replace(source, config=with_task_settings(source.config, known))
    task = open_tagging(TaggingConfig(data_dir=tmp_path, context=asked), source)
    assert task.whole_documents is whole


def test_a_test_file_may_lack_the_column_of_tags(tmp_path):
    config = write(tmp_path, train="Bob NNP B-P\n", dev="Bob NNP B-P\n", test="Bob NNP\n")
    task = open_tagging(config)
    assert (task.evaluation_splits, task.test_splits) == (["dev"], ["dev", "test"])
    (sentence,) = next(iter(task.examples("test"))).sentences
    assert sentence.tags is None


def test_a_dev_file_without_tags_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"dev.txt: has no tags.*`test_file`"):
        open_tagging(write(tmp_path, train="Bob B-P\n", dev="Bob\n"))


def test_short_tags_are_read_as_what_they_stand_for(tmp_path):
    train = "a\tB_PS\nb\tI\n\nc\tB_LC\n"
    task = open_tagging(write(tmp_path, train=train, dev="a\tB_LC\n", test="a\tB-LC\n"))
    assert task.labels == ("O", "B-LC", "I-LC", "B-PS", "I-PS")
    assert task.settings["tagging_scheme"] == "iob2"


@pytest.mark.data
@pytest.mark.parametrize(("split", "counts"), [("train", 6275), ("dev", 750)])
def test_the_korean_corpus_has_the_entities_that_begin_in_it(data_folder, tmp_path, split, counts):
    packed = data_folder / "korean" / f"2016klp_{split}.txt.xz"
    config = TaggingConfig(train_file=packed, word_column=2)
    task = open_tagging(config)
    tags = [s.tags for d in task.examples("train") for s in d.sentences]
    assert {one.partition("-")[2] for one in task.labels} == {"", "PS", "LC", "OG", "DT", "TI"}
    assert sum(len(task.scheme.entities(one)) for one in tags) == counts
    text = lzma.decompress(packed.read_bytes()).decode()
    assert text.count("\tB_") == counts


def test_tags_that_look_the_same_are_one(tmp_path):
    apart = "\u110b\u1175\u11ab\u1106\u116e\u11af"
    config = write(tmp_path, train=f"a\tB-인물\nb\tI-{apart}\n", dev="a\tB-인물\n")
    assert open_tagging(config).labels == ("O", "B-인물", "I-인물")


def test_the_task_of_a_run_has_its_options_and_needs_a_file_for_what_reads_it(tmp_path):
    path = write_tagged(tmp_path / "train.txt", 8)
    run = {"output_dir": tmp_path / "run", "do_train": True}
    files = TaggingConfig(data_dir=tmp_path, context="sentence", doc_stride=5)
    task = task_of(RunNerConfig(files=files, **run))
    assert (task.whole_documents, task.doc_stride) == (False, 5)
    assert len(list(task.examples("train"))) == 8
    files = TaggingConfig(train_file=path)
    with pytest.raises(UserError, match="`do_eval=True`: there is no file"):
        task_of(RunNerConfig(files=files, do_eval=True, **run))


def test_an_export_is_trained_on_and_answered_in_its_own_text(tmp_path, caplog):
    texts = [
        {"text": "Ada  Byron\nmet (Bob)", "label": [[0, 10, "PER"], [16, 19, "PER"]]},
        {"text": "none", "label": []},
    ]
    for name in ("train.jsonl", "dev.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(one) + "\n" for one in texts))
    (tmp_path / "test.jsonl").write_text('{"text": "Bob"}\n')
    names = {f"{split}_file": tmp_path / f"{split}.jsonl" for split in ("train", "dev", "test")}
    with caplog.at_level("INFO"):
        task = open_tagging(TaggingConfig(**names))
    assert (task.labels, task.unit) == (("O", "B-PER", "I-PER"), "words")
    assert (task.evaluation_splits, task.test_splits) == (["dev"], ["dev", "test"])
    assert "dev.jsonl: texts without a span (read as texts without an entity): 1, the first on" in (
        caplog.text
    )
    given = [
        (document, answer(document, units_like(document), task.labels, task.scheme, task.unit))
        for document in task.examples("dev")
    ]
    columns, entities = task.write(tmp_path, "dev", given)
    assert columns.read_text().splitlines()[:2] == ["Ada\tB-PER\tB-PER", "Byron\tI-PER\tI-PER"]
    first = json.loads(entities.read_text().splitlines()[0])
    assert first["text"] == texts[0]["text"]
    spans = [[x["start"], x["end"], x["type"]] for x in first["entities"]]
    assert spans == texts[0]["label"]
    assert task.score(given)["f1"] == 100


def units_like(document):
    """The units of a model that gives every word its own tag."""
    tags = [tag for sentence in document.sentences for tag in sentence.tags]
    numbers = np.array([("O", "B-PER", "I-PER").index(tag) for tag in tags], np.int64)
    items = np.arange(len(tags))
    return Units(items, items + 1, numbers, np.ones(len(tags), np.float32))


def test_spans_inside_words_are_learned_as_characters_and_scored_as_klue_does(tmp_path):
    for name in ("train", "dev"):
        text = {
            "text": "서울에 왔다",
            "entities": [{"start_offset": 0, "end_offset": 2, "label": "LC"}],
        }
        (tmp_path / f"{name}.txt").write_text(json.dumps(text) + "\n")
    task = open_tagging(TaggingConfig(data_dir=tmp_path))
    (document,) = task.examples("dev")
    assert task.unit == "characters"
    assert document.sentences[0].tags == ("B-LC", "I-LC", "O", "O", "O", "O")
    scores = task.score([(document, TagAnswer([["B-LC", "O", "O", "O", "O", "O"]], []))])
    assert scores["entity_macro_f1"] == 0
    assert scores["character_macro_f1"] == pytest.approx(100 * (8 / 9 + 1 + 0) / 3)


def test_types_in_front_of_letters_are_read_and_may_be_types_if_it_is_said(tmp_path):
    config = write(tmp_path, train="a PER-B\nb PER-I\nc -\n", dev="a PER-B\n")
    assert open_tagging(config).labels == ("O", "B-PER", "I-PER")
    bare = open_tagging(replace(config, tagging_scheme="bare"))
    assert bare.labels == ("O", "-", "PER-B", "PER-I")


def test_sentences_without_tags_are_tagged_where_sentences_were_learned(tmp_path):
    train = "김수로 는 왔다\tPER-B O O\n넷 둘\tO O\n"
    task = open_tagging(write(tmp_path, train=train, dev=train, test="셋 과 넷\n넷\n"))
    assert task.labels == ("O", "B-PER", "I-PER")
    sentences = [one for document in task.examples("test") for one in document.sentences]
    assert [(one.items, one.tags) for one in sentences] == [
        (("셋", "과", "넷"), None),
        (("넷",), None),
    ]
    assert task.settings["form"] == "sentences"
