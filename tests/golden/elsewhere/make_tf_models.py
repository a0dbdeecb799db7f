"""Makes `tf_models/more` and `more.npz`: the heads of TF Model Garden, saved as its runs save them.

Run in an environment of its own: `pip install --no-deps tf-models-official==2.19.1` with
`tensorflow`, `tf-keras` and `gin-config`.
"""

import os
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
from official.modeling import tf_utils
from official.nlp.modeling import layers, models, networks

HERE = Path(__file__).parent / "tf_models"
SIZES = {
    "vocab_size": 70,
    "hidden_size": 32,
    "num_layers": 2,
    "num_attention_heads": 4,
    "inner_dim": 64,
    "max_sequence_length": 40,
    "type_vocab_size": 2,
}
PARAMS = """task:
  model:
    encoder:
      bert:
        attention_dropout_rate: 0.1
        dropout_rate: 0.1
        embedding_size: null
        hidden_activation: gelu
        hidden_size: 32
        initializer_range: 0.02
        intermediate_size: 64
        max_position_embeddings: 40
        norm_first: false
        num_attention_heads: 4
        num_layers: 2
        type_vocab_size: 2
        vocab_size: 70
      type: bert
    mlm_activation: gelu
trainer:
  train_steps: 10
  loss_scale: !!python/tuple [1, 2]
"""


def scatter(model, seed):
    """Moves every weight off its first value."""
    random = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign_add(random.normal(0, 0.2, weight.shape))


def head_with_pooler(name, classes):
    return layers.ClassificationHead(inner_dim=32, num_classes=classes, name=name)


def main():
    given = np.load(HERE / "outputs.npz")
    ids, mask = given["input_ids"], given["attention_mask"]
    inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": np.zeros_like(ids)}
    outputs = {}
    for kind, encoder_class in (("v2", networks.BertEncoderV2), ("v1", networks.BertEncoder)):
        encoder = encoder_class(**SIZES)
        made = {
            "span": models.BertSpanLabeler(encoder),
            "tags": models.BertTokenClassifier(encoder, 5),
            "head_with_pooler": models.BertClassifier(
                encoder,
                3,
                cls_head=head_with_pooler("sentence_prediction", 3),
                use_encoder_pooler=False,
            ),
            "pretrainer": models.BertPretrainerV2(
                encoder,
                mlm_activation=tf_utils.get_activation("gelu"),
                classification_heads=[head_with_pooler("next_sentence", 2)],
            ),
        }
        for name, model in made.items():
            more = {"masked_lm_positions": given["masked_lm_positions"]}
            asked = {**inputs, **(more if name == "pretrainer" else {})}
            if kind == "v1" and name != "pretrainer":
                asked = [inputs["input_word_ids"], inputs["input_mask"], inputs["input_type_ids"]]
            model(asked)
            scatter(model, seed=len(outputs))
            found = model(asked)
            if name == "span":
                found = {"start": found[0], "end": found[1]}
            if name == "head_with_pooler":
                found = {"logits": found}
            for part, value in found.items():
                if part in ("start", "end", "logits", "mlm_logits", "next_sentence"):
                    outputs[f"{kind}_{name}/{part}"] = np.asarray(value)
            folder = HERE / "more" / f"{kind}_{name}"
            folder.mkdir(parents=True, exist_ok=True)
            step = tf.Variable(7, dtype=tf.int64)
            tf.train.Checkpoint(model=model, global_step=step).write(str(folder / "ckpt-7"))
            (folder / "params.yaml").write_text(PARAMS)
            (folder / "vocab.txt").write_bytes((HERE / "encoder" / "vocab.txt").read_bytes())
    np.savez_compressed(HERE / "more.npz", **outputs)


if __name__ == "__main__":
    main()
