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

from tools.table import made

FLAGS, main = made(__name__)
