"""Models behind HTTP: which ones, by what names, and the server's life from opening to closing."""

import contextlib
import dataclasses
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.sentence_modules import QUERY, SentenceSettings
from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.options import nested, option
from keras_bert_impl.serving.answerer import (
    Answerer,
    AnsweringModel,
    Instance,
    Prepared,
    ask,
    log_left_out,
)
from keras_bert_impl.serving.embedder import sentence_settings_of
from keras_bert_impl.serving.exported import is_openvino_export
from keras_bert_impl.serving.http.config import ServerConfig, is_of_this_machine_only, need_server
from keras_bert_impl.serving.reranking import fault_of_activation, pairs_of
from keras_bert_impl.serving.smaller_vectors import truncated
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter
from pipelines.answering.asked_texts import texts_in
from pipelines.answering.config import AnsweringConfig

if TYPE_CHECKING:
    from keras_bert_impl.serving.http.app import Service
    from keras_bert_impl.serving.http.rest import ServedIndex
    from pipelines.vectors.index import VectorIndex

_Search = Callable[[NDArray[np.float32], int], list[list[dict[str, Any]]]]
_LOGGER = logging.getLogger(__name__)

# What fills an engine up before the load comes.
_WORDS = 62  # of a text: with [CLS] and [SEP] 64 tokens
_MOST_TOKENS = 1024  # of a batch
_ENOUGH = 200  # words of a few texts say little of those to come

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeConfig(ServerConfig):
    """Which models are served, by what names, where, and to whom."""

    model: tuple[str, ...] = option(
        (),
        "A model: a directory, a TF1 checkpoint, a run's folder or checkpoint, a name on the "
        "Hugging Face hub, an export for OpenVINO, or a folder of versions of one (FOLDER/1, "
        "FOLDER/2, ...), of which the newest answers. Repeat it for others; NAME=FOLDER names it "
        "at once.",
        repeated=True,
    )
    model_name: tuple[str, ...] = option(
        (),
        "What requests call the models, in the order of `model`; by default as their folders are "
        "called.",
        repeated=True,
    )
    index: tuple[str, ...] = option(
        (),
        "An index of keras-bert search that /search asks, NAME=FOLDER; the model of its vectors is "
        "one of those served. Repeat it for others.",
        repeated=True,
    )
    answering: AnsweringConfig = nested(AnsweringConfig, defaults={"model": ""}, without=("model",))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.models()

    def models(self) -> dict[str, AnsweringConfig]:
        """How each model is opened, by its name."""
        if not self.model:
            raise UserError("no model is named; give `model`.")
        if len(self.model_name) > len(self.model):
            raise UserError(
                f"`model_name` names {len(self.model_name)} models, but `model` {len(self.model)}."
            )
        found = dict[str, AnsweringConfig]()
        for place, words in enumerate(self.model):
            if place < len(self.model_name):
                name, folder = self.model_name[place], _name_and_folder(words)[1]
                _check_name(name, f"model_name={name}")
            else:
                name, folder = _name_and_folder(words)
                _check_name(name, f"model={words}")
            if name in found:
                raise UserError(
                    f"two models are called {shown(name)}; give each a `model_name` of its own."
                )
            found[name] = dataclasses.replace(self.answering, model=folder)
        return found


def _name_and_folder(words: str) -> tuple[str, str]:
    """What a model is called, and where it is.

    What stands before "=" is a name, unless there is such a path, or it has a "/".

    Example:
        >>> _name_and_folder("minilm=models/all-MiniLM-L6-v2"), _name_and_folder("runs/mrpc/")
        (('minilm', 'models/all-MiniLM-L6-v2'), ('mrpc', 'runs/mrpc/'))
    """
    name, equals, folder = words.partition("=")
    if equals and "/" not in name and (NAME.fullmatch(name) or not is_there(words)):
        return name, folder
    return Path(words).name, words


def _check_name(name: str, given: str) -> None:
    if not NAME.fullmatch(name):
        raise UserError(
            f"`{given}`: {shown(name)} is no name for a path; take letters, digits, '.', '_' and "
            "'-', a letter or digit first (NAME=FOLDER)."
        )


def serve_models(config: ServeConfig, with_page: bool = False) -> None:
    """Opens models and serves them until Ctrl-C or SIGTERM, perhaps with the playground's page."""
    need_server()
    from keras_bert_impl.serving.http.app import make_app
    from keras_bert_impl.serving.http.server import listen, serve
    from pipelines.answering.opening import no_texts, open_answering_model

    key = config.key()
    # A port that is taken is reported before a model is opened.
    with listen(config.host, config.port) as listening, contextlib.ExitStack() as stack:
        if key is None and not is_of_this_machine_only(config.host):
            _LOGGER.warning(
                "Anyone who reaches %s may ask; with `api_key_file` only those with a key.",
                config.host,
            )
        # Clients ask the models that count; what warms the engines up does not count.
        opened, models = list[AnsweringModel](), dict[str, AnsweringModel]()
        for name, how in config.models().items():
            model = open_answering_model(how, no_texts)
            stack.callback(model.close)
            _warm_up(model)
            opened.append(model)
            counting = {
                signature: CountingAnswerer(one, model.text, name)
                for signature, one in model.answerers.items()
            }
            for one in counting.values():
                stack.callback(one.log_left_out)
            models[name] = dataclasses.replace(model, answerers=counting)
            _tell(name, model)
        page = page_of(config, models) if with_page else {}
        app = make_app(models, config, indexes=open_indexes(config, models), **page)
        app.state.service.is_warm = False
        filling = threading.Thread(target=_fill_up, args=(opened, app.state.service))
        stack.callback(filling.join)
        filling.start()
        serve(app, config, listening)


def open_indexes(
    config: ServeConfig, models: Mapping[str, AnsweringModel]
) -> "dict[str, ServedIndex]":
    """The indexes by name, each with the model that made its vectors."""
    from keras_bert_impl.serving.http.rest import ServedIndex, vectors_of
    from pipelines.vectors.index import VectorIndex

    opened = dict[str, ServedIndex]()
    for words in config.index:
        name, folder = _name_and_folder(words)
        if name in opened:
            raise UserError(f"two indexes are called {shown(name)}; give each a name: NAME=FOLDER.")
        index, fault = VectorIndex.open(folder), f"{folder}: none of the models gives its vectors."
        for model, how in config.models().items():
            if vectors_of(models[model]) is None or is_openvino_export(Path(how.model)):
                continue
            source = find_model(how.model, **how.description())
            settings = sentence_settings_of(source)
            try:
                index.check_model(source, settings)
            except UserError as error:
                fault = str(error)
                continue
            options = {"input_type": QUERY} if QUERY in settings.prompts else {}
            opened[name] = ServedIndex(model, options, _search_of(index, settings))
            break
        else:
            raise UserError(fault)
    return opened


def _search_of(index: "VectorIndex", settings: SentenceSettings) -> "_Search":
    def search(vectors: NDArray[np.float32], count: int) -> list[list[dict[str, Any]]]:
        found = index.search(truncated(vectors, index.size, settings.normalize), count)
        return [[one._asdict() for one in some] for some in found]

    return search


class CountingAnswerer:
    """Answers as another answerer does, and counts texts that are empty or cut, and [UNK].

    Where too many words of clients are [UNK] it warns once; no word of a client is kept.
    """

    def __init__(self, answerer: Answerer, text: TextSettings, name: str) -> None:
        self._answerer, self._name = answerer, name
        self._counter, self._lock = WordCounter(text.vocabulary), threading.Lock()
        self._count, self._told = WordCount(), False
        self._texts = self._empty = self._cut = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answerer, name)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        prepared = self._answerer.prepare(instances)
        told, count = self._told, WordCount()
        if not told:
            counts = (self._counter.count(row["input_ids"]) for row in prepared.rows)
            count = sum(counts, count)
        with self._lock:
            self._texts += len(instances)
            self._cut += sum(map(bool, prepared.num_truncated))
            self._empty += sum(not any(map(str.strip, self._texts_of(one))) for one in instances)
            self._count += count
            self._told = told or (self._count.words >= _ENOUGH and self._count.is_large)
            told = told or not self._told
        if not told:
            _LOGGER.warning(
                "%s: %s asked so far become [UNK]: the model's vocabulary does not fit what it is "
                "asked.",
                *(self._name, self._count),
            )
        return prepared

    def _texts_of(self, instance: Instance) -> Iterator[str]:
        return texts_in([{one.name: instance.get(one.name) for one in self._answerer.inputs}])

    def log_left_out(self) -> None:
        """Says at the end of all texts how many were empty, and how many were cut."""
        most = self._answerer.most_tokens
        log_left_out(self._name, self._texts, empty=self._empty, cut=self._cut, most=most)


def page_of(config: ServeConfig, models: Mapping[str, AnsweringModel]) -> dict[str, Any]:
    """The page to try models on, as `make_app` takes it: its routes, and those without a key."""
    from keras_bert_impl.serving.page.routes import OPEN_PATHS, page_routes, show_model

    shown_models = {
        name: show_model(
            how.model, models[name], engine=how.engine or TENSORFLOW, **how.description()
        )
        for name, how in config.models().items()
    }
    return {"routes": page_routes(shown_models), "open_paths": OPEN_PATHS}


def _tell(name: str, model: AnsweringModel) -> None:
    """Says what a model answers, and why `/rerank` does not take it where it seems to."""
    _LOGGER.info("%s: %s", name, ", ".join(model.answerers))
    if pairs_of(model) and (fault := fault_of_activation(model)):
        _LOGGER.warning("%s: /rerank does not take it: %s", name, fault)


def _warm_up(model: AnsweringModel) -> None:
    """Asks each question once, so that the first client does not wait for what is made then."""
    for answerer in model.answerers.values():
        instance = _instance(answerer, "a")
        try:
            answerer.prepare([instance])
        except UserError:  # another number of endings, say
            continue
        ask(answerer, [instance])  # what the engine lacks shows now, and not to each client


def _fill_up(models: Sequence[AnsweringModel], service: "Service") -> None:
    """Asks as much at once as there ever will be, so that memory shows before the load comes.

    Clients are answered meanwhile.
    """
    for answerer in [one for model in models for one in model.answerers.values()]:
        tokens = min(answerer.tokens_at_once, _MOST_TOKENS) * answerer.batches_at_once
        count = max(answerer.batches_at_once, tokens // _WORDS)
        if service.stopping:
            return
        with contextlib.suppress(UserError, RuntimeError):  # the model may be closed meanwhile
            ask(answerer, [_instance(answerer, " ".join(["a"] * _WORDS))] * count)
    service.is_warm = True


def _instance(answerer: Answerer, text: str) -> dict[str, Any]:
    """What an answerer may be asked, made of a text."""
    needed = [one for one in answerer.inputs if one.needed]
    return {one.name: [text, text] if one.is_list else text for one in needed}
