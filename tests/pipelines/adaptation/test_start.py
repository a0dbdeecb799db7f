import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.checkpoints.grow import grow_vocabulary
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.files import make_folder
from pipelines.adaptation.start import (
    Neighbours,
    count_neighbours,
    placed,
    prepare,
)
from tests.support.adaptation import toy_adaptation, write_language, write_model


def prepared(folder, lacks_words, **changes):
    """What is made of a model of letters, and that model and the new one."""
    if not (folder / "model").exists():
        write_model(folder / "model", heads=not lacks_words)
    write_language(folder / "text.txt", 40)
    config = toy_adaptation(folder, **changes)
    source, text = find_model(config.init_checkpoint), [str(folder / "text.txt")]
    out = make_folder(folder / "start")
    found = prepare(source, config, lacks_words, text, text, out)
    return found, read_portable(folder / "model"), read_portable(out / "model")


def test_new_tokens_get_vectors_of_their_neighbours_and_all_others_stay(tmp_path):
    found, before, start = prepared(tmp_path, lacks_words=False, num_new_tokens=6)
    rows = (tmp_path / "start" / "words.tsv").read_text().splitlines()
    assert (found["new_tokens"], len(rows)) == (6, 7)
    assert found["after"]["tokens_per_word"] < found["before"]["tokens_per_word"]
    name, known = "embeddings/token_embeddings", {*before.text.vocabulary.tokens}
    old = [one in known for one in start.text.vocabulary.tokens]
    kept = [before.text.vocabulary.tokens.index(one) for one in start.text.vocabulary.tokens
            if one in known]  # fmt: skip
    np.testing.assert_array_equal(start.weights[name][old], before.weights[name][kept])
    grown, _ = grow_vocabulary(before, [row.split("\t")[0] for row in rows[1:]])
    new = ~np.array(old)
    assert not np.isclose(start.weights[name][new], grown.weights[name][new]).all(axis=1).any()
    rest = (one for one in before.weights if "layer" in one)
    assert all((start.weights[one] == before.weights[one]).all() for one in rest)


def test_a_new_head_guesses_by_the_frequencies_of_the_text(tmp_path):
    _, before, start = prepared(tmp_path, lacks_words=True, num_new_tokens=0)
    assert "masked_lm/output_bias" not in before.weights
    shares = np.exp(start.weights["masked_lm/output_bias"])
    assert shares.sum() == pytest.approx(1, rel=1e-5)
    counts = count_neighbours(before, [str(tmp_path / "text.txt")]).counts
    np.testing.assert_allclose(shares, (counts + 0.5) / (counts + 0.5).sum(), rtol=1e-4)


WORDS = 40


def two_topics(sentences=400, seed=0):
    """Sentences of the even words, and sentences of the odd ones."""
    draw = np.random.default_rng(seed)
    near = Neighbours(WORDS)
    lines = [2 * draw.integers(0, WORDS // 2, 8) + draw.integers(0, 2) for _ in range(sentences)]
    near.add(np.concatenate(lines), np.arange(0, 8 * sentences + 1, 8))
    return near


def test_what_stands_near_is_counted_within_sentences_and_the_nearer_the_more():
    near = Neighbours(4)
    near.add(np.array([0, 1, 2, 3, 3]), np.array([0, 3, 5]))
    assert near.near.toarray().tolist() == [
        [0, 1, 0.5, 0],
        [1, 0, 1, 0],
        [0.5, 1, 0, 0],
        [0, 0, 0, 2],
    ]


def test_words_of_the_same_company_have_vectors_alike():
    used, vectors = two_topics().vectors(4)
    alike = vectors @ vectors.T
    same = (used[:, None] - used) % 2 == 0
    np.fill_diagonal(same, False)
    assert alike[same].mean() > alike[~same & ~np.eye(len(used), dtype=bool)].mean() + 0.5
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_new_tokens_stand_where_a_rotation_of_the_known_ones_takes_them():
    draw = np.random.default_rng(1)
    table = draw.normal(size=(60, 8)).astype(np.float32)
    turn = np.linalg.qr(draw.normal(size=(8, 8)))[0]
    vectors = ((table - table.mean(axis=0)) @ turn).astype(np.float32)
    grown = np.concatenate([table[:50], np.zeros((10, 8), np.float32)])
    moved = placed(grown, range(50, 60), np.arange(60), vectors)
    np.testing.assert_array_equal(moved[:50], grown[:50])
    own, found = table[50:] - table.mean(axis=0), moved[50:] - table[:50].mean(axis=0)
    cosines = (own * found).sum(1) / np.linalg.norm(own, axis=1) / np.linalg.norm(found, axis=1)
    assert cosines.min() > 0.9
    length = np.linalg.norm(table[:50] - table[:50].mean(axis=0), axis=1).mean()
    assert np.linalg.norm(found, axis=1).mean() == pytest.approx(length, rel=1e-4)
