"""Estimates the disk space of a run and refuses one that will not fit, before it starts.

Pre-training data is about twenty times as large as its text, and a disk that fills up after hours
of work is the most expensive way to find out.
"""

import contextlib
import dataclasses
import glob
import shutil
from collections.abc import Iterable
from pathlib import Path

from keras_bert_impl.errors import UserError
from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe, VocabularyFacts
from pipelines.records.features import pair_features

# Measured on English text; other scripts have fewer tokens a byte.
_TEXT_BYTES_PER_TOKEN = 4.6
_TEXT_BYTES_PER_SENTENCE = 110
_EXAMPLES_PER_FULL_LENGTH = 1.35  # short targets and ends of documents make more and shorter ones
_PLAN_BYTES = 29  # an example of the plan
_ID_BYTES = 1.95  # mean varint of an id
_NUMBER_BYTES = 150  # names and lengths in a record, and its frame


@dataclasses.dataclass(frozen=True)
class DiskNeed:
    """Bytes that a run writes.

    Attributes:
        temporary: tokens and plan, at their largest.
        shards: the result.
    """

    temporary: float
    shards: float


def estimate(text_bytes: int, recipe: Recipe, facts: VocabularyFacts) -> DiskNeed:
    """Estimates the disk use of a run from the size of its text.

    Args:
        text_bytes: size of the documents.
        recipe: the rules.
        facts: the vocabulary; a large one needs 4 bytes a token.

    Example:
        >>> import numpy as np
        >>> from pipelines.pretraining_data.examples import SpecialIds
        >>> facts = VocabularyFacts(30522, SpecialIds(0, 1, 2, 3), np.zeros(0), np.zeros(0), "")
        >>> need = estimate(100_000_000, Recipe(), facts)
        >>> round(need.temporary / 1e8, 1), round(need.shards / 1e8)
        (1.2, 20)
    """
    tokens = text_bytes / _TEXT_BYTES_PER_TOKEN
    ids = tokens * (2 if facts.size <= 1 << 16 else 4)
    offsets = 8 * text_bytes / _TEXT_BYTES_PER_SENTENCE
    examples = recipe.dupe_factor * tokens / recipe.token_budget * _EXAMPLES_PER_FULL_LENGTH
    # Tokens are there twice while the blocks are joined; after that, once next to the plan.
    temporary = max(2 * (ids + offsets), ids + offsets + examples * _PLAN_BYTES)
    return DiskNeed(temporary, examples * record_bytes(recipe))


def record_bytes(recipe: Recipe) -> float:
    """About how large a record is."""
    size = 16.0
    for feature in pair_features(recipe.max_seq_length, recipe.stored_predictions):
        wide = feature.name in ("input_ids", "masked_lm_ids")
        number = 4 if feature.is_float else _ID_BYTES if wide else 1
        size += len(feature.name) + 16 + feature.size * number
    return size


def check_disk(
    config: PretrainingDataConfig, work: Path, text_bytes: int, facts: VocabularyFacts
) -> None:
    """Refuses a run that will not fit; what an interrupted run has written counts as there.

    Raises:
        UserError: the shards or the temporary files will not fit.
    """
    need = estimate(text_bytes, config.recipe, facts)
    output = Path(config.set_name)
    remaining = max(0.0, need.shards - _written(config))
    temporary = max(0.0, need.temporary - _bytes_of(work.rglob("*")))
    free_output = shutil.disk_usage(output.parent).free
    free_work = shutil.disk_usage(work).free
    if output.parent.stat().st_dev == work.stat().st_dev:
        remaining, temporary = remaining + temporary, 0.0
    for folder, bytes_needed, free in (
        (output.parent, remaining, free_output),
        (work, temporary, free_work),
    ):
        if bytes_needed > free:
            raise UserError(
                f"{folder}: needs about {bytes_needed / 1e9:.1f} GB but has "
                f"{free / 1e9:.1f} GB free ({need.temporary / text_bytes:.1f} times the input for "
                f"temporary files, {need.shards / text_bytes:.0f} times for shards); free some "
                "space, name another `output_file` or `work_folder`, or lower `dupe_factor`."
            )


def check_room_for_shards(config: PretrainingDataConfig, examples: int) -> None:
    """Checks again when the number of examples is known: short documents make more of them.

    Raises:
        UserError: the shards will not fit.
    """
    folder = Path(config.set_name).parent
    needed = max(0.0, examples * record_bytes(config.recipe) - _written(config))
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder}: the {examples:,} examples need about {needed / 1e9:.1f} GB, but "
            f"{free / 1e9:.1f} GB are free; free some space, name another `output_file`, or lower "
            "`dupe_factor`."
        )


def _written(config: PretrainingDataConfig) -> int:
    """Bytes of shards that are there already: they are kept, or replaced."""
    output = Path(config.set_name)
    by_number = output.parent.glob(f"{glob.escape(output.name)}-*")
    return _bytes_of({*map(Path, config.output_names), *by_number})


def _bytes_of(paths: Iterable[Path]) -> int:
    """The files' size; what another run removes meanwhile counts nothing."""
    total = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total
