"""Checkpoint options: what a caller says where the checkpoint does not say it itself."""

import dataclasses
from typing import Any

from keras_bert_impl.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointOptions:
    """Options of every job that reads a checkpoint of any format."""

    bert_config_file: str | None = option(
        None, "google's bert_config.json, if there is none beside the checkpoint."
    )
    vocab_file: str | None = option(None, "The vocabulary, if there is none beside the checkpoint.")
    do_lower_case: bool | None = option(
        None, "Whether text is lower-cased, where the checkpoint does not say it."
    )

    def description(self) -> dict[str, Any]:
        """The options as keyword arguments of `find_model` and what opens models with it."""
        return {
            "bert_config_file": self.bert_config_file,
            "vocab_file": self.vocab_file,
            "do_lower_case": self.do_lower_case,
        }
