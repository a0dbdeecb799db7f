"""Fine-tunes a model for a task of GLUE, scores it with the official metrics, answers test sets.

Starts from a model directory (which brings its configuration, vocabulary and casing) or a TF1
checkpoint. The same command again resumes a run that was killed. The output folder gets the
fine-tuned model directory model/, eval_results.txt, test_results.tsv (the classes' probabilities),
GLUE's submission file, and what every training run leaves: flags.cfg, metrics.jsonl, TensorBoard
events and checkpoints.

Example:
  keras-bert run_classifier --task_name=MRPC --data_dir=glue_data/MRPC --output_dir=mrpc
      --init_checkpoint=run/model --do_train --do_eval --max_seq_length=128 --learning_rate=2e-5
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tools import command_line
from tools.training_flags import ONE_CALL_ONLY, TrainingFlags

FLAGS = command_line.FlagSet(__doc__)
_TASK_NAME = FLAGS.string(
    "task_name",
    None,
    "CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE or WNLI; upper or lower case.",
    required=True,
)
_DATA_DIR = FLAGS.string(
    "data_dir",
    None,
    "The folder with the task's train.tsv, dev.tsv and test.tsv, in GLUE's own layout.",
    required=True,
)
_OUTPUT_DIR = FLAGS.string("output_dir", None, "The run's folder.", required=True)
_DO_TRAIN = FLAGS.switch("do_train", False, "Fine-tune on train.tsv.")
_DO_EVAL = FLAGS.switch("do_eval", False, "Score dev.tsv, after training where both are given.")
_DO_PREDICT = FLAGS.switch("do_predict", False, "Answer test.tsv.")
_INIT_CHECKPOINT = FLAGS.string(
    "init_checkpoint",
    None,
    "Weights to start from: a model directory or the prefix of a TF1 checkpoint. Without "
    "--do_train the model/ of --output_dir is taken where there is one.",
)
_BERT_CONFIG_FILE = FLAGS.string(
    "bert_config_file",
    None,
    "The model's configuration (google's JSON form); not needed where --init_checkpoint is a model "
    "directory.",
)
_VOCAB_FILE = FLAGS.string(
    "vocab_file",
    None,
    "The vocabulary; not needed where --init_checkpoint is a model directory.",
)
_DO_LOWER_CASE = FLAGS.switch(
    "do_lower_case",
    None,
    "Lower-case the text; by default what --init_checkpoint says, else yes.",
)
_MAX_SEQ_LENGTH = FLAGS.integer(
    "max_seq_length", 128, "Word pieces of an example; longer ones are cut.", lower_bound=5
)
_EVAL_BATCH_SIZE = FLAGS.integer(
    "eval_batch_size", 8, "Examples computed at once when scoring.", lower_bound=1
)
_PREDICT_BATCH_SIZE = FLAGS.integer(
    "predict_batch_size", 8, "Examples computed at once when answering.", lower_bound=1
)
_TRIM_PADDING = FLAGS.switch(
    "trim_padding",
    True,
    "Cut each batch behind its longest example, rounded up to an eighth of --max_seq_length: the "
    "same figures sooner (but for rounding and dropout's draws). With XLA, on a TPU and with "
    "--iterations_per_loop batches stay whole.",
)
_NUM_TRAIN_EPOCHS = FLAGS.number("num_train_epochs", 3.0, "Passes over train.tsv.", lower_bound=0.0)
_WARMUP_PROPORTION = FLAGS.number(
    "warmup_proportion",
    0.1,
    "Share of the steps over which the learning rate rises.",
    lower_bound=0.0,
    upper_bound=1.0,
)
_TRAINING = TrainingFlags(FLAGS, batch_size=32, learning_rate=5e-5)


def _run() -> None:
    from pipelines.runs.fine_tuning import RunClassifierConfig, run_classifier

    results = run_classifier(
        RunClassifierConfig(
            task_name=_TASK_NAME.value,
            data_dir=Path(_DATA_DIR.value),
            output_dir=Path(_OUTPUT_DIR.value),
            do_train=_DO_TRAIN.value,
            do_eval=_DO_EVAL.value,
            do_predict=_DO_PREDICT.value,
            init_checkpoint=_INIT_CHECKPOINT.value,
            bert_config_file=_BERT_CONFIG_FILE.value,
            vocab_file=_VOCAB_FILE.value,
            do_lower_case=_DO_LOWER_CASE.value,
            max_seq_length=_MAX_SEQ_LENGTH.value,
            eval_batch_size=_EVAL_BATCH_SIZE.value,
            predict_batch_size=_PREDICT_BATCH_SIZE.value,
            trim_padding=_TRIM_PADDING.value,
            num_train_epochs=_NUM_TRAIN_EPOCHS.value,
            warmup_proportion=_WARMUP_PROPORTION.value,
            training=_TRAINING.config(num_train_steps=1, num_warmup_steps=0),
            flags=FLAGS.as_flagfile(without=ONE_CALL_ONLY),
        )
    )
    training = results.training
    if training and not training.finished:
        print(f"Stopped after step {training.step}; the same command continues.")
    elif training and training.resumed_from == training.step:
        print("Training was finished before; its model is in model/ of the output folder.")
    for name, value in sorted(results.evaluation.items()):
        print(f"{name} = {value}")
    for path in results.prediction_files:
        print(f"wrote {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments, continues=True)


if __name__ == "__main__":
    sys.exit(main())
