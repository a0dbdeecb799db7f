"""Queries and documents as a task: files, candidates, drawn negatives, figures of orders."""

import json
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import pooling_of
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.fine_tuning.row_set import RowSet, missing_labels
from pipelines.metrics.guessing import guesses_of
from pipelines.metrics.retrieval import bm25_rankings, ranking_figures
from pipelines.tables.files import open_table
from pipelines.tables.writing import write_table
from pipelines.tasks.vectors.options import VectorFilesConfig
from pipelines.tasks.vectors.ranking import RunRerankerConfig, task_of
from pipelines.vectors.nearest import pair_scores
from tests.support.model_folders import WORD_VOCABULARY, tiny_config, write_prompted, write_start

DOCUMENTS = {"the dog": "a dog runs", "the cat": "a cat sleeps", "a list": "the value , a list"}


def pairs(path, **more):
    columns = ["query", "document", *more]
    rows = [[*pair, *one] for pair, *one in zip(DOCUMENTS.items(), *more.values(), strict=True)]
    return str(write_table(path, columns, rows))


def config_of(train_file=None, dev_file=None, **options):
    files = VectorFilesConfig(train_file=train_file, dev_file=dev_file)
    return RunRerankerConfig(output_dir=Path("run"), files=files, **options)


def texts_of(examples):
    found = {}
    for one in examples:
        found.setdefault(one.text_a, []).append((one.text_b, one.label == '["relevant"]'))
    return found


def answers(examples, scores):
    return list(zip(examples, scores, strict=True))


def test_candidates_are_what_bm25_finds_among_all_documents_of_the_file(tmp_path):
    negatives = {"negative": ["the dog", "a", "a"], "negative_2": ["a cat", "the", "a"]}
    task = task_of(config_of(dev_file=pairs(tmp_path / "dev.csv", **negatives), do_eval=True))
    corpus = ["the dog", "a dog runs", "a cat", "a cat sleeps", "a", "the", "the value , a list"]
    found = texts_of(task.examples("dev"))
    for query, numbers in zip(DOCUMENTS, bm25_rankings([*DOCUMENTS], corpus, 30), strict=True):
        others = [corpus[number] for number in numbers if corpus[number] != query]
        expected = {(text, text == DOCUMENTS[query]) for text in others}
        assert set(found[query]) == expected
    assert [*task.relevant.values()] == [1, 1, 1]


def test_a_query_is_no_wrong_document_of_its_own(tmp_path):
    rows = [["a dog", "a dog runs"], ["a cat", "a dog"], ["the same", "the same"]]
    path = str(write_table(tmp_path / "d.csv", ["query", "document"], rows))
    for split in ("train", "dev"):
        asked = {f"{split}_file": path, "do_train" if split == "train" else "do_eval": True}
        found = texts_of(task_of(config_of(**asked, num_candidates=1)).examples(split))
        assert ("a dog runs", True) in found["a dog"]
        assert "a dog" not in dict(found["a dog"])
        assert ("the same", True) in found["the same"]


def test_a_model_of_vectors_finds_candidates_too(tmp_path):
    folder = write_start(tmp_path / "vectors")
    path = pairs(tmp_path / "dev.csv")
    options = {"do_eval": True, "candidates": str(folder), "num_candidates": 2}
    found = texts_of(task_of(config_of(dev_file=path, **options)).examples("dev"))
    embedder = Embedder.from_pretrained(folder)
    documents = embedder.embed([*DOCUMENTS.values()])
    for query, some in found.items():
        cosines = pair_scores(np.repeat(embedder.embed([query]), 3, axis=0), documents)
        best = np.argsort(-cosines)[:2]
        assert [text for text, _ in some] == [[*DOCUMENTS.values()][number] for number in best]


def test_a_model_of_products_finds_candidates_by_them(tmp_path):
    folder = write_prompted(tmp_path / "vectors", normalize=False, similarity="dot", prompts={})
    path = pairs(tmp_path / "dev.csv")
    options = {"do_eval": True, "candidates": str(folder), "num_candidates": 3}
    found = texts_of(task_of(config_of(dev_file=path, **options)).examples("dev"))
    embedder = Embedder.from_pretrained(folder)
    queries = embedder.embed([*DOCUMENTS], "query")
    products = queries @ embedder.embed([*DOCUMENTS.values()], "document").T
    for some, row in zip(found.values(), products, strict=True):
        best = [[*DOCUMENTS.values()][number] for number in np.argsort(-row)]
        assert [text for text, _ in some] == best


def test_rows_with_labels_are_the_candidates_in_their_order(tmp_path):
    rows = [["q", "a", 0], ["q", "b", 1], ["p", "c", 0], ["q", "c", 0], ["p", "a", "0.5"]]
    path = write_table(tmp_path / "dev.tsv", ["query", "document", "label"], rows)
    task = task_of(config_of(dev_file=str(path), do_eval=True))
    assert texts_of(task.examples("dev")) == {
        "q": [("a", False), ("b", True), ("c", False)],
        "p": [("c", False), ("a", True)],
    }


@pytest.mark.parametrize("column", ["negative", "negatives"])
def test_given_negatives_are_trained_on_and_no_others(tmp_path, column):
    path, one = tmp_path / "train.jsonl", "a cat"
    values = {"query": "the dog", "document": "a dog runs", column: [one, "a list"]}
    path.write_text(json.dumps(values) + "\n")
    config = config_of(train_file=str(path), do_train=True)
    assert texts_of(task_of(config).examples("train")) == {
        "the dog": [("a dog runs", True), ("a cat", False), ("a list", False)]
    }


def test_else_some_of_the_candidates_are_drawn_by_the_seed(tmp_path):
    path = tmp_path / "train.csv"
    rows = [[f"the dog {number}", f"a dog {number} runs"] for number in range(12)]
    write_table(path, ["query", "document"], rows)
    config = config_of(train_file=str(path), do_train=True, num_negatives=3)
    found = texts_of(task_of(config).examples("train"))
    assert found == texts_of(task_of(config).examples("train"))
    for query, documents in found.items():
        assert [right for _, right in documents] == [True, False, False, False]
        assert len(dict(documents)) == 4
        assert documents[0][0] == query.replace("the", "a") + " runs"
    assert len({tuple(some[1:]) for some in found.values()}) > 1


def test_a_query_without_wrong_documents_gets_drawn_ones_whatever_others_have(tmp_path):
    rows = [["the dog", "a dog runs", 1], ["the cat", "a cat sleeps", 1], ["the cat", "a dog", 0]]
    path = write_table(tmp_path / "train.csv", ["query", "document", "label"], rows)
    config = config_of(train_file=str(path), do_train=True, num_negatives=1)
    found = texts_of(task_of(config).examples("train"))
    assert found["the cat"] == [("a cat sleeps", True), ("a dog", False)]
    assert [right for _, right in found["the dog"]] == [True, False]


def test_queries_with_right_documents_only_are_counted(tmp_path, caplog):
    rows = [["q", "a", 1], ["p", "c", 0], ["p", "a", 1]]
    path = write_table(tmp_path / "dev.tsv", ["query", "document", "label"], rows)
    task_of(config_of(dev_file=str(path), do_eval=True))
    assert "1 of 2 queries have right documents only" in caplog.text


def test_where_too_few_candidates_are_found_any_others_are_wrong_documents(tmp_path):
    rows = [["dog", "a dog runs"], ["cat", "cats sleep"], ["x", "dog"]]
    path = str(write_table(tmp_path / "d.csv", ["query", "document"], rows))
    task = task_of(config_of(train_file=path, do_train=True, num_negatives=2))
    found = {query: {*some} for query, some in texts_of(task.examples("train")).items()}
    assert found["x"] == {("dog", True), ("a dog runs", False), ("cats sleep", False)}
    assert found["dog"] == {("a dog runs", True), ("cats sleep", False)}


def test_the_figures_are_of_each_query_and_stand_beside_the_candidates_own(tmp_path):
    rows = [["q", text, int(text == "c")] for text in "abc"]
    rows += [["p", text, int(text in "ab")] for text in "abc"]
    path = write_table(tmp_path / "dev.csv", ["query", "document", "label"], rows)
    task = task_of(config_of(dev_file=str(path), do_eval=True))
    examples = task.examples("dev")
    found = task.score(answers(examples, [0.1, 0.2, 0.3, 0.5, 0.5, 0.9]))
    ordered = ranking_figures([[True, False, False], [False, True, True]], [1, 2])
    own = ranking_figures([[False, False, True], [True, True, False]], [1, 2])
    for name in ("mrr@10", "ndcg@10"):
        assert found[name] == pytest.approx(ordered[name])
        assert found[f"candidates_{name}"] == pytest.approx(own[name])
        assert guesses_of(task, "dev")[name].value == pytest.approx(own[name])


def test_the_order_decides_which_evaluation_is_the_best_and_no_loss(tmp_path):
    task = task_of(config_of(dev_file=pairs(tmp_path / "dev.csv"), do_eval=True))
    tokenizer = Tokenizer(TextSettings(WORD_VOCABULARY))
    rows = RowSet([task.rows([*task.examples("dev")], tokenizer, 16)])
    assert missing_labels(rows, task.head(tiny_config()).labels)
    assert task.compared_figures[0] == "ndcg@10"


def test_what_labels_are_read_from_may_be_chosen(tmp_path):
    given = {"train_file": pairs(tmp_path / "train.csv"), "do_train": True}
    assert pooling_of(config_of(**given, pooling="mean").configure(tiny_config())) == "mean"
    assert pooling_of(config_of(**given).configure(tiny_config())) == "pooler"


def test_a_query_that_nothing_is_found_for_counts_as_a_miss(tmp_path):
    path = write_table(tmp_path / "d.csv", ["query", "document"], [["x", "a b"], ["a", "a c"]])
    task = task_of(config_of(dev_file=str(path), do_eval=True))
    assert {one.text_a for one in task.examples("dev")} == {"a"}
    found = task.score(answers(task.examples("dev"), [0.0, 1.0]))
    assert found["ndcg@10"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("header", "row", "told"),
    [
        (["text", "label"], ["q", "1"], "two classes"),
        (["query", "document", "label"], ["q", "a", "0"], "no query has a right document"),
        (["query", "date"], ["q", "a"], "not clear which column is the text"),
        (["query", "document", "negative", "label"], ["q", "a", "b", "1"], "has margins"),
    ],
)
def test_what_is_no_such_file_is_told(tmp_path, header, row, told):
    path = write_table(tmp_path / "dev.csv", header, [row])
    with pytest.raises(UserError, match=told):
        task_of(config_of(dev_file=str(path), do_eval=True))


@pytest.mark.parametrize(
    "options", [{"do_train": True}, {"do_eval": True, "train_file": "train.csv"}]
)
def test_a_missing_file_is_told(options):
    with pytest.raises(UserError, match="name a file"):
        config_of(**options)


@pytest.mark.slow
def test_a_run_learns_the_order_and_its_model_ranks(tmp_path, capsys):
    import keras_bert_impl as kb
    from tools import run_reranker

    def written(name):
        rows = []
        for query in ("the dog", "the cat", "a list", "dog", "cat", "list", "a value", "value"):
            found = [("a dog sleeps", 0), ("a cat sleeps", 0), ("a dog runs", 1)]
            rows += [[query, *one] for one in found]
        return write_table(tmp_path / name, ["query", "document", "label"], rows)

    write_start(tmp_path / "start", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    run = tmp_path / "run"
    flags = [
        *(f"--train_file={written('train.csv')}", f"--dev_file={written('dev.csv')}"),
        *(f"--init_checkpoint={tmp_path}/start", f"--output_dir={run}", "--max_seq_length=12"),
        *("--do_train", "--do_eval", "--do_predict", "--learning_rate=5e-3", "--notrim_padding"),
        *("--num_train_epochs=15", "--train_batch_size=8"),
    ]
    assert run_reranker.main(flags) == 0
    lines = (run / "eval_results.txt").read_text().splitlines()
    figures = {name: float(value) for name, value in (line.split(" = ") for line in lines)}
    assert figures["eval_candidates_mrr@10"] == pytest.approx(1 / 3)
    assert figures["eval_mrr@10"] > 0.95
    config = json.loads((run / "model" / "config.json").read_text())
    assert config["sentence_transformers"]["activation_fn"].endswith("Sigmoid")

    rows = [record.values for record in open_table(str(run / "dev_ranking.tsv")).records()]
    with kb.Reranker.from_pretrained(run / "model") as reranker:
        found = reranker.score([(row["query"], row["document"]) for row in rows])
    np.testing.assert_allclose(found, [float(row["score"]) for row in rows], atol=1e-5)
    assert "in the candidates' order" in capsys.readouterr().out
