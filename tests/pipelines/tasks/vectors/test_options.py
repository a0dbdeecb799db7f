"""The options of vectors: which losses suit which data, and what is refused at once."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.losses import LOSSES, loss_named
from pipelines.tasks.vectors.files import CLASSES, MARGINS, PAIRS, SCORES, TRIPLES
from pipelines.tasks.vectors.options import (
    LOSSES_OF,
    MiningConfig,
    RunEmbedderConfig,
    VectorFilesConfig,
)


def test_every_loss_is_for_some_data_and_takes_what_that_data_has():
    assert {name for names in LOSSES_OF.values() for name in names} == set(LOSSES)
    fewest = {PAIRS: 2, TRIPLES: 3, SCORES: 2, MARGINS: 3}
    for kind, columns in fewest.items():
        for name in LOSSES_OF[kind]:
            least, most = loss_named(name).columns
            assert least <= columns <= (most or columns)
            assert loss_named(name).needs_labels <= (kind in (SCORES, MARGINS))
    assert loss_named(LOSSES_OF[CLASSES][0]).needs_labels


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"files": VectorFilesConfig()}, "nothing says what to learn"),
        ({"do_predict": True}, "`do_predict`: vectors are written by the tool embed"),
        ({"encoder_bilstm": True}, "`encoder_bilstm`: vectors have no head"),
        ({"score_range": (1.0,)}, "give two numbers"),
        ({"score_range": (5.0, 5.0)}, "the least and then the greatest"),
    ],
)
def test_what_means_nothing_here_is_refused(options, sentence):
    files = {"files": VectorFilesConfig(train_file="x.csv"), **options}
    with pytest.raises(UserError, match=sentence):
        RunEmbedderConfig(output_dir=Path("run"), **files)


def test_ranks_must_hold_the_negatives():
    with pytest.raises(UserError, match="are more than the ranks from 5 to 6; raise `mine_to`"):
        MiningConfig(mine_negatives=3, mine_from=5, mine_to=6)


def test_a_triplet_has_a_margin_of_another_name():
    config = RunEmbedderConfig(
        output_dir=Path("run"), files=VectorFilesConfig(train_file="x.csv"), loss_margin=2.0
    )
    for loss in ("triplet", "contrastive"):
        assert 2.0 in vars(loss_named(loss, **config.loss_options(loss))).values()
