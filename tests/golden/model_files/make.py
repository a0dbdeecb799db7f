"""Writes written_keys.json: the keys that transformers and sentence-transformers write.

It runs with both libraries' packages unpacked (no torch is needed), not with this project's own:
`python make.py FOLDER_OF_SENTENCE_TRANSFORMERS > written_keys.json`.
"""

import ast
import inspect
import json
import sys
import tempfile
from pathlib import Path

import transformers
from transformers import AddedToken, BertConfig, BertTokenizer
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

sentence = Path(sys.argv[1])
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog")


def literals(path: str, name: str) -> list[str]:
    """The strings of a class' list or dict of that name."""
    tree = ast.parse((sentence / path).read_text())
    found = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign | ast.Assign)
        and name in ast.unparse(node).split("=")[0].split(":")[0].split()
    ]
    return [one.value for one in ast.walk(found[0]) if isinstance(one, ast.Constant)]


def returned(path: str, function: str) -> list[str]:
    """The keys of the dicts that a method makes."""
    tree = ast.parse((sentence / path).read_text())
    bodies = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function]
    dicts = [one for body in bodies for one in ast.walk(body) if isinstance(one, ast.Dict)]
    return [key.value for one in dicts for key in one.keys if isinstance(key, ast.Constant)]


def flat(values: dict) -> list[str]:
    parts = ("model", "truncation", "padding")
    names = [name for name in values if name not in parts]
    return names + [f"{part}.{key}" for part in parts for key in values[part] or ()]


folder = Path(tempfile.mkdtemp())
tokenizer = BertTokenizer(vocab={token: number for number, token in enumerate(VOCABULARY)})
tokenizer.add_tokens([AddedToken("[E1]", lstrip=True), "word"])
tokenizer.add_special_tokens({"extra_special_tokens": ["<e>"], "bos_token": "<b>"})
tokenizer("the", truncation=True, max_length=3, padding="max_length")
tokenizer.save_pretrained(folder)
BertConfig(id2label={0: "a"}, num_labels=1, problem_type="regression").save_pretrained(folder)
read = {path.name: json.loads(path.read_text()) for path in folder.iterdir()}
init = inspect.getsource(PreTrainedTokenizerBase.__init__)
popped = [line.split('pop("')[1].split('"')[0] for line in init.splitlines() if 'pop("' in line]
special = PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES
named = {*read["tokenizer_config.json"], *popped, *special, "added_tokens_decoder"}
arguments = set(inspect.signature(BertTokenizer.__init__).parameters) - {"self", "kwargs", "vocab"}
modules = [*returned("base/model.py", "save"), "kwargs"]
legacy = [f"pooling_mode_{mode}" for mode in ("cls_token", "mean_tokens", "max_tokens")]
keys = {
    "config.json": {*read["config.json"], *BertConfig().to_dict()},
    "tokenizer_config.json": named | arguments,
    "special_tokens_map.json": {*special, "additional_special_tokens", "extra_special_tokens"},
    "tokenizer.json": flat(read["tokenizer.json"]),
    "an added token": [key for one in read["tokenizer.json"]["added_tokens"] for key in one],
    "BertNormalizer": read["tokenizer.json"]["normalizer"],
    "modules.json": [key for key in modules if key in ("idx", "name", "path", "type", "kwargs")],
    "Pooling": [*literals("sentence_transformer/modules/pooling.py", "config_keys"), *legacy],
    "Dense": literals("base/modules/dense.py", "config_keys"),
    "Normalize": literals("base/modules/normalize.py", "config_keys"),
    "sentence_bert_config.json": [
        *literals("base/modules/transformer.py", "config_keys"),
        *("max_seq_length", "do_lower_case"),
    ],
    "config_sentence_transformers.json": [
        *returned("base/model.py", "_get_model_config"),
        *returned("sentence_transformer/model.py", "_get_model_config"),
        "truncate_dim",
    ],
}
versions = ("sentence_transformers", "transformers", "pytorch")  # inside of "__version__"
result = {name: sorted({*found} - {*versions}) for name, found in keys.items()}
print(json.dumps({"transformers": transformers.__version__, "keys": result}, indent=1))
