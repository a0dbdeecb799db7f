"""One run of the toy task, for all who look at what it left."""

import numpy as np
import pytest

from keras_bert_impl.training.config import TrainingConfig
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.run import fine_tune
from tests.support.model_folders import WORDS, write_start
from tests.support.toy_task import ToyTask


def write_split(folder, split, count, seed, sizes=range(1, 31)):
    """Texts of so many words; every second one has the word "value" at one position."""
    draw = np.random.default_rng(seed)
    lines = ["text\tlabel\n"]
    for number in range(count):
        words = draw.choice([word for word in WORDS[:7] if word != "value"], draw.choice(sizes))
        if number % 2:
            words[draw.integers(len(words))] = "value"
        lines.append(f"{' '.join(words)}\t{'yes' if number % 2 else 'no'}\n")
    (folder / f"{split}.tsv").write_text("".join(lines))


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    write_split(folder, "train", 200, seed=1, sizes=[3, 29])  # each length of a batch costs time
    write_split(folder, "dev", 60, seed=2)
    return ToyTask(folder)


@pytest.fixture(scope="session")
def toy_run(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = write_start(folder / "encoder", **rates)
    training = TrainingConfig(
        learning_rate=4e-3, num_train_steps=1, num_warmup_steps=0, train_batch_size=16
    )
    config = FineTuningConfig(
        output_dir=folder / "run",
        init_checkpoint=str(encoder),
        do_train=True,
        do_eval=True,
        do_predict=True,
        max_seq_length=10,
        eval_batch_size=64,
        predict_batch_size=64,
        num_train_epochs=6.0,
        training=training,
    )
    return config, fine_tune(config, lambda _: toy)
