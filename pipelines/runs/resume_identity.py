"""The settings that a resumed pre-training run must share, besides those of training."""

import hashlib
from collections.abc import Sequence
from typing import Any

from keras_bert_impl.checkpoints.model_source import model_identity
from keras_bert_impl.config import BertConfig
from keras_bert_impl.options import settings_of
from pipelines.records.check import find_shards
from pipelines.records.paths import with_local_copies
from pipelines.runs.pretraining_config import RunPretrainingConfig

_LOOKED_AT = 1 << 16  # bytes of a bare shard that enter its identity, besides its size


def pretraining_settings(
    config: RunPretrainingConfig, model_config: BertConfig, vocabulary_sha256: str | None
) -> dict[str, Any]:
    """The settings by the names of their options; files count by their content, not their path."""
    return {
        **settings_of(config),
        "bert_config_file": model_config.to_google(),
        "init_checkpoint": config.init_checkpoint and model_identity(config.init_checkpoint),
        "vocab_file": vocabulary_sha256,
        # As a checkpoint's description gives it back.
        "mask_probabilities": config.mask_probabilities and list(config.mask_probabilities),
        **_shards_and_second_phase(config),
    }


def _shards_and_second_phase(config: RunPretrainingConfig) -> dict[str, Any]:
    """The shards by their content, and the second phase with what it takes over from the first."""
    first, *later = config.phases()
    settings: dict[str, Any] = {"input_file": shards_identity(first.input_file)}
    for phase in later:
        values = {**vars(phase), "input_file": shards_identity(phase.input_file)}
        settings |= {f"phase2_{name}": value for name, value in values.items()}
    return settings


def shards_identity(patterns: Sequence[str]) -> str:
    """Says in a line what a set of shards is, so that another set is noticed and a move is not.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tfrecord"
        >>> _ = path.write_bytes(b"12345")
        >>> shards_identity([str(path)])
        '1 shard, 5 bytes, content fc1f09ab08'
    """
    digest, size = hashlib.sha256(), 0
    shards = find_shards(with_local_copies(patterns))
    for shard in shards:
        bytes_of_shard = shard.path.stat().st_size
        size += bytes_of_shard
        if shard.entry:
            digest.update(shard.entry.crc32c.encode())
        else:
            with shard.path.open("rb") as file:
                digest.update(file.read(_LOOKED_AT))
        digest.update(str(bytes_of_shard).encode())
    count = f"{len(shards)} shard{'s' if len(shards) != 1 else ''}"
    return f"{count}, {size:,} bytes, content {digest.hexdigest()[:10]}"
