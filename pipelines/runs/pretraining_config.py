"""What a pre-training run is told."""

from dataclasses import dataclass

from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.phases import PhaseConfig, split_steps


@dataclass(frozen=True, kw_only=True)
class RunPretrainingConfig:
    """What a pre-training run is told; the defaults are the original's.

    Attributes:
        output_dir: the run directory.
        input_file: shards to train on: paths or glob patterns.
        eval_input_file: held-out shards; by default those of `input_file`, as in the original.
        bert_config_file: google's form of the configuration; None takes the one of
            `init_checkpoint`, a model directory.
        model_size: a published size with the pieces of `vocab_file`, in place of a configuration.
        init_checkpoint: a model directory or the prefix of a TF1 checkpoint; None for new weights.
        continue_tf1_run: take `adam_m`, `adam_v` and `global_step` from `init_checkpoint`, too.
        tf1_checkpoint: prefix of a TF1 checkpoint to write at the end, training state included.
        vocab_file: the vocabulary; None looks where the shards or the checkpoint name one.
        do_lower_case: the casing; None asks the same places.
        max_seq_length: pieces of a record.
        max_predictions_per_seq: masked pieces of a record.
        do_train: train.
        do_eval: evaluate.
        eval_batch_size: examples computed at once when evaluating.
        max_eval_steps: batches of an evaluation; fewer where the set is smaller.
        shuffle: False reads the records in file order.
        next_sentence: False leaves the next-sentence loss out.
        training: everything else about training.
        phase2: a second phase at the end of the run, with shards of its own.
        dry_run: check everything and take one step of each phase, without leaving anything.
        flags: the command as a flag file, to be kept in the run directory.
    """

    output_dir: str
    input_file: tuple[str, ...]
    eval_input_file: tuple[str, ...] = ()
    bert_config_file: str | None = None
    model_size: str | None = None
    init_checkpoint: str | None = None
    continue_tf1_run: bool = False
    tf1_checkpoint: str | None = None
    vocab_file: str | None = None
    do_lower_case: bool | None = None
    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    do_train: bool = False
    do_eval: bool = False
    eval_batch_size: int = 8
    max_eval_steps: int = 100
    shuffle: bool = True
    next_sentence: bool = True
    training: TrainingConfig
    phase2: PhaseConfig | None = None
    dry_run: bool = False
    flags: str = ""

    def phases(self) -> tuple[PhaseConfig, ...]:
        """The phases with their steps."""
        first = PhaseConfig(
            input_file=self.input_file,
            num_steps=self.training.num_train_steps,
            batch_size=self.training.train_batch_size,
            learning_rate=self.training.learning_rate,
            max_seq_length=self.max_seq_length,
            max_predictions_per_seq=self.max_predictions_per_seq,
        )
        return split_steps(self.training.num_train_steps, first, self.phase2)
