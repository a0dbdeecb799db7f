"""Fine-tunes a model to find named entities; evaluates as conlleval does, predicts.

Files have a word and its tag on each line (CoNLL's form: tabs or blanks, -DOCSTART-, IOB1, IOB2,
BIOES or bare types, told apart), or a character and its tag. Each word is read in its document, in
windows that overlap. The same command again resumes a run that was killed. The output folder
gets the fine-tuned model directory model/, eval_results.txt, dev_conlleval.txt (what the official
script prints), dev_predictions.txt (the file with a column of predicted tags), dev_entities.jsonl
(entities with their characters in the text), the same of the test file, and what every training
run leaves: flags.cfg, metrics.jsonl, TensorBoard events and checkpoints.

Examples:
  keras-bert run_ner --data_dir=conll --init_checkpoint=run/model --output_dir=ner --do_train
      --do_eval --do_predict --train_batch_size=32 --learning_rate=5e-5 --num_train_epochs=3
  keras-bert run_ner --test_file=new.txt --output_dir=ner --do_predict
"""

from tools.table import made

FLAGS, main = made(__name__)
