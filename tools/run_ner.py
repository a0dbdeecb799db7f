"""Fine-tunes a model to find named entities, scores it as conlleval does, tags files.

Files have a word and its tag on each line (CoNLL's form: tabs or blanks, -DOCSTART-, IOB1, IOB2,
BIOES or bare types, told apart), or a character and its tag. Words are seen in their document, read
in windows that overlap. The same command again resumes a run that was killed. The output folder
gets the fine-tuned model directory model/, eval_results.txt, dev_conlleval.txt (what the official
script prints), dev_predictions.txt (the file with a column of predicted tags), dev_entities.jsonl
(entities with their characters in the text), the same of the test file, and what every training
run leaves: flags.cfg, metrics.jsonl, TensorBoard events and checkpoints. With --features the model
stays as it is, and a BiLSTM over some of its layers learns.

Examples:
  keras-bert run_ner --data_dir=conll --init_checkpoint=run/model --output_dir=ner --do_train
      --do_eval --do_predict --train_batch_size=32 --learning_rate=5e-5 --num_train_epochs=3
  keras-bert run_ner --data_dir=conll --init_checkpoint=run/model --output_dir=frozen --do_train
      --do_eval --features=concat_last_four --num_train_epochs=20 --num_seeds=3
  keras-bert run_ner --test_file=new.txt --output_dir=ner --do_predict
"""

import sys
from collections.abc import Sequence

from pipelines.tasks.tagging.options import RunNerConfig
from tools import command_line
from tools.config_flags import ConfigFlags
from tools.fine_tuning import run_once_or_often
from tools.google_flags import add_tpu_flags

FLAGS = ConfigFlags(__doc__, RunNerConfig)
add_tpu_flags(FLAGS)


def _run() -> None:
    from pipelines.tasks.tagging.task import task_of

    run_once_or_often(FLAGS, task_of, set_up_run)


def set_up_run() -> None:
    """Prepares the process of one of several runs: it shows what this tool shows."""
    command_line.show_lines(FLAGS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments, continues=True)


if __name__ == "__main__":
    sys.exit(main())
