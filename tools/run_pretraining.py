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
from dataclasses import replace
from pathlib import Path

from keras_bert_impl.interrupts import kept_so_far
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.pretraining_config import RunPretrainingConfig
from tools.config_flags import ConfigFlags, add_tpu_flags
from tools.endings import CONTINUES, tell_stopped

FLAGS = ConfigFlags(__doc__, RunPretrainingConfig)
add_tpu_flags(FLAGS)


def _run(config: RunPretrainingConfig) -> None:
    from pipelines.runs.pretraining_start import check_start

    with kept_so_far(RunDirectory(Path(config.output_dir)).kept_before_training()):
        check_start(config)
        from keras_bert_impl.training.guesses import line_of
        from pipelines.runs.pretraining import run_pretraining  # TensorFlow: after the checks

    results = run_pretraining(replace(config, flags=FLAGS.as_flagfile()))
    if results.already_finished:
        print(f"{config.output_dir}: this run is finished; its model is in model/.")
    elif results.training and not results.training.finished:
        tell_stopped(f"Stopped after step {results.training.step:,}, which is saved; {CONTINUES}.")
    for number, figures in enumerate(results.rehearsal, start=1):
        print(f"Dry run: a step of phase {number} gives loss {figures['loss']:.4f}.")
    for name, value in sorted(results.evaluation.items()):
        print(line_of(name, value, results.guesses))
    if results.training and results.training.finished:
        print(f"wrote {config.output_dir}/model")


main = FLAGS.main_of(_run, continues=True)


if __name__ == "__main__":
    sys.exit(main())
