"""Fine-tunes a model that answers questions from a passage; evaluates, predicts.

Takes the flags of the original's run_squad.py and files in SQuAD's form (1.1, 2.0, KorQuAD 1.0) or
TriviaQA's. The same command again resumes a run that was killed. The output folder gets the
fine-tuned model directory model/, predictions.json and nbest_predictions.json (with
--version_2_with_negative also null_odds.json), with --do_eval eval_results.txt (the official
figures) and answers.tsv (all answers, the hardest mistakes first), and what every training run
leaves: flags.cfg, metrics.jsonl, TensorBoard events and checkpoints.

Example:
  keras-bert run_squad --init_checkpoint=run/model --output_dir=squad --do_train --do_predict
      --do_eval --train_file=train-v1.1.json --predict_file=dev-v1.1.json --train_batch_size=12
      --learning_rate=3e-5 --num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128
"""

from tools.table import made

FLAGS, main = made(__name__)
