"""The page to try models on: the server of `serving.py`, and beside it what shows their inside."""

from collections.abc import Mapping

from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.serving.answerer import AnsweringModel
from pipelines.answering.serving import Beside, ServeConfig, serve_models


def open_playground(config: ServeConfig) -> None:
    """Serves models with the page until Ctrl-C or SIGTERM."""
    serve_models(config, lambda models: _page_of(config, models))


def _page_of(config: ServeConfig, models: Mapping[str, AnsweringModel]) -> Beside:
    # Starlette is in an extra, whose lack `serve_models` tells in a sentence.
    from keras_bert_impl.serving.page.routes import OPEN_PATHS, page_routes
    from keras_bert_impl.serving.page.shown_models import show_model

    shown = {
        name: show_model(
            how.model, models[name], engine=how.engine or TENSORFLOW, **how.description()
        )
        for name, how in config.models().items()
    }
    return Beside(page_routes(shown), OPEN_PATHS)
