"""Fine-tunes a model to choose which of several endings follows a text; evaluates, predicts.

Files have SWAG's columns (sent1, sent2, ending0, ending1, ..., label; CSV) or are JSON lines with
context, endings and label; any number of endings. Each ending is read with the context in front,
and gets one score from the first token. The same command again resumes a run that was killed. The
output folder gets the fine-tuned model directory model/, eval_results.txt (the accuracy),
dev_predictions.tsv, test_predictions.tsv, and what every training run leaves: flags.cfg,
metrics.jsonl, TensorBoard events and checkpoints.

Example:
  keras-bert run_swag --data_dir=swag --init_checkpoint=run/model --output_dir=chosen --do_train
      --do_eval --do_predict --train_batch_size=16 --learning_rate=2e-5 --num_train_epochs=3
"""

from tools.table import made

FLAGS, main = made(__name__)
