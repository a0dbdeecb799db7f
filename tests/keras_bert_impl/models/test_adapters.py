import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.adapters import AdapterConfig, add_adapters, freeze_loaded
from keras_bert_impl.models.classifier import BertClassifier
from tests.support.model_folders import tiny_config
from tests.support.tiny_bert import scatter_weights

IDS = np.array([[2, 5, 7, 3], [2, 8, 3, 0]], "int32")


def adapted(targets, **options):
    config = tiny_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertClassifier(config, num_labels=2)
    loaded = [weight.path for weight in model.encoder.weights if "pooler" not in weight.path]
    add_adapters(model, AdapterConfig(lora_rank=2, lora_targets=targets, **options))
    freeze_loaded(model, loaded)
    return scatter_weights(model)


def test_adapters_the_head_and_what_is_new_learn():
    model = adapted(("all",), use_rslora=True)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model({"input_ids": IDS}, training=True)["logits"][:, 0] ** 2)
    gradients = tape.gradient(loss, [x.value for x in model.trainable_variables])
    learn = [weight.path for weight in model.trainable_variables]
    adapters = [path for path in learn if "lora_" in path]
    assert len(adapters) == 12
    assert {*learn} - {*adapters} == {
        f"{layer}/{part}"
        for layer in ("pooler/dense", "classifier/dense")
        for part in ("kernel", "bias")
    }
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)


def test_adapters_change_nothing_at_first_and_are_what_plain_weights_hold():
    config, model = AdapterConfig(lora_rank=2, lora_alpha=3.0), BertClassifier(tiny_config(), 2)
    before = {path: weight.copy() for path, weight in model.plain_weights().items()}
    add_adapters(model, config)
    path = "layer_0/attention/query/kernel"
    np.testing.assert_array_equal(model.plain_weights()[path], before[path])
    scatter_weights(model)
    weights = {weight.path: np.asarray(weight) for weight in model.weights}
    a, b = (weights[path.replace("kernel", f"lora_{part}")] for part in "ab")
    np.testing.assert_allclose(model.plain_weights()[path], weights[path] + 1.5 * a @ b, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"lora_targets": ("query", "embeddings")}, "`lora_targets` names 'embeddings'; choose"),
        ({"lora_targets": ()}, "`lora_targets` names nothing"),
        ({"lora_rank": -1}, "`lora_rank=-1` must be 0 or more"),
        ({"lora_alpha": 0.0}, "`lora_alpha=0.0` must be more than 0"),
        ({"lora_alpha": 8.0}, "`lora_alpha` needs `lora_rank`"),
        ({"lora_targets": ("all",)}, "`lora_targets` needs `lora_rank`"),
        ({"use_rslora": True}, "`use_rslora` needs `lora_rank`"),
    ],
)
def test_other_options_are_one_sentence(options, sentence):
    with pytest.raises(UserError, match=sentence):
        AdapterConfig(**options)
