"""The files of sentence-transformers: what is written is read, and what cannot be is refused."""

import json

import numpy as np
import pytest

from keras_bert_impl.checkpoints.formats.safetensors_file import write_safetensors
from keras_bert_impl.checkpoints.model_directory import write_json
from keras_bert_impl.checkpoints.sentence_modules import (
    DenseWeights,
    SentenceSettings,
    read_dense,
    read_sentence_settings,
    write_sentence_files,
)
from keras_bert_impl.errors import UserError

POOLER = DenseWeights(np.arange(6, dtype="float32").reshape(2, 3), np.ones(3, "float32"))


def write(folder, **settings):
    write_sentence_files(folder, SentenceSettings(**settings), 3, POOLER, write_json)
    return folder


def put(folder, name, value):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))
    return folder


def modules(*kinds):
    """As later versions of sentence-transformers name classes and folders."""
    folders = {"Transformer": "", "Pooling": "1_Pooling", "Dense": "2_Dense"}
    base = "sentence_transformers.base.modules"
    return [
        {"idx": n, "path": folders.get(kind, f"{n}_{kind}"), "type": f"{base}.{kind}"}
        for n, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
@pytest.mark.parametrize("normalize", [False, True])
def test_what_is_written_is_read(tmp_path, pooling, normalize):
    wanted = {"pooling": pooling, "normalize": normalize, "max_seq_length": 9}
    wanted |= {
        "prompt": "q: ",
        "prompts": {"query": "q: ", "document": "d: "},
        "dimensions": (4, 2),
    }
    folder = write(tmp_path, **wanted)
    assert read_sentence_settings(folder) == SentenceSettings(**wanted)
    dense = read_dense(folder)
    assert (dense is not None) == (pooling == "pooler")
    if dense is not None:
        np.testing.assert_array_equal(dense.kernel, POOLER.kernel)
        np.testing.assert_array_equal(dense.bias, POOLER.bias)


@pytest.mark.parametrize(
    ("prompts", "name", "found"),
    [
        ({}, "query", ""),
        ({}, "document", ""),
        ({"query": "q: "}, "search_query", "q: "),
        ({"query": "q: "}, None, "default: "),
        ({"document": "d: ", "passage": "p: "}, "document", "d: "),
        ({"document": "d: ", "passage": "p: "}, "passage", "p: "),
        ({"corpus": "c: ", "passage": "p: "}, "document", "p: "),
        ({"corpus": "c: "}, "search_document", "c: "),
        ({"document": "d: "}, "passage", "d: "),
        ({"s2p": "s: ", "query": None}, "s2p", "s: "),
    ],
)
def test_a_prompt_is_found_by_the_names_that_models_and_clients_use(tmp_path, prompts, name, found):
    given = {"prompts": {**prompts, "default": "default: "}, "default_prompt_name": "default"}
    put(write(tmp_path), "config_sentence_transformers.json", given)
    assert read_sentence_settings(tmp_path).prompt_of(name) == found


def test_a_default_prompt_without_a_name_is_written_with_one(tmp_path):
    settings = read_sentence_settings(write(tmp_path, prompt="x: ", prompts={"query": "q: "}))
    assert settings == SentenceSettings(prompt="x: ", prompts={"query": "q: ", "default": "x: "})


def test_a_default_prompt_leaves_the_models_own_ones(tmp_path):
    own = {"default": "y: ", "other_default": "z: "}
    settings = read_sentence_settings(write(tmp_path, prompt="x: ", prompts=own))
    assert (settings.prompt, settings.prompts) == ("x: ", {**own, "other_other_default": "x: "})


@pytest.mark.parametrize(
    ("prompts", "given", "found"),
    [
        ({}, False, "x: "),
        ({"default": "x: ", "other": "y: "}, False, "x: "),
        ({"query": "q: "}, False, ""),
        ({"passage": "p: ", "document": "p: "}, False, "p: "),
        ({"passage": "p: ", "document": "p: "}, True, "x: "),
    ],
)
def test_documents_have_the_default_prompt_of_a_model_without_one_for_searching_or_a_given_one(
    prompts, given, found
):
    settings = SentenceSettings(prompt="x: ", prompts=prompts, prompt_is_given=given)
    assert settings.prompt_of(settings.named("document")) == found


def test_distances_order_as_the_cosine_only_where_vectors_have_length_1(tmp_path):
    named = {"similarity_fn_name": "euclidean"}
    put(write(tmp_path, normalize=True), "config_sentence_transformers.json", named)
    assert read_sentence_settings(tmp_path).similarity == "cosine"
    put(tmp_path, "modules.json", modules("Transformer", "Pooling"))
    with pytest.raises(UserError, match="similarity_fn_name is 'euclidean', which does not exist"):
        read_sentence_settings(tmp_path)


def test_a_folder_without_modules_says_nothing(tmp_path):
    assert read_sentence_settings(tmp_path) is None
    assert read_dense(tmp_path) is None


def test_the_later_form_is_read(tmp_path):
    put(tmp_path, "modules.json", modules("Transformer", "Pooling", "Normalize"))
    put(tmp_path, "1_Pooling/config.json", {"embedding_dimension": 3, "pooling_mode": "cls"})
    put(tmp_path, "tokenizer_config.json", {"model_max_length": 128})
    assert read_sentence_settings(tmp_path) == SentenceSettings("cls", True, 128)
    put(tmp_path, "tokenizer_config.json", {"model_max_length": 1e30})
    assert read_sentence_settings(tmp_path).max_seq_length is None


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "modules.json",
            [{**one, "type": f"my_code.{one['type']}"} for one in modules("Transformer")],
            r"a model of my_code\.sentence_transformers\.base\.modules\.Transformer cannot",
        ),
        ("modules.json", modules("Transformer", "Pooling", "LSTM"), "LSTM cannot be opened"),
        ("modules.json", {}, "it must be a list"),
        (
            "modules.json",
            [
                {"path": "0_T", "type": "sentence_transformers.Transformer"},
                *modules("a", "Pooling")[1:],
            ],
            "the encoder lies in the folder '0_T'",
        ),
        (
            "modules.json",
            [*modules("Transformer"), {"path": "../x", "type": "sentence_transformers.Pooling"}],
            "'../x' lies outside",
        ),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "pools by max_tokens"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, "pools by cls and mean"),
        ("1_Pooling/config.json", {}, "pools by nothing"),
        ("sentence_bert_config.json", {"max_seq_length": "x"}, "max_seq_length is 'x'"),
        ("config_sentence_transformers.json", {"default_prompt_name": "q"}, "has no 'q'"),
        ("config_sentence_transformers.json", {"matryoshka_dimensions": [0]}, "0"),
        ("config_sentence_transformers.json", {"matryoshka_dimensions": "8"}, "must be a list"),
    ],
)
def test_what_does_not_exist_here_is_one_sentence(tmp_path, name, value, sentence):
    put(write(tmp_path), name, value)
    with pytest.raises(UserError, match=sentence):
        read_sentence_settings(tmp_path)


def test_a_dense_layer_that_is_no_pooler_is_refused(tmp_path):
    folder = write(tmp_path, pooling="pooler")
    path = folder / "2_Dense" / "config.json"
    known = json.loads(path.read_text())
    for change in ({"out_features": 2}, {"bias": False}, {"activation_function": "torch.ReLU"}):
        path.write_text(json.dumps({**known, **change}))
        with pytest.raises(UserError, match="does not exist here"):
            read_sentence_settings(folder)


def test_weights_of_another_layer_are_refused(tmp_path):
    folder = write(tmp_path, pooling="pooler")
    write_safetensors(folder / "2_Dense" / "model.safetensors", {"x": np.ones(2, "float32")})
    with pytest.raises(UserError, match=r"has no linear\.weight of a dense layer; get"):
        read_dense(folder)


@pytest.mark.parametrize("name", ["1_Pooling", "2_Dense"])
def test_a_module_without_its_file_is_named(tmp_path, name):
    folder = write(tmp_path, pooling="pooler")
    (folder / name / "config.json").unlink()
    with pytest.raises(UserError, match=f"{name}/config.json: no such file"):
        read_sentence_settings(folder)


@pytest.mark.parametrize("name", ["modules.json", "sentence_bert_config.json"])
def test_a_link_that_leads_nowhere_is_not_taken_for_a_missing_file(tmp_path, name):
    put(tmp_path, "modules.json", modules("Transformer", "Pooling"))
    put(tmp_path, "1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to("gone")
    with pytest.raises(UserError, match=rf"{name}: leads to gone, which is not there"):
        read_sentence_settings(tmp_path)
