"""Sets made of text: the right sentence follows, the wrong ones are of the same document."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.tasks.choices.files import read_choices
from pipelines.tasks.choices.following_sentences import (
    FollowingSentence,
    MakeSwagConfig,
    examples_of,
    make_swag,
    overlap_choice,
)


def config(folder, **options):
    return MakeSwagConfig(output_dir=folder, min_words=2, **options)


SENTENCES = st.lists(st.sampled_from(["a b", "b c", "c d e", "d", "e f", "f g", "g h"]), max_size=9)


@given(SENTENCES, st.integers(0, 99), st.integers(1, 3))
def test_the_right_one_follows_and_the_others_are_different(
    tmp_path_factory, sentences, seed, most
):
    options = config(tmp_path_factory.getbasetemp(), most_per_document=most)
    made = list(examples_of(sentences, np.random.default_rng(seed), options))
    assert len(made) <= most
    for example in made:
        right = example.endings[example.label]
        assert (example.context, right) in itertools.pairwise(sentences)
        assert len({*example.endings, example.context}) == 4 + (example.context != right)
        assert all(len(sentence.split()) >= 2 for sentence in example.endings)
        assert {*example.endings} <= {*sentences}


def test_five_sentences_are_enough(tmp_path):
    options = config(tmp_path)
    five = [f"Sentence {number}." for number in range(5)]
    assert len(list(examples_of(five, np.random.default_rng(1), options))) == 2
    assert not list(examples_of(five[:4], np.random.default_rng(1), options))


def write_text(folder, documents=40):
    lines = []
    for number in range(documents):
        lines += [f"Sentence {n} of document {number} is here." for n in range(8)] + [""]
    (folder / "text.txt").write_text("\n".join(lines))
    return [str(folder / "text.txt")]


def test_documents_are_held_out_whole_and_the_files_can_be_read(tmp_path):
    options = config(tmp_path / "set", input_file=write_text(tmp_path), dev_share=0.3)
    counts = make_swag(options)
    found = {}
    for name in ("train", "val"):
        examples = list(read_choices(tmp_path / "set" / f"{name}.csv", labelled=True))
        found[name] = {example.context.split()[4] for example in examples}
        assert len(examples) == (counts.train if name == "train" else counts.dev)
        for example in examples:
            number = int(example.context.split()[1])
            assert example.endings[example.label].startswith(f"Sentence {number + 1} of")
    assert found["train"] | found["val"] == {str(number) for number in range(40)}
    assert not found["train"] & found["val"]
    before = (tmp_path / "set" / "val.csv").read_bytes()
    make_swag(options)
    assert (tmp_path / "set" / "val.csv").read_bytes() == before


def test_overlap_counts_different_words_in_small_letters():
    endings = ("The the the sun", "A dog, a cat.", "It rains")
    assert overlap_choice(FollowingSentence("A cat and a Dog", endings, 0)) == 1


def test_text_of_short_documents_is_refused(tmp_path):
    (tmp_path / "text.txt").write_text("One sentence here.\n\nAnother one here.\n")
    with pytest.raises(UserError, match="too few documents"):
        make_swag(config(tmp_path / "set", input_file=[str(tmp_path / "text.txt")]))
    assert not list((tmp_path / "set").iterdir())


def test_lengths_must_fit_together(tmp_path):
    with pytest.raises(UserError, match=r"`max_words=1` is less than `min_words=2`"):
        config(tmp_path, max_words=1)
