"""Tiny model directories of every kind, made in code."""

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


def write_pretrainer(folder, **changes):
    """A model with both pre-training heads."""
    return write_any(folder, BertPretrainer(tiny_config(**changes)))


def write_encoder(folder, **changes):
    """A model without heads."""
    return write_any(folder, BertEncoder(tiny_config(**changes)))


def write_prompted(folder, **changes):
    """A model of vectors with prompts, a default one among them, and sizes."""
    prompts = {"query": "a list . ", "document": "a value . ", "passage": "the ", "other": "dog "}
    settings = {"normalize": True, "max_seq_length": 9, "prompt": "dog ", "prompts": prompts}
    sentence = SentenceSettings(**{**settings, "dimensions": (8, 4), **changes})
    config = tiny_config(num_hidden_layers=2)  # of which vectors were recorded
    model, text = scatter_weights(BertEncoder(config)), TextSettings(WORD_VOCABULARY)
    write_model_directory(folder, model, text, sentence=sentence)
    return folder


def write_start(folder, **changes):
    """A model without heads for runs that train it: of one layer, so that they start soon."""
    return write_encoder(folder, num_hidden_layers=1, **changes)


def write_classifier(folder, labels, **changes):
    """A classifier with named labels; one label is a regression."""
    names = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    return write_any(folder, BertClassifier(tiny_config(extra=names, **changes), len(labels)))


def write_tagger(folder, labels, vocabulary=WORD_VOCABULARY, **changes):
    """A model that gives every token one of some named labels."""
    names = {"id2label": {str(number): label for number, label in enumerate(labels)}}
    config = tiny_config(extra=names, vocab_size=len(vocabulary), **changes)
    return write_any(folder, BertTokenClassifier(config, len(labels)), vocabulary)


def write_chooser(folder, **changes):
    """A model that scores the choices of a row; of how many, its weights do not say."""
    return write_any(folder, BertMultipleChoice(tiny_config(**changes), 2))


def write_any(folder, model, vocabulary=WORD_VOCABULARY, **casing):
    """Any model, with weights that differ from one another."""
    write_model_directory(folder, scatter_weights(model), TextSettings(vocabulary, **casing))
    return folder
