"""A tiny valid file or folder of every kind, made in code.

Each maker fills a folder, most of them by the helpers of `tests/support`. What needs TensorFlow
imports it inside: makers run in processes of their own.
"""

import bz2
import gzip
import json
import lzma
import shutil
from pathlib import Path

import numpy as np

_DOCUMENT = (
    "The {0} runs home.\nA {0} sleeps.\nThe list has a {0}, é and 배.\nIt runs. It sleeps.\n"
    "The {0} saw.\nThe list has the {0}."
)
TEXT = "\n\n".join(map(_DOCUMENT.format, ("dog", "cat", "fox", "hen", "value", "배"))) + "\n"
_ROW = {"max_seq_length": 12}
_SETTINGS = {
    "labels": {
        "task": "labelled texts",
        "kind": "one",
        "text_column": "text",
        "num_texts": 1,
        "label_column": ["label"],
        "header": True,
        "labels_crc32": "e5b63f73",
        **_ROW,
    },
    "questions": {
        "task": "squad",
        "doc_stride": 4,
        "max_query_length": 4,
        "null_score_diff_threshold": 0.0,
        "version_2_with_negative": True,
        **_ROW,
    },
    "tags": {
        "task": "ner",
        "doc_stride": 0,
        "tag_unit": "words",
        "tagging_scheme": "iob2",
        "word_column": 1,
        "tag_column": -1,
        "columns": 2,
        **_ROW,
    },
    "choices": {"task": "swag", "num_choices": 4, **_ROW},
}
"""What the model directories of the families of tasks keep, as their runs write it."""


def adapter(folder: Path) -> None:
    """An adapter in PEFT's form, which names its base."""
    golden = Path(__file__).parent.parent / "golden" / "peft" / "query_value_r4"
    shutil.copytree(golden, folder, dirs_exist_ok=True)
    path = folder / "adapter" / "adapter_config.json"
    values = {**json.loads(path.read_text()), "base_model_name_or_path": "base"}
    path.write_text(json.dumps(values))


def text(folder: Path) -> None:
    """Documents as text, as JSON lines, and packed in three ways."""
    data = TEXT.encode()
    (folder / "text.txt").write_bytes(data)
    for pack, ending in ((gzip, "gz"), (lzma, "xz"), (bz2, "bz2")):
        (folder / f"text.txt.{ending}").write_bytes(pack.compress(data))
    lines = [json.dumps({"text": one, "id": at}) for at, one in enumerate(TEXT.split("\n\n"))]
    (folder / "text.jsonl").write_text("\n".join(lines) + "\n")
    vocabulary(folder)


def vocabulary(folder: Path) -> None:
    """The vocabulary of the tests' tiny models."""
    from tests.support.model_folders import WORD_VOCABULARY

    (folder / "vocab.txt").write_text("".join(f"{one}\n" for one in WORD_VOCABULARY.tokens))


def google_config(folder: Path) -> None:
    """google's form of a configuration."""
    from tests.support.model_folders import tiny_config

    (folder / "bert_config.json").write_text(json.dumps(tiny_config().to_google()))
    vocabulary(folder)


def encoder(folder: Path) -> None:
    """A bare encoder with all of Hugging Face's text files, and sentence-transformers' modules."""
    from keras_bert_impl.checkpoints.model_directory import write_json
    from keras_bert_impl.checkpoints.sentence_modules import (
        DenseWeights,
        SentenceSettings,
        write_sentence_files,
    )
    from tests.support.model_folders import write_start
    from tests.support.tokenizer_files import write_tokenizer_json

    write_start(folder / "model")
    tokens = (folder / "model/vocab.txt").read_text().splitlines()
    write_tokenizer_json(folder / "model", tokens)
    pooler = DenseWeights(np.eye(16, dtype="float32"), np.ones(16, "float32"))
    settings = SentenceSettings("pooler", True, 10)
    write_sentence_files(folder / "model", settings, 16, pooler, write_json)


def fast_tokenizer(folder: Path) -> None:
    """A model directory whose vocabulary stands in its `tokenizer.json` alone."""
    encoder(folder)
    (folder / "model/vocab.txt").unlink()


def exported(folder: Path) -> None:
    """A classifier exported for OpenVINO."""
    from tools import export_model

    labels(folder)
    words = [f"--model={folder}/model", f"--output_dir={folder}/exported", "--format=openvino"]
    _done(export_model.main(words))
    (folder / "exported/SHA256SUMS").unlink()  # as in older exports: else every damage ends there


def request_bodies(folder: Path) -> None:
    """What is sent to the server's forms: two of TensorFlow Serving's, and OpenAI's."""
    bodies = {
        "predict": {"signature_name": "text", "instances": [{"text": "the dog"}, {"text": "배"}]},
        "regress": {"signature_name": "text", "examples": [{"text": "a cat"}]},
        "vectors": {"model": "vectors", "input": ["a", "b"], "encoding_format": "float"},
    }
    for name, body in bodies.items():
        (folder / f"{name}.json").write_text(json.dumps(body))


def tf1_checkpoint(folder: Path) -> None:
    """google's form of a checkpoint."""
    from tests.support.model_folders import write_pretrainer
    from tools import convert_checkpoint

    write_pretrainer(folder / "model", num_hidden_layers=1)
    _done(convert_checkpoint.main([f"--input={folder}/model", f"--output={folder}/tf1/bert.ckpt"]))
    shutil.rmtree(folder / "model")


def _done(code):
    if code != 0:
        raise RuntimeError("a seed could not be made")


def labels(folder: Path) -> None:
    """A classifier that was fine-tuned on files of one's own, and such files in three forms."""
    from tests.support import labelled_files, model_folders

    labelled_files.write_classes(folder / "train.csv", 12)
    labelled_files.write_classes(folder / "dev.csv", 6, seed=4)
    labelled_files.write_several(folder / "several.jsonl", 9)
    labelled_files.write_numbers(folder / "numbers.tsv", 9)
    model_folders.write_classifier(folder / "model", ["bad", "good", "so-so"], num_hidden_layers=1)
    _keep(folder, "labels")


def _keep(folder, family):
    from keras_bert_impl.checkpoints.task_settings import keep_task_settings

    keep_task_settings(folder / "model", _SETTINGS[family])


def questions(folder: Path) -> None:
    """A model that answers questions; questions of both kinds of SQuAD, with answers."""
    from keras_bert_impl.checkpoints.model_directory import write_model_directory
    from keras_bert_impl.models.token_models import BertSpanLabeler
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from tests.support import model_folders, squad_files

    squad_files.write_squad(folder / "dev.json", 4)
    squad_files.write_squad(folder / "dev2.json", 4, negative=True)
    said = {f"q{number}": "dog" for number in range(4)}
    (folder / "predictions.json").write_text(json.dumps(said))
    odds = {f"q{number}": number - 1.5 for number in range(4)}
    (folder / "null_odds.json").write_text(json.dumps(odds))
    model = BertSpanLabeler(model_folders.tiny_config(num_hidden_layers=1))
    write_model_directory(folder / "model", model, TextSettings(model_folders.WORD_VOCABULARY))
    _keep(folder, "questions")


def trivia(folder: Path) -> None:
    """TriviaQA's tree, with answers; and a file beside the tree that nobody may read."""
    from tests.support.trivia_tree import write_trivia

    (folder / "secret.txt").write_text("the secret is Spain\n")
    rain = {"Rain.txt": "It rains in  Spain,\r\n too.", "sub/B.txt": "the kingdom of\nSpain"}
    aliases = ["Spain", "the Kingdom of Spain"]
    write_trivia(folder, [("t1", "Where?", aliases, rain), ("t2", "Which?", aliases, rain)])
    (folder / "predictions.json").write_text(json.dumps({"t1": "Spain", "t2": "Rome"}))


def tags(folder: Path) -> None:
    """A tagger that was fine-tuned, tagged words, and predictions beside the right tags."""
    from tests.support import model_folders, tagged_files

    tagged_files.write_tagged(folder / "train.txt", 8)
    tagged_files.write_tagged(folder / "dev.txt", 6, seed=2, scheme="short", separator=" ")
    (folder / "predictions.txt").write_text("Ada B-PER B-PER\nByron I-PER O\n\nIt O O\n")
    names = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    model_folders.write_tagger(folder / "model", names, num_hidden_layers=1)
    _keep(folder, "tags")


def choices(folder: Path) -> None:
    """A model that chooses; SWAG's columns, and JSON lines."""
    from tests.support import choice_files, model_folders

    choice_files.write_swag(folder / "train.csv", 9)
    choice_files.write_json_lines(folder / "train.jsonl", 9)
    model_folders.write_chooser(folder / "model", num_hidden_layers=1)
    _keep(folder, "choices")
