"""A trained model written as static vectors, by Model2Vec's method with three changes.

Each token goes through the encoder once; principal components; weights that fall with a token's
frequency (SIF). The changes were chosen on STS-B's training pairs with all-MiniLM-L6-v2: a token's
vector is that of [CLS] before it, though the model pools by the mean; only tokens that texts have
are counted; and each component is divided by the square root of its standard deviation.
"""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.formats.safetensors_file import write_safetensors
from keras_bert_impl.checkpoints.hub import may_be_hub_name
from keras_bert_impl.checkpoints.model_card import sealed_card
from keras_bert_impl.checkpoints.model_directory import write_json
from keras_bert_impl.checkpoints.sentence_modules import MODULES_FILE, SentenceSettings, modules_of
from keras_bert_impl.checkpoints.sources import CONFIG_FILE, FAST_TOKENIZER_FILE, WEIGHTS_FILE
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import real_path
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.models.head_settings import CLS
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.export import ExportResult, write_export
from keras_bert_impl.serving.exported import EMBEDDING
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.serving.smaller_vectors import Vectors
from keras_bert_impl.serving.static_vectors import MODEL_TYPE, NO_LIMIT, STATIC, TABLE, StaticEngine
from keras_bert_impl.serving.verify import Ask, InputSpec
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.portable_tokenizer import usual_tokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary

_OF_RANKS, _OF_COUNTS = 2e-4, 1e-3  # SIF's a: with frequencies by Zipf's law, and with counted ones
_TEXTS_AT_ONCE = 10_000
_MODULES = {"StaticEmbedding": "", "Normalize": "1_Normalize"}
_CONFIG = {
    "model_type": MODEL_TYPE,
    "architectures": ["StaticModel"],
    "pooling": "first",
    "seq_length": NO_LIMIT,
    "normalize": True,
}


def export_static(
    model: str | Path,
    folder: Path,
    dimensions: int | None = None,
    texts: Iterable[str] | None = None,
    verify: bool = True,
    max_seq_length: int | None = None,
    **description: Any,
) -> ExportResult:
    """Writes the static vectors of a model, in a folder that three libraries open alike.

    `texts` give the frequencies of tokens; by default their ranks in the vocabulary do. Of a text
    `max_seq_length` tokens are read, by default all.
    """
    opened = open_model(model, build=lambda one: BertEmbedder(one.config, CLS), **description)
    hidden, vocabulary = opened.model.config.hidden_size, opened.text.vocabulary
    width = dimensions or min(256, hidden)
    if width > hidden:
        raise UserError(f"`dimensions={width}`: the model's vectors have {hidden}; give fewer.")
    words, short = _words(vocabulary), SentenceSettings(CLS, max_seq_length=3)
    frames = np.array([vocabulary.cls_id, 0, vocabulary.sep_id], np.int32)
    rows = np.tile(frames, (len(words), 1))
    rows[:, 1] = words
    vectors = Embedder(opened.model, opened.text, short).embed_rows(list(rows))
    # Zipf's law, of tokens that stand in the order of their frequencies.
    counts, a = 1 / np.arange(2, len(words) + 2), _OF_RANKS
    if texts is not None:
        counts, a = _counts(texts, opened.text)[words], _OF_COUNTS
    shares = counts / max(counts.sum(), 1e-12)
    table = np.zeros((len(vocabulary), width), np.float32)
    table[words] = components(vectors, width) * (a / (a + shares))[:, None]
    silent = (vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id)
    engine = StaticEngine(table, silent, normalize=True)
    name = str(model) if may_be_hub_name(str(model)) else real_path(Path(model)).name

    def fill(aside: Path) -> None:
        write_safetensors(aside / WEIGHTS_FILE, {TABLE: table})
        tokenizer = usual_tokenizer(opened.text)
        if max_seq_length:
            tokenizer.enable_truncation(max_seq_length)  # which sentence-transformers reads
        tokenizer.save(str(aside / FAST_TOKENIZER_FILE))
        write_json(aside / MODULES_FILE, modules_of(_MODULES))
        said = {"tokenizer_name": name, "apply_pca": width, "hidden_dim": width}
        said |= {"sif_coefficient": a, "max_length": max_seq_length}
        write_json(aside / CONFIG_FILE, {**_CONFIG, **said})

    specs = {"serving_default": {one: InputSpec((None, None)) for one in ENCODER_INPUTS}}
    card = _card(name, len(words), width)
    expected: Ask = lambda _, features: dict(engine.compute_one(features))  # noqa: E731
    written = write_export(opened, folder, STATIC, fill, specs, expected, verify, card)
    return ExportResult({"serving_default": (ENCODER_INPUTS, (EMBEDDING,))}, None, *written)


def components(vectors: Vectors, width: int) -> Vectors:
    """The first principal components, each divided by the square root of its deviation.

    Example:
        >>> [first] = components(np.array([[4, 1], [-4, 1], [0, 1]], np.float32), 1).T
        >>> first.astype(float).round(3).tolist()
        [2.213, -2.213, 0.0]
    """
    centred = vectors - vectors.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    variances, axes = variances[::-1][:width], axes[:, ::-1][:, :width]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(width)])  # on any machine
    return centred @ axes / np.maximum(variances, 1e-9 * variances[0]) ** 0.25


def _words(vocabulary: Vocabulary) -> NDArray[np.int64]:
    """The ids of the tokens that texts have: all but the special and the unused ones."""
    named = [len(one) > 1 and one[0] == "[" and one[-1] == "]" for one in vocabulary.tokens]
    return np.flatnonzero(~np.array(named))


def _counts(texts: Iterable[str], text: TextSettings) -> NDArray[np.float64]:
    counts, source, tokenizer = np.zeros(len(text.vocabulary)), iter(texts), PlainTokenizer(text)
    while block := list(islice(source, _TEXTS_AT_ONCE)):
        counts += np.bincount(tokenizer.encode_lines(block).ids, minlength=len(counts))
    return counts


def _card(name: str, words: int, width: int) -> str:
    hub = f"base_model: {name}\n" if "/" in name else ""
    return sealed_card(
        f"""---
library_name: model2vec
tags: [static-embeddings, sentence-transformers, keras_bert_impl]
{hub}---
# Static vectors of {name}

A vector of {width} numbers for each of {words:,} tokens, made from `{name}`; that of a text is
their mean, scaled to length 1. keras_bert_impl, sentence-transformers and model2vec open it.
"""
    )
