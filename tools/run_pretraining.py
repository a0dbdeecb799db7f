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

from tools.table import made

FLAGS, main = made(__name__)
