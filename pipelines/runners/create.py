"""Documents to pre-training shards, on this machine or with Beam."""

from pipelines.pretraining_data.recipe import PretrainingDataConfig
from pipelines.records.description import Description


def create_pretraining_data(config: PretrainingDataConfig) -> Description:
    """Makes pre-training shards.

    Args:
        config: input, output and rules.

    Returns:
        What the shards say about themselves.

    Raises:
        UserError: bad input or an output folder that cannot be written.
    """
    if config.runner == "local":
        from pipelines.runners.local import run_local

        return run_local(config)
    from pipelines.runners.beam import run_beam  # an extra: imported only where it is asked for

    return run_beam(config)
