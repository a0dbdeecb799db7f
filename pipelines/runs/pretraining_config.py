"""The options of a pre-training run."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from pathlib import Path

from keras_bert_impl.checkpoints.model_source import CheckpointOptions
from keras_bert_impl.config import MODEL_SIZES, BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, ONCE, REQUIRED, Options, nested, option, options_named
from keras_bert_impl.training.config import MOST_EXAMPLES, TrainingConfig
from pipelines.pretraining_data import masking
from pipelines.pretraining_data.recipe import check_shares


@dataclass(frozen=True, kw_only=True)
class PhaseConfig:
    """One stretch of the steps and its shards; `learning_rate` is the peak of its schedule."""

    input_file: tuple[str, ...]
    num_train_steps: int
    train_batch_size: int
    learning_rate: float
    max_seq_length: int
    max_predictions_per_seq: int


def options_of_phase(number: int) -> AbstractContextManager[None]:
    """Lets errors name the options of a phase, from 0; the second one's stand under `phase2`."""
    names = [field.name for field in fields(PhaseConfig)] if number else []
    return options_named({name: f"phase2.{name}" for name in names})


@dataclass(frozen=True, kw_only=True)
class SecondPhaseConfig(Options):
    """A second phase at the end of a run, usually with longer sequences; without shards, none."""

    input_file: tuple[str, ...] = option(
        (), "Shards of a second phase (longer sequences) at the end of the run."
    )
    num_train_steps: int | None = option(
        None, "How many of the run's steps the second phase takes; by default a tenth.", at_least=1
    )
    max_seq_length: int = option(
        512, "Length of a record of the second phase, in tokens.", at_least=5
    )
    max_predictions_per_seq: int = option(
        76, "Most masked positions of a record of the second phase.", at_least=1
    )
    train_batch_size: int | None = option(
        None, "Batch size; by default that of the first phase.", at_least=1, at_most=MOST_EXAMPLES
    )
    learning_rate: float | None = option(
        None, "Peak of the schedule; by default that of the first phase.", more_than=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        changed = [one.name for one in fields(self) if getattr(self, one.name) != one.default]
        if changed and not self.input_file:
            raise UserError(
                f"`{changed[0]}` is given, but `input_file` is not; name the second phase's "
                "shards, or leave its options out."
            )

    def phases_of(self, whole: PhaseConfig) -> tuple[PhaseConfig, ...]:
        """The phases of the `whole` run, of which the second one takes the last steps."""
        if not self.input_file:
            return (whole,)
        tenth = max(1, whole.num_train_steps // 10)
        own = {name: value for name, value in vars(self).items() if value is not None}
        second = replace(whole, **{"num_train_steps": tenth, **own})
        left = whole.num_train_steps - second.num_train_steps
        if left < 1:
            raise UserError(
                f"`phase2.num_train_steps={second.num_train_steps}` leaves no steps of the "
                f"`num_train_steps={whole.num_train_steps}` to the first phase; lower it."
            )
        return replace(whole, num_train_steps=left), second


@dataclass(frozen=True, kw_only=True)
class RunPretrainingConfig(CheckpointOptions):
    """The options of a pre-training run; `flags` is the command as a flag file."""

    input_file: tuple[str, ...] = option(
        (), "The shards to train on: paths or patterns, separated by commas."
    )
    output_dir: str = option(REQUIRED, "The run's folder.", resume=FREE)
    do_train: bool = option(False, "Train.", resume=FREE)
    do_eval: bool = option(False, "Evaluate, after training where both are given.", resume=FREE)
    model_size: str | None = option(
        None,
        "A published size with the vocabulary's number of tokens, in place of bert_config_file.",
        choices=tuple(MODEL_SIZES),
        resume=FREE,  # what it stands for is compared
    )
    init_checkpoint: str | None = option(
        None,
        "Weights to start from: a model directory, a TF1 checkpoint (prefix or folder), a run's "
        "folder or checkpoint, or a name on the Hugging Face hub.",
    )
    vocab_file: str | None = option(
        None,
        "The vocabulary of the shards, to go with the model; by default the one of the model that "
        "training starts from, or vocab.txt next to the configuration file.",
        resume=FREE,  # the content is compared
    )
    do_lower_case: bool | None = option(
        None,
        "Whether the shards' text was lower-cased, to be noted in the model; by default what the "
        "model that training starts from or the shards say, else yes.",
        resume=FREE,
    )
    eval_input_file: tuple[str, ...] = option(
        (), "Held-out shards to evaluate on; by default those of training.", resume=FREE
    )
    max_seq_length: int = option(
        128, "Length of a record in tokens, as the shards were made.", at_least=5
    )
    max_predictions_per_seq: int = option(
        20, "Most masked positions of a record, as the shards were made.", at_least=1
    )
    eval_batch_size: int = option(
        8, "Rows computed at once when evaluating.", at_least=1, at_most=MOST_EXAMPLES, resume=FREE
    )
    max_eval_steps: int = option(100, "The most batches of an evaluation.", at_least=1, resume=FREE)
    shuffle: bool = option(True, "Shuffle every epoch; otherwise read in file order.")
    next_sentence: bool = option(True, "Train on the next-sentence loss as well.")
    train_encoder: bool = option(
        True,
        "Train the encoder as well; otherwise only the heads learn: new ones, say, before they "
        "change an encoder that has learned.",
    )
    objective: str = option(
        masking.MASKED_LM,
        "What is predicted: masked_lm, masked tokens; next_token, each token from those on its "
        "left, by a configuration with causal; previous_token, each from those on its right, by "
        "one with anticausal. The last two need shards made with dynamic masking, and figures "
        "called masked_lm are then of all predicted tokens.",
        choices=masking.OBJECTIVES,
    )
    mask_probabilities: tuple[float, float, float] | None = option(
        None,
        "Shares of masked tokens that become [MASK], stay what they are, or become a random token, "
        "in training on shards made with dynamic masking; by default what their recipe says, as "
        "in every evaluation.",
    )
    save_model_steps: int = option(
        0,
        "Also write the model every so many steps, as model-STEP in the run's folder; a multiple "
        "of save_checkpoints_steps. 0 writes the last one only.",
        at_least=0,
        resume=FREE,
    )
    dry_run: bool = option(
        False, "Check everything and take one step of each phase; write nothing.", resume=ONCE
    )
    training: TrainingConfig = nested(TrainingConfig)
    phase2: SecondPhaseConfig = nested(SecondPhaseConfig, prefix="phase2_")
    flags: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.training.check_trains()
        if self.mask_probabilities is not None:
            check_shares(self.mask_probabilities)
        for name in ("train_hours", "batch_ramp") if self.phase2.input_file else ():
            if getattr(self.training, name):
                raise UserError(
                    f"`{name}` is for runs of one phase; train the second one in a run of its own, "
                    "from the model of the first."
                )
        between = self.training.steps_between_saves
        if self.save_model_steps % between:
            raise UserError(
                f"`save_model_steps={self.save_model_steps}` must be a multiple of "
                f"`training.save_checkpoints_steps={between}`; change one of them."
            )

    def phases(self) -> tuple[PhaseConfig, ...]:
        whole = PhaseConfig(
            input_file=self.input_file,
            num_train_steps=self.training.num_train_steps,
            train_batch_size=self.training.rows_read_at_once,
            learning_rate=self.training.learning_rate,
            max_seq_length=self.max_seq_length,
            max_predictions_per_seq=self.max_predictions_per_seq,
        )
        phases = self.phase2.phases_of(whole)
        if self.objective == masking.MASKED_LM:
            return phases
        # Every token is predicted, so that the flag about masked ones says nothing.
        return tuple(
            replace(one, max_predictions_per_seq=masking.most_predictions(one.max_seq_length))
            for one in phases
        )

    @property
    def held_out_files(self) -> tuple[str, ...]:
        """The held-out shards, or those of the last phase."""
        return self.eval_input_file or self.phases()[-1].input_file

    def targets(self) -> masking.Targets:
        return masking.Targets(self.objective, self.mask_probabilities)

    def check_model(self, model: BertConfig) -> None:
        """Refuses an objective that the model's attention makes impossible, or too easy."""
        needs = {masking.NEXT_TOKEN: "causal", masking.PREVIOUS_TOKEN: "anticausal"}
        needed = needs.get(self.objective)
        seen = {"causal": model.causal, "anticausal": model.anticausal}
        if needed and not seen[needed]:
            raise UserError(
                f"`objective={self.objective}` needs a model that does not see the token it "
                f'predicts; write "{needed}": true into its configuration.'
            )
        if model.causal and self.next_sentence:
            raise UserError(
                "the configuration's causal attention shows [CLS] no other token, from which no "
                "next sentence can be told; add `next_sentence=False`."
            )


def kept_model(folder: Path, step: int) -> Path:
    """Where a run keeps the model of a step."""
    return folder / f"model-{step}"
