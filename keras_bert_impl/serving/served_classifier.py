"""A fine-tuned classifier or regression as it is served: by ids and by raw text."""

import tensorflow as tf

from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.signatures import ENCODER_INPUTS, ServedModel, ids_specs, text_specs
from keras_bert_impl.serving.text_inputs import GraphTokenize, TextPacker


class ServedClassifier(ServedModel):
    """The signatures of a `BertClassifier`.

    `serving_default`: input_ids, input_mask, segment_ids, int32 [batch, length]; `text`: text,
    strings [batch]; `text_pair`: text_a and text_b, strings [batch]. Each gives, with labels,
    label (strings [batch]), probabilities [batch, labels] and logits [batch, labels]; of a
    regression, score [batch]. Where each label is a question of its own (`problem_type` is
    "multi_label_classification") there is no label, and probabilities do not add up to 1.

    Args:
        opened: a fine-tuned model with its vocabulary and its labels; one label is a regression.
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (pieces)].
        max_length: texts are cut to this many pieces.
    """

    def __init__(
        self,
        opened: OpenedModel,
        tokenizer: GraphTokenize,
        max_length: int,
    ) -> None:
        model = opened.model
        super().__init__(model)
        packer = TextPacker(tokenizer, opened.vocabulary, max_length)
        names = tf.constant(opened.labels)

        def answer(logits: tf.Tensor) -> dict[str, tf.Tensor]:
            if model.num_labels == 1:
                return {"score": logits[:, 0]}
            if opened.is_multi_label:
                return {"probabilities": tf.sigmoid(logits), "logits": logits}
            return {
                "label": tf.gather(names, tf.argmax(logits, axis=-1)),
                "probabilities": tf.nn.softmax(logits),
                "logits": logits,
            }

        def classify(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            named = dict(zip(ENCODER_INPUTS, inputs, strict=True))
            return answer(model(named, training=False)["logits"])

        classify = self.add_signature("serving_default", classify, ids_specs(*ENCODER_INPUTS))

        def text(text: tf.Tensor) -> dict[str, tf.Tensor]:
            return classify(*packer(text))

        def text_pair(text_a: tf.Tensor, text_b: tf.Tensor) -> dict[str, tf.Tensor]:
            return classify(*packer(text_a, text_b))

        self.add_signature("text", text, text_specs("text"))
        self.add_signature("text_pair", text_pair, text_specs("text_a", "text_b"))
