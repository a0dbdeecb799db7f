"""Holding a checkpoint's header against a configuration, before a number is read or a model made.

A configuration is a small file that says any size: only the weights' own file bears it out.
"""

from collections.abc import Mapping, Sequence

from keras_bert_impl.checkpoints.names import all_names
from keras_bert_impl.checkpoints.restore import check_encoder
from keras_bert_impl.checkpoints.tensor_source import FoundTensor, TensorSource, weight_shape
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError

LABEL_HEADS = ("next_sentence", "classifier", "tagger", "choice", "span")
Shape = tuple[int, ...]


def check_sizes(
    source: TensorSource, config: BertConfig, heads: Sequence[str] = ()
) -> dict[str, FoundTensor]:
    """Finds the weights of an encoder and of some heads, and holds their shapes against a config.

    The number of a head's labels is free, but its two weights must agree on it.

    Args:
        source: the checkpoint.
        config: the configuration that is said to belong to it.
        heads: the heads that are wanted; a weight of theirs may be missing.

    Returns:
        The checkpoint's tensors by our names.

    Raises:
        UserError: the encoder is not whole, or a shape is another one.
    """
    tensors = len(source.names())
    if config.num_hidden_layers > tensors:
        raise UserError(
            f"{source.location}: holds {tensors} tensors, too few for the "
            f"{config.num_hidden_layers} blocks of the configuration; name the configuration that "
            "belongs to the checkpoint."
        )
    rows = all_names(config.num_hidden_layers, tuple(heads))
    found = {row.ours: hit for row in rows if (hit := source.find(row))}
    check_encoder(source, rows, found)
    shapes = {path: weight_shape(source, hit) for path, hit in found.items()}
    for path, shape in shapes.items():
        if path.split("/")[0] in LABEL_HEADS:
            _check_label_head(source.location, path, shapes, config.hidden_size)
        elif shape != (wanted := _wanted(path, config)):
            raise UserError(
                f"{source.location}: {path} has the shape {list(shape)}, but the configuration "
                f"says {list(wanted)}; name the configuration that belongs to the checkpoint."
            )
    return found


def _wanted(path: str, config: BertConfig) -> Shape:
    h, wide = config.hidden_size, config.intermediate_size
    tables = {
        "embeddings/token_embeddings": (config.vocab_size, h),
        "embeddings/segment_embeddings": (config.type_vocab_size, h),
        "embeddings/position_embeddings": (config.max_position_embeddings, h),
        "masked_lm/output_bias": (config.vocab_size,),
    }
    if path in tables:
        return tables[path]
    layer, part = path.rsplit("/", 1)
    width = wide if layer.endswith("/intermediate") else h
    if part != "kernel":
        return (width,)
    return (wide if layer.startswith("layer_") and layer.endswith("/output") else h, width)


def _check_label_head(location: str, path: str, shapes: Mapping[str, Shape], hidden: int) -> None:
    layer, part = path.rsplit("/", 1)
    both = (shapes.get(f"{layer}/bias"), shapes.get(f"{layer}/kernel"))
    labels = next((shape[-1] for shape in both if shape), 0)
    wanted = (hidden, labels) if part == "kernel" else (labels,)
    if shapes[path] != wanted:
        raise UserError(
            f"{location}: {path} has the shape {list(shapes[path])}, but a head of {labels} labels "
            f"needs {list(wanted)}; download the checkpoint again."
        )
