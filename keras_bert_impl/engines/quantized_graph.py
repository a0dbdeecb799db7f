"""A graph in 8-bit integers: its scales found on texts, and kept next to the model."""

import contextlib
import io
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.destination import QUANTIZED_FOLDER
from keras_bert_impl.checkpoints.run_folder import is_run_checkpoint
from keras_bert_impl.engines.engine import Features
from keras_bert_impl.engines.openvino_engine import (
    beside_the_main_thread,
    graph_sha256,
    openvino_core,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import file_sha256, whole_folder
from keras_bert_impl.json_files import read_sealed, sealed

_log = logging.getLogger(__name__)

_GRAPH, _WEIGHTS, _DESCRIPTION = "model.xml", "model.bin", "description.json"
_FORM = 3  # raised when the same graph would be quantized in another way
CALIBRATION_ROWS = 300


def quantized_graph(
    graph: Any, folder: Path | None, calibration: Callable[[], Sequence[Features]]
) -> Any:
    """The graph with its matrix products in 8-bit integers, kept with the model or made now.

    The ranges of numbers are those of the calibration texts (NNCF's post-training quantization for
    transformers). What was made for the same graph is taken as it is, whatever its texts were.

    Args:
        graph: an `openvino.Model`, float32; it is changed.
        folder: the model's, where the result is kept; None keeps it nowhere.
        calibration: gives inputs of a row each, some hundred of them; called where nothing is kept.

    Returns:
        The quantized `openvino.Model`.

    Raises:
        UserError: there are no calibration texts.
    """
    description = {"form": _FORM, "of": graph_sha256(graph)}
    # Nothing is put into a checkpoint of a run, which comes and goes.
    lasting = folder is not None and folder.exists() and not is_run_checkpoint(folder)
    kept = folder / QUANTIZED_FOLDER if folder is not None and lasting else None
    if kept is not None and _is_sound(kept, description):
        _log.info("%s: the scales of int8 are there.", kept)
        return openvino_core().read_model(kept / _GRAPH)
    made = _quantize(graph, calibration())
    if kept is not None:
        try:
            _keep(kept, made, description)
        except UserError as error:  # somebody else's folder, for example
            _log.warning("int8 is made anew each time: %s", error)
    return made


def _quantize(graph: Any, rows: Sequence[Features]) -> Any:
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

    Args:
        graph: an `openvino.Model`.
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


def _keep(folder: Path, graph: Any, description: dict[str, Any]) -> None:
    import openvino

    with whole_folder(folder) as aside:
        openvino.save_model(graph, aside / _GRAPH, compress_to_fp16=False)
        note = sealed({**description, "files": _digests(aside)})
        (aside / _DESCRIPTION).write_text(note, encoding="utf-8")


def _is_sound(folder: Path, description: Mapping[str, Any]) -> bool:
    """Whether what is kept is of the same graph, and every byte of it as it was written."""
    noted = read_sealed(folder / _DESCRIPTION, dict[str, Any])
    if noted is None or any(noted.get(name) != value for name, value in description.items()):
        return False
    try:
        return bool(noted.get("files") == _digests(folder))
    except UserError:
        return False


def _digests(folder: Path) -> dict[str, str]:
    return {name: file_sha256(folder / name) for name in (_GRAPH, _WEIGHTS)}


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
