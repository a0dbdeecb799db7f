r"""Shows what is in pre-training shards: examples in words, figures, and a page with plots.

  keras-bert inspect_pretraining_data --input_file=data/train.tfrecord --vocab_file=vocab.txt \
      --html=data/train.html

A masked position is printed as the token that the model sees, with the true token in «…».
"""

from tools.table import made

FLAGS, main = made(__name__)
