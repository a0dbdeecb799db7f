"""The task of vectors: files and options make prompts, losses, scales and figures."""

import json
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.losses import loss_named
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.fine_tuning.row_batches import LengthRule
from pipelines.fine_tuning.row_set import RowSet
from pipelines.fine_tuning.task import TrainingRows
from pipelines.tasks.vectors.options import MiningConfig, RunEmbedderConfig, VectorFilesConfig
from pipelines.tasks.vectors.task import _random_documents, task_of
from tests.support.model_folders import WORD_VOCABULARY, write_prompted, write_start

DOG = {"query": "the dog", "positive": "a dog"}
CAT = {"query": "a cat", "positive": "the cat"}


@pytest.fixture
def task(tmp_path):
    def task(lines, start=write_start, dev=None, **options):
        files = {one: options.pop(one) for one in list(options) if one.endswith("_column")}
        for split, rows in (("train_file", lines), ("dev_file", dev)):
            if rows is not None:
                path = tmp_path / f"{split}.jsonl"
                path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
                files[split] = str(path)
        return task_of(
            RunEmbedderConfig(
                output_dir=Path(tmp_path / "run"),
                init_checkpoint=str(start(tmp_path / "start")),
                do_train=lines is not None,
                do_eval=dev is not None,
                files=VectorFilesConfig(**files),
                **options,
            )
        )

    return task


def scored(*scores):
    return [{"text_a": f"a {n}", "text_b": "dog", "score": score} for n, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((0, 1), (0, 1)),
        ((0, 1.0000001), (0, 1)),
        ((-0.9, 1), (0, 1)),
        ((0.2, 4.8), (0, 5)),
        ((0, 4), (0, 4)),
        ((7, 97), (0, 100)),
        ((-3, 8), (-3, 8)),
    ],
)
def test_scores_have_a_scale(task, scores, expected):
    assert task(scored(*scores)).score_range == expected


def test_a_scale_that_is_given_holds(task):
    assert task(scored(1, 4), score_range=(1.0, 5.0)).score_range == (1, 5)
    assert task(scored(1, 5), score_range=(1.0, 5.0), loss="contrastive").score_range == (1, 5)


def test_texts_of_classes_are_drawn_so_that_their_figure_has_a_deviation(task):
    made = task(None, dev=[{"text": f"a {n}", "label": n % 2} for n in range(20)])
    vectors = np.random.default_rng(1).normal(size=(20, 4)).astype("float32")
    answered = list(zip(made.examples("dev"), vectors, strict=True))
    drawn = islice(made.drawn_scores(answered, np.random.default_rng(0)), 200)
    found = [one["nearest_accuracy"] for one in drawn]
    share = made.score(answered)["nearest_accuracy"]
    assert np.mean(found) == pytest.approx(share, abs=0.03)
    assert np.std(found) == pytest.approx(np.sqrt(share * (1 - share) / 20), rel=0.2)


def test_scores_reach_the_loss_in_that_scale(task, tmp_path):
    made = task(scored(1, 4), score_range=(0.0, 5.0))
    tokenizer = Tokenizer(TextSettings(WORD_VOCABULARY))
    rows = RowSet([made.rows([*made.examples("train")], tokenizer, 8)])
    batches = made.batches(TrainingRows(rows, 2, 0, LengthRule(), 1, tmp_path, "", dict))
    np.testing.assert_allclose(sorted(batches.batch_at(0)["labels"]), [0.2, 0.8], atol=1e-6)


def test_prompts_are_those_of_the_start_or_the_options_and_scored_texts_have_the_default(task):
    found = [{prompt for prompt, _ in task([DOG, CAT], write_prompted).source("train").texts}]
    found += [
        {prompt for prompt, _ in task(rows, write_prompted, **more).source("train").texts}
        for rows, more in (([DOG, CAT], {"document_prompt": "x "}), (scored(0, 1), {}))
    ]
    assert found == [{"a list . ", "a value . "}, {"a list . ", "x "}, {"dog "}]
    replaced = task([DOG, CAT], write_prompted, document_prompt="x ").sentence_settings.prompts
    assert "passage" not in replaced


def test_no_prompt_of_the_start_is_kept_that_training_with_others_did_not_have(task):
    def prompts(rows, default, **options):
        kept = {"query": "a list . ", "document": "a value . ", "other": "dog "}
        start = partial(write_prompted, prompt=default, prompts=kept)
        settings = task(rows, start, **options).sentence_settings
        return settings.prompt, dict(settings.prompts)

    new = {"query": "x ", "document": "a value . "}
    assert prompts([DOG, CAT], "a list . ", query_prompt="x ") == ("x ", new)
    assert prompts([DOG, CAT], "dog ", query_prompt="x ") == ("", new)
    assert prompts(scored(0, 1), "dog ", query_prompt="x ") == ("dog ", {**new, "other": "dog "})
    assert prompts([DOG, CAT], "dog ")[0] == "dog "


def test_what_vectors_are_compared_by_is_kept_in_the_model_and_judges(task):
    lines = [{**DOG, "negative": "list", "margin": 1}, {**CAT, "negative": "dog", "margin": 2}]
    assert task(lines).sentence_settings.similarity == "dot"  # as the loss does
    made = task([DOG, CAT], dev=[DOG, CAT], similarity="dot")
    assert made.loss_options == {"similarity": "dot", "scale": 1.0}
    assert task([DOG, CAT], similarity="dot", similarity_scale=7.0).loss_options["scale"] == 7.0
    far = {"the dog": [1, 0], "a dog": [1, 0], "the cat": [9, 1], "a cat": [0, 1]}
    answered = [(one, np.array(far[one.text_a], np.float32)) for one in made.examples("dev")]
    assert made.score(answered)["accuracy@1"] == 0.5  # by the cosine both are right
    judged = task(None, dev=[DOG, CAT], similarity="dot")
    assert judged.score(answered)["accuracy@1"] == 0.5


@pytest.mark.parametrize("options", [{"normalize": True}, {"matryoshka_dims": (4,)}])
def test_products_of_vectors_of_length_1_are_scaled_as_cosines(task, options):
    made = task([DOG, CAT], similarity="dot", **options)
    assert loss_named(made.loss, **made.loss_options).scale == 20.0


def test_smaller_vectors_have_figures(task):
    made = task(scored(0, 1, 2), dev=scored(0, 1, 2), matryoshka_dims=(4,))
    draws = np.random.default_rng(1)
    answered = [(one, draws.normal(size=16).astype(np.float32)) for one in made.examples("dev")]
    names = made.score(answered).keys()
    assert {"spearman", "spearman_of_4", "spearman_int8", "spearman_ubinary"} <= names


def test_a_dev_file_without_the_named_columns_has_its_own(task):
    lines = [{"ask": "the dog", "say": "a dog"}, {"ask": "a cat", "say": "the cat"}]
    made = task(lines, dev=scored(0, 1), query_column="ask", document_column="say")
    assert [made.sources[split].kind for split in ("train", "dev")] == ["pairs", "scores"]


def test_what_was_mined_for_other_options_or_another_start_is_mined_again(task, tmp_path):
    lines = [{"query": f"a {word}", "positive": f"the {word}"} for word in ("dog", "cat", "list")]
    asked = []

    def mined(count, start="one"):
        made = task(lines, mining=MiningConfig(mine_negatives=count, mine_relative_margin=0.0))
        data = made.source("train")
        vectors = np.random.default_rng(1).normal(size=(len(data.texts), 4)).astype(np.float32)

        def read(first, end):
            asked.append(start)
            return {"embedding": vectors[first:end]}

        outputs = SimpleNamespace(read=read)
        rows = TrainingRows(data.texts, 2, 0, None, 1, tmp_path, start, lambda: outputs)
        return made._with_mined(data, rows)

    first = mined(1)
    assert np.array_equal(mined(1), first)
    assert (len(asked), first.shape) == (1, (3, 3))
    assert mined(2).shape == (3, 4)
    mined(2, "another")
    assert len(asked) == 3
    assert not any(set(row[2:]) & {row[1]} for row in mined(2, "another").tolist())


def test_what_says_the_same_as_a_query_is_no_random_document_of_it(task):
    data = task([DOG, CAT, {"query": "a dog", "positive": "a list"}]).source("train")
    row = data.words(data.queries).index("a dog")
    drawn = [_random_documents(data, 1, seed)[row, 0] for seed in range(20)]
    assert set(data.words(data.documents[drawn])) == {"the cat"}


@pytest.mark.parametrize(
    ("lines", "options", "sentence"),
    [
        (scored(0, 0), {}, "all scores are the same"),
        (scored(-1, 1), {"loss": "contrastive"}, "needs scores of 0 and 1"),
        (scored(0, 5), {"score_range": (0.0, 4.0)}, "the score 5 is outside of 0 to 4"),
        (
            scored(1, 3, 5),
            {"loss": "online_contrastive", "score_range": (1.0, 5.0)},
            "needs scores of 1 and 5",
        ),
        (scored(0, 1), {"mining": MiningConfig(mine_negatives=1)}, "is for queries and documents"),
        ([DOG, CAT], {"loss": "triplet"}, "is not for pairs"),
        ([DOG, CAT], {"matryoshka_dims": (99,)}, "must be at most the model's 16"),
        ([DOG, CAT], {"loss_margin": 1.0}, "is not for `loss=mnrl`"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(task, lines, options, sentence):
    with pytest.raises(UserError, match=sentence):
        task(lines, **options)


def test_a_dev_file_of_equal_scores_is_refused_before_training(task):
    with pytest.raises(UserError, match="all scores are the same"):
        task(scored(0, 1), dev=scored(1, 1))
