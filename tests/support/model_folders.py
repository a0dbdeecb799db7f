"""Tiny model directories of every kind, made in code."""

import random
from pathlib import Path

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tiny_bert import scatter_weights

WORDS = ["the", "dog", "cat", "runs", "sleeps", "a", "list", "value", ".", ",", "##s", "é"]
WORD_VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *WORDS])
POSITIONS = 12


def tiny_config(**changes):
    return BertConfig(
        vocab_size=len(WORD_VOCABULARY),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=POSITIONS,
    ).replace(**changes)


_MADE: dict[str, dict[Path, bytes]] = {}  # the files of a model by all that it is made of


def write_known(folder, build, config, *sizes, vocabulary=WORD_VOCABULARY, **more):
    """A model of weights that are the same each time: built once, and written as often as asked."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        return write_any(folder, build(config, *sizes), vocabulary, **more)
    made = repr((build.__name__, config, sizes, vocabulary.tokens, more))
    if made not in _MADE:
        drawn = random.getstate()
        write_any(folder, build(config, *sizes), vocabulary, **more)
        files = (path for path in folder.rglob("*") if path.is_file())
        _MADE[made] = {path.relative_to(folder): path.read_bytes() for path in files}
        random.setstate(drawn)  # the same seed draws the same afterwards, whoever asked first
    for name, content in _MADE[made].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write_pretrainer(folder, **changes):
    """A model with both pre-training heads."""
    return write_known(folder, BertPretrainer, tiny_config(**changes))


def write_encoder(folder, **changes):
    """A model without heads."""
    return write_known(folder, BertEncoder, tiny_config(**changes))


def write_prompted(folder, **changes):
    """A model of vectors with prompts, a default one among them, and sizes."""
    prompts = {"query": "a list . ", "document": "a value . ", "passage": "the ", "other": "dog "}
    settings = {"normalize": True, "max_seq_length": 9, "prompt": "dog ", "prompts": prompts}
    sentence = SentenceSettings(**{**settings, "dimensions": (8, 4), **changes})
    config = tiny_config(num_hidden_layers=2)  # of which vectors were recorded
    return write_known(folder, BertEncoder, config, sentence=sentence)


def write_start(folder, **changes):
    """A model without heads for runs that train it: of one layer, so that they start soon."""
    return write_encoder(folder, num_hidden_layers=1, **changes)


def write_classifier(folder, labels, **changes):
    """A classifier with named labels; one label is a regression."""
    names = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    return write_known(folder, BertClassifier, tiny_config(extra=names, **changes), len(labels))


def write_tagger(folder, labels, vocabulary=WORD_VOCABULARY, **changes):
    """A model that gives every token one of some named labels."""
    names = {"id2label": {str(number): label for number, label in enumerate(labels)}}
    config = tiny_config(extra=names, vocab_size=len(vocabulary), **changes)
    return write_known(folder, BertTokenClassifier, config, len(labels), vocabulary=vocabulary)


def write_chooser(folder, **changes):
    """A model that scores the choices of a row; of how many, its weights do not say."""
    return write_known(folder, BertMultipleChoice, tiny_config(**changes), 2)


def write_any(folder, model, vocabulary=WORD_VOCABULARY, sentence=None, **casing):
    """Any model, with weights that differ from one another."""
    text = TextSettings(vocabulary, **casing)
    write_model_directory(folder, scatter_weights(model), text, sentence=sentence)
    return folder
