"""Pre-trains BERT on shards of create_pretraining_data.

The same command again resumes a run that was killed, to the same bits; a finished run says so. The
output folder gets flags.cfg, metrics.jsonl, TensorBoard events, checkpoints and, at the end, the
model directory model/, eval_results.txt and learning_curve.png.

Example:
  keras-bert run_pretraining --input_file=shards/train.tfrecord --output_dir=run --do_train
      --do_eval --bert_config_file=bert_config.json --vocab_file=vocab.txt --max_seq_length=128
      --max_predictions_per_seq=20 --train_batch_size=32 --num_train_steps=10000
      --num_warmup_steps=1000 --learning_rate=1e-4
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_bert_impl.config import MODEL_SIZES
from keras_bert_impl.errors import UserError
from tools import command_line
from tools.training_flags import ONE_CALL_ONLY, TrainingFlags

if TYPE_CHECKING:
    from keras_bert_impl.training.config import TrainingConfig
    from pipelines.runs.phases import PhaseConfig

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.words(
    "input_file", [], "The shards to train on: paths or patterns, comma-separated."
)
_OUTPUT_DIR = FLAGS.string("output_dir", None, "The run's folder.", required=True)
_DO_TRAIN = FLAGS.switch("do_train", False, "Train.")
_DO_EVAL = FLAGS.switch("do_eval", False, "Evaluate, after training where both are given.")
_BERT_CONFIG_FILE = FLAGS.string(
    "bert_config_file",
    None,
    "The model's configuration (google's JSON form); not needed where --init_checkpoint is a model "
    "directory.",
)
_MODEL_SIZE = FLAGS.choice(
    "model_size",
    None,
    MODEL_SIZES,
    "A published size with the pieces of --vocab_file, in place of a configuration file.",
)
_INIT_CHECKPOINT = FLAGS.string(
    "init_checkpoint",
    None,
    "Weights to start from: a model directory or the prefix of a TF1 checkpoint.",
)
_CONTINUE_TF1_RUN = FLAGS.switch(
    "continue_tf1_run",
    False,
    "Continue a run of the original: take the optimizer's moments and the step from the TF1 "
    "checkpoint of --init_checkpoint as well.",
)
_TF1_CHECKPOINT = FLAGS.string(
    "tf1_checkpoint",
    None,
    "Prefix of a TF1 checkpoint to write at the end, with the training state of the original.",
)
_VOCAB_FILE = FLAGS.string(
    "vocab_file",
    None,
    "The vocabulary of the shards, to go with the model; by default the one of --init_checkpoint, "
    "or vocab.txt beside --bert_config_file.",
)
_DO_LOWER_CASE = FLAGS.switch(
    "do_lower_case",
    None,
    "Whether the shards' text was lower-cased, to be noted in the model; by default what "
    "--init_checkpoint or the shards say, else yes.",
)
_EVAL_INPUT_FILE = FLAGS.words(
    "eval_input_file", [], "Held-out shards to evaluate on; by default those of --input_file."
)
_MAX_SEQ_LENGTH = FLAGS.integer(
    "max_seq_length", 128, "Word pieces of a record, as the shards were made.", lower_bound=5
)
_MAX_PREDICTIONS = FLAGS.integer(
    "max_predictions_per_seq", 20, "Masked places of a record, as made.", lower_bound=1
)
_NUM_TRAIN_STEPS = FLAGS.integer(
    "num_train_steps", 100000, "Optimizer steps of the whole run.", lower_bound=1
)
_NUM_WARMUP_STEPS = FLAGS.integer(
    "num_warmup_steps", 10000, "Steps over which the learning rate rises.", lower_bound=0
)
_EVAL_BATCH_SIZE = FLAGS.integer(
    "eval_batch_size", 8, "Examples computed at once when evaluating.", lower_bound=1
)
_MAX_EVAL_STEPS = FLAGS.integer(
    "max_eval_steps", 100, "Most batches of an evaluation.", lower_bound=1
)
_SHUFFLE = FLAGS.switch("shuffle", True, "Shuffle every epoch; --noshuffle reads in file order.")
_NEXT_SENTENCE = FLAGS.switch("next_sentence", True, "Train on the next-sentence loss as well.")
_PHASE2_INPUT_FILE = FLAGS.words(
    "phase2_input_file", [], "Shards of a second phase (longer sequences) at the end of the run."
)
_PHASE2_NUM_TRAIN_STEPS = FLAGS.integer(
    "phase2_num_train_steps",
    None,
    "How many of --num_train_steps the second phase takes; by default a tenth.",
    lower_bound=1,
)
_PHASE2_MAX_SEQ_LENGTH = FLAGS.integer(
    "phase2_max_seq_length", 512, "Word pieces of a record of the second phase.", lower_bound=5
)
_PHASE2_MAX_PREDICTIONS = FLAGS.integer(
    "phase2_max_predictions_per_seq", 76, "Masked places of such a record.", lower_bound=1
)
_PHASE2_TRAIN_BATCH_SIZE = FLAGS.integer(
    "phase2_train_batch_size", None, "Its batch; by default --train_batch_size.", lower_bound=1
)
_PHASE2_LEARNING_RATE = FLAGS.number(
    "phase2_learning_rate",
    None,
    "The peak that the run's schedule has in the second phase; by default --learning_rate.",
)
_DRY_RUN = FLAGS.switch(
    "dry_run", False, "Check everything and take one step of each phase; write nothing."
)
_TRAINING = TrainingFlags(FLAGS, batch_size=32, learning_rate=5e-5)


def _second_phase(training: "TrainingConfig") -> "PhaseConfig | None":
    from pipelines.runs.phases import PhaseConfig

    input_file, rate = tuple(_PHASE2_INPUT_FILE.value), _PHASE2_LEARNING_RATE.value
    if not input_file:
        given = [name for name in FLAGS.changed() if name.startswith("phase2_")]
        if given:
            raise UserError(
                f"--{given[0]} is given, but --phase2_input_file is not; name the second phase's "
                "shards, or leave its flags out."
            )
        return None
    return PhaseConfig(
        input_file=input_file,
        num_steps=_PHASE2_NUM_TRAIN_STEPS.value or max(1, training.num_train_steps // 10),
        batch_size=_PHASE2_TRAIN_BATCH_SIZE.value or training.train_batch_size,
        learning_rate=training.learning_rate if rate is None else rate,
        max_seq_length=_PHASE2_MAX_SEQ_LENGTH.value,
        max_predictions_per_seq=_PHASE2_MAX_PREDICTIONS.value,
    )


def _run() -> None:
    from pipelines.runs.pretraining import run_pretraining
    from pipelines.runs.pretraining_config import RunPretrainingConfig

    training = _TRAINING.config(_NUM_TRAIN_STEPS.value, _NUM_WARMUP_STEPS.value)
    phase2 = _second_phase(training)
    config = RunPretrainingConfig(
        output_dir=_OUTPUT_DIR.value,
        input_file=tuple(_INPUT_FILE.value),
        eval_input_file=tuple(_EVAL_INPUT_FILE.value),
        bert_config_file=_BERT_CONFIG_FILE.value,
        model_size=_MODEL_SIZE.value,
        init_checkpoint=_INIT_CHECKPOINT.value,
        continue_tf1_run=_CONTINUE_TF1_RUN.value,
        tf1_checkpoint=_TF1_CHECKPOINT.value,
        vocab_file=_VOCAB_FILE.value,
        do_lower_case=_DO_LOWER_CASE.value,
        max_seq_length=_MAX_SEQ_LENGTH.value,
        max_predictions_per_seq=_MAX_PREDICTIONS.value,
        do_train=_DO_TRAIN.value,
        do_eval=_DO_EVAL.value,
        eval_batch_size=_EVAL_BATCH_SIZE.value,
        max_eval_steps=_MAX_EVAL_STEPS.value,
        shuffle=_SHUFFLE.value,
        next_sentence=_NEXT_SENTENCE.value,
        training=training,
        phase2=phase2,
        dry_run=_DRY_RUN.value,
        flags=FLAGS.as_flagfile(without=ONE_CALL_ONLY),
    )
    results = run_pretraining(config)
    if results.already_finished:
        flags = f" (not looked at: {', '.join(results.changed)})" if results.changed else ""
        print(f"{config.output_dir}: this run is finished; its model is in model/{flags}.")
    elif results.training and not results.training.finished:
        print(f"Stopped after step {results.training.step}; the same command continues.")
    for number, figures in enumerate(results.rehearsal, start=1):
        print(f"Dry run: a step of phase {number} gives loss {figures['loss']:.4f}.")
    for name, value in sorted(results.evaluation.items()):
        print(f"{name} = {value}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments, continues=True)


if __name__ == "__main__":
    sys.exit(main())
