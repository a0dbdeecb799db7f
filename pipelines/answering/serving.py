"""Models behind HTTP: which ones, by what names, and the server's life from opening to closing."""

import contextlib
import dataclasses
import functools
import gc
import logging
import math
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.sentence_modules import QUERY, SentenceSettings
from keras_bert_impl.engines.config import INT8, OPENVINO, TENSORFLOW
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import is_there
from keras_bert_impl.json_files import json_text
from keras_bert_impl.models.adapters import SharedEncoder
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
from keras_bert_impl.serving.exported import find_exported, located
from keras_bert_impl.serving.http.config import ServerConfig, is_of_this_machine_only, need_server
from keras_bert_impl.serving.reranking import fault_of_activation, pairs_of
from keras_bert_impl.serving.smaller_vectors import truncated
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter
from pipelines.answering.asked_texts import texts_in
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.versions import NAME, ModelVersions, versions_in

if TYPE_CHECKING:
    from keras_bert_impl.serving.http.app import Service
    from keras_bert_impl.serving.http.rest import ServedIndex, Versions
    from keras_bert_impl.serving.page.routes import ShownModel
    from pipelines.answering.opening import OpenAnsweringModel
    from pipelines.vectors.index import VectorIndex

_LOGGER = logging.getLogger(__name__)

# What fills an engine up before the load comes.
_WORDS = 62  # of a text: with [CLS] and [SEP] 64 tokens
_MOST_TOKENS = 1024  # of a batch
_ENOUGH = 200  # words of a few texts say little of those to come

_FILL_AFTER_SECONDS = 0.5  # who starts a server for one answer wants that first
_POLL_SECONDS = 2.0  # between two looks at the folders of versions


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
    adapter: tuple[str, ...] = option(
        (),
        "An adapter (LoRA, in PEFT's form) of the first `model`, NAME=FOLDER; requests name it as "
        "a model of its own. Repeat it for others.",
        repeated=True,
    )
    answering: AnsweringConfig = nested(
        AnsweringConfig, defaults={"model": ""}, without=("model", "adapter")
    )

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
        named = [(*_name_and_folder(words), f"model={words}") for words in self.model]
        for place, name in enumerate(self.model_name):
            named[place] = (name, named[place][1], f"model_name={name}")
        base = named[0][1]
        named += [(*_name_and_folder(words), f"adapter={words}") for words in self.adapter]
        found = dict[str, AnsweringConfig]()
        for place, (name, folder, given) in enumerate(named):
            if not NAME.fullmatch(name):
                raise UserError(
                    f"`{given}`: {shown(name)} is no name for a path; take letters, digits, '.', "
                    "'_' and '-', a letter or digit first (NAME=FOLDER)."
                )
            if name in found:
                raise UserError(
                    f"two models are called {shown(name)}; give each a `model_name` of its own."
                )
            model, adapter = (folder, None) if place < len(self.model) else (base, folder)
            found[name] = dataclasses.replace(self.answering, model=model, adapter=adapter)
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


def serve_models(config: ServeConfig, with_page: bool = False) -> None:
    """Opens models and serves them until Ctrl-C or SIGTERM, perhaps with the playground's page."""
    need_server()
    from keras_bert_impl.serving.http.app import make_app
    from keras_bert_impl.serving.http.server import listen, serve

    key = config.key()
    config.check_files()
    # A port that is taken is reported before a model is opened.
    with listen(config.host, config.port) as listening, contextlib.ExitStack() as stack:
        if key is None and not is_of_this_machine_only(config.host):
            _LOGGER.warning(
                "Anyone who reaches %s may ask; with `api_key_file` only those with a key.",
                config.host,
            )
        indexes = open_indexes(config)
        # A base and its adapters compute with one encoder, as long as one of them is open.
        encoders = weakref.WeakValueDictionary[str, SharedEncoder]() if config.adapter else None
        versions = [
            ModelVersions(name, how, functools.partial(_open, indexes, name, encoders=encoders))
            for name, how in config.models().items()
        ]
        models: dict[str, OpenAnsweringModel] = {}
        for one in versions:
            stack.callback(one.close)
            models[one.name] = one.start()
        shown_models = {name: show(model) for name, model in models.items() if with_page}
        page = page_of(shown_models) if with_page else {}
        app = make_app(models, config, indexes=indexes, **page)
        service: Service = app.state.service
        stop = threading.Event()
        for one in versions:
            service.serve(one.name, one.versions())

        def tell(name: str, now: "Versions") -> None:
            if stop.is_set():
                return  # the server ended while a version was opened
            service.serve(name, now)
            newest = cast("OpenAnsweringModel", now.models[now.newest])
            if with_page and shown_models[name].model is not newest:
                shown_models[name] = show(newest)
            gc.collect()  # what was closed holds its weights in cycles

        answerers = [x for one in models.values() for x in one.answerers.values()]
        asked = json_text({"instances": [_instance(answerers[0], "a text")]})
        example = f"/v1/models/{versions[0].name}:predict -d '{asked}'"
        service.is_warm = False
        filling = threading.Timer(_FILL_AFTER_SECONDS, _fill_up, (answerers, service))
        stack.callback(filling.join)
        stack.callback(filling.cancel)
        filling.start()
        if watched := [one for one in versions if one.is_watched]:
            # A stop does not wait for a version that is being opened, which may take minutes.
            watching = threading.Thread(target=_watch, args=(watched, tell, stop), daemon=True)
            stack.callback(watching.join, _POLL_SECONDS)
            stack.callback(stop.set)
            watching.start()
        del models, answerers  # A model that another version replaces is held no more.
        serve(app, config, listening, example)


def _open(
    indexes: "Mapping[str, ServedIndex]",
    name: str,
    how: AnsweringConfig,
    encoders: "weakref.WeakValueDictionary[str, SharedEncoder] | None" = None,
) -> "OpenAnsweringModel":
    """Opens a model and asks it once; counts what clients ask it, until it is closed."""
    from keras_bert_impl.serving.http.rest import vectors_of
    from pipelines.answering.opening import no_texts, open_answering_model

    asked_with = [one for one in indexes.values() if one.model == name]
    for index in asked_with:
        index.check(how)
    shared = None if encoders is None else encoders.setdefault(how.model, SharedEncoder())
    model = open_answering_model(how, no_texts, shared=shared)
    if how.adapter and how.engine == OPENVINO:
        numbers = sum(map(math.prod, find_model(how.model).tensors().shapes.values()))
        _LOGGER.info(
            "%s: openvino computes a merged graph of its own, %.0f MB more; tensorflow keeps one "
            "encoder for all adapters.",
            *(name, numbers * (1 if how.precision == INT8 else 4) / 1e6),
        )
    with contextlib.ExitStack() as stack:
        stack.callback(model.close)
        if asked_with and vectors_of(model) is None:
            raise UserError(f"{how.model}: gives no vectors for an index; add `vectors=True`.")
        _warm_up(model)
        _tell(name, model)
        counting = {
            signature: CountingAnswerer(one, model.text, name)
            for signature, one in model.answerers.items()
        }
        for one in counting.values():
            stack.callback(one.log_left_out)
        return dataclasses.replace(model, answerers=counting, close=stack.pop_all().close)


def _watch(
    versions: "Sequence[ModelVersions]", tell: "Callable[[str, Versions], None]", stop: Any
) -> None:
    """Looks for versions that come and go, until the end."""
    while not stop.wait(_POLL_SECONDS):
        for one in versions:
            try:
                one.look(functools.partial(tell, one.name))
            except Exception:
                _LOGGER.exception("%s: its folder of versions could not be followed.", one.name)


def open_indexes(config: ServeConfig) -> "dict[str, ServedIndex]":
    """The indexes by name, each with the first model that made its vectors, in any version."""
    from keras_bert_impl.serving.http.rest import ServedIndex
    from pipelines.vectors.index import VectorIndex

    opened = dict[str, ServedIndex]()
    models = config.models().items()
    ways = [(name, x) for name, how in models for x in versions_in(how).versions.values() or [how]]
    for words in config.index:
        name, folder = _name_and_folder(words)
        if name in opened:
            raise UserError(f"two indexes are called {shown(name)}; give each a name: NAME=FOLDER.")
        index, fault = VectorIndex.open(folder), f"{folder}: none of the models gives its vectors."
        check = functools.partial(_settings_for, index)
        for model, how in ways:
            try:
                settings = check(how)
            except UserError as error:
                fault = str(error)
                continue
            options = {"input_type": prompt} if (prompt := settings.named(QUERY)) else {}
            search = functools.partial(_search, index, settings.normalize)
            opened[name] = ServedIndex(model, options, search, check)
            break
        else:
            raise UserError(fault)
    return opened


def _settings_for(index: "VectorIndex", how: AnsweringConfig) -> SentenceSettings:
    """How a model makes the vectors of an index; refuses one that did not make them."""
    folder = located(how.model)
    source = find_exported(folder) or find_model(folder, **how.description())
    settings = sentence_settings_of(source)
    length = how.max_seq_length or settings.max_seq_length
    settings = dataclasses.replace(settings, max_seq_length=length)
    index.check_model(source, settings)
    return settings


def _search(
    index: "VectorIndex", normalize: bool, vectors: NDArray[np.float32], count: int
) -> list[list[dict[str, Any]]]:
    found = index.search(truncated(vectors, index.size, normalize), count)
    return [[one._asdict() for one in some] for some in found]


class CountingAnswerer:
    """Answers as another answerer does, and counts texts that are empty or cut, and [UNK].

    Where too many words of clients are [UNK] it warns once; no word of a client is kept.
    """

    def __init__(self, answerer: Answerer, text: TextSettings, name: str) -> None:
        self.answerer, self._name = answerer, name
        self._counter, self._lock = WordCounter(text.vocabulary), threading.Lock()
        self._count, self._told = WordCount(), False
        self._texts = self._empty = self._cut = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.answerer, name)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        prepared = self.answerer.prepare(instances)
        names = [one.name for one in self.answerer.inputs]
        texts = (texts_in(map(instance.get, names)) for instance in instances)
        empty = sum(not any(map(str.strip, some)) for some in texts)
        rows = () if self._told else prepared.rows
        count = sum((self._counter.count(row["input_ids"]) for row in rows), WordCount())
        with self._lock:
            self._texts += len(instances)
            self._cut += sum(map(bool, prepared.num_truncated))
            self._empty += empty
            self._count = count = self._count + count
            tells = not self._told and count.words >= _ENOUGH and count.is_large
            self._told |= tells
        if tells:
            _LOGGER.warning(
                "%s: %s asked so far become [UNK]: the model's vocabulary does not fit what it is "
                "asked.",
                *(self._name, count),
            )
        return prepared

    def log_left_out(self) -> None:
        """Says at the end of all texts how many were empty, and how many were cut."""
        most = self.answerer.most_tokens
        log_left_out(self._name, self._texts, empty=self._empty, cut=self._cut, most=most)


def show(model: "OpenAnsweringModel") -> "ShownModel":
    """A model as the page to try models on shows it."""
    from keras_bert_impl.serving.page.routes import show_model

    how = model.config
    return show_model(how.model, model, engine=how.engine or TENSORFLOW, **how.description())


def page_of(shown_models: "Mapping[str, ShownModel]") -> dict[str, Any]:
    """The page to try models on, as `make_app` takes it: its routes, and those without a key."""
    from keras_bert_impl.serving.page.routes import OPEN_PATHS, page_routes

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


def _fill_up(answerers: Sequence[Answerer], service: "Service") -> None:
    """Asks as much at once as there ever will be, so that memory shows before the load comes.

    Clients are answered meanwhile; what is asked here is not counted as theirs.
    """
    try:
        for counting in answerers:
            answerer = counting.answerer if isinstance(counting, CountingAnswerer) else counting
            tokens = min(answerer.tokens_at_once, _MOST_TOKENS) * answerer.batches_at_once
            count = max(answerer.batches_at_once, tokens // _WORDS)
            if service.stopping:
                return
            with contextlib.suppress(UserError, RuntimeError):  # the model may be closed meanwhile
                ask(answerer, [_instance(answerer, " ".join(["a"] * _WORDS))] * count)
    except Exception:
        _LOGGER.exception("The server is warmed up only in part.")
    finally:
        service.is_warm = True


def _instance(answerer: Answerer, text: str) -> dict[str, Any]:
    """What an answerer may be asked, made of a text."""
    needed = [one for one in answerer.inputs if one.needed]
    return {one.name: [text, text] if one.is_list else text for one in needed}
