"""TF2 checkpoints of TF Model Garden (tf-models-official), read without building its classes.

Such a checkpoint holds a graph of objects. What a variable is called depends on the way on which
the library reached it first; what an object is made of does not. So weights are found by walking
the graph to the objects that are shaped like an encoder or a head.
"""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.formats.google_tf1 import OBJECT_GRAPH, reading_variables
from keras_bert_impl.checkpoints.sources import PARAMS_FILE, TranslatedSource, parts_of
from keras_bert_impl.config import MASKED_LM_ENTRY, BertConfig
from keras_bert_impl.errors import reading, shown
from keras_bert_impl.files import check_parts, read_small
from keras_bert_impl.json_files import typed

_LOGGER = logging.getLogger(__name__)

_WHAT = "a TF2 checkpoint"
_REMEDY = "name the prefix of a checkpoint that TF Model Garden wrote of a BERT"
_VARIABLE = "VARIABLE_VALUE"
_POOLER_OF_HEAD = ".pooler_dense"
_LAYER = "layer_with_weights-"  # how Keras numbers the layers of a functional model

_BLOCK = {
    "_attention_layer/_query_dense": "attention.self.query",
    "_attention_layer/_key_dense": "attention.self.key",
    "_attention_layer/_value_dense": "attention.self.value",
    "_attention_layer/_output_dense": "attention.output.dense",
    "_attention_layer_norm": "attention.output.LayerNorm",
    "_intermediate_dense": "intermediate.dense",
    "_output_dense": "output.dense",
    "_output_layer_norm": "output.LayerNorm",
}
_EMBEDDINGS = {  # BertEncoderV2's name, the place in the older functional BertEncoder
    "_embedding_layer": (0, "word_embeddings"),
    "_position_embedding_layer": (1, "position_embeddings"),
    "_type_embedding_layer": (2, "token_type_embeddings"),
    "_embedding_norm_layer": (3, "LayerNorm"),
}
_FIRST_BLOCK = len(_EMBEDDINGS)
_PARTS = {
    **dict.fromkeys(("embeddings", "kernel", "gamma"), "weight"),
    **dict.fromkeys(("bias", "beta"), "bias"),
}
_HEADS = {  # a pre-trainer has both of the first two, or the second alone
    "cls.seq_relationship": "BertForPreTraining",
    "cls.predictions": "BertForMaskedLM",
    "qa_outputs": "BertForQuestionAnswering",
    "classifier": "BertForSequenceClassification",
}
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", None: "linear"}
_CONFIG = {  # of `task.model.encoder.bert` in params.yaml
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "hidden_act": "hidden_activation",
    "hidden_dropout_prob": "dropout_rate",
    "attention_probs_dropout_prob": "attention_dropout_rate",
    "max_position_embeddings": "max_position_embeddings",
    "type_vocab_size": "type_vocab_size",
    "initializer_range": "initializer_range",
}


def open_objects(prefix: Path) -> TranslatedSource:
    """Opens a TF2 checkpoint by its prefix."""
    check_parts(prefix)
    with reading_variables(prefix, _WHAT, _REMEDY) as load:
        reader = load(str(prefix))
        shapes = {name: tuple(one) for name, one in reader.get_variable_to_shape_map().items()}
        graph = _Graph(reader.get_tensor(OBJECT_GRAPH))
        translated = _find_weights(graph, shapes)

    def read(name: str) -> np.ndarray:
        with reading_variables(prefix, _WHAT, "download it again"):
            return np.asarray(reader.get_tensor(name))

    source = TranslatedSource(str(prefix), parts_of(prefix), shapes, translated, read)
    source.extra = _entries(graph, translated, prefix)
    return source


def read_params(path: Path) -> BertConfig:
    """The configuration in a run's `params.yaml`."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Plain values only, but the library writes tuples."""

    plain = yaml.SafeLoader.construct_sequence
    Loader.add_constructor("tag:yaml.org,2002:python/tuple", plain)
    content = read_small(path, 1, "no run's parameters need; name another folder")
    with reading(path, "the parameters of a BERT of TF Model Garden", "name bert_config.json"):
        try:
            values = yaml.load(content, Loader)  # noqa: S506  # a SafeLoader
        except yaml.YAMLError as error:
            raise ValueError(" ".join(str(error).split())) from error
        model = values["task"]["model"]
        if (kind := model["encoder"].get("type", "bert")) != "bert":
            raise ValueError(f"its encoder is {shown(kind)}")
        encoder = model["encoder"]["bert"]
        width = typed(encoder.get("embedding_size"), int | None, f"{path}: embedding_size")
        if encoder.get("norm_first") or width not in (None, encoder["hidden_size"]):
            raise ValueError("its norm_first or its embedding_size makes another model of it")
        given = {ours: encoder[name] for ours, name in _CONFIG.items() if name in encoder}
        if "id2label" in values:
            names = {str(number): name for number, name in values["id2label"].items()}
            given["id2label"] = typed(names, dict[str, str], f"{path}: id2label")
        activation = model.get("mlm_activation", given.get("hidden_act", "gelu"))
        activation = typed(activation, str | None, f"{path}: mlm_activation")
        if activation != given.get("hidden_act", "gelu"):
            given[MASKED_LM_ENTRY] = {"hidden_act": _ACTIVATIONS[activation]}
    return BertConfig.from_google(given, str(path))


class _Graph:
    """The objects of a checkpoint: what each is made of, and where its variables lie."""

    def __init__(self, content: bytes) -> None:
        from tensorflow.core.protobuf import trackable_object_graph_pb2

        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        try:
            graph.ParseFromString(content)
        except Exception as error:  # protobuf's own kind
            raise ValueError("its graph of objects is damaged") from error
        self.children, self._keys = list[dict[str, int]](), list[dict[str, str]]()
        for node in graph.nodes:
            self.children.append({one.local_name: one.node_id for one in node.children})
            self._keys.append({one.name: one.checkpoint_key for one in node.attributes})

    def walk(self) -> Iterator[int]:
        """All objects, those nearest to the root first."""
        seen, queue = {0}, [0]
        for node in queue:
            yield node
            new = [one for one in self.children[node].values() if one not in seen]
            seen.update(new)
            queue += new

    def follow(self, node: int, path: str) -> int | None:
        """The object at the end of a path of names such as "a/b"."""
        found: int | None = node
        for name in path.split("/"):
            found = None if found is None else self.children[found].get(name)
        return found

    def variables(self, node: int | None, name: str) -> dict[str, str]:
        """The keys of the variables of a layer, by Hugging Face's names with `name` in front."""
        children = {} if node is None else self.children[node]
        return {
            f"{name}.{_PARTS[part]}": self._keys[child][_VARIABLE]
            for part, child in children.items()
            if part in _PARTS and _VARIABLE in self._keys[child]
        }


def _entries(graph: _Graph, translated: Mapping[str, str], prefix: Path) -> dict[str, Any]:
    """What the objects say of the configuration.

    The activation of the head of masked words is in no file. The library's own runs (which write
    `params.yaml`, or pre-train a next sentence head, too) give it the tanh form of GELU; who makes
    a `BertPretrainerV2` by hand with "gelu" gets Keras' erf form.
    """
    name = _architecture(graph, translated)
    entries: dict[str, Any] = {"architectures": [name]} if name else {}
    if "cls.predictions.bias" in translated and not (prefix.parent / PARAMS_FILE).exists():
        of_a_run = "cls.seq_relationship.bias" in translated or any(
            child.endswith(_POOLER_OF_HEAD) for child in graph.children[0]
        )
        if not of_a_run:
            entries[MASKED_LM_ENTRY] = {"hidden_act": "gelu_erf"}
        taken, other = ("tanh", "erf") if of_a_run else ("erf", "tanh")
        _LOGGER.warning(
            f"{prefix}: does not say the activation of its head of masked words; the {taken} form "
            f'of GELU is taken ("{MASKED_LM_ENTRY}": {{"hidden_act": "gelu_{other}"}} in '
            f"bert_config.json for the {other} form)."
        )
    return entries


def _architecture(graph: _Graph, translated: Mapping[str, str]) -> str:
    """What transformers calls a model with the heads that were found; "" for an encoder."""
    heads = [head for head in _HEADS if f"{head}.bias" in translated]
    classifiers = (graph.children[node].get("classifier") for node in graph.walk())
    labels_tokens = any(graph.variables(one, "classifier") for one in classifiers)
    return "BertForTokenClassification" if labels_tokens else _HEADS[heads[0]] if heads else ""


def _find_weights(graph: _Graph, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """The keys of the weights by Hugging Face's names.

    Of several heads of classes one is read: the next sentence head has two classes.
    """
    nodes = list(graph.walk())
    encoders = {(*_blocks(graph, node),): node for node in reversed(nodes)}
    encoders.pop((), None)
    if len(encoders) != 1:
        several = "several of its objects are encoders"
        raise ValueError(several if encoders else "none of its objects is a BERT's encoder")
    found = _encoder(graph, *encoders.values())
    masked = next((n for n in nodes if "embedding_table" in graph.children[n]), None)
    if masked is not None:
        found |= _masked_lm(graph, masked)
    label_head = "classifier" if masked is None else "cls.seq_relationship"
    heads = list(filter(None, (_head(graph, node, label_head) for node in nodes)))
    if masked is not None:
        classes = [shapes.get(head.get(f"{label_head}.bias", ""), (2,)) for head in heads]
        heads = [head for head, shape in zip(heads, classes, strict=True) if shape == (2,)]
    whole = next((head for head in heads if f"{label_head}.bias" in head), {})
    for head in heads:
        if f"{label_head}.bias" not in head:
            found |= head
        elif head[f"{label_head}.bias"] != whole[f"{label_head}.bias"]:
            _LOGGER.warning("A further head of classes is not read; the first one is.")
    return found | whole


def _blocks(graph: _Graph, node: int) -> list[int]:
    """The blocks of an encoder; none where an object is no encoder."""
    children = graph.children[node]
    if "_transformer_layers" in children:  # BertEncoderV2
        layers = graph.children[children["_transformer_layers"]]
        return [layers[key] for key in sorted((k for k in layers if k.isdigit()), key=int)]
    numbered = [children.get(f"{_LAYER}{number}") for number in range(len(children))]
    blocks = [one for one in numbered[_FIRST_BLOCK:] if one is not None]
    return [one for one in blocks if "_attention_layer" in graph.children[one]]


def _encoder(graph: _Graph, node: int) -> dict[str, str]:
    children, blocks = graph.children[node], _blocks(graph, node)
    if "_embedding_projection" in children:
        raise ValueError("its embeddings are projected to another width, as no BERT's are")
    is_new = "_transformer_layers" in children
    found: dict[str, str] = {}
    for name, (place, theirs) in _EMBEDDINGS.items():
        layer = children.get(name if is_new else f"{_LAYER}{place}")
        found |= graph.variables(layer, f"bert.embeddings.{theirs}")
    for number, block in enumerate(blocks):
        for path, theirs in _BLOCK.items():
            layer = graph.follow(block, path)
            found |= graph.variables(layer, f"bert.encoder.layer.{number}.{theirs}")
    pooler = "_pooler_layer" if is_new else f"{_LAYER}{_FIRST_BLOCK + len(blocks)}"
    return found | graph.variables(children.get(pooler), "bert.pooler.dense")


def _masked_lm(graph: _Graph, node: int) -> dict[str, str]:
    children = graph.children[node]
    return {
        **graph.variables(children.get("dense"), "cls.predictions.transform.dense"),
        **graph.variables(children.get("layer_norm"), "cls.predictions.transform.LayerNorm"),
        **graph.variables(node, "cls.predictions"),
    }


def _head(graph: _Graph, node: int, label_head: str) -> dict[str, str]:
    """The weights of a head that an object is, or that it holds; {} if neither.

    A head of classes may have a pooler of its own (`dense`): it is used, not the encoder's.
    """
    children = graph.children[node]
    if "out_proj" in children:
        pooler = graph.variables(children.get("dense"), "bert.pooler.dense")
        return pooler | graph.variables(children["out_proj"], label_head)
    if "span_labeling" in children:
        layer = graph.follow(children["span_labeling"], f"{_LAYER}0")
        return graph.variables(layer, "qa_outputs")
    if "classification" in children:  # of the older BertPretrainer
        layer = graph.follow(children["classification"], f"{_LAYER}0")
        return graph.variables(layer, label_head)
    pooler_of_head = next((name for name in children if name.endswith(_POOLER_OF_HEAD)), "")
    found = graph.variables(children.get(pooler_of_head), "bert.pooler.dense")
    return found | graph.variables(children.get("classifier"), "classifier")
