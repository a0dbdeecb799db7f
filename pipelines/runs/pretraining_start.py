"""The model and the shards that a pre-training run starts from, and what a resumed one must share.

Nothing here loads TensorFlow, so that a mistake in a path or an option is reported at once.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model, model_identity
from keras_bert_impl.checkpoints.run_folder import step_folder
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import as_list_text, default_settings, options_named, settings_of
from keras_bert_impl.tokenization.text_settings import AS_IS, Casing
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.records.check import find_shards
from pipelines.runs.pretraining_config import RunPretrainingConfig, options_of_phase


def check_start(config: RunPretrainingConfig) -> None:
    """Looks at the options, the shards and the model of a run before TensorFlow is loaded.

    The shards of a run that is finished may be gone: they are not looked for.
    """
    check_asked(config)
    if RunDirectory(Path(config.output_dir)).finished_step() is None:
        checked_start(config)
        for number, phase in enumerate(config.phases()):
            with options_of_phase(number):
                find_shards(phase.input_file)
        with options_named({"input_file": "eval_input_file"}):
            find_shards(config.eval_input_file or ())


def check_asked(config: RunPretrainingConfig) -> None:
    """Refuses a run that does nothing, or has no data."""
    if not (config.do_train or config.do_eval):
        raise UserError("nothing to do; give `do_train=True` or `do_eval=True`.")
    if not config.input_file:
        raise UserError("`input_file` is missing; name the shards of create_pretraining_data.")
    if config.do_train:
        config.training.check_evaluates(config.do_eval or bool(config.training.eval_steps))


def checked_start(config: RunPretrainingConfig) -> ModelSource:
    """The model of a run, which fits its objective and the lengths of its phases.

    The shards say the casing where the model does not.
    """
    start = find_model(
        config.init_checkpoint,
        **config.description(),
        model_size=config.model_size,
        told=casing_of_shards(config.input_file),
        default_lower_case=True,
    )
    config.check_model(start.config)
    for number, phase in enumerate(config.phases()):
        with options_of_phase(number):
            start.config.check_length(phase.max_seq_length)
    return start


def casing_of_shards(input_files: Sequence[str]) -> Casing:
    """Reads the text settings of the first shards that describe themselves."""
    for shard in find_shards(input_files):
        if shard.description:
            said = shard.description.tokenizer
            form = said.get("unicode_form", AS_IS)
            return Casing(said["do_lower_case"], said["strip_accents"], form)
    return Casing()


_LOOKED_AT = 1 << 16  # bytes of a bare shard that enter its identity, besides its size


def pretraining_settings(
    config: RunPretrainingConfig, model_config: BertConfig, vocabulary_sha256: str | None
) -> dict[str, Any]:
    """The settings by the names of their options; files count by their content, not their path."""
    first, *later = (
        {**vars(phase), "input_file": shards_identity(phase.input_file)}
        for phase in config.phases()
    )
    return {
        **settings_of(config),
        "bert_config_file": model_config.to_google(),
        "init_checkpoint": config.init_checkpoint and model_identity(config.init_checkpoint),
        "vocab_file": vocabulary_sha256,
        # As a checkpoint's description gives it back.
        "mask_probabilities": config.mask_probabilities and list(config.mask_probabilities),
        "input_file": first["input_file"],
        **{f"phase2_{name}": value for phase in later for name, value in phase.items()},
    }


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
    shards = find_shards(patterns)
    for shard in shards:
        own_size = shard.path.stat().st_size
        size += own_size
        if shard.entry:
            digest.update(shard.entry.crc32c.encode())
        else:
            with shard.path.open("rb") as file:
                digest.update(file.read(_LOOKED_AT))
        digest.update(str(own_size).encode())
    count = f"{len(shards)} shard{'s' if len(shards) != 1 else ''}"
    return f"{count}, {size:,} bytes, content {digest.hexdigest()[:10]}"


def held_out_names(config: RunPretrainingConfig) -> str:
    """The held-out shards as they are named, and how much of them is evaluated."""
    files, most = config.held_out_files, config.max_eval_steps * config.eval_batch_size
    return f"{as_list_text(files)}, {most} examples at most\n"


def held_out_identity(config: RunPretrainingConfig) -> str:
    """Tells an evaluation from one of other examples: how they are named, and what they are."""
    return f"{held_out_names(config)}{shards_identity(config.held_out_files)}\n"


def is_evaluated(config: RunPretrainingConfig, run: RunDirectory) -> bool:
    """Whether the figures of a finished run are of the examples that the command names.

    The content of shards that were deleted since is not compared.
    """
    if run.evaluated_step() != run.finished_step():
        return False
    if not run.evaluated_on.is_file():  # a run of before
        return True
    kept = run.evaluated_on.read_text(encoding="utf-8", errors="replace")
    if not kept.startswith(held_out_names(config)):
        return False
    with contextlib.suppress(UserError):
        return kept == held_out_identity(config)
    return True


def check_finished_run(config: RunPretrainingConfig, run: RunDirectory) -> None:
    """Refuses to call a run finished that was made with other flags than the present command.

    What can no longer be looked at (shards that were deleted since) is not compared.
    """
    from keras_bert_impl.training.checkpoints import check_settings, read_description

    step = run.newest_step()
    if not step or config.training.allow_changed_flags:
        return
    before = read_description(step_folder(run.checkpoints, step))["settings"]
    known = _settings_as_far_as_known(config)
    now = {**config.training.mathematics(), **known}
    compared = {*now, *(name for name in before if known and name.startswith("phase2_"))}
    known_before = {name: value for name, value in before.items() if name in compared}
    check_settings(known_before, now, str(run.path), default_settings(RunPretrainingConfig))


def _settings_as_far_as_known(config: RunPretrainingConfig) -> dict[str, Any]:
    try:
        model_config = find_model(
            config.init_checkpoint,
            bert_config_file=config.bert_config_file,
            vocab_file=config.vocab_file,
            model_size=config.model_size,
            needs_text=False,
        ).config
        sha256 = Vocabulary.load(config.vocab_file).sha256 if config.vocab_file else None
        settings = pretraining_settings(config, model_config, sha256)
    except UserError:
        return {}
    return {name: value for name, value in settings.items() if name != "vocab_file" or value}
