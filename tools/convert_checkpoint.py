"""Converts a checkpoint: google's TF1 files to a Hugging Face directory, or back.

The input is a model directory (config.json, model.safetensors or its shards, vocab.txt or
tokenizer.json), a run's folder or checkpoint, or a TF1 checkpoint (its prefix, folder or any of
its files) with bert_config.json and vocab.txt beside it. An output whose name holds
".ckpt" is written as a TF1 checkpoint, any other as a model directory. Numbers and their types
stay as they are; optimizer slots are left out. Nothing is replaced but an older checkpoint of the
same kind. Nothing that was downloaded is executed: a pytorch_model.bin is refused.

Example:
  keras-bert convert_checkpoint --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert
      --do_lower_case
  keras-bert convert_checkpoint --input=bert --output=google/bert_model.ckpt
"""

from tools.table import made

FLAGS, main = made(__name__)
