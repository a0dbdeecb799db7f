"""What an adaptation will take, said before it starts."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.config import BertConfig
from keras_bert_impl.planning import (
    checkpoint_bytes,
    count_parameters,
    machine_bytes,
    plan_run,
    training_flops,
)
from keras_bert_impl.progress import format_bytes, format_duration
from keras_bert_impl.quiet_tensorflow import import_tensorflow_quietly
from pipelines.ablations.planning import training_tokens
from pipelines.adaptation.config import AdaptConfig
from pipelines.adaptation.steps import Asked
from pipelines.corpora.sources import find_sources
from pipelines.corpora.split_sentences import SplitSentencesConfig, check_text
from pipelines.many_runs.runs import in_own_process
from pipelines.runs.plan_run import PlanRunConfig, measure_rate
from pipelines.runs.pretraining_config import RunPretrainingConfig

_TIMED_STEPS = 3
_PACKED, _PACKED_SUFFIXES = 4, (".gz", ".xz", ".bz2")  # text shrinks to about a quarter
_TOKEN_BYTES, _RECORD_BYTES = 4, 6  # of text for a token, and of a shard for one, about
_HELD_OUT_ROOM = 2  # examples are not full, and a vocabulary that does not fit cuts finer
_FORWARD = 1 / 3  # of a training step's work


def plan_lines(config: AdaptConfig, source: ModelSource, asked: Asked) -> list[str]:
    """Says the steps, the time, the memory and the disk; times a few steps where no rate is given.

    Args:
        config: the options.
        source: the model.
        asked: what the tools are asked for.

    Raises:
        UserError: the text is not there or cannot be read, or a step cannot be taken.
    """
    check_text(asked.text)
    size = _text_bytes(asked.text)
    added, training = config.words.num_new_tokens, asked.pretraining.training
    model = source.config.replace(vocab_size=source.config.vocab_size + added)
    rate = config.examples_per_second or in_own_process(
        _examples_per_second, model, asked.pretraining, remedy="lower `train_batch_size`"
    )
    lengths = (asked.pretraining.max_seq_length, asked.pretraining.max_predictions_per_seq)
    plan = plan_run(model, training, *lengths, on_cpu=True)
    evaluated = _held_out_examples(size, config, asked.pretraining)
    times = 3 + training.num_train_steps // max(1, training.steps_between_evaluations)
    stops = training.early_stopping_evals
    early = f"; fewer where {stops} evaluations in a row bring no lower loss" if stops else ""
    words = "of unknown size" if size is None else f"about {format_bytes(size)}"
    return [
        f"text        {words}; one document of {config.held_out_every} is held out",
        f"tokens      up to {added:,} are added to {len(source.text.vocabulary):,}",
        *_head_lines(asked, rate),
        f"training    at most {training.num_train_steps:,} steps of {training.train_batch_size:,} "
        f"examples: {format_duration(plan.examples / rate)} at {rate:.1f} examples a second{early}",
        f"evaluation  at most {times:,} times up to {evaluated:,} examples: up to "
        f"{format_duration(times * evaluated * _FORWARD / rate)}",
        *_task_lines(asked.tasks, source.config, rate * training_flops(model, *lengths)),
        f"memory      about {format_bytes(machine_bytes(plan.memory, 1))}",
        f"disk        about {format_bytes(_disk(size or 0, model, config, asked))} in "
        f"{config.output_dir}",
    ]


def _examples_per_second(model: BertConfig, pretraining: RunPretrainingConfig) -> float:
    """Times a few steps, in a process of its own."""
    import_tensorflow_quietly()
    return measure_rate(
        model,
        PlanRunConfig(
            measure_steps=_TIMED_STEPS,
            max_seq_length=pretraining.max_seq_length,
            max_predictions_per_seq=pretraining.max_predictions_per_seq,
            training=pretraining.training,
        ),
    )


def _text_bytes(text: SplitSentencesConfig) -> int | None:
    """The size of the text when it is unpacked, about; None of a data set."""
    sources = find_sources(text.input_file, text.reading.input_format, text.reading.text_encoding)
    if any(source.form == "tfds" for source in sources):
        return None
    paths = [Path(source.name) for source in sources]
    return sum(
        path.stat().st_size * (_PACKED if path.suffix in _PACKED_SUFFIXES else 1) for path in paths
    )


def _held_out_examples(
    size: int | None, config: AdaptConfig, pretraining: RunPretrainingConfig
) -> int:
    """How many examples an evaluation has at most: all that are held out, or as many as asked."""
    most = pretraining.eval_batch_size * pretraining.max_eval_steps
    if size is None:
        return most
    tokens = size / config.held_out_every / _TOKEN_BYTES
    return min(most, math.ceil(_HELD_OUT_ROOM * tokens / pretraining.max_seq_length))


def _head_lines(asked: Asked, rate: float) -> list[str]:
    """The steps of new heads: the encoder is computed, but learns nothing."""
    if not asked.head_steps:
        return []
    examples = asked.head_steps * asked.pretraining.training.train_batch_size
    return [
        f"heads       {asked.head_steps:,} steps in which only they learn: about "
        f"{format_duration(examples * _FORWARD / rate)}"
    ]


def _task_lines(tasks: Sequence[Any], model: BertConfig, operations: float) -> list[str]:
    """The fine-tunings: how many, and how long where their files tell the length of an epoch."""
    if not tasks:
        return []
    seconds = 0.0
    for task in tasks:
        length = task.max_seq_length
        a_token = training_flops(model, length, 1) / length
        # NaN where the files are not there; the tool says which.
        tokens = training_tokens(task)
        seconds += math.nan if tokens is None else tokens * task.num_train_epochs * a_token
    long = "" if math.isnan(seconds) else f": about {format_duration(seconds / operations)}"
    return [f"task        {len(tasks):,} fine-tunings{long}"]


def _disk(text: int, model: BertConfig, config: AdaptConfig, asked: Asked) -> float:
    """Sentences, shards, checkpoints (one kept, one written, the best) and the steps' models."""
    shards = text / _TOKEN_BYTES * _RECORD_BYTES * config.dupe_factor
    models = (3 + bool(asked.head_steps) + bool(asked.tasks)) * 4 * count_parameters(model)
    return text + shards + 3 * checkpoint_bytes(model) + models
