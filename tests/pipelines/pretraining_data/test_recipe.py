import dataclasses

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts, fingerprint

TOKENS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##s", "[unused1]"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_predictions_per_seq": 65536},
        {"short_seq_prob": 1.1},
        {"masking": "sometimes"},
        {"mask_probabilities": (1.2, -0.1, -0.1)},
        {"same_document_tries": -1},
    ],
    ids=str,
)
def test_wrong_values_are_named_with_their_parameter(wrong):
    (name,) = wrong
    with pytest.raises(UserError, match=rf"^`{name}(=\S+)?` (must be|is unknown; choose) "):
        Recipe(**wrong)


def test_every_rule_changes_the_fingerprint():
    plain = Recipe()
    changed = [
        {"max_seq_length": 64}, {"max_predictions_per_seq": 19}, {"dupe_factor": 9},
        {"short_seq_prob": 0.2}, {"masked_lm_prob": 0.2}, {"do_whole_word_mask": True},
        {"random_seed": 1}, {"masking": "dynamic"}, {"max_ngram": 2},
        {"mask_probabilities": (0.7, 0.2, 0.1)}, {"do_next_sentence": False},
        {"random_replacements": "any"}, {"same_document_tries": 10},
    ]  # fmt: skip
    assert len(changed) == len(dataclasses.fields(Recipe))
    names = {
        fingerprint(dataclasses.asdict(dataclasses.replace(plain, **change))) for change in changed
    }
    assert len(names | {fingerprint(dataclasses.asdict(plain))}) == len(changed) + 1


def test_random_tokens_are_ordinary_ones_unless_asked_otherwise():
    facts = VocabularyFacts.of(Vocabulary(TOKENS))
    assert facts.replacements("ordinary").tolist() == [6, 7]
    assert facts.replacements("any").tolist() == list(range(9))
    assert facts.is_continuation.tolist() == [False] * 7 + [True, False]
