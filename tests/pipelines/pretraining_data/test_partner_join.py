import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.pretraining_data import partner_join
from pipelines.pretraining_data.chunks import DocumentBatch, plan_chunks
from pipelines.pretraining_data.documents import SentenceBlock
from pipelines.pretraining_data.draws import seed_word
from pipelines.pretraining_data.pairs import find_partners, truncate
from pipelines.pretraining_data.recipe import Recipe

RECIPE = Recipe(max_seq_length=20, max_predictions_per_seq=3, dupe_factor=3)
CORPORA = st.lists(
    st.lists(st.lists(st.integers(1, 25), min_size=1, max_size=8), min_size=1, max_size=3),
    min_size=2,
    max_size=4,
)


def _block(documents: list[list[int]], first_token: int) -> SentenceBlock:
    lengths = np.array([length for document in documents for length in document], np.int64)
    ids = np.arange(first_token, first_token + lengths.sum(), dtype=np.uint32)
    return SentenceBlock(ids, lengths, np.array([len(document) for document in documents]))


def _by_blocks(blocks: list[SentenceBlock]) -> dict[int, tuple]:
    """Plans and answers every block apart, as workers do."""
    sizes = [
        (number, len(block.sentence_lengths), len(block.document_sizes))
        for number, block in enumerate(blocks)
    ]
    bases = partner_join.BlockBases.of(sizes[::-1])
    finished, asked = [], {}
    for number, block in enumerate(blocks):
        examples, requests = partner_join.plan_block(number, block, bases, RECIPE)
        finished.append(examples)
        for partner, request in requests.items():
            asked.setdefault(partner, []).append(request)
    for number, requests in asked.items():
        joined = partner_join.join_requests(requests)
        finished.append(partner_join.answer_requests(number, blocks[number], bases, joined, RECIPE))
    return _pairs(*partner_join.join_examples(finished))


def _at_once(blocks: list[SentenceBlock]) -> dict[int, tuple]:
    """Plans the corpus as one batch, as the local runner does."""
    ids = np.concatenate([block.ids for block in blocks])
    offsets = np.cumsum([0, *np.concatenate([block.sentence_lengths for block in blocks])])
    bounds = np.cumsum([0, *np.concatenate([block.document_sizes for block in blocks])])
    chunks = plan_chunks(
        DocumentBatch(offsets, bounds), RECIPE.chunk_rules(), seed_word(RECIPE.random_seed),
        range(RECIPE.dupe_factor), len(offsets) - 1,
    )  # fmt: skip
    rows = truncate(chunks, *find_partners(chunks, offsets, bounds, 0), RECIPE.token_budget)
    return _pairs(rows.ordered(), ids)


def _pairs(rows, tokens) -> dict[int, tuple]:
    return {
        key: (tokens[a : a + n].tolist(), tokens[b : b + m].tolist(), random)
        for key, a, n, b, m, random in zip(
            rows.keys.tolist(), rows.start_a.tolist(), rows.len_a.tolist(),
            rows.start_b.tolist(), rows.len_b.tolist(), rows.is_random.tolist(), strict=True,
        )
    }  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(CORPORA)
def test_blocks_that_exchange_requests_make_the_pairs_of_the_whole_corpus(corpus):
    blocks, tokens = [], 0
    for documents in corpus:
        blocks.append(_block(documents, tokens))
        tokens += len(blocks[-1].ids)
    apart, whole = _by_blocks(blocks), _at_once(blocks)
    assert list(apart) == sorted(whole)  # in the order of the keys
    assert apart == whole
