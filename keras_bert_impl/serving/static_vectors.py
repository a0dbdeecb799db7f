"""Static vectors: one for each token of a vocabulary, whose mean is the vector of a text.

Their folder is Model2Vec's, which sentence-transformers opens as a `StaticEmbedding`. The two read
others' folders differently: the one leaves [UNK] out and truncates, the other does neither. Here
each folder is read as its own library reads it; in those that are written here both agree.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np

from keras_bert_impl.checkpoints.formats.safetensors_file import read_shapes, read_tensor
from keras_bert_impl.checkpoints.sentence_modules import (
    MODULES_FILE,
    STATIC_MODULE,
    STATIC_TYPE,
    check_modules,
    module_folders,
)
from keras_bert_impl.checkpoints.sources import CONFIG_FILE, FAST_TOKENIZER_FILE, WEIGHTS_FILE
from keras_bert_impl.engines.engine import Features, Key, Outputs
from keras_bert_impl.errors import reading
from keras_bert_impl.files import is_named
from keras_bert_impl.json_files import read_json_object, read_typed
from keras_bert_impl.serving.smaller_vectors import Vectors, unit
from keras_bert_impl.tokenization.model_files import read_tokenizer_json
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

STATIC = "static"
TABLE, MODEL_TYPE = "embeddings", STATIC_TYPE
NO_LIMIT = 1_000_000
"""The tokens of a text where no file limits them, as Model2Vec writes it."""

_TABLE_OF_MODULES, _MAPPING, _WEIGHTS = "embedding.weight", "mapping", "weights"
_KNOWN = ([STATIC_MODULE], [STATIC_MODULE, "Normalize"])
_MOST_NUMBERS = 16_384  # of a vector: few tokens of endless ones would fill the memory
_AGAIN = "export or download it again"


class _Settings(TypedDict, total=False):
    model_type: str
    normalize: bool
    max_length: int | None


class StaticVectors(NamedTuple):
    """What the files of static vectors say.

    Attributes:
        file: that of the table.
        width: how many numbers a vector has.
        tokens: how many tokens have one; special ones that were left out are added behind them.
        text: how a text is cut.
        normalize: whether vectors are scaled to length 1.
        most: how many tokens of a text are read.
        silent: the ids whose vectors are in no mean, that of [PAD] first.
    """

    file: Path
    width: int
    tokens: int
    text: TextSettings
    normalize: bool
    most: int
    silent: tuple[int, ...]

    def open(self) -> "StaticEngine":
        """Gives what computes them."""
        with reading(self.file, "the static vectors of its tokenizer", _AGAIN):
            found = {name: read_tensor(self.file, name) for name in read_shapes(self.file)}
            table = found[TABLE if TABLE in found else _TABLE_OF_MODULES]
            numbers = found.get(_MAPPING, np.arange(len(table)))
            if numbers.shape != (self.tokens,):
                counts = f"{numbers.size} vectors, and its tokenizer {self.tokens} tokens"
                raise ValueError(f"it has {counts}")
            if (first := numbers.min()) < 0:
                raise ValueError(f"a token has the vector number {first}")
            whole = np.zeros((len(self.text.vocabulary), self.width), np.float32)
            whole[: self.tokens] = table[numbers]
            if _WEIGHTS in found:
                whole[: self.tokens] *= found[_WEIGHTS][:, None].astype(np.float32)
        return StaticEngine(whole, self.silent, self.normalize)


def is_static(folder: Path) -> bool:
    """Whether a folder holds static vectors, of any library."""
    if modules := module_folders(folder):
        return modules[0][0] == STATIC_MODULE
    path = folder / CONFIG_FILE
    return is_named(path) and read_json_object(path).get("model_type") == MODEL_TYPE


def read_static(folder: Path) -> StaticVectors:
    """Reads what stands beside the table of static vectors."""
    modules = dict(named := module_folders(folder))
    if named:
        check_modules(folder / MODULES_FILE, [kind for kind, _ in named], _KNOWN)
    module = folder / next(iter(modules.values()), "")
    file, fast, config = module / WEIGHTS_FILE, module / FAST_TOKENIZER_FILE, folder / CONFIG_FILE
    shapes = read_shapes(file)
    with reading(file, "a table of static vectors", _AGAIN):
        is_model2vec = TABLE in shapes
        _, width = shapes[TABLE if is_model2vec else _TABLE_OF_MODULES]
        if width > _MOST_NUMBERS:
            raise ValueError(f"a vector has {width} numbers, more than {_MOST_NUMBERS}")
    said = read_typed(config, _Settings, _AGAIN) if is_named(config) else _Settings()
    cutting = read_tokenizer_json(fast, framed=False)
    missing = [one for one in SPECIAL_TOKENS if one not in cutting.tokens]
    ids = Vocabulary([*cutting.tokens, *missing], str(fast))
    text = cutting.casing.settings(ids)
    limit = said.get("max_length", 512) if is_model2vec else cutting.truncation
    silent = (ids.pad_id, ids.cls_id, ids.sep_id, *([ids.unk_id] if is_model2vec else []))
    normalize = "Normalize" in modules if modules else said.get("normalize", False)
    count = len(cutting.tokens)
    return StaticVectors(file, width, count, text, normalize, limit or NO_LIMIT, silent)


class StaticEngine:
    """Gives each row of ids the mean of its tokens' vectors; an `Engine`.

    Example:
        >>> engine = StaticEngine(np.array([[0, 0], [3, 0], [0, 4]], np.float32), (0,), False)
        >>> ids = np.array([[0, 1, 2], [0, 0, 0]], np.int32)
        >>> engine.compute_one({"input_ids": ids, "input_mask": ids * 0 + 1})["embedding"].tolist()
        [[1.5, 2.0], [0.0, 0.0]]
    """

    tokens_at_once, batches_at_once, few_lengths = 4096, 1, False

    def __init__(self, table: Vectors, silent: Iterable[int], normalize: bool) -> None:
        silent = [*silent]
        self._table: Vectors | None = table.copy()
        self._table[silent] = 0
        self._is_read = np.ones(len(table), bool)
        self._is_read[silent] = False
        self._nothing, self._normalize = silent[0], normalize
        self.output_sizes: dict[str, int | None] = {"embedding": table.shape[1]}

    def compute(self, batches: Iterable[tuple[Key, Features]]) -> Iterator[tuple[Key, Outputs]]:
        for key, features in batches:
            yield key, self.compute_one(features)

    def compute_one(self, features: Features) -> Outputs:
        if self._table is None:
            raise RuntimeError("this engine is closed")
        ids = np.where(features["input_mask"] > 0, features["input_ids"], self._nothing)
        sums = np.zeros((len(ids), self._table.shape[1]), np.float32)
        for column in ids.T:  # some rows at a time, in the processor's cache
            sums += self._table[column]
        counts = self._is_read[ids].sum(axis=1, keepdims=True, dtype=np.float32)
        vectors = sums / np.maximum(counts, 1)
        return {"embedding": unit(vectors) if self._normalize else vectors}

    def identity(self) -> None:
        """Nothing beyond the weights."""

    def close(self) -> None:
        self._table = None
