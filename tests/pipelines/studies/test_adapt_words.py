import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import grow_vocabulary, read_portable
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.files import make_folder
from keras_bert_impl.tokenization.learner import coverage
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.studies.adapt_words import Cut, choose_words, prepare
from tests.support.adaptation import TOKENS, language, write_language, write_model

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


def prepared(folder, lacks_words, num_new_tokens):
    """What is made of a model of letters, and that model and the new one."""
    write_model(folder / "model", heads=not lacks_words)
    sentences = make_folder(folder / "text")
    for name in ("1.txt", "2.txt"):
        write_language(sentences / name, 40)
    source, out = find_model(folder / "model"), make_folder(folder / "start")
    read = lambda: read_portable(folder / "model")  # noqa: E731
    found = prepare(source, sentences, out, read, num_new_tokens, lacks_words, 1, 1)
    return found, read(), read_portable(out / "model")


def test_the_start_has_the_new_words_and_all_else_of_the_model(tmp_path):
    found, before, start = prepared(tmp_path, lacks_words=False, num_new_tokens=6)
    rows = (tmp_path / "start" / "words.tsv").read_text().splitlines()
    assert (found["new_tokens"], len(rows)) == (6, 7)
    assert found["after"].tokens_per_word < found["before"].tokens_per_word
    grown, _ = grow_vocabulary(before, [row.split("\t")[0] for row in rows[1:]])
    assert start.text.vocabulary == grown.text.vocabulary
    assert all((start.weights[name] == grown.weights[name]).all() for name in grown.weights)


def test_a_new_head_guesses_by_the_frequencies_of_the_text(tmp_path):
    _, before, start = prepared(tmp_path, lacks_words=True, num_new_tokens=0)
    assert "masked_lm/output_bias" not in before.weights
    shares = np.exp(start.weights["masked_lm/output_bias"])
    assert shares.sum() == pytest.approx(1, rel=1e-5)
    text = (tmp_path / "text" / "1.txt").read_text()
    full_stop, letter = (shares[TOKENS.index(token)] for token in (".", "##a"))
    in_words = sum(word.count("a") - word.startswith("a") for word in text.replace(".", "").split())
    assert full_stop / letter == pytest.approx((text.count(".") + 0.5) / (in_words + 0.5), rel=1e-4)


def test_an_unknown_word_costs_its_loss_and_its_characters():
    counts = {"goat": 1, "ünder": 1}
    cut = Cut.of(counts, LETTERS.vocabulary, alphabet=20)
    assert (cut.unknown_share, cut.tokens_per_word) == (0.5, 4.0)
    assert cut.nats_per_character(0.5) == pytest.approx((5 * 0.5 + 5 * np.log(20)) / 9)
