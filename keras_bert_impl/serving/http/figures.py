"""What Prometheus reads: requests, their time, batches, tokens, and what waits."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from keras_bert_impl.serving.http.batching import Batch, Observer

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Figures:
    """The figures of one server."""

    CONTENT_TYPE = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ours, call = ("model", "signature"), ("model", "method")
        self._requests = Counter(
            "keras_bert_requests", "Requests.", (*call, "status"), registry=registry
        )
        self._seconds = Histogram(
            "keras_bert_request_seconds",
            "From a request's head to its answer.",
            call,
            buckets=_SECONDS,
            registry=registry,
        )
        self._rows = Histogram(
            "keras_bert_batch_rows", "Rows of a batch.", ours, buckets=_ROWS, registry=registry
        )
        self._batch_seconds = Histogram(
            "keras_bert_batch_seconds",
            "Computation of a batch.",
            ours,
            buckets=_SECONDS,
            registry=registry,
        )
        self._tokens = Counter("keras_bert_tokens", "Tokens computed.", ours, registry=registry)
        about = "Positions computed: tokens and their padding."
        self._positions = Counter("keras_bert_positions", about, ours, registry=registry)
        about = "Instances whose answers are not there yet."
        self._waiting = Gauge("keras_bert_waiting_instances", about, ours, registry=registry)

    def request(self, model: str, method: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        self._requests.labels(model, method, str(status)).inc()
        self._seconds.labels(model, method).observe(seconds)

    def watch(self, model: str, signature: str, waiting: Callable[[], int]) -> Observer:
        """What counts the batches of one answerer."""
        labels = (model, signature)
        self._waiting.labels(*labels).set_function(waiting)
        rows, duration = self._rows.labels(*labels), self._batch_seconds.labels(*labels)
        tokens, positions = self._tokens.labels(*labels), self._positions.labels(*labels)

        def count(batch: Batch) -> None:
            rows.observe(batch.rows)
            duration.observe(batch.seconds)
            tokens.inc(batch.tokens)
            positions.inc(batch.positions)

        return count

    def text(self) -> bytes:
        """All figures as Prometheus reads them."""
        return generate_latest(self._registry)
