import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable
from pipelines.adaptation.start import count_neighbours, make_start, with_head
from tests.support.adaptation import TOKENS, language, write_language, write_model

KNOWN = len(TOKENS)


@pytest.fixture
def grown(tmp_path):
    """A model that knows half of the language's words already, and four more as new ones."""
    words = language()
    from keras_bert_impl.models.encoder import BertEncoder
    from keras_bert_impl.tokenization.vocabulary import Vocabulary
    from tests.support.model_folders import tiny_config, write_any

    tokens = [*TOKENS, *words]
    config = tiny_config(vocab_size=len(tokens), max_position_embeddings=32)
    write_any(tmp_path / "grown", BertEncoder(config), Vocabulary(tokens))
    write_language(tmp_path / "text.txt", 40)
    return tmp_path, tokens


def start_of(folder, tokens, new=4, **changes):
    values = {"seed": 1, "description": None, "known": tokens[:-new], **changes}
    found = make_start(
        folder / "grown", [str(folder / "text.txt")], folder=folder / "start", **values
    )
    return found, read_portable(folder / "start")


def test_new_tokens_are_moved_to_their_neighbours_and_all_others_stay(grown):
    folder, tokens = grown
    found, start = start_of(folder, tokens)
    assert found == {"placed_tokens": 4, "new_head": True}
    before = read_portable(folder / "grown").weights
    name = "embeddings/token_embeddings"
    np.testing.assert_array_equal(start.weights[name][:-4], before[name][:-4])
    assert not np.isclose(start.weights[name][-4:], before[name][-4:]).all(axis=1).any()
    rest = (one for one in before if one != name)
    assert all((start.weights[one] == before[one]).all() for one in rest)


def test_a_new_head_guesses_by_the_frequencies_of_the_text(grown):
    folder, tokens = grown
    _, start = start_of(folder, tokens)
    shares = np.exp(start.weights["masked_lm/output_bias"])
    assert shares.sum() == pytest.approx(1, rel=1e-5)
    counts = count_neighbours(read_portable(folder / "grown"), [str(folder / "text.txt")]).counts
    assert counts.sum() == 40 * 6 * 6  # five words and a full stop
    np.testing.assert_allclose(shares, (counts + 0.5) / (counts + 0.5).sum(), rtol=1e-4)


def test_the_seed_draws_the_rest_of_the_head_and_nothing_else(grown):
    folder, tokens = grown
    model = read_portable(folder / "grown")
    counts = np.ones(len(tokens), np.int64)
    first, same, other = (with_head(model, counts, seed).weights for seed in (1, 1, 2))
    differ = [name for name in first if (first[name] != other[name]).any()]
    assert differ == ["masked_lm/transform/kernel"]
    assert all((first[name] == same[name]).all() for name in first)


def test_a_model_with_a_head_keeps_it(tmp_path):
    write_model(tmp_path / "grown", heads=True)
    write_language(tmp_path / "text.txt", 20)
    found, start = start_of(tmp_path, TOKENS, new=2)
    assert not found["new_head"]
    before = read_portable(tmp_path / "grown").weights
    heads = [name for name in before if name.startswith("masked_lm")]
    assert all((start.weights[one] == before[one]).all() for one in heads)
