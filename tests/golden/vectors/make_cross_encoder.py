"""Makes `cross_encoder/`: a tiny model saved by sentence-transformers, and its scores in each form.

`forms.json` has for each way to name the activation the files that name it (null: not there), and
the scores of `CrossEncoder`. Run in an environment of its own:
`pip install sentence-transformers==6.2.0`.
"""

import json
import shutil
import tempfile
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

HERE = Path(__file__).parent / "cross_encoder"
WORDS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("the", "dog", "cat", "runs", "sleeps", "a", "list", "value", ".", ",", "##s", "é"),
]
PAIRS = [
    ["the dog runs", "a cat sleeps."],
    ["a list", "the value of é , dogs"],
    ["cat", "the list " * 60],
]
FILES = ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json")
SAVED = {"default": None, "sigmoid": "Sigmoid", "identity": "Identity", "tanh": "Tanh"}
IDENTITY = "torch.nn.modules.linear.Identity"
WRITTEN = {
    "of version 4": {"sentence_transformers": {"activation_fn": IDENTITY, "version": "4.1.0"}},
    "of version 2": {"sbert_ce_default_activation_function": IDENTITY},
    "of no version": {},
}


def read(path):
    return json.loads(path.read_text()) if path.exists() else None


def scores_of(folder):
    return CrossEncoder(str(folder), device="cpu").predict(PAIRS).tolist()


if __name__ == "__main__":
    torch.manual_seed(0)
    shutil.rmtree(HERE, ignore_errors=True)
    forms = {}
    with tempfile.TemporaryDirectory() as aside:
        start = Path(aside, "start")
        start.mkdir()
        (start / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        config = BertConfig(
            vocab_size=len(WORDS),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=24,
            max_position_embeddings=32,
            num_labels=1,
        )
        model = BertForSequenceClassification(config)
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.5)
        model.save_pretrained(start)
        BertTokenizerFast(str(start / "vocab.txt"), model_max_length=32).save_pretrained(start)
        for name, activation in SAVED.items():
            chosen = activation and getattr(torch.nn, activation)()
            CrossEncoder(str(start), activation_fn=chosen).save_pretrained(str(HERE))
            files = {file: read(HERE / file) for file in FILES}
            forms[name] = {"files": files, "config": {}, "scores": scores_of(HERE)}
        for name, entries in WRITTEN.items():
            older = Path(aside, name)
            shutil.copytree(start, older)
            path = older / "config.json"
            path.write_text(json.dumps({**read(path), **entries}))
            files = dict.fromkeys(FILES)
            forms[name] = {"files": files, "config": entries, "scores": scores_of(older)}
    for file in (*FILES, "README.md"):
        (HERE / file).unlink()
    (HERE / "forms.json").write_text(json.dumps({"pairs": PAIRS, "forms": forms}, indent=1) + "\n")
