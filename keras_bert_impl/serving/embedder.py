"""Texts to vectors."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.backend import JAX, has_tensorflow, need_tensorflow
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.checkpoints.sentence_modules import (
    SentenceSettings,
    module_files,
    read_sentence_settings,
    restore_pooler,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.config import FLOAT32, OPENVINO, TENSORFLOW, EngineConfig
from keras_bert_impl.engines.engine import Engine, Features, KerasEngine, check_finite
from keras_bert_impl.engines.kept_graph import UnbuiltModel
from keras_bert_impl.engines.open_engine import open_engine
from keras_bert_impl.engines.openvino_graph import CALIBRATION_ROWS, evenly_spread
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath
from keras_bert_impl.models.head_settings import POOLER
from keras_bert_impl.serving.exported import ExportedModel, find_exported, located, room_of
from keras_bert_impl.serving.opened_model import lacks
from keras_bert_impl.serving.smaller_vectors import Vectors, check_size, truncated
from keras_bert_impl.serving.token_batches import even_budget, rounded_rows, token_batches
from keras_bert_impl.tokenization.packing import as_texts, text_ids
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import TokenBlock, Tokenizer
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter, check_words
from keras_bert_impl.training.config import dtype_policy

if TYPE_CHECKING:
    from keras_bert_impl.models.embedder import BertEmbedder

_TEXTS_AT_ONCE = 16384  # so many are sorted by length, and their vectors held
# A text that comes alone: calling TensorFlow between two computations takes longer than cutting it
# in Python, 0.7 ms beside 0.2 on the machine where this was chosen.
_FEW_CHARACTERS = 1000
_FEW_WITHOUT_TENSORFLOW = 2_000_000  # loading it takes longer than cutting them
_COUNTED = 1000  # texts of a call, and words of all, that are looked at for [UNK]

Ids = NDArray[np.int32]


class Embedder:
    """A model with its tokenizer: texts in, one vector each out.

    Texts of similar length are computed together, in any order, with little padding. Memory is
    that of the model, of some 16,000 texts and of the vectors that are given back.

    Args:
        model: the encoder with its pooling; its present weights are used. One that is not built
            needs an engine, and is built where it is asked for; an export needs one, too.
        text: the vocabulary, the casing and the accents.
        settings: how many tokens are read, and what is put before every text; by default what
            `BertEmbedder.from_pretrained` found beside the model.
        engine: what computes the model; by default what is fastest on TensorFlow.
        deterministic: compute every text alone, so that it gets the same bytes whatever stands
            beside it.

    Attributes:
        refuses_long: a text that is longer than `max_seq_length` is a mistake.
        num_texts: how many texts became vectors.
        num_truncated: how many of them were longer, so that their ends were not read.
        advance: is told after each batch of how many texts it was.

    Example:
        >>> from keras_bert_impl.config import BertConfig
        >>> from keras_bert_impl.models.embedder import BertEmbedder
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog"]
        >>> config = BertConfig(vocab_size=7, hidden_size=8, num_attention_heads=2,
        ...                     num_hidden_layers=1, intermediate_size=16)
        >>> embedder = Embedder(BertEmbedder(config), TextSettings(Vocabulary(tokens)))
        >>> embedder.embed(["a dog", "dog"]).shape
        (2, 8)
    """

    def __init__(
        self,
        model: "BertEmbedder | UnbuiltModel | ExportedModel",
        text: TextSettings,
        settings: SentenceSettings | None = None,
        engine: Engine | None = None,
        deterministic: bool = False,
    ) -> None:
        self._model, self.text = model, text
        known = model.source if isinstance(model, UnbuiltModel) else model
        self.config: BertConfig = known.config
        own = None if isinstance(model, UnbuiltModel) else model.sentence
        settings = settings or _within(own, self.config)
        self._source = known if isinstance(known, ModelSource | ExportedModel) else None
        if not isinstance(model, UnbuiltModel | ExportedModel):
            pooling, normalize = model.pooling, model.normalize
            settings = dataclasses.replace(settings, pooling=pooling, normalize=normalize)
        self.settings = settings
        told, positions = settings.max_seq_length, self.config.max_position_embeddings
        self.max_seq_length = positions if told is None else told
        self._room = room_of(known, self.max_seq_length)
        self.engine = engine or KerasEngine(model, may_be_trained=True)
        self._deterministic = deterministic
        self._plain = PlainTokenizer(text)
        self._counter: WordCounter | None = WordCounter(text.vocabulary)
        self._words = WordCount()
        self.refuses_long, self.num_texts, self.num_truncated = False, 0, 0
        self.advance: Callable[[int], object] = lambda _: None

    @classmethod
    def from_pretrained(
        cls,
        path_or_name: StrPath,
        *,
        pooling: str | None = None,
        normalize: bool | None = None,
        max_seq_length: int | None = None,
        prompt: str | None = None,
        engine: str | None = None,
        precision: str = FLOAT32,
        deterministic: bool = False,
        calibration_texts: Iterable[str] = (),
        do_lower_case: bool | None = None,
        adapter: StrPath | None = None,
    ) -> "Embedder":
        """Opens a model, sentence-transformers' directories among them.

        Args:
            path_or_name: a model directory, a TF1 checkpoint, a name on the Hugging Face hub, or
                an export for OpenVINO, which says itself how its vectors are made.
            pooling: "mean", "cls" or "pooler"; by default as the directory says, else "mean".
            normalize: whether vectors have length 1; by default as the directory says, else not.
            max_seq_length: longer texts are truncated; by default as the directory says, else to
                the model's positions. The tokens of the prompt count.
            prompt: what is written in front of every text; by default as the directory says.
            engine: "tensorflow" or "openvino", which is faster on CPUs and has to be installed; by
                default openvino for an export, else tensorflow.
            precision: "float32" or "bfloat16", which is faster where the processor knows it and
                accurate to two digits; with OpenVINO also "int8", which is faster still.
            deterministic: compute every text alone, so that it gets the same bytes whatever stands
                beside it.
            calibration_texts: texts like those to come; some hundred of them give the scales of
                int8, once, which are kept next to the model.
            do_lower_case: the casing, if no file says it.
            adapter: the folder of an adapter (LoRA, in PEFT's form) that changes the model.

        Raises:
            UserError: there is no such model, it is incomplete, its vector is made in a way that
                does not exist here, or the engine is not installed.
        """
        vector: dict[str, Any] = {"pooling": pooling, "normalize": normalize}
        told: dict[str, Any] = {"do_lower_case": do_lower_case, "adapter": adapter}
        path_or_name = located(path_or_name)
        exported = find_exported(path_or_name, engine, **vector, **told)
        if exported is None or not exported.static:
            engine = engine or (OPENVINO if exported else TENSORFLOW)
            EngineConfig(engine=engine, precision=precision)
        source = exported or find_model(path_or_name, **told)
        changes = {**vector, "max_seq_length": max_seq_length, "prompt": prompt}
        changes["prompt_is_given"] = prompt is not None
        given = {name: value for name, value in changes.items() if value is not None}
        settings = dataclasses.replace(sentence_settings_of(source), **given)
        model: BertEmbedder | UnbuiltModel | ExportedModel
        open_it: Callable[..., Engine]
        if isinstance(source, ExportedModel):
            model, open_it = source, source.open
        else:
            policy = dtype_policy(precision if engine == TENSORFLOW else FLOAT32)
            model = unbuilt_embedder(source, settings, policy)
            if engine == TENSORFLOW:
                need_tensorflow("`engine=tensorflow`", JAX)
                model = model.build()
            open_it = functools.partial(open_engine, model, str(engine), folder=source.folder)
        embedder = cls(model, source.text, settings, deterministic=deterministic)
        embedder._source = source
        rows = functools.partial(embedder._calibration_rows, calibration_texts)
        how: dict[str, Any] = {"precision": precision, "deterministic": deterministic}
        embedder.engine = open_it(calibration=rows, **how)
        return embedder

    texts_at_once = _TEXTS_AT_ONCE
    """How many texts are divided into batches together: a block of `embed_blocks`."""

    @property
    def model(self) -> "BertEmbedder":
        """The encoder with its pooling; built now if it was not yet.

        It may be trained: by Keras, vectors are of the weights that it has when they are asked
        for; another engine keeps those that it was made of.
        """
        if isinstance(self.engine, KerasEngine):
            self.engine.read_weights_anew()
        return self._built()

    def _built(self) -> "BertEmbedder":
        if isinstance(self._model, ExportedModel):
            fault = "is an export, which has no weights by their names"
            raise UserError(f"{self._model.checkpoint}: {fault}; open the model directory.")
        model = self._model.build() if isinstance(self._model, UnbuiltModel) else self._model
        self._model = model
        return model

    @property
    def source(self) -> ModelSource | ExportedModel:
        """Where the weights are from."""
        if self._source is None:
            raise ValueError("this model was not opened by `from_pretrained`")
        return self._source

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return int(self.config.hidden_size)

    def embed(
        self, texts: Any, prompt_name: str | None = None, dimensions: int | None = None
    ) -> Vectors:
        """The vectors of texts.

        Where the vocabulary does not fit the first texts, so that many of their words become
        [UNK], one warning is logged.

        Args:
            texts: a text, or a list, an array or a column of texts.
            prompt_name: of the prompt before each text: "query", "document" or another one of
                the model; by default its default one.
            dimensions: how many numbers of each vector are given, the first ones, scaled again
                where the model scales; by default all.

        Returns:
            float32 [texts, hidden], or [texts, dimensions]; of one text it has one row.

        Raises:
            UserError: an element is not a text, or there is no such prompt.
        """
        rows = _single_texts(texts)
        self._check_words(rows)
        if 0 < len(rows) <= self.texts_at_once:
            return self._embed(rows, prompt_name, dimensions, evenly=True)
        blocks = list(self.embed_blocks(rows, prompt_name, dimensions))
        empty = np.empty((0, check_size(dimensions, self.width)), np.float32)
        return np.concatenate([empty, *blocks])

    def _check_words(self, texts: Sequence[str | bytes]) -> None:
        """Counts the words of the first texts, until there are enough or a warning was given."""
        if self._counter is None or not texts:
            return
        self._words += self._counter.count(self._encode(texts[:_COUNTED]).ids)
        if self._words.is_large:
            check_words(texts, self.text, "the texts", may_refuse=False)
        if self._words.is_large or self._words.words >= _COUNTED:
            self._counter = None

    def embed_blocks(
        self,
        texts: Iterable[str | bytes],
        prompt_name: str | None = None,
        dimensions: int | None = None,
    ) -> Iterator[Vectors]:
        """The vectors of any number of texts, some thousand at a time, in their order.

        Each block is float32 [texts, hidden]. See `embed` for the arguments.
        """
        if isinstance(texts, str | bytes):
            raise UserError("`texts` is one text; give a list, or take `embed`.")
        source = iter(texts)
        while block := list(islice(source, self.texts_at_once)):
            yield self._embed(_single_texts(block), prompt_name, dimensions)

    def _embed(
        self,
        texts: Sequence[str | bytes],
        prompt_name: str | None,
        dimensions: int | None,
        evenly: bool = False,
    ) -> Vectors:
        rows, cut = self._rows(texts, prompt_name)
        check_size(dimensions, self.width)
        if self.refuses_long and cut.any():
            first = int(np.flatnonzero(cut)[0])
            tokens, most = cut[first] + self.max_seq_length, self.max_seq_length
            raise UserError(
                f"text {self.num_texts + first + 1}: has {tokens} tokens, and the model reads "
                f"{most}; shorten it, or give `long_text=truncate`."
            )
        self.num_texts += len(rows)
        self.num_truncated += int(np.count_nonzero(cut))
        return truncated(self.embed_rows(rows, evenly), dimensions, self.settings.normalize)

    def embed_rows(self, rows: Sequence[Ids], evenly: bool = False) -> Vectors:
        """The vectors of rows of ids, such as `rows` gives.

        `evenly` keeps all cores busy to the end, in batches that depend on their number.
        """
        vectors = np.empty((len(rows), self.width), np.float32)
        for some, outputs in self.engine.compute(self._batches(rows, evenly)):
            vectors[some] = outputs["embedding"][: len(some)]
            origin = self._source.checkpoint if self._source else "the model"
            check_finite({"vectors": vectors[some]}, origin)
            self.advance(len(some))
        return vectors

    def _batches(
        self, rows: Sequence[Ids], evenly: bool
    ) -> Iterator[tuple[NDArray[np.int64], Features]]:
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        budget = 1 if self._deterministic else self.engine.tokens_at_once
        if evenly and not self._deterministic:  # the bytes of blocks do not depend on the cores
            budget = even_budget(lengths, budget, self.engine.batches_at_once)
        few = self.engine.few_lengths
        for some, length in token_batches(lengths, budget, self.max_seq_length, few_lengths=few):
            # What is compiled for a shape is kept: without end, if every number of rows were one.
            count = min(rounded_rows(len(some)), max(1, budget // length)) if few else len(some)
            yield some, self._batch([rows[row] for row in some], length, count)

    def _calibration_rows(self, texts: Iterable[str]) -> list[Features]:
        rows = self.rows(evenly_spread(texts, CALIBRATION_ROWS))
        return [self._batch([row], len(row), 1) for row in rows]

    def rows(self, texts: Sequence[str | bytes]) -> list[Ids]:
        """The ids of every text with [CLS] and [SEP], truncated."""
        return self._rows(texts)[0]

    def _rows(
        self, texts: Sequence[str | bytes], prompt_name: str | None = None
    ) -> tuple[list[Ids], NDArray[np.int64]]:
        """The ids, and of each text the tokens that are left out."""
        prompt = self.settings.prompt_of(prompt_name)
        if not texts:
            return [], np.zeros(0, np.int64)
        if prompt:
            texts = [
                prompt + (x if isinstance(x, str) else x.decode("utf-8", "ignore")) for x in texts
            ]
        block = self._encode(texts)
        cut = np.maximum(np.diff(block.offsets) - self._room, 0)
        return text_ids(block, self.text.vocabulary, self._room + 2), cut

    @functools.cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self.text)

    def _encode(self, texts: Sequence[str | bytes]) -> TokenBlock:
        few = _FEW_CHARACTERS if "tensorflow" in sys.modules else _FEW_WITHOUT_TENSORFLOW
        if sum(map(len, texts)) > few and has_tensorflow():
            return self._tokenizer.encode_lines(texts)
        return self._plain.encode_lines(texts)

    def _batch(self, rows: Sequence[Ids], length: int, count: int) -> dict[str, NDArray[np.int32]]:
        """The features of a batch of `count` rows; beyond `rows` they have one token each."""
        ids = np.full((count, length), self.text.vocabulary.pad_id, np.int32)
        lengths = np.ones((count, 1), np.int64)
        lengths[: len(rows), 0] = [len(row) for row in rows]
        mask = (np.arange(length) < lengths).astype(np.int32)
        ids[: len(rows)][mask[: len(rows)] > 0] = np.concatenate(rows)
        return {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}

    def plain_weights(self) -> dict[str, NDArray]:
        """The present weights of the model by their names."""
        return self._built().plain_weights()

    def save_pretrained(self, folder: StrPath) -> None:
        """Writes a directory that this package, transformers and sentence-transformers open.

        Raises:
            UserError: something else is there, or it cannot be written.
        """
        write_model_directory(folder, self._built(), self.text, sentence=self.settings)


def _single_texts(texts: Any) -> Sequence[str | bytes]:
    rows, pairs = as_texts(texts)
    if pairs is not None:
        raise UserError("`texts` holds pairs of texts; a vector is of one text: give a list.")
    return rows


def sentence_settings_of(source: ModelSource | ExportedModel) -> SentenceSettings:
    """How a text becomes one vector, as a model's folder says, else by the mean of its tokens."""
    if isinstance(source, ExportedModel):
        if not source.gives_vectors:
            fault = "is an export that gives no vectors of texts"
            remedy = "export a model of vectors, or name a model directory"
            raise UserError(f"{source.checkpoint}: {fault}; {remedy}.")
        return source.sentence
    return _within(read_sentence_settings(source.folder), source.config)


def _within(settings: SentenceSettings | None, config: BertConfig) -> SentenceSettings:
    """What a file says, which may name more positions than there are."""
    settings = settings or SentenceSettings()
    if settings.max_seq_length is None:
        return settings
    length = min(settings.max_seq_length, config.max_position_embeddings)
    return dataclasses.replace(settings, max_seq_length=length)


def unbuilt_embedder(source: ModelSource, settings: SentenceSettings, policy: str) -> UnbuiltModel:
    """The encoder with its pooling, built where it is needed."""
    if settings.pooling == POOLER and lacks(source, "pooler") and not module_files(source.folder):
        remedy = "take `pooling=mean` or `pooling=cls`"
        raise UserError(f"{source.checkpoint}: has no weights of the pooler; {remedy}.")
    shape = {"pooling": settings.pooling, "normalize": settings.normalize}
    build = functools.partial(_build, source, settings, policy)
    return UnbuiltModel(build, source, "BertEmbedder", shape)


def _build(source: ModelSource, settings: SentenceSettings, policy: str) -> "BertEmbedder":
    from keras_bert_impl.models.embedder import BertEmbedder

    model = BertEmbedder(source.config, settings.pooling, settings.normalize, dtype=policy)
    restore(model, source.tensors())
    restore_pooler(model.encoder.pooler.weights, source.folder)
    return model
