import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_impl.checkpoints.model_directory import write_json
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.restore import names_of
from keras_bert_impl.checkpoints.sentence_modules import (
    SentenceSettings,
    read_sentence_settings,
    write_sentence_files,
)
from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.cpu_kernels.inference import inference_function
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.adapters import SharedEncoder
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.token_models import BertTokenClassifier
from keras_bert_impl.serving.opened_model import heads_of
from tests.support.tiny_bert import GOLDEN

PEFT = GOLDEN / "peft"
OUTPUTS = dict(np.load(PEFT / "outputs.npz"))
MASK = OUTPUTS["attention_mask"].astype("int32")
IDS = OUTPUTS["input_ids"].astype("int32")
FEATURES = {"input_ids": IDS, "input_mask": MASK, "segment_ids": IDS * 0}
CASES = {
    "query_value_r4": (BertClassifier, "logits"),
    "all_linear_rslora": (BertClassifier, "logits"),
    "tags_saved_head": (BertTokenClassifier, "logits"),
    "encoder_patterns": (BertEncoder, "sequence_output"),
}


def real(array):
    """The numbers of texts, or of tokens that are no padding."""
    array = np.asarray(array)
    return array if array.ndim == 2 else array[MASK.astype(bool)]


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_pefts_merged_and_over_a_shared_encoder(name):
    kind, output = CASES[name]
    base_folder, adapter = PEFT / name / "base", PEFT / name / "adapter"
    model = kind.from_pretrained(base_folder, adapter=adapter)
    merged = real(model(FEATURES)[output])
    for state in ("with_adapter", "reloaded", "merged"):
        np.testing.assert_allclose(merged, real(OUTPUTS[f"{name}/{state}"]), atol=1e-5)

    shared, source = SharedEncoder(), find_model(base_folder, adapter=adapter).tensors()
    base = kind.from_pretrained(base_folder)
    shared.lend(base)
    shared.join(model, source.adapters(), [x.ours for x in names_of(model) if source.owns(x)])
    np.testing.assert_allclose(real(model(FEATURES)[output]), merged, atol=2e-6)
    expected = real(OUTPUTS[f"{name}/base"])
    np.testing.assert_allclose(real(base(FEATURES)[output]), expected, atol=1e-5)
    if name == "all_linear_rslora":
        for one, numbers in ((model, merged), (base, expected)):
            outputs = inference_function(one)(FEATURES)[output]
            np.testing.assert_allclose(real(outputs), numbers, atol=1e-5)


@pytest.fixture
def copied(tmp_path):
    return shutil.copytree(PEFT / "query_value_r4", tmp_path / "copy")


def changed_config(**entries):
    def change(folder):
        path = folder / "adapter" / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    return change


def changed_tensors(change, metadata=None):
    def write(folder):
        path = folder / "adapter" / "adapter_model.safetensors"
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path, metadata or {"format": "pt"})

    return write


ROOT = "base_model.model.bert."
LAYER = f"{ROOT}encoder.layer.1.attention.self.query.lora_"
QUERY_B = f"{LAYER}B.weight"
WIDER = {f"{LAYER}A.weight": np.zeros([4, 48], "f4"), f"{LAYER}B.weight": np.zeros([48, 4], "f4")}
DEEPER = {name.replace("layer.1", "layer.2"): np.zeros([4, 32], "f4") for name in WIDER}


def without(part):
    def change(tensors):
        for name in [name for name in tensors if part in name]:
            del tensors[name]

    return changed_tensors(change)


def of_head(module):
    pair = {f"base_model.model.{module}.lora_{x}.weight": np.zeros([4, 4], "f4") for x in "AB"}
    return changed_tensors(lambda tensors: tensors.update(pair))


def one_dimensional(folder):
    path, name = folder / "base" / "model.safetensors", QUERY_B.removeprefix("base_model.model.")
    tensors, name = load_file(path), name.replace("lora_B.", "")
    save_file({**tensors, name: tensors[name].reshape(-1)}, path, {"format": "pt"})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            changed_config(use_dora=True),
            "says use_dora, which is not read here; merge it with PEFT",
        ),
        (changed_config(use_of_next_year={"x": 1}), "says use_of_next_year, which is not read"),
        (changed_config(bias="all"), "says bias 'all'"),
        (changed_config(peft_type="IA3"), "says peft_type 'IA3'"),
        (changed_config(init_lora_weights="pissa"), "says init_lora_weights 'pissa'"),
        (changed_config(r="four"), "r is 'four'; it must be a whole number; name another adapter"),
        (changed_config(r=8), r"matrices \(4, 32\) and \(32, 4\) and says r=8"),
        (changed_config(alpha_pattern={"layer.(": 2}), "has a pattern 'layer.\\('"),
        (changed_config(rank_pattern={"(.|.)" * 33: 2}), r"has a pattern '\(\.\|\.\)"),
        (changed_config(rank_pattern={f"({'.*' * 9}|x)": 2}), r"has a pattern '\(\.\*\.\*"),
        (changed_config(rank_pattern={"((.)|.)" * 28: 2}), r"has a pattern '\(\(\.\)\|\.\)"),
        (changed_config(rank_pattern={"(.+)+x": 2}), r"has a pattern '\(.\+\)\+x'"),
        (changed_tensors(lambda x: x.pop(QUERY_B)), "query.lora_A.weight without .*query.lora_B"),
        (
            changed_tensors(
                lambda x: x.update({f"{ROOT}embeddings.lora_embedding_A": x[next(iter(x))]})
            ),
            "holds 'embeddings.lora_embedding_A', which is no adapter of a matrix and no head",
        ),
        (changed_tensors(lambda x: x.update(WIDER)), "are other sizes.* base .* has; name its own"),
        (
            changed_tensors(lambda x: x.update(DEEPER)),
            "changes 'encoder.layer.2.*another layer than",
        ),
        (
            of_head("classifier"),
            "adapter: changes 'classifier', and an adapter of a head is not read here; merge it",
        ),
        (of_head("cls.predictions.transform.dense"), "changes 'cls.predictions.transform.dense'"),
        (one_dimensional, r"says r=4, which are other sizes \(1024,\) than the base .*/base has"),
        (without(".layer.1."), "holds no matrices of encoder.layer.1.* and its base .*/base has"),
        (without(".layer.0."), "holds no matrices of encoder.layer.0.* its target_modules name"),
        (without(".value."), "holds no matrices of encoder.layer.0.attention.self.value"),
        (without(""), "holds no matrices of encoder.layer.0.attention.self.query"),
        (
            changed_tensors(
                lambda _: None, {"base_sha256": '{"encoder.layer.0.attention.self.query": "0"}'}
            ),
            "trained on other numbers of encoder.layer.0.attention.self.query than the base",
        ),
        (
            changed_tensors(lambda _: None, {"base_sha256": "{"}),
            "adapter_model.safetensors: its base_sha256",
        ),
        (
            lambda folder: (
                shutil.copy(folder / "adapter" / "adapter_config.json", folder / "base")
                and shutil.copy(folder / "adapter" / "adapter_model.safetensors", folder / "base")
            ),
            "its base .*/base is an adapter itself; merge that with convert_checkpoint",
        ),
        (
            lambda folder: (folder / "adapter" / "adapter_model.safetensors").rename(
                folder / "adapter" / "adapter_model.bin"
            ),
            "is a pickle, which can run any code",
        ),
        (
            lambda folder: (folder / "adapter" / "adapter_model.safetensors").write_bytes(
                b"x" * 90
            ),
            "cannot be read as a whole safetensors file",
        ),
    ],
)
def test_what_is_no_plain_adapter_of_this_base_is_one_sentence(copied, change, sentence):
    change(copied)
    with pytest.raises(UserError, match=sentence):
        BertClassifier.from_pretrained(copied / "base", adapter=copied / "adapter")


def served_and_merged(folder):
    """The logits of an adapter over a shared encoder, and those of the merged model."""
    model = BertClassifier.from_pretrained(folder / "base", adapter=folder / "adapter")
    merged = np.asarray(model(FEATURES)["logits"])
    shared, source = SharedEncoder(), find_model(folder / "base", adapter=folder / "adapter").opened
    shared.lend(BertClassifier.from_pretrained(folder / "base"))
    shared.join(model, source.adapters(), [x.ours for x in names_of(model) if source.owns(x)])
    return np.asarray(model(FEATURES)["logits"]), merged


def test_an_adapter_of_the_pooler_changes_the_answers_of_a_shared_encoder(copied):
    draws = np.random.default_rng(0)
    pooler = {"A": (4, 32), "B": (32, 4)}
    added = {
        f"{ROOT}pooler.dense.lora_{part}.weight": draws.normal(size=shape).astype("f4")
        for part, shape in pooler.items()
    }
    before = served_and_merged(copied)[0]
    changed_tensors(lambda x: x.update(added))(copied)
    served, merged = served_and_merged(copied)
    np.testing.assert_allclose(served, merged, atol=2e-6)
    assert np.abs(served - before).max() > 1e-2


@pytest.mark.parametrize(
    ("pattern", "counts"),
    [
        ({r"encoder\.layer\.[01]\..*\.(query|value)": 16}, True),
        ({r"^bert.encoder.*(query|value)": 16}, True),
        ({r"encoder\.layer\.(0|1|2|3|4|5)\.(?:attention\.self)\.(query|value)": 16}, True),
        ({r"^encoder.*(query|value)": 16}, False),
        ({"layer.9": 16}, False),
    ],
)
def test_patterns_are_regular_expressions_as_in_peft(copied, pattern, counts):
    changed_config(alpha_pattern=pattern)(copied)
    found = find_model(copied / "base", adapter=copied / "adapter").opened.adapters()
    assert {one.scale for one in found.values()} == {4.0 if counts else 2.0}


def test_what_a_configuration_does_not_say_is_pefts_default(copied):
    path = copied / "adapter" / "adapter_config.json"
    entries = {**json.loads(path.read_text()), "init_lora_weights": "Gaussian"}
    entries |= {"merge_weights": True, "megatron_config": {"x": 1}}  # which change nothing
    del entries["lora_alpha"]
    path.write_text(json.dumps(entries))
    found = find_model(copied / "base", adapter=copied / "adapter").opened.adapters()
    assert {one.scale for one in found.values()} == {2.0}
    del entries["r"]
    path.write_text(json.dumps(entries))
    with pytest.raises(UserError, match="and says r=8"):
        find_model(copied / "base", adapter=copied / "adapter")


def test_a_configuration_that_a_merge_left_over_makes_no_adapter(copied):
    shutil.copy(copied / "adapter" / "adapter_config.json", copied / "base")
    model = BertClassifier.from_pretrained(copied / "base")
    expected = OUTPUTS["query_value_r4/base"]
    np.testing.assert_allclose(np.asarray(model(FEATURES)["logits"]), expected, atol=1e-5)


def test_an_adapter_that_names_its_base_is_a_model(copied):
    with pytest.raises(UserError, match=r"names no base .* `adapter=.*adapter`"):
        find_model(copied / "adapter")
    changed_config(base_model_name_or_path=str(copied / "base"))(copied)
    model = BertClassifier.from_pretrained(copied / "adapter")
    expected = OUTPUTS["query_value_r4/with_adapter"]
    np.testing.assert_allclose(np.asarray(model(FEATURES)["logits"]), expected, atol=1e-5)


@pytest.mark.parametrize(
    "choice",
    [
        {"exclude_modules": r".*layer\.1\..*"},
        {"exclude_modules": [f"layer.1.attention.self.{one}" for one in ("query", "value")]},
        {"layers_to_transform": 0},
        {"layers_to_transform": [0]},
        {"target_modules": r".*layer\.0\..*\.(query|value)"},
        {"target_modules": ["layer.0.attention.self.query", "layer.0.attention.self.value"]},
    ],
)
def test_layers_that_an_adapter_leaves_out_are_the_bases(copied, choice):
    without(".layer.1.")(copied)
    changed_config(**choice)(copied)
    found = find_model(copied / "base", adapter=copied / "adapter").opened.adapters()
    assert {*found} == {"layer_0/attention/query", "layer_0/attention/value"}


@pytest.mark.parametrize(
    ("model_class", "of_base"),
    [("BertForSequenceClassification", "BertModel"), ("MyBert", "BertForSequenceClassification")],
)
def test_a_head_that_names_no_task_is_that_of_a_known_model_class(copied, model_class, of_base):
    kept = {"base_model_class": model_class, "others_note": True}
    changed_config(task_type=None, auto_mapping=kept)(copied)
    path = copied / "base" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": [of_base]}))
    source = find_model(copied / "base", adapter=copied / "adapter")
    assert heads_of(source) == ("classifier",)


def test_sentence_files_of_the_adapter_win_over_those_of_the_base(copied):
    says = {"cls": (copied / "adapter", 7), "mean": (copied / "base", 9)}
    for pooling, (folder, length) in says.items():
        write_sentence_files(
            folder, SentenceSettings(pooling, max_seq_length=length), 32, None, write_json
        )
    for pooling, (folder, length) in says.items():
        source = find_model(copied / "base", adapter=copied / "adapter")
        assert read_sentence_settings(source.folder).pooling == pooling
        assert task_settings(source.config)["max_seq_length"] == length
        (folder / "modules.json").unlink()


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "tokenizer_config.json"])
def test_what_an_adapters_folder_lacks_is_its_bases(copied, name):
    found = find_model(copied / "base", adapter=copied / "adapter")
    shutil.copy(copied / "base" / name, copied / "adapter")
    other = find_model(copied / "base", adapter=copied / "adapter")
    assert (other.config, other.text) == (found.config, found.text)
