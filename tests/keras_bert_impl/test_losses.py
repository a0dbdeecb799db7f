"""Losses of vectors: sentence-transformers' values and gradients, and what no batch may break."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.errors import UserError
from keras_bert_impl.losses import LOSSES, MatryoshkaLoss, loss_named, unit_vectors

GOLDEN = Path(__file__).parents[1] / "golden" / "vectors"
A, P, N, M = "anchors", "positives", "negatives", "negatives2"
SEVERAL = np.array([1, 0, 1, 0, 1, 0, 0])
EVERY = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")
JAX = keras.backend.backend() == "jax"

# Of each entry of the golden files: the loss, its columns, and its labels.
CASES = {
    "mnrl": (loss_named("mnrl"), [A, P], None),
    "mnrl_dot_scale_0_5": (loss_named("mnrl", similarity="dot", scale=0.5), [A, P], None),
    "mnrl_hard": (loss_named("mnrl"), [A, P, N], None),
    "mnrl_hard2": (loss_named("mnrl"), [A, P, N, M], None),
    "mnrl_symmetric": (loss_named("mnrl_symmetric"), [A, P], None),
    "mnrl_all_directions_joint": (loss_named("mnrl", directions=EVERY), [A, P], None),
    "mnrl_two_directions": (
        loss_named("mnrl", directions=EVERY[::2], partition_mode="per_direction"),
        [A, P],
        None,
    ),
    "mnrl_per_direction": (loss_named("mnrl_symmetric", scale=5.0), [A, P, N, M], None),
    "mnrl_every_direction": (loss_named("mnrl", scale=5.0, directions=EVERY), [A, P, N, M], None),
    "mnrl_same_kind": (
        loss_named("mnrl", directions=("query_to_doc", "query_to_query", "doc_to_doc")),
        [A, P, N],
        None,
    ),
    "cosent": (loss_named("cosent"), [A, P], "scores"),
    "cosent_dot": (loss_named("cosent", scale=1.0, similarity="dot"), [A, P], "scores"),
    "angle": (loss_named("angle"), [A, P], "scores"),
    "angle_odd": (loss_named("angle"), [A, P], "scores"),
    "cosine_similarity": (loss_named("cosine"), [A, P], "scores"),
    "triplet": (loss_named("triplet"), [A, P, N], None),
    "triplet_cosine": (
        loss_named("triplet", distance_metric="cosine", triplet_margin=0.3),
        [A, P, N],
        None,
    ),
    "triplet_manhattan": (loss_named("triplet", distance_metric="manhattan"), [A, P, N], None),
    "contrastive": (loss_named("contrastive"), [A, P], "binary"),
    "contrastive_euclidean": (
        loss_named("contrastive", distance_metric="euclidean", margin=9.0, size_average=False),
        [A, P],
        SEVERAL,
    ),
    "contrastive_manhattan": (
        loss_named("contrastive", distance_metric="manhattan", margin=40.0),
        [A, P],
        SEVERAL,
    ),
    "online_contrastive": (loss_named("online_contrastive"), [A, P], "binary"),
    "online_contrastive_several": (loss_named("online_contrastive", margin=1.5), [A, P], SEVERAL),
    "online_contrastive_one_kind": (loss_named("online_contrastive"), [A, P], SEVERAL * 0 + 1),
    "batch_hard_soft_margin": (loss_named("batch_hard"), [A], "classes"),
    "batch_hard_cosine": (loss_named("batch_hard", distance_metric="cosine"), [A], SEVERAL),
    "batch_hard_one_class": (loss_named("batch_hard"), [A], SEVERAL * 0),
    "margin_mse": (loss_named("margin_mse"), [A, P, N], "margins"),
    "margin_mse_scores": (
        loss_named("margin_mse", similarity="cosine"),
        [A, P, N, M],
        np.linspace(-1, 2, 21).reshape(7, 3),
    ),
    "matryoshka": (MatryoshkaLoss(loss_named("mnrl"), (24, 8), (1.0, 0.5)), [A, P, N], None),
}


@pytest.fixture(scope="module")
def golden():
    return {**np.load(GOLDEN / "vector_losses.npz"), **np.load(GOLDEN / "more_losses.npz")}


@pytest.fixture(autouse=True)
def float64_too():
    """JAX has no float64 unless it is told."""
    if not JAX:
        yield
        return
    import jax

    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def value_and_gradients(loss, columns, labels, compiled=False):
    """NumPy; compiled is what a training step does under XLA."""
    if JAX:
        import jax

        found = jax.value_and_grad(lambda ones: loss(ones, labels))
        value, gradients = (jax.jit(found) if compiled else found)(list(map(ops.array, columns)))
        return np.array(value), list(map(np.array, gradients))
    import tensorflow as tf

    def compute(tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = loss(tensors, labels)
        return value, tape.gradient(value, tensors)

    run = tf.function(compute, jit_compile=True, autograph=False) if compiled else compute
    value, gradients = run([tf.constant(one) for one in columns])
    return value.numpy(), [one.numpy() for one in gradients]


FIRST_OF_A_CLASS = {type(loss): name for name, (loss, *_) in reversed(CASES.items())}.values()
# JAX compiles everything for one use: there one of a class is enough, as one program, and no sum.
ON_JAX = [name for name in FIRST_OF_A_CLASS if name != "matryoshka"]
EACH = [(name, JAX) for name in (ON_JAX if JAX else CASES)]
EACH += [(name, True) for name in FIRST_OF_A_CLASS if not JAX]


@pytest.mark.parametrize(("name", "compiled"), EACH)
def test_value_and_gradients_are_those_of_sentence_transformers(golden, name, compiled):
    loss, columns, labels = CASES[name]
    vectors = [golden[one][:, : 23 if name == "angle_odd" else 24] for one in columns]
    labels = golden[labels] if isinstance(labels, str) else labels

    value, gradients = value_and_gradients(loss, vectors, labels, compiled)

    assert value.dtype == gradients[0].dtype == np.float64
    np.testing.assert_allclose(value, golden[f"{name}/loss"], rtol=1e-6)
    for number, gradient in enumerate(gradients):
        theirs = golden[f"{name}/grad{number}"]
        np.testing.assert_allclose(gradient, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 0, 0, 0, 0], 4.232334),
        ([0, 1, 1, 1, 1], 0.0),
        ([1, 0.5, 0, 0, 1], 3.015950),
        ([1, 0.5, 1, 1, 1], 1.223236),
    ],
)
def test_one_pair_of_a_kind_bounds_the_other_and_other_labels_do_not_count(labels, expected):
    # What sentence-transformers 6.2 gives for these cosine distances.
    cosines = 1 - np.array([1.106, 0.128, 0.079, 0.067, 0.272])
    columns = [np.eye(2)[[0] * 5], np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)]
    found = loss_named("online_contrastive", margin=1.0)(columns, labels)
    np.testing.assert_allclose(float(found), expected, atol=1e-5)


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_a_column_that_is_given_twice_is_compared_as_its_copy_is(similarity):
    rows = ops.convert_to_tensor(np.eye(3, dtype="float32"))
    loss = loss_named("mnrl_symmetric", scale=1.0, similarity=similarity)
    once, twice = loss([rows, rows + 0.0]), loss([rows, rows])
    np.testing.assert_allclose(float(twice), float(once), rtol=1e-6)


@pytest.mark.parametrize("name", ["cosent", "angle", "cosine", "contrastive", "online_contrastive"])
def test_labels_may_be_true_and_false(name):
    found = [
        loss_named(name)([APART, APART[::-1] + APART], np.array([1, 0, 0, 1], kind))
        for kind in (bool, "float32")
    ]
    np.testing.assert_allclose(*map(float, found))


def test_every_entry_of_the_golden_files_is_held_and_every_loss(golden):
    assert {one.partition("/")[0] for one in golden if "/" in one} == set(CASES)
    held = {type(loss) for loss, _, _ in CASES.values()}
    assert held == {type(loss_named(name)) for name in LOSSES} | {MatryoshkaLoss}


ONES = np.ones([4, 6], "float32")
APART = np.eye(4, 6, dtype="float32")
BATCHES = {
    "vectors of zeros": (ONES * 0, [1, 0, 1, 0]),
    "one vector of zeros": (APART * [[1], [1], [0], [1]], [1, 0, 1, 0]),
    "equal vectors": (ONES, [1, 0, 1, 0]),
    "equal labels": (APART, [1, 1, 1, 1]),
    "no positive pair": (APART, [0, 0, 0, 0]),
    "a batch of one": (APART[:1], [1]),
    "long vectors": (APART * 1e6, [1, 0, 1, 0]),
    "short vectors": (APART * 1e-9, [1, 0, 1, 0]),
}


def every_loss():
    distances = ("cosine", "euclidean", "manhattan")
    for name in LOSSES:
        yield name, loss_named(name)
        if "contrastive" in name or name in ("triplet", "batch_hard"):
            yield from (
                (f"{name} {metric}", loss_named(name, distance_metric=metric))
                for metric in distances
            )
    yield "mnrl every", loss_named("mnrl", directions=EVERY)
    yield "matryoshka", MatryoshkaLoss(loss_named("angle"), dims=[6, 1])


LOSS_OF = dict(every_loss())


@pytest.mark.parametrize("name", LOSS_OF)
def test_values_and_gradients_are_finite_whatever_the_batch(name):
    loss = LOSS_OF[name]
    for batch, (vectors, labels) in BATCHES.items():
        columns = [np.float32(vectors)] * loss.columns[0]
        value, gradients = value_and_gradients(loss, columns, np.array(labels, "float32"))
        assert value.dtype == np.float32
        assert np.isfinite(value), (batch, value)
        assert all(np.isfinite(one).all() for one in gradients), (batch, gradients)


@pytest.mark.skipif(JAX, reason="looks into a graph of TensorFlow")
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_distances_of_all_pairs_hold_no_vector_of_each_pair(metric):
    import tensorflow as tf

    loss = loss_named("batch_hard", distance_metric=metric)
    run = tf.function(lambda rows: loss([rows], np.array([0, 0, 1, 1])), autograph=False)
    graph = run.get_concrete_function(tf.TensorSpec([4, 6])).graph
    assert max(out.shape.rank for op in graph.get_operations() for out in op.outputs) == 2


@pytest.mark.parametrize("name", LOSSES)
def test_the_order_of_the_rows_does_not_matter(golden, name):
    loss, order = loss_named(name), np.random.default_rng(1).permutation(7)
    columns = [golden[one] for one in (A, P, N)[: loss.columns[0]]]
    given = [loss([one[rows] for one in columns], SEVERAL[rows]) for rows in (slice(7), order)]
    np.testing.assert_allclose(*map(np.array, given), rtol=1e-12)


def test_half_precision_is_computed_in_float32_and_labels_may_be_a_column(golden):
    halves = [ops.cast(golden[one], "bfloat16") for one in (A, P)]
    labels = golden["scores"]
    value = loss_named("cosent")(halves, labels[:, None])
    assert keras.backend.standardize_dtype(value.dtype) == "float32"
    same = [np.array(ops.cast(one, "float32")) for one in halves]
    np.testing.assert_allclose(np.array(value), loss_named("cosent")(same, labels), rtol=1e-6)


def test_what_a_loss_says_of_itself():
    told = {
        name: (loss.columns, loss.needs_labels, loss.in_batch)
        for name, loss in LOSS_OF.items()
        if " " not in name
    }
    assert told == {
        "mnrl": ((2, None), False, True),
        "mnrl_symmetric": ((2, None), False, True),
        "mnrl_all": ((2, None), False, True),
        "cosent": ((2, 2), True, False),
        "angle": ((2, 2), True, False),
        "cosine": ((2, 2), True, False),
        "triplet": ((3, 3), False, False),
        "contrastive": ((2, 2), True, False),
        "online_contrastive": ((2, 2), True, False),
        "batch_hard": ((1, 1), True, False),
        "margin_mse": ((3, None), True, False),
        "matryoshka": ((2, 2), True, False),
    }
    around = MatryoshkaLoss(loss_named("mnrl"), dims=[2])
    assert (around.columns, around.needs_labels, around.in_batch) == told["mnrl"]


@pytest.mark.parametrize("name", LOSS_OF)
def test_a_loss_is_saved_by_its_settings(name):
    kept = json.loads(json.dumps(keras.saving.serialize_keras_object(LOSS_OF[name])))
    again = keras.saving.serialize_keras_object(keras.saving.deserialize_keras_object(kept))
    assert json.loads(json.dumps(again)) == kept


def test_unit_vectors():
    found = np.array(unit_vectors(np.array([[3.0, 4.0], [0.0, 0.0], [1e-13, 0.0]])))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [1e-13, 0]])


MISTAKES = {
    "unknown name": (
        lambda: loss_named("cosents"),
        "`loss=cosents` is unknown; did you mean cosent",
    ),
    "another unknown name": (lambda: loss_named("x"), "choose mnrl, mnrl_symmetric, mnrl_all,"),
    "unknown word": (lambda: loss_named("mnrl", similarity="l2"), "similarity has 'l2', .* cosine"),
    "unknown direction": (
        lambda: loss_named("mnrl", directions=["query_to_doc", "doc"]),
        "directions has 'doc'",
    ),
    "no main direction": (
        lambda: loss_named("mnrl", directions=["doc_to_query"]),
        "no list with 'query_to_doc'",
    ),
    "a direction without the right one": (
        lambda: loss_named("mnrl", directions=EVERY, partition_mode="per_direction"),
        "need partition_mode='joint'",
    ),
    "too few columns": (
        lambda: loss_named("mnrl")([APART]),
        "takes 2 or more columns of vectors, but 1 came",
    ),
    "too many columns": (lambda: loss_named("cosent")([APART] * 3, [1] * 4), "takes 2 columns"),
    "no labels": (lambda: loss_named("cosent")([APART] * 2), "needs labels"),
    "labels of another batch": (
        lambda: loss_named("cosent")([APART] * 2, [1, 2]),
        r"but \(4, 6\), \(4, 6\) and labels \(2,\) came",
    ),
    "labels of two columns": (
        lambda: loss_named("cosent")([APART] * 2, np.ones([4, 2])),
        r"labels n, but .* labels \(4, 2\) came",
    ),
    "a single label": (lambda: loss_named("cosent")([APART] * 2, 1.0), r"labels \(\) came"),
    "scores of no order": (lambda: loss_named("mnrl", scale=0.0), "scale=0.0 .* more than 0"),
    "rows of another batch": (
        lambda: loss_named("mnrl")([APART, APART[:1]]),
        r"but \(4, 6\), \(1, 6\) came",
    ),
    "other sizes": (lambda: loss_named("mnrl")([APART, APART[:, :5]]), r"\(4, 5\) came"),
    "single vectors": (lambda: loss_named("mnrl")([APART[0]] * 2), r"but \(6,\), \(6,\) came"),
    "other margins": (
        lambda: loss_named("margin_mse")([APART] * 3, np.ones([4, 3])),
        "takes 1 margins or 2 scores",
    ),
    "a size beyond the vectors": (
        lambda: MatryoshkaLoss(loss_named("mnrl"), [8])([APART] * 2),
        "have 6 numbers; give 1 to 6",
    ),
    "no sizes": (lambda: MatryoshkaLoss(loss_named("mnrl"), []), "are not as many"),
    "a weight too few": (lambda: MatryoshkaLoss(loss_named("mnrl"), [6, 2], [1]), "not as many"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake):
    make, message = MISTAKES[mistake]
    with pytest.raises(UserError, match=message):
        make()
