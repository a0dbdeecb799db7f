import pytest

from keras_bert_impl.checkpoints.formats.google_tf1 import GoogleSource
from keras_bert_impl.checkpoints.names import HEADS, all_names, encoder_names, head_names
from keras_bert_impl.models.pretrainer import BertPretrainer
from tests.support.tiny_bert import GOLDEN, TINY


def test_google_s_names_are_those_of_a_checkpoint_of_the_original():
    names = GoogleSource(GOLDEN / "pretrain" / "init" / "bert_model.ckpt").names()
    assert sorted(row.google for row in all_names(2, ("masked_lm", "next_sentence"))) == names


def test_our_names_are_the_variables_paths():
    paths = {variable.path for variable in BertPretrainer(TINY).weights}
    assert {row.ours for row in all_names(2, ("masked_lm", "next_sentence"))} == paths


def test_hugging_face_s_names_are_those_of_transformers():
    """As they stand in published files of a BertForPreTraining with one block."""
    expected = {
        f"bert.{name}"
        for name in [
            *(f"embeddings.{table}_embeddings.weight" for table in ("word", "position")),
            "embeddings.token_type_embeddings.weight",
            *(f"embeddings.LayerNorm.{part}" for part in ("weight", "bias")),
            *(
                f"encoder.layer.0.{layer}.{part}"
                for layer in (
                    *(f"attention.self.{name}" for name in ("query", "key", "value")),
                    *("attention.output.dense", "attention.output.LayerNorm"),
                    *("intermediate.dense", "output.dense", "output.LayerNorm"),
                )
                for part in ("weight", "bias")
            ),
            *(f"pooler.dense.{part}" for part in ("weight", "bias")),
        ]
    } | {
        "cls.predictions.bias",
        *(f"cls.predictions.transform.dense.{part}" for part in ("weight", "bias")),
        *(f"cls.predictions.transform.LayerNorm.{part}" for part in ("weight", "bias")),
        *(f"cls.seq_relationship.{part}" for part in ("weight", "bias")),
    }
    rows = all_names(1, ("masked_lm", "next_sentence"))
    assert {row.hugging_face for row in rows} == expected


def test_dense_matrices_are_transposed_where_the_other_form_stores_outputs_first():
    by_name = {row.ours: row for row in all_names(1, HEADS)}
    for name, row in by_name.items():
        is_kernel = name.endswith("kernel")
        assert row.hugging_face_transposed == is_kernel or name == "embeddings"
        in_output = row.part in ("next_sentence", "classifier", "tagger", "choice", "span")
        assert row.google_transposed == (is_kernel and in_output), name


@pytest.mark.parametrize("side", ["ours", "google", "hugging_face"])
def test_no_name_is_used_twice(side):
    rows = [*encoder_names(12), *(row for head in HEADS[:4] for row in head_names(head))]
    names = [getattr(row, side) for row in rows]
    assert len({*names}) == len(names)


def test_a_weight_knows_its_part():
    parts = {row.part for row in all_names(2, HEADS)}
    assert parts == {"encoder", "pooler", *HEADS}


def test_what_is_no_head_has_no_names():
    assert head_names("encoder") == []
