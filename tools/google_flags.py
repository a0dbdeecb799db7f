"""Flags of google-research/bert that we take so that its commands run as they are."""

from tools.command_line import FlagSet


def add_tpu_flags(flag_set: FlagSet) -> None:
    """The original's flags for TPUs, for a tool that trains.

    Example:
        >>> flag_set = FlagSet("Trains.")
        >>> devices = flag_set.string("distribution_strategy", "one_device", "Which devices.")
        >>> add_tpu_flags(flag_set)
        >>> flag_set.parse(["--use_tpu"])
        >>> devices.value
        'tpu'
    """
    flag_set.shorthand(
        "use_tpu",
        "The original's way to say --distribution_strategy=tpu.",
        {"distribution_strategy": "tpu"},
    )
    flag_set.string("master", None, "Accepted for the original's sake; TF_CONFIG says it now.")
    flag_set.integer(
        "num_tpu_cores", 8, "Accepted for the original's sake; the TPU says it itself."
    )


def add_ignored_flags(flag_set: FlagSet) -> None:
    """The original's flags that mean nothing where nothing is trained."""
    sentence = "Accepted for the original's sake; it changes nothing here."
    flag_set.switch("use_tpu", False, sentence)
    flag_set.switch("use_one_hot_embeddings", False, sentence)
    flag_set.string("master", None, sentence)
    flag_set.integer("num_tpu_cores", 8, sentence)
