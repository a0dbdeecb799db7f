"""One table of names: ours, google's (TF1) and Hugging Face's, and what is transposed.

Our names are the `path` of a model's variables. Matrices of dense layers stand [in, out] here and
in google's encoder, [out, in] in Hugging Face's files and in google's output layers.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Names:
    """The names of one weight.

    Hugging Face's is the name in a file of a model with heads, with the prefix "bert.".
    """

    ours: str
    google: str
    hugging_face: str
    google_transposed: bool = False
    hugging_face_transposed: bool = False

    @property
    def part(self) -> str:
        """Where the weight belongs: "encoder", "pooler" or the name of a head."""
        first = self.ours.split("/")[0]
        return "encoder" if first == "embeddings" or first.startswith("layer_") else first


_EMBEDDINGS = {
    "token_embeddings": "word_embeddings",
    "segment_embeddings": "token_type_embeddings",
    "position_embeddings": "position_embeddings",
}
_BLOCK_DENSE = {
    "attention/query": "attention/self/query",
    "attention/key": "attention/self/key",
    "attention/value": "attention/self/value",
    "attention_output": "attention/output/dense",
    "intermediate": "intermediate/dense",
    "output": "output/dense",
}
_BLOCK_NORM = {
    "attention_layer_norm": "attention/output/LayerNorm",
    "output_layer_norm": "output/LayerNorm",
}
# Output layers: our layer -> (google's, Hugging Face's). google writes them [out, in].
_OUTPUTS = {
    "next_sentence/dense": ("cls/seq_relationship/output_", "cls.seq_relationship"),
    "classifier/dense": ("output_", "classifier"),
    "choice/dense": ("output_", "classifier"),
    "tagger/dense": ("output_", "classifier"),
    "span/dense": ("cls/squad/output_", "qa_outputs"),
}
# PyTorch marks the direction of an LSTM by an ending.
_DIRECTIONS = {"forward": "", "backward": "_reverse"}

HEADS = ("masked_lm", "next_sentence", "classifier", "span", "tagger", "choice")
"""All heads."""

BILSTM = "bilstm"
"""The part between encoder and head that some models have; see `models.encoder`."""


def _dotted(google: str) -> str:
    """Hugging Face writes layer.0 where google writes layer_0."""
    return re.sub(r"\.layer_(\d+)\.", r".layer.\1.", google.replace("/", "."))


def _dense(ours: str, google: str) -> list[Names]:
    dotted = _dotted(google)
    return [
        Names(
            f"{ours}/kernel", f"{google}/kernel", f"{dotted}.weight", hugging_face_transposed=True
        ),
        Names(f"{ours}/bias", f"{google}/bias", f"{dotted}.bias"),
    ]


def _norm(ours: str, google: str) -> list[Names]:
    dotted = _dotted(google)
    return [
        Names(f"{ours}/gamma", f"{google}/gamma", f"{dotted}.weight"),
        Names(f"{ours}/beta", f"{google}/beta", f"{dotted}.bias"),
    ]


def encoder_names(blocks: int) -> list[Names]:
    """The names of an encoder's weights, pooler included."""
    rows = [
        Names(f"embeddings/{ours}", f"bert/embeddings/{theirs}", f"bert.embeddings.{theirs}.weight")
        for ours, theirs in _EMBEDDINGS.items()
    ]
    rows += _norm("embeddings/layer_norm", "bert/embeddings/LayerNorm")
    for number in range(blocks):
        for ours, theirs in _BLOCK_DENSE.items():
            rows += _dense(f"layer_{number}/{ours}", f"bert/encoder/layer_{number}/{theirs}")
        for ours, theirs in _BLOCK_NORM.items():
            rows += _norm(f"layer_{number}/{ours}", f"bert/encoder/layer_{number}/{theirs}")
    return rows + _dense("pooler/dense", "bert/pooler/dense")


def head_names(head: str) -> list[Names]:
    """The names of a head's weights; empty for a name that is no head."""
    if head == "masked_lm":
        return [
            Names("masked_lm/output_bias", "cls/predictions/output_bias", "cls.predictions.bias"),
            *_dense("masked_lm/transform", "cls/predictions/transform/dense"),
            *_norm("masked_lm/layer_norm", "cls/predictions/transform/LayerNorm"),
        ]
    if head == BILSTM:
        return _lstm_names(BILSTM)
    layer = f"{head}/dense"
    if layer not in _OUTPUTS:
        return []
    google, hugging_face = _OUTPUTS[layer]
    kernel = Names(f"{layer}/kernel", f"{google}weights", f"{hugging_face}.weight", True, True)
    return [kernel, Names(f"{layer}/bias", f"{google}bias", f"{hugging_face}.bias")]


def _lstm_names(ours: str) -> list[Names]:
    """The names of a `StackedBiLSTM` of one layer; in Hugging Face's files those of PyTorch.

    Both have the gates in the same order (input, forget, cell, output); PyTorch's second bias,
    which is only added to the first, is left out.
    """
    parts = {"kernel": ("weight_ih", True), "recurrent_kernel": ("weight_hh", True)}
    parts["bias"] = ("bias_ih", False)
    rows = []
    for direction, ending in _DIRECTIONS.items():
        one = f"{ours}/{direction}_0"
        for part, (theirs, transposed) in parts.items():
            pytorch = f"{ours.replace('/', '.')}.{theirs}_l0{ending}"
            names = (f"{one}/lstm_cell/{part}", f"{one}/{part}", pytorch)
            rows.append(Names(*names, hugging_face_transposed=transposed))
    return rows


def all_names(blocks: int, heads: tuple[str, ...] = ()) -> list[Names]:
    """The names of an encoder's weights, then those of its heads."""
    return [*encoder_names(blocks), *(row for head in heads for row in head_names(head))]
