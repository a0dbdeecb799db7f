"""The settings of the task that a model was trained for, kept in its directory.

`config.json` has a place for it that `transformers` reads and keeps, `task_specific_params`; there
it stands under the name of this package:

```json
"task_specific_params": {"keras_bert_impl": {"task": "CoLA", "max_seq_length": 128}}
```

`max_seq_length` is the length that texts were packed to in training, `special_tokens` is "keep" if
a literal "[MASK]" in a text was one token then; whatever else a task needs to
serve its model (the stride of windows, a threshold) are entries beside it.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keras_bert_impl.checkpoints.model_directory import write_json
from keras_bert_impl.checkpoints.sources import CONFIG_FILE
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath
from keras_bert_impl.json_files import read_json_object, typed, typed_entries
from keras_bert_impl.options import bounded, options_of
from keras_bert_impl.tokenization.long_texts import LongTexts

_LOGGER = logging.getLogger(__name__)

_OF_A_TASK = (
    *("id2label", "label2id", "num_labels", "problem_type"),
    *("sentence_transformers", "sbert_ce_default_activation_function"),
)
_PLACE, _OWN = "task_specific_params", "keras_bert_impl"

_OF_ALL: Mapping[str, Any] = {
    "task": str,
    "max_seq_length": bounded(int, at_least=1),
    "special_tokens": str,
    "num_texts": bounded(int, at_least=1, at_most=2),
    "text_pair_column": str | None,
}
"""The settings that the library itself understands."""


def task_settings(
    config: BertConfig,
    types: Mapping[str, Any] = MappingProxyType({}),
    needed: Collection[str] = (),
) -> dict[str, Any]:
    """Reads the settings of the task, of the `types` that the caller understands."""
    place = f"{config.origin}: {_PLACE}.{_OWN}"
    remedy = "correct it, or export the model again"
    settings = typed(_entries(config.extra.get(_PLACE)).get(_OWN, {}), dict, place, remedy)
    for name in needed:
        if name not in settings:
            raise UserError(f"{place}: has no {name}; export the model again.")
    return typed_entries(settings, {**_OF_ALL, **types}, place, remedy)


def long_texts_of(config: BertConfig) -> LongTexts:
    """What becomes of texts that are too long for a model, as its settings say."""
    types = {one.name: one.json_type for one in options_of(LongTexts)}
    if "long_text" not in task_settings(config):
        return LongTexts()  # another task may have a `doc_stride` of its own
    return LongTexts.from_settings(task_settings(config, types))


def with_task_settings(config: BertConfig, settings: Mapping[str, Any]) -> BertConfig:
    """Gives the configuration with other settings of the task.

    Example:
        >>> config = with_task_settings(BertConfig(vocab_size=9), {"doc_stride": 128})
        >>> task_settings(config), config.to_hugging_face()["task_specific_params"]
        ({'doc_stride': 128}, {'keras_bert_impl': {'doc_stride': 128}})
    """
    others = _entries(config.extra.get(_PLACE))
    extra = {**config.extra, _PLACE: {**others, _OWN: dict(settings)}}
    return config.replace(extra=extra)


def without_task(config: BertConfig) -> BertConfig:
    """Leaves out what a configuration says of the task: a new head is for another one.

    Example:
        >>> extra = {"problem_type": "regression", "id2label": {"0": "score"}, "layers": 2}
        >>> dict(without_task(BertConfig(vocab_size=9, extra=extra)).extra)
        {'layers': 2}
    """
    extra = {name: value for name, value in config.extra.items() if name not in _OF_A_TASK}
    others = {k: v for k, v in _entries(extra.pop(_PLACE, None)).items() if k != _OWN}
    return config.replace(extra={**extra, _PLACE: others} if others else extra)


def with_labels(config: BertConfig, labels: Sequence[str], **more: Any) -> BertConfig:
    """A configuration that names the labels, as Hugging Face's does, and says more of the task.

    Example:
        >>> with_labels(BertConfig(vocab_size=9), ["ham", "spam"]).extra["id2label"]
        {'0': 'ham', '1': 'spam'}
    """
    names = {
        "id2label": {str(number): name for number, name in enumerate(labels)},
        "label2id": {name: number for number, name in enumerate(labels)},
    }
    return config.replace(extra={**config.extra, **names, **more})


def keep_task_settings(folder: StrPath, settings: Mapping[str, Any]) -> None:
    """Writes settings of the task into a model directory, besides those that it has."""
    path = Path(folder) / CONFIG_FILE
    values = read_json_object(path)
    others = _entries(values.get(_PLACE))
    own = _entries(others.get(_OWN))
    if any(own.get(name) != value for name, value in settings.items()):
        write_json(path, {**values, _PLACE: {**others, _OWN: {**own, **settings}}})


def served_length(
    config: BertConfig, asked: int | None, default: int | None = None, at_least: int = 1
) -> int:
    """The most tokens of a row of a served model: what is asked for, else as in training.

    Example:
        >>> config = with_task_settings(BertConfig(vocab_size=9), {"max_seq_length": 128})
        >>> served_length(config, None), served_length(BertConfig(vocab_size=9), None)
        (128, 512)
    """
    trained = task_settings(config).get("max_seq_length")
    length = asked or trained or default or config.max_position_embeddings
    config.check_length(length, at_least=5 if asked else at_least)
    if trained and length != trained:
        _LOGGER.warning(
            "`max_seq_length=%d` replaces %d, with which the model was trained; served "
            "answers may differ from those of its run.",
            *(length, trained),
        )
    return length


def num_texts(config: BertConfig) -> int | None:
    """How many texts an example had in training: 1, 2 for pairs, or None where nothing says it."""
    settings = task_settings(config)
    if settings.get("num_texts") in (1, 2):
        return int(settings["num_texts"])
    if "text_pair_column" in settings:  # files of one's own, before the number was kept
        return 2 if settings["text_pair_column"] else 1
    return None


def _entries(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
