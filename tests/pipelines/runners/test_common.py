import dataclasses

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe, VocabularyFacts
from pipelines.runners.common import check_partners, choose_shards, describe, split_names

CONFIG = PretrainingDataConfig("text.txt", "out/x", "vocab.txt")


@pytest.mark.parametrize(
    ("examples", "asked", "shards"),
    [
        (0, 0, 1), (1, 0, 1), (65_536, 0, 1), (65_537, 0, 2), (10**12, 0, 1024), (10, 7, 7),
        (10**12, 5000, 5000),
    ],
)  # fmt: skip
def test_there_is_a_shard_for_so_many_examples_unless_a_number_is_asked_for(
    examples, asked, shards
):
    assert choose_shards(examples, asked) == shards


@pytest.mark.parametrize(
    ("documents", "recipe", "message"),
    [
        (0, Recipe(do_next_sentence=False), "text.txt: has no sentence with a token"),
        (1, Recipe(), "text.txt: holds one document"),
        (1, Recipe(do_next_sentence=False), None),
        (1, Recipe(same_document_tries=10), None),
        (2, Recipe(), None),
    ],
)
def test_a_corpus_without_partners_is_refused(documents, recipe, message):
    config = dataclasses.replace(CONFIG, recipe=recipe)
    if message is None:
        check_partners(config, documents)
        return
    with pytest.raises(UserError, match=message):
        check_partners(config, documents)


def test_names_are_separated_by_commas():
    assert split_names(" a.txt,, b*.txt ,") == ["a.txt", "b*.txt"]
    with pytest.raises(UserError, match="names no file"):
        split_names(" , ")


def test_a_description_tells_the_run():
    facts = VocabularyFacts.of(Vocabulary([*SPECIAL_TOKENS, "the"]))
    config = dataclasses.replace(CONFIG, do_lower_case=False, strip_accents=True)
    described = describe(config, facts, {"documents": 3}, [])
    assert (described.recipe, described.vocabulary) == (config.recipe, facts)
    assert (described.do_lower_case, described.strip_accents) == (False, True)
    assert {"keras_bert_impl", "numpy", "python"} == set(described.versions)
