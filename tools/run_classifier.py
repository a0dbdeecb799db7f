"""Fine-tunes a model on labelled texts of your own or for a task of GLUE; evaluates, predicts.

Give either --train_file (with --dev_file, --test_file), for classes, several labels at once or, by
--regression, numbers; or --task_name and --data_dir for a task of GLUE.

Starts from a model directory (which brings its configuration, vocabulary and casing) or a TF1
checkpoint. The same command again resumes a run that was killed. The output folder gets the
fine-tuned model directory model/, eval_results.txt, and what every training run leaves: flags.cfg,
metrics.jsonl, TensorBoard events and checkpoints; for files of your own dev_predictions.tsv
(texts, labels, probabilities), dev_mistakes.tsv (the hardest first), dev_classes.tsv and
dev_confusion.png; for GLUE test_results.tsv and the submission file.

Examples:
  keras-bert run_classifier --train_file=train.csv --dev_file=dev.csv --output_dir=mine
      --init_checkpoint=run/model --do_train --do_eval --do_predict
  keras-bert run_classifier --task_name=MRPC --data_dir=glue_data/MRPC --output_dir=mrpc
      --init_checkpoint=run/model --do_train --do_eval --max_seq_length=128 --learning_rate=2e-5
"""

import sys

from pipelines.tasks.labels.options import RunClassifierConfig
from tools.config_flags import ConfigFlags, add_tpu_flags
from tools.fine_tuning import run_once_or_often

FLAGS = ConfigFlags(__doc__, RunClassifierConfig)
add_tpu_flags(FLAGS)


def _run(config: RunClassifierConfig) -> None:
    from pipelines.tasks.labels.task import task_of

    run_once_or_often(FLAGS, config, task_of)


main = FLAGS.main_of(_run, continues=True)


if __name__ == "__main__":
    sys.exit(main())
