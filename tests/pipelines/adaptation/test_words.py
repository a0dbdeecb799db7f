from keras_bert_impl.tokenization.learner import coverage
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.adaptation.words import choose_words
from tests.support.adaptation import TOKENS, language

LETTERS = TextSettings(Vocabulary(TOKENS), do_lower_case=True)


def chosen(counts, text=LETTERS, **options):
    return choose_words(counts, text, **{"min_count": 1, "min_saving": 0.0, **options})


def with_new(counts, text=LETTERS, **options):
    tokens = [one.token for one in chosen(counts, text, **options)]
    return Vocabulary([*text.vocabulary.tokens, *tokens])


def test_a_word_saves_its_tokens_but_one_each_time_that_it_occurs():
    (one,) = chosen({"goat": 7, "ram": 9}, num_new_tokens=1)
    assert (one.token, one.count, one.saving) == ("goat", 7, 21)


def test_a_token_that_continues_words_may_save_more_than_any_word():
    counts = {f"{letter}ation": 5 for letter in "bdegiklmnopru"}
    (one,) = chosen(counts, num_new_tokens=1)
    assert (one.token, one.count, one.saving) == ("##ation", 65, 65 * 4)


def test_each_token_is_worth_what_it_saves_beside_the_others():
    counts = {"stamp": 10, "stampede": 10}
    new = {one.token: one for one in chosen(counts, num_new_tokens=2)}
    assert {token: one.count for token, one in new.items()} == {"stamp": 10, "stampede": 10}
    (alone,) = chosen(counts, num_new_tokens=1)
    assert (alone.token, alone.count) == ("stamp", 20)


def test_characters_that_make_words_unknown_come_first():
    counts = {"ünder": 3, "emblem": 90, "tunnel": 80, "ßaß": 1}
    tokens = [one.token for one in chosen(counts, num_new_tokens=4, min_count=2)]
    assert "ü" in tokens
    assert not {"ß", "##ß"} & {*tokens}  # it occurs too rarely
    assert coverage(counts, with_new(counts, num_new_tokens=8)).unknown_share == 0


def test_more_tokens_cut_words_into_fewer():
    counts = {word: 1 + number for number, word in enumerate(language(words=100))}
    means = [
        coverage(counts, with_new(counts, num_new_tokens=n)).tokens_per_word
        for n in (0, 10, 50, 99)
    ]
    assert means == sorted(means, reverse=True)
    assert means[-1] < means[0] / 3
