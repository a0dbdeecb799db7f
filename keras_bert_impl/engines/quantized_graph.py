"""A graph in 8-bit integers, its scales found on texts."""

import contextlib
import io
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from keras_bert_impl.engines.engine import Features
from keras_bert_impl.engines.openvino_graph import beside_the_main_thread
from keras_bert_impl.errors import UserError

_log = logging.getLogger(__name__)

CALIBRATION_ROWS = 300


def quantize(graph: Any, rows: Sequence[Features]) -> Any:
    """The graph with its matrix products in 8-bit integers.

    The ranges of numbers are those of the calibration texts (NNCF's post-training quantization for
    transformers).

    Args:
        graph: an `openvino.Model`, float32; it is changed.

    Returns:
        The quantized `openvino.Model`.
    """
    import nncf

    if not rows:
        raise UserError("`precision=int8` needs texts to find its scales on; give some of yours.")
    _log.info("int8: finding the scales on %d texts.", len(rows))
    logging.getLogger("nncf").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):  # its bars are no output of ours
        return beside_the_main_thread(
            lambda: nncf.quantize(
                graph,
                nncf.Dataset(list(rows)),
                model_type=nncf.ModelType.TRANSFORMER,
                subset_size=len(rows),
                ignored_scope=nncf.IgnoredScope(names=head_products(graph)),
            )
        )


def head_products(graph: Any) -> list[str]:
    """The names of the matrix products that stay as they are: those of one token of a text.

    They stand behind the encoder, where no time is won, and what 8 bits cut off is an error of the
    answer itself. (With its pooler and its regressor in 8 bits a model lost 1.8 points of Pearson's
    correlation on STS-B, with its encoder none.) Small heads are no products; see
    `OpenVinoKernels`.
    """
    names = []
    for operation in graph.get_ops():
        # The segments' embeddings are a product, too, of what is chosen by number.
        if operation.get_type_name() == "MatMul" and (
            _kind(operation.input_value(1)) == "Constant"
            and _kind(operation.input_value(0)) != "OneHot"
        ):
            shape = operation.input_value(0).get_partial_shape()
            if shape.rank.is_static and len(shape) == 2:  # not [batch, length, width]
                names.append(operation.get_friendly_name())
    return names


def _kind(output: Any) -> str:
    return str(output.get_node().get_type_name())


def evenly_spread(items: Iterable[Any], count: int) -> list[Any]:
    """At most `count` of any number of items, spread over all of them; read once, in little memory.

    Example:
        >>> evenly_spread(range(10), 4)
        [0, 4, 8]
    """
    kept: list[Any] = []
    step = 1
    for number, item in enumerate(items):
        if number % step == 0:
            kept.append(item)
        if len(kept) > count:
            kept, step = kept[::2], 2 * step
    return kept
