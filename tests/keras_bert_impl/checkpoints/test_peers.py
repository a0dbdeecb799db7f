"""What we write, opened by others: each in a process of its own, as they do not share one well."""

import importlib.util
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.numpy_bert import log_softmax
from tests.support.tiny_bert import GOLDEN, TINY, VOCABULARY, features, scatter_weights

pytestmark = [
    pytest.mark.bench,
    pytest.mark.slow,
    pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="one backend is enough"),
]
_READ = """
import sys, numpy as np
features = {k: np.asarray(v) for k, v in np.load(sys.argv[2]).items()}
"""
_TRANSFORMERS = """
import torch, transformers
model, info = transformers.BertForPreTraining.from_pretrained(
    sys.argv[1], output_loading_info=True)
assert not info["missing_keys"] and not info["unexpected_keys"], info
batch = {k: torch.tensor(v).long() for k, v in features.items()}
with torch.no_grad():
    out = model.eval()(input_ids=batch["input_ids"], attention_mask=batch["input_mask"],
        token_type_ids=batch["segment_ids"], output_hidden_states=True)
logits = np.take_along_axis(out.prediction_logits.numpy(),
    features["masked_lm_positions"][..., None].astype(int), axis=1)
np.savez(sys.argv[3], sequence=out.hidden_states[-1], masked=logits,
    following=out.seq_relationship_logits)
"""
_KERAS_HUB = """
import keras_hub
encoder = keras_hub.models.BertBackbone.from_preset(sys.argv[1])
out = encoder({"token_ids": features["input_ids"], "padding_mask": features["input_mask"],
    "segment_ids": features["segment_ids"]})
np.savez(sys.argv[3], sequence=out["sequence_output"])
"""
_EVERY_HEAD = """
import torch, transformers, json, pathlib
batch = {k: torch.tensor(v).long() for k, v in features.items()}
outputs = {}
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    kind = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, info = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    # Theirs leaves out the pooler where no output needs it; ours keeps what was trained.
    surplus = [name for name in info["unexpected_keys"] if "pooler" not in name]
    assert not info["missing_keys"] and not surplus, (kind, info)
    given = dict(input_ids=batch["input_ids"], attention_mask=batch["input_mask"],
        token_type_ids=batch["segment_ids"])
    if kind == "BertForMultipleChoice":
        given = {k: v[:, None] for k, v in given.items()}
    with torch.no_grad():
        out = model.eval()(**given)
    for name in ("logits", "start_logits", "end_logits", "pooler_output"):
        if name in out:
            outputs[folder.name + "|" + name] = out[name].numpy()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer("word1 word2")["input_ids"] == [3, 7, 8, 4], tokenizer("word1 word2")
np.savez(sys.argv[3], **outputs)
"""
_HEADS = {
    "classifier": lambda: BertClassifier(TINY, num_labels=3),
    "span": lambda: BertSpanLabeler(TINY),
    "tagger": lambda: BertTokenClassifier(TINY, num_labels=5),
    "choice": lambda: BertMultipleChoice(TINY, num_choices=1),
    "encoder": lambda: BertEncoder(TINY),
}


def test_every_head_gives_our_numbers_in_transformers(tmp_path):
    pytest.importorskip("transformers", reason="needs the peers of the extra `bench`")
    batch, ours = features(), {}
    for head, make in _HEADS.items():
        model = scatter_weights(make())
        folder = tmp_path / "models" / head
        write_model_directory(folder, model, TextSettings(VOCABULARY))
        given = {k: batch[k][:, None] if head == "choice" else batch[k] for k in model.input}
        for name, value in model(given).items():
            ours[f"{head}|{name.replace('pooled_output', 'pooler_output')}"] = np.array(value)
    np.savez(tmp_path / "inputs.npz", **batch)
    paths = (tmp_path / "models", tmp_path / "inputs.npz", tmp_path / "theirs.npz")
    result = run(_READ + _EVERY_HEAD, paths)
    assert result.returncode == 0, result.stderr[-2000:]
    with np.load(paths[2]) as theirs:
        assert len(theirs.files) == 6
        for name in theirs.files:
            np.testing.assert_allclose(theirs[name], ours[name], atol=2e-5, err_msg=name)


def run(script, paths):
    """Runs a script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, paths)],
        capture_output=True,
        text=True,
        env={**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )


@pytest.mark.parametrize(
    ("library", "script"), [("transformers", _TRANSFORMERS), ("keras_hub", _KERAS_HUB)]
)
def test_a_converted_checkpoint_gives_the_original_s_numbers_in(library, script, tmp_path):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed; pip install '.[bench]'")
    pretrain = GOLDEN / "pretrain"
    files = (pretrain / "bert_config.json", pretrain / "vocab.txt")
    model = read_portable(pretrain / "init" / "bert_model.ckpt", *files, do_lower_case=True)
    write_portable(model, tmp_path / "model", "hugging_face")
    paths = (tmp_path / "model", GOLDEN / "forward" / "inputs.npz", tmp_path / "theirs.npz")
    result = run(_READ + script, paths)
    assert result.returncode == 0, result.stderr[-2000:]
    theirs, seen = np.load(paths[2]), np.load(paths[1])["input_mask"] > 0
    layers = np.load(GOLDEN / "forward" / "layers.npz")["all_encoder_layers"]
    assert np.abs(theirs["sequence"] - layers[-1])[seen].max() < 1e-5
    if "masked" in theirs:
        heads = np.load(GOLDEN / "forward" / "heads.npz")
        masked = log_softmax(theirs["masked"].astype(np.float64)).reshape(160, -1)
        assert np.abs(masked - heads["masked_lm_log_probs"]).max() < 1e-5
        following = log_softmax(theirs["following"].astype(np.float64))
        assert np.abs(following - heads["next_sentence_log_probs"]).max() < 1e-5
