import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.pretraining_data.chunks import ChunkRules, DocumentBatch, plan_chunks
from pipelines.pretraining_data.draws import Purpose, below, draw, example_keys, happens, seed_word

SEED = seed_word(7)
DOCUMENTS = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=1, max_size=6)


def _batch(documents: list[list[int]]) -> DocumentBatch:
    lengths = np.array([length for document in documents for length in document])
    bounds = np.cumsum([0, *(len(document) for document in documents)])
    return DocumentBatch(np.concatenate([[0], np.cumsum(lengths)]), bounds)


def _plain_loop(documents: list[list[int]], rules: ChunkRules, copies: int) -> set[tuple]:
    """The reference's loop over one document after the other, with the same draws."""
    sentences = sum(len(document) for document in documents)
    found, first = set(), 0
    for number, document in enumerate(documents):
        for copy in range(copies):

            def bits(purpose, sentence, base=copy * sentences + first):
                key = example_keys(np.array([base + sentence], np.uint64), SEED)
                return key, draw(key, purpose)

            target = rules.token_budget
            if happens(bits(Purpose.SHORT, 0)[1], rules.short_seq_prob)[0]:
                target = 2 + below(bits(Purpose.SHORT_LENGTH, 0)[1], rules.token_budget - 1)[0]
            start = i = 0
            length = 0
            while i < len(document):
                length += document[i]
                if i == len(document) - 1 or length >= target:
                    count = i + 1 - start
                    key, split = bits(Purpose.SPLIT, start)
                    a_end = start + 1
                    if count >= 2:
                        a_end = start + 1 + below(split, count - 1)[0]
                    random = count == 1 or bool(happens(bits(Purpose.NEXT, start)[1], 0.5)[0])
                    len_a = sum(document[start:a_end])
                    len_b = 0 if random else sum(document[a_end : i + 1])
                    found.add((int(key[0]), number, len_a, len_b, random))
                    if random:
                        i = a_end - 1
                    start, length = i + 1, 0
                i += 1
        first += len(document)
    return found


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.integers(5, 60), st.sampled_from([0.0, 0.1, 1.0]))
def test_lockstep_is_the_plain_loop(documents, token_budget, short):
    rules = ChunkRules(token_budget, short)
    chunks = plan_chunks(_batch(documents), rules, SEED, range(2), sum(map(len, documents)))
    columns = (chunks.keys, chunks.document, chunks.len_a, chunks.len_b, chunks.is_random)
    ours = set(zip(*(column.tolist() for column in columns), strict=True))
    assert ours == _plain_loop(documents, rules, 2)


@settings(max_examples=30, deadline=None)
@given(DOCUMENTS, st.integers(1, 5))
def test_the_plan_does_not_depend_on_the_slab(documents, cut):
    """Documents planned apart, with their position in the corpus, give the same chunks."""
    rules, sentences = ChunkRules(30), sum(map(len, documents))
    whole = plan_chunks(_batch(documents), rules, SEED, range(3), sentences)
    apart = []
    for part, before in ((documents[:cut], []), (documents[cut:], documents[:cut])):
        if part:
            batch = _batch(part)
            batch = DocumentBatch(
                batch.sentence_offsets,
                batch.document_bounds,
                first_sentence=sum(map(len, before)),
                first_document=len(before),
                first_token=sum(map(sum, before)),
            )
            apart.append(plan_chunks(batch, rules, SEED, range(3), sentences))
    for name in ("keys", "document", "start_a", "len_a", "len_b", "target_b"):
        joined = np.concatenate([getattr(chunks, name) for chunks in apart])
        assert sorted(joined.tolist()) == sorted(getattr(whole, name).tolist())


def test_without_pairs_full_sentences_are_packed():
    """And one that is too long is cut, without a loss."""
    chunks = plan_chunks(
        _batch([[4, 4, 4, 27, 3]]), ChunkRules(10, 0.0, pairs=False), SEED, range(2), 5
    )
    by_place = sorted(zip(chunks.start_a.tolist(), chunks.len_a.tolist(), strict=True))
    assert by_place[::2] == [(0, 8), (8, 4), (12, 9), (21, 9), (30, 9), (39, 3)]
    assert len(set(chunks.keys.tolist())) == len(chunks) == 12
    assert not chunks.is_random.any()
    assert not chunks.len_b.any()
