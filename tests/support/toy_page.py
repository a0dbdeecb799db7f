"""A model of every kind for the playground, with fixed answers, and a tiny one with attention.

python -m tests.support.toy_page --port=8501    # to look at it
"""

import contextlib
import dataclasses
import re
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import uvicorn

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Input, Prepared
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.page.routes import (
    OPEN_PATHS,
    ShownModel,
    page_routes,
    scripts_of,
    show_model,
)
from keras_bert_impl.tokenization.packing import pack_batch
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.model_folders import BertPretrainer, tiny_config, write_known

WORDS = "the dog cat was too tired . did not cross street because it ? < > / script".split()  # noqa: SIM905
LETTERS = list(dict.fromkeys("고양이그개는너무안녕مرحبالقطةتنم"))
VOCABULARY = Vocabulary(
    [*SPECIAL_TOKENS, *WORDS, "##s", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
)
SETTINGS = TextSettings(VOCABULARY, strip_accents=False)
TEXT = (Input("text", about="a text"),)
NO_ATTENTION = "This export gives its outputs and not its attention."


@dataclass
class FixedAnswerer:
    """Gives every instance what a function says."""

    signature: str
    kind: str
    inputs: Any
    answer: Any
    outputs: dict = field(default_factory=dict)
    options: Any = ()
    tokens_at_once: int = 4096
    batches_at_once: int = 1
    most_tokens: int = 64

    def prepare(self, instances):
        rows = []
        for instance in instances:
            texts = [instance[one.name] for one in self.inputs if instance.get(one.name)]
            if "refuse" in texts:
                raise UserError("instance 1: is refused; write another text.")
            texts = [" ".join(text) if isinstance(text, list) else text for text in texts]
            block = PlainTokenizer(SETTINGS).encode_lines(texts)
            ids = np.split(block.ids, block.offsets[1:-1])
            packed = pack_batch(ids[:1], ids[1:], VOCABULARY, sum(map(len, ids)) + 3)
            rows.append({name: array[0] for name, array in packed.items()})
        words = (sum(len(str(text).split()) for text in one.values()) for one in instances)
        return Prepared(rows, instances, [max(0, count - 62) for count in words])

    def compute(self, rows):
        return [{} for _ in rows]

    def finish(self, prepared, outputs):
        return [self.answer(instance) for instance in prepared.state]


@dataclass
class FixedModel:
    answerers: dict
    description: dict = field(default_factory=dict)

    def close(self):
        pass


_ASKED = {"text": "", "passage": "", "endings": [""]}


def model(*answerers, **description):
    """A model of (signature, kind, inputs, what gives the answer)."""
    made = (FixedAnswerer(*one, dict.fromkeys(one[-1](_ASKED), "")) for one in answerers)
    return FixedModel({one.signature: one for one in made}, description)


def vector_of(instance):
    return {"embedding": [float(instance["text"].count(letter)) for letter in "ae"] + [1.0]}


def utf16(text, offsets):
    """Offsets of a text as JavaScript counts them."""
    return [len(text[:offset].encode("utf-16-le")) // 2 for offset in offsets]


def answers_of(instance):
    passage = instance["passage"]
    found = [part for part in ("🐧 penguins", "the ice", "ice") if part in passage]
    starts = [passage.find(part) for part in found]
    ends = [start + len(part) for start, part in zip(starts, found, strict=True)]
    return {
        "answers": found,
        "starts": starts,
        "ends": ends,
        "starts_utf16": utf16(passage, starts),
        "ends_utf16": utf16(passage, ends),
        "scores": [3.0 - number for number in range(len(found))],
        "answer_counts": len(found),
        "no_answer_score": -1.0,
        "has_answer": bool(found),
    }


def entities_of(instance):
    found = [*re.finditer("(Angela)|서울|😀 Hamburg|القاهرة", instance["text"])]
    starts, ends = [one.start() for one in found], [one.end() for one in found]
    return {
        "type": ["PER" if one[1] else "LOC" for one in found],
        "text": [one[0] for one in found],
        "start": starts,
        "end": ends,
        "start_utf16": utf16(instance["text"], starts),
        "end_utf16": utf16(instance["text"], ends),
        "score": [0.9 / (1 + number / 2) for number in range(len(found))],
        "count": len(found),
    }


def words_of(instance):
    masks, barks = instance["text"].count("[MASK]"), "barks" in instance["text"]
    return {
        "tokens": [["dog", "mouse" if barks else "<i>cat</i>"]] * masks,
        "probabilities": [[0.5, 0.4] if barks else [0.75, 0.125]] * masks,
        "num_truncated": max(0, len(instance["text"].split()) - 62),
    }


def choice_of(instance):
    endings = instance["endings"]
    return {"ending": endings[0], "probabilities": [1 / len(endings)] * len(endings)}


def always(**answer):
    return lambda _: answer


PAIR = (Input("text_a"), Input("text_b"))
ENDINGS = (Input("context"), Input("endings", is_list=True))
FOLLOWS = always(probability=0.25, next_sentence_logits=[0, 1])
LABEL, THREE = always(label="good", probabilities=[0.2, 0.7, 0.1]), ["bad", "good", "<b>odd</b>"]
SOME = always(labels=["", "good", ""], probabilities=[0.2, 0.7, 0.1])
MODELS = {
    "words": model(
        ("fill_mask_text", "masked_words", TEXT, words_of),
        ("next_sentence_text", "next_sentence", PAIR, FOLLOWS),
        kind="pre-trained",
        layers=2,
        engine="tensorflow",
    ),
    "label": model(("text", "label", TEXT, LABEL), labels=THREE, layers=2),
    "labels": model(("text", "labels", TEXT, SOME), labels=THREE, layers=2),
    "number": model(("text_pair", "number", PAIR, always(score=3.14159))),
    "share": model(
        ("text_pair", "number", PAIR, always(score=0.0)), activation="Sigmoid", range=[0.2, 0.9]
    ),
    "questions": model(("answers", "answer", (Input("question"), Input("passage")), answers_of)),
    "entities": model(("text", "entities", TEXT, entities_of)),
    "choices": model(("text", "choice", ENDINGS, choice_of)),
    "pair": model(
        ("text_pair", "label", PAIR, always(label="good", probabilities=[0.2, 0.8])),
        labels=["bad", "good"],
    ),
    "vectors": model(("embed", "vector", TEXT, vector_of)),
}


WITH_ATTENTION = ("words", "pair")


def shown_models(folder):
    """All of them, some with the attention of a tiny model that is written into a folder."""
    config = tiny_config(
        vocab_size=len(VOCABULARY), max_position_embeddings=64, num_hidden_layers=2
    )
    write_known(folder, BertPretrainer, config, vocabulary=VOCABULARY, strip_accents=False)
    shown = show_model(folder, MODELS["words"])
    without = ShownModel(MODELS["words"], VOCABULARY, NO_ATTENTION, scripts_of(VOCABULARY))
    return {
        name: dataclasses.replace(shown if name in WITH_ATTENTION else without, model=model)
        for name, model in MODELS.items()
    }


@contextlib.contextmanager
def running_page(folder, port=0, **options):
    """The address of a playground with all models."""
    shown = shown_models(folder)
    app = make_app(
        MODELS, ServerConfig(**options), routes=page_routes(shown), open_paths=OPEN_PATHS
    )
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        given = [word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--port=")]
        with running_page(f"{made}/model", int(given[0]) if given else 0) as address:
            sys.stdout.write(f"{address}\n")
            threading.Event().wait()
