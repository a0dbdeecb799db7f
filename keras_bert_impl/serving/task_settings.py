"""What a model directory says of the task that its model was trained for.

`config.json` has a place for it that `transformers` reads and keeps, `task_specific_params`; there
it stands under the name of this package:

```json
"task_specific_params": {"keras_bert_impl": {"task": "CoLA", "max_seq_length": 128}}
```

`max_seq_length` is the length that texts were packed to in training; whatever else a task needs to
serve its model (the stride of windows, a threshold) are entries beside it.
"""

from collections.abc import Mapping
from typing import Any

from keras_bert_impl.config import BertConfig

_PLACE, _OWN = "task_specific_params", "keras_bert_impl"


def task_settings(config: BertConfig) -> dict[str, Any]:
    """Reads the settings of the task; empty for a model without any.

    Example:
        >>> task_settings(BertConfig(vocab_size=9))
        {}
    """
    settings = _entries(config.extra.get(_PLACE)).get(_OWN)
    return dict(_entries(settings))


def with_task_settings(config: BertConfig, settings: Mapping[str, Any]) -> BertConfig:
    """Gives the configuration with other settings of the task.

    Args:
        config: a model's configuration.
        settings: JSON values by name.

    Example:
        >>> config = with_task_settings(BertConfig(vocab_size=9), {"doc_stride": 128})
        >>> task_settings(config), config.to_hugging_face()["task_specific_params"]
        ({'doc_stride': 128}, {'keras_bert_impl': {'doc_stride': 128}})
    """
    others = _entries(config.extra.get(_PLACE))
    extra = {**config.extra, _PLACE: {**others, _OWN: dict(settings)}}
    return config.replace(extra=extra)


def _entries(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
