"""BERT in Keras 3: pre-train, fine-tune, export, serve.

    import keras_bert_impl as kb

    embedder = kb.Embedder.from_pretrained("klue/bert-base")
    vectors = embedder.embed(["한 문장", "또 한 문장"])

Importing this package loads neither TensorFlow nor Keras: each name below is imported when it is
used for the first time.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "BertConfig": "config",
    "UserError": "errors",
    "named_config": "config",
    # models
    "BertClassifier": "models.classifier",
    "BertEmbedder": "models.embedder",
    "BertEncoder": "models.encoder",
    "BertMultipleChoice": "models.multiple_choice",
    "BertPretrainer": "models.pretrainer",
    "BertSpanLabeler": "models.token_models",
    "BertTokenClassifier": "models.token_models",
    "load_model": "keras_file",
    # text
    "BertPreprocessor": "tokenization.preprocessor",
    "TextSettings": "tokenization.text_settings",
    "Tokenizer": "tokenization.tokenizer",
    "Vocabulary": "tokenization.vocabulary",
    # training
    "BertAdamW": "optimizers.bert_adamw",
    "Lamb": "optimizers.bert_adamw",
    "WarmupSchedule": "optimizers.schedules",
    # serving
    "Embedder": "serving.embedder",
    "export_model": "serving.export",
    "open_model": "serving.opened_model",
    "show_attention": "serving.page.explain",
}

_MODULES = ("losses",)
"""Modules that are names of the package as a whole."""

_ABOVE = {
    "Predictor": "pipelines.answering.predictor",
    "Reranker": "pipelines.answering.predictor",
    "VectorIndex": "pipelines.vectors.index",
}
"""What knows tasks, which the library does not: named in full, and imported when it is used."""

__all__ = [
    "BertAdamW",
    "BertClassifier",
    "BertConfig",
    "BertEmbedder",
    "BertEncoder",
    "BertMultipleChoice",
    "BertPreprocessor",
    "BertPretrainer",
    "BertSpanLabeler",
    "BertTokenClassifier",
    "Embedder",
    "Lamb",
    "Predictor",
    "Reranker",
    "TextSettings",
    "Tokenizer",
    "UserError",
    "VectorIndex",
    "Vocabulary",
    "WarmupSchedule",
    "__version__",
    "export_model",
    "load_model",
    "losses",
    "named_config",
    "open_model",
    "show_attention",
]

if TYPE_CHECKING:  # the same names, for editors and type checkers
    from keras_bert_impl import losses
    from keras_bert_impl.config import BertConfig, named_config
    from keras_bert_impl.errors import UserError
    from keras_bert_impl.keras_file import load_model
    from keras_bert_impl.models.classifier import BertClassifier
    from keras_bert_impl.models.embedder import BertEmbedder
    from keras_bert_impl.models.encoder import BertEncoder
    from keras_bert_impl.models.multiple_choice import BertMultipleChoice
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
    from keras_bert_impl.optimizers.bert_adamw import BertAdamW, Lamb
    from keras_bert_impl.optimizers.schedules import WarmupSchedule
    from keras_bert_impl.serving.embedder import Embedder
    from keras_bert_impl.serving.export import export_model
    from keras_bert_impl.serving.opened_model import open_model
    from keras_bert_impl.serving.page.explain import show_attention
    from keras_bert_impl.tokenization.preprocessor import BertPreprocessor
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.tokenization.vocabulary import Vocabulary
    from pipelines.answering.predictor import Predictor, Reranker
    from pipelines.vectors.index import VectorIndex


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    home = f"{__name__}.{_HOMES[name]}" if name in _HOMES else _ABOVE.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value  # the next time Python finds it itself
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
