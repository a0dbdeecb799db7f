"""Training of vectors gives the losses of sentence-transformers, step after step."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.losses import loss_named
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import make_step
from keras_bert_impl.training.strategy import make_devices
from keras_bert_impl.training.vector_step import VectorObjective
from pipelines.fine_tuning.row_set import RowSet
from pipelines.fine_tuning.text_rows import TextExample, text_rows
from pipelines.tasks.vectors.batches import VectorBatches

pytestmark = [pytest.mark.slow, pytest.mark.data]

STEPS, BATCH, RATE = 4, 16, 2e-5
CURVES = Path(__file__).parents[2] / "golden" / "vectors" / "curves.json"


@pytest.fixture(scope="module")
def texts(data_folder):
    with (data_folder / "glue" / "STS-B" / "train.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[: STEPS * BATCH]
    return [row[column] for column in ("sentence1", "sentence2") for row in rows]


def test_its_steps_have_the_losses_of_sentence_transformers(texts, weights_folder):
    source = find_model(weights_folder)
    plain = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = TrainingConfig(
        learning_rate=RATE,
        num_train_steps=STEPS,
        num_warmup_steps=0,
        train_batch_size=BATCH,
        weight_decay=0.0,
        bias_correction=True,
        kernels="plain",  # the fast ones would be compiled for every length
    )
    devices = make_devices(config)
    with devices.strategy.scope():
        model = BertEmbedder(source.config.replace(**plain), "mean")
        restore(model, source.tensors())
    objective = VectorObjective(loss_named("mnrl"))
    examples = [TextExample("", text) for text in texts]
    rows = RowSet([text_rows(examples, Tokenizer(source.text), 128)])
    table = np.arange(len(texts), dtype=np.int32).reshape(2, -1).T
    batches = VectorBatches(*(rows, table, None, None), batch_size=BATCH, seed=0, texts_at_once=16)
    state = TrainingState(model, config, devices)
    step = make_step(state, objective, config, batches.open_features)
    batches._order.rows_of = lambda step: np.arange(step * BATCH, (step + 1) * BATCH)
    theirs = json.loads(CURVES.read_text())["mnrl"][:STEPS]
    for number, loss in enumerate(theirs):
        inputs = step.prepare([batches.batch_at(number)], number, [RATE])
        ours = step.metrics(step.run(*inputs)[0])["loss"]
        assert ours == pytest.approx(loss, rel=2e-5), f"step {number}"
