"""Models behind HTTP: which ones, by what names, and the server's life from opening to closing."""

import contextlib
import dataclasses
import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.options import nested, option
from keras_bert_impl.serving.answerer import Answerer, AnsweringModel, ask
from keras_bert_impl.serving.http.config import ServerConfig, is_of_this_machine_only, need_server
from pipelines.answering.asked_words import AskedWords, CountingAnswerer
from pipelines.answering.config import AnsweringConfig

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from keras_bert_impl.serving.http.app import Service
    from pipelines.answering.opening import OpenAnsweringModel

_LOGGER = logging.getLogger(__name__)

# What fills an engine up before the load comes.
_WORDS = 62  # of a text: with [CLS] and [SEP] 64 tokens
_MOST_TOKENS = 1024  # of a batch

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeConfig(ServerConfig):
    """Which models are served, by what names, where, and to whom."""

    model: tuple[str, ...] = option(
        (),
        "A model: a directory, a TF1 checkpoint, a run's folder or checkpoint, a name on the "
        "Hugging Face hub, or an export for OpenVINO. Repeat it for others; "
        "NAME=FOLDER names it at once.",
        repeated=True,
    )
    model_name: tuple[str, ...] = option(
        (),
        "What requests call the models, in the order of `model`; by default as their folders are "
        "called.",
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
            name, folder = _name_and_folder(words)
            name = self.model_name[place] if place < len(self.model_name) else name
            if not _NAME.fullmatch(name):
                raise UserError(
                    f"`model_name={name}`: is no name for a path; take letters, digits, '.', '_' "
                    "and '-'."
                )
            if name in found:
                raise UserError(
                    f"two models are called {shown(name)}; give each a `model_name` of its own."
                )
            found[name] = dataclasses.replace(self.answering, model=folder)
        return found


def _name_and_folder(words: str) -> tuple[str, str]:
    """What a model is called, and where it is.

    Example:
        >>> _name_and_folder("minilm=models/all-MiniLM-L6-v2"), _name_and_folder("runs/mrpc/")
        (('minilm', 'models/all-MiniLM-L6-v2'), ('mrpc', 'runs/mrpc/'))
    """
    name, equals, folder = words.partition("=")
    if equals and _NAME.fullmatch(name):
        return name, folder
    return Path(words).name, words


class Beside(NamedTuple):
    """What stands beside the models' own paths.

    Attributes:
        routes: pages and files.
        open_paths: those that need no API key.
    """

    routes: "Sequence[BaseRoute]" = ()
    open_paths: Sequence[str] = ()


_Opened = Mapping[str, AnsweringModel]


def serve_models(
    config: ServeConfig, beside: Callable[[_Opened], Beside] = lambda _: Beside()
) -> None:
    """Opens models and serves them until Ctrl-C or SIGTERM."""
    need_server()
    from keras_bert_impl.serving.http.app import make_app
    from keras_bert_impl.serving.http.server import listen, serve
    from pipelines.answering.opening import no_texts, open_answering_model

    key = config.key()
    # A port that is taken is told before a model is opened.
    with listen(config.host, config.port) as listening, contextlib.ExitStack() as stack:
        if key is None and not is_of_this_machine_only(config.host):
            _LOGGER.warning(
                "Whoever reaches %s may ask; with `api_key_file` only those who know a key.",
                config.host,
            )
        # Clients ask the models that count; what warms the engines up is nobody's word.
        opened, models = list[AnsweringModel](), dict[str, AnsweringModel]()
        for name, how in config.models().items():
            model = open_answering_model(how, no_texts)
            stack.callback(model.close)
            _warm_up(model)
            opened.append(model)
            models[name] = _counting(model, name)
            _LOGGER.info("%s: %s", name, ", ".join(model.answerers))
        others = beside(models)
        app = make_app(models, config, routes=others.routes, open_paths=others.open_paths)
        app.state.service.is_warm = False
        filling = threading.Thread(target=_fill_up, args=(opened, app.state.service))
        stack.callback(filling.join)
        filling.start()
        serve(app, config, listening)


def _counting(model: "OpenAnsweringModel", name: str) -> AnsweringModel:
    """A model that tells where its vocabulary does not fit what is asked."""
    words = AskedWords(model.text, name)
    counting = {
        signature: CountingAnswerer(answerer, words)
        for signature, answerer in model.answerers.items()
    }
    return dataclasses.replace(model, answerers=counting)


def _warm_up(model: AnsweringModel) -> None:
    """Asks each question once, so that the first client does not wait for what is made then."""
    for answerer in model.answerers.values():
        instance = _instance(answerer, "a")
        try:
            answerer.prepare([instance])
        except UserError:  # another number of endings, say
            continue
        ask(answerer, [instance])  # what the engine lacks is told now, and not to each client


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
