"""BERT once more, in plain NumPy and float64: the independent reference for numerics.

It shares no code with the project: it reads `config.json` and `model.safetensors` of a model
directory itself and follows the published formulae.
"""

import json
import math
from pathlib import Path

import numpy as np

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


def read_tensors(path):
    """The tensors of a safetensors file, float64."""
    content = Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        flat = np.frombuffer(content[start:end], _TYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"]).astype(np.float64)
    return tensors


class NumpyBert:
    """The encoder and the heads of a model directory.

    Args:
        folder: a Hugging Face directory, with a "bert." prefix or without.
    """

    def __init__(self, folder):
        folder = Path(folder)
        self.config = json.loads((folder / "config.json").read_text())
        tensors = read_tensors(folder / "model.safetensors")
        self.tensors = {name.removeprefix("bert."): array for name, array in tensors.items()}
        self.act = _ACTIVATIONS[self.config["hidden_act"]]

    def encode(self, input_ids, input_mask, segment_ids):
        """All layers: [embeddings, block 0, block 1, ...], each [batch, length, hidden]."""
        length = input_ids.shape[1]
        self.attention = []  # of the last call: [batch, heads, length, length] of each block
        total = (
            self.tensors["embeddings.word_embeddings.weight"][input_ids]
            + self.tensors["embeddings.token_type_embeddings.weight"][segment_ids]
            + self.tensors["embeddings.position_embeddings.weight"][:length]
        )
        layers = [self._norm("embeddings.LayerNorm", total)]
        seen = np.broadcast_to(input_mask[:, None, None, :], (len(input_ids), 1, length, length))
        if self.config.get("is_decoder"):
            seen = seen * np.tril(np.ones((length, length)))
        if self.config.get("anticausal"):
            seen = seen * np.triu(np.ones((length, length)))
        for number in range(self.config["num_hidden_layers"]):
            layers.append(self._block(f"encoder.layer.{number}", layers[-1], (1.0 - seen) * -1e4))
        return layers

    def pooled(self, sequence):
        """[batch, length, hidden] -> [batch, hidden]"""
        return np.tanh(self._dense("pooler.dense", sequence[:, 0]))

    def masked_lm_log_probabilities(self, sequence, positions):
        """[batch, length, hidden], [batch, predictions] -> [batch, predictions, vocabulary]"""
        hidden = np.take_along_axis(sequence, positions[..., None], axis=1)
        hidden = self.act(self._dense("cls.predictions.transform.dense", hidden))
        hidden = self._norm("cls.predictions.transform.LayerNorm", hidden)
        logits = hidden @ self.tensors["embeddings.word_embeddings.weight"].T
        return log_softmax(logits + self.tensors["cls.predictions.bias"])

    def next_sentence_log_probabilities(self, pooled):
        """[batch, hidden] -> [batch, 2]"""
        return log_softmax(self._dense("cls.seq_relationship", pooled))

    def class_logits(self, pooled):
        """[batch, hidden] -> [batch, labels]"""
        return self._dense("classifier", pooled)

    def head_outputs(self, head, batch):
        """What the model with a head gives: "classifier", "span", "tagger" or "choice"."""
        inputs = [batch[name] for name in ("input_ids", "input_mask", "segment_ids")]
        sequence = self.encode(*(part.reshape(-1, part.shape[-1]) for part in inputs))[-1]
        if head == "span":
            scores = self._dense("qa_outputs", sequence)
            return {"start_logits": scores[..., 0], "end_logits": scores[..., 1]}
        if head == "tagger":
            return {"logits": self._dense("classifier", sequence)}
        logits = self.class_logits(self.pooled(sequence))
        return {"logits": logits.reshape(inputs[0].shape[:2]) if head == "choice" else logits}

    def pretraining_loss(self, batch):
        """The sum of the masked-LM and next-sentence losses of a batch of features."""
        sequence = self.encode(batch["input_ids"], batch["input_mask"], batch["segment_ids"])[-1]
        masked = self.masked_lm_log_probabilities(sequence, batch["masked_lm_positions"])
        right = np.take_along_axis(masked, batch["masked_lm_ids"][..., None], axis=2)[..., 0]
        weights = batch["masked_lm_weights"]
        following = self.next_sentence_log_probabilities(self.pooled(sequence))
        following = np.take_along_axis(following, batch["next_sentence_labels"], axis=1)
        return -(right * weights).sum() / weights.sum() - following.mean()

    def _block(self, name, hidden, mask):
        heads = self.config["num_attention_heads"]
        batch, length, width = hidden.shape

        def split(part):
            projected = self._dense(f"{name}.attention.self.{part}", hidden)
            return projected.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(width // heads) + mask
        self.attention.append(np.exp(log_softmax(scores)))
        context = (self.attention[-1] @ value).transpose(0, 2, 1, 3)
        context = context.reshape(batch, length, width)
        attended = self._dense(f"{name}.attention.output.dense", context)
        hidden = self._norm(f"{name}.attention.output.LayerNorm", attended + hidden)
        wide = self.act(self._dense(f"{name}.intermediate.dense", hidden))
        narrow = self._dense(f"{name}.output.dense", wide)
        return self._norm(f"{name}.output.LayerNorm", narrow + hidden)

    def _dense(self, name, inputs):
        return inputs @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def _norm(self, name, inputs):
        mean = inputs.mean(-1, keepdims=True)
        variance = ((inputs - mean) ** 2).mean(-1, keepdims=True)
        scaled = (inputs - mean) / np.sqrt(variance + self.config.get("layer_norm_eps", 1e-12))
        return scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]


def log_softmax(logits):
    """Logarithms of the softmax over the last axis."""
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def _gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gelu_erf(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


_ACTIVATIONS = {
    "gelu": _gelu_erf,
    "gelu_new": _gelu_tanh,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}
