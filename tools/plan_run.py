"""Says what a pre-training run takes: parameters, memory, the largest batch, operations, time.

Example:
  keras-bert plan_run --model_size=base --train_batch_size=256 --num_train_steps=1000000
      --num_warmup_steps=10000 --device_memory_gb=80 --precision=bfloat16
      --examples_per_second=480 --price_per_hour=2.50 --num_examples=50000000
"""

from tools.table import made

FLAGS, main = made(__name__)
