"""The features of a pre-training record: google-research/bert's names, order and types."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of fixed size.

    Attributes:
        name: the reference's name.
        size: numbers in it.
        is_float: a float list; otherwise an int64 list.
    """

    name: str
    size: int
    is_float: bool = False


def pair_features(length: int, predictions: int | None) -> tuple[Feature, ...]:
    """The features of records.

    Args:
        length: `max_seq_length`.
        predictions: `max_predictions_per_seq`, or None for records that are not masked.

    Example:
        >>> [feature.name for feature in pair_features(128, None)]
        ['input_ids', 'input_mask', 'segment_ids', 'next_sentence_labels']
    """
    masked = (
        ()
        if predictions is None
        else (
            Feature("masked_lm_positions", predictions),
            Feature("masked_lm_ids", predictions),
            Feature("masked_lm_weights", predictions, is_float=True),
        )
    )
    return (
        Feature("input_ids", length),
        Feature("input_mask", length),
        Feature("segment_ids", length),
        *masked,
        Feature("next_sentence_labels", 1),
    )
