import subprocess
import sys

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.attention import AttentionModel
from tests.support.model_folders import write_classifier, write_encoder, write_pretrainer
from tests.support.numpy_bert import NumpyBert


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_pretrainer(tmp_path_factory.mktemp("attention") / "model")


@pytest.fixture(scope="module")
def model(folder):
    return AttentionModel.open(folder)


def test_a_text_has_its_tokens_with_the_attention_of_an_independent_bert(model, folder):
    (shown,) = model.of_texts(["The dog runs."])
    assert shown.tokens == ("[CLS]", "the", "dog", "runs", ".", "[SEP]")
    assert shown.segments == (0,) * 6
    ids = np.array([[2, 5, 6, 8, 13, 3]])
    reference = NumpyBert(folder)
    reference.encode(ids, ids * 0 + 1, ids * 0)
    theirs = np.stack(reference.attention)[:, 0]
    assert np.abs(shown.probabilities - theirs).max() < 1e-6


def test_a_pair_has_two_segments(model):
    (shown,) = model.of_texts([("the dog", "a cat")])
    assert shown.segments == (0, 0, 0, 0, 1, 1, 1)


def test_a_mask_is_a_token_where_the_model_fills_it_in(model, tmp_path):
    assert "[MASK]" in model.of_texts(["the [MASK]"])[0].tokens
    classifier = AttentionModel.open(write_classifier(tmp_path / "model", ["no", "yes"]))
    assert "[MASK]" not in classifier.of_texts(["the [MASK]"])[0].tokens


def test_a_text_of_as_many_tokens_as_positions_is_shown_and_a_longer_one_refused(model):
    assert len(model.of_texts(["dog " * 10])[0].tokens) == 12
    with pytest.raises(UserError, match="text 2 has more than the 12 tokens"):
        model.of_texts(["dog", "dog " * 11])


def test_a_row_without_end_is_refused_before_it_is_computed(tmp_path):
    sizes = {"max_position_embeddings": 4096, "num_attention_heads": 16, "num_hidden_layers": 2}
    folder = write_encoder(tmp_path / "model", **sizes)
    with pytest.raises(UserError, match="more than the 559 tokens"):
        AttentionModel.open(folder).of_texts(["dog " * 600])


def test_an_export_for_openvino_is_told_as_well(tmp_path):
    for name in ("settings.json", "model.xml"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match="is an export, which gives its outputs and not its att"):
        AttentionModel.open(tmp_path)


def test_decomposed_syllables_are_shown_composed(tmp_path):
    from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
    from tests.support.model_folders import BertEncoder, tiny_config, write_any

    vocabulary = Vocabulary([*SPECIAL_TOKENS, "\u1112\u1161\u11ab"])
    config = tiny_config(vocab_size=len(vocabulary))
    write_any(tmp_path / "model", BertEncoder(config), vocabulary)
    (shown,) = AttentionModel.open(tmp_path / "model").of_texts(["한"])
    assert shown.tokens == ("[CLS]", "한", "[SEP]")


def test_openvino_gives_the_same_and_the_next_start_needs_no_tensorflow(model, folder):
    pytest.importorskip("openvino")
    (expected,) = model.of_texts(["The dog runs."])
    (shown,) = AttentionModel.open(folder, engine="openvino").of_texts(["The dog runs."])
    assert np.abs(shown.probabilities - expected.probabilities).max() < 1e-5
    program = (
        "import sys, numpy as np\n"
        "from keras_bert_impl.serving.attention import AttentionModel\n"
        "ids = np.array([2, 5, 6, 8, 13, 3], np.int32)\n"
        "row = {'input_ids': ids, 'input_mask': ids * 0 + 1, 'segment_ids': ids * 0}\n"
        "shown = AttentionModel.open(sys.argv[1], engine='openvino').of_row(row)\n"
        "np.save(sys.argv[2], shown.probabilities)\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)\n"
    )
    again = folder.parent / "again.npy"
    subprocess.run([sys.executable, "-c", program, str(folder), str(again)], check=True)
    assert np.array_equal(np.load(again), shown.probabilities)
