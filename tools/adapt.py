"""Adapts a BERT to your own text: adds the words that it lacks and goes on with its pre-training.

Any model, any text. Tokens are chosen by how many tokens they save; a part of the documents is held
out; training stops when their loss no longer falls. The report says how the original and the
adapted model do on them; with --task also what a task gains. --dry_run lists the commands. The same
command again continues after any stop. The output folder gets model/ (which every tool opens),
report.md, adaptation.json, learning_curve.png and, in cells/, what each step left.

Example:
  keras-bert adapt --init_checkpoint=bert --input_file='notes/*.txt' --output_dir=adapted
      --task='run_classifier --train_file=train.csv --dev_file=dev.csv --num_train_epochs=2'
"""

from tools.table import made

FLAGS, main = made(__name__)
