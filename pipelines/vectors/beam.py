"""Texts to vectors on Apache Beam, as one transform of a pipeline."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import PCollection
from apache_beam.utils.shared import Shared
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.vectors.embed import open_embedder
from pipelines.vectors.options import VectorModelConfig

TextOf = Callable[[Any], str]
_MOST_CHARACTERS = 1 << 24  # of the texts that wait to be computed together
_ONE_AT_A_TIME = threading.Lock()  # of a process' threads computes, on all cores


class Embed(beam.PTransform):
    """Elements → (element, the vector of its text, float32 [width]).

    The vectors are those of `Embedder.embed`. A worker process opens the model once, whatever the
    number of its threads. The texts of a bundle are computed together, those of like length in one
    batch; at most 16,384 texts or 16 million characters wait, so that memory does not grow with
    the bundle. An element keeps its window and its timestamp.

    Args:
        config: the model and what computes it. It is opened by the workers, so a path must lead
            there, too. With `precision="int8"` the scales must be there next to the model; `embed`
            puts them there.
        text_of: gives an element's text; by default the element is the text.

    Example:
        >>> embed = Embed(VectorModelConfig(model="all-MiniLM-L6-v2"), lambda row: row["review"])
        >>> embed.default_label()
        'Embed'
    """

    def __init__(self, config: VectorModelConfig, text_of: TextOf | None = None) -> None:
        super().__init__()
        self._bundles = EmbedBundle(config, text_of)

    def expand(self, elements: PCollection) -> PCollection:
        return elements | "Compute" >> beam.ParDo(self._bundles)


class EmbedBundle(beam.DoFn):
    """Computes the texts of a bundle together; see `Embed`."""

    def __init__(self, config: VectorModelConfig, text_of: TextOf | None) -> None:
        super().__init__()
        self._config, self._text_of = config, text_of
        self._shared = Shared()  # travels with the function: all its copies in a process share

    def setup(self) -> None:
        self._embedder = self._shared.acquire(lambda: open_embedder(self._config, ()))

    def start_bundle(self) -> None:
        self._texts: list[str] = []
        self._waiting: list[WindowedValue] = []
        self._characters = 0

    def process(
        self,
        element: Any,
        timestamp: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
    ) -> Iterator[WindowedValue]:
        text = element if self._text_of is None else self._text_of(element)
        self._texts.append(text)
        self._waiting.append(WindowedValue(element, timestamp, (window,)))
        self._characters += len(text) if isinstance(text, str | bytes) else 0
        enough = len(self._texts) >= self._embedder.texts_at_once
        if enough or self._characters >= _MOST_CHARACTERS:
            yield from self._compute()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._texts:
            yield from self._compute()

    def teardown(self) -> None:
        """Lets the model go; the process keeps it for the next copy of this function."""
        self._embedder = None

    def _compute(self) -> Iterator[WindowedValue]:
        texts, waiting = self._texts, self._waiting
        self.start_bundle()
        with _ONE_AT_A_TIME:
            vectors = self._embedder.embed(texts, dimensions=self._config.dimensions)
        Metrics.counter("embed", "texts").inc(len(texts))
        for one, vector in zip(waiting, vectors, strict=True):
            # A copy: a view would keep the vectors of all.
            yield one.with_value((one.value, vector.copy()))
