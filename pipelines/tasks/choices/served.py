"""A model of choices as it is served: a context and its endings to their probabilities."""

import tensorflow as tf

from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.signatures import ServedModel
from keras_bert_impl.tokenization.graph_rows import pack_in_graph, trim_to_longest
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer


class ServedChooser(ServedModel):
    """The signatures of a `BertMultipleChoice`.

    `serving_default`: input_ids, input_mask, segment_ids, int32 [batch, choices, length] → logits
    and probabilities [batch, choices]; `text`: context, strings [batch], and endings, strings
    [batch, choices] → these and ending, int32 [batch], the number of the best one.

    Of a context and an ending over `max_seq_length` tokens the longer one loses tokens first.
    """

    def __init__(self, opened: OpenedModel, num_choices: int, max_seq_length: int) -> None:
        model, vocabulary = opened.model, opened.text.vocabulary
        super().__init__(model)
        tokenizer = GraphTokenizer(opened.text)

        def choose(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            named = dict(zip(ENCODER_INPUTS, inputs, strict=True))
            logits = model(named, training=False)["logits"]
            return {"logits": logits, "probabilities": tf.nn.softmax(logits)}

        shape = [None, num_choices, None]
        specs = [tf.TensorSpec(shape, tf.int32, name=name) for name in ENCODER_INPUTS]
        choose = self.add_signature("serving_default", choose, specs)

        def text(context: tf.Tensor, endings: tf.Tensor) -> dict[str, tf.Tensor]:
            first = tf.repeat(context, num_choices)
            ids_a, ids_b = tokenizer(first), tokenizer(tf.reshape(endings, [-1]))
            packed = trim_to_longest(pack_in_graph(ids_a, ids_b, max_seq_length, vocabulary))
            rows = (
                tf.reshape(packed[name], [-1, num_choices, tf.shape(packed[name])[1]])
                for name in ENCODER_INPUTS
            )
            answers = choose(*rows)
            best = tf.argmax(answers["logits"], axis=-1, output_type=tf.int32)
            return {**answers, "ending": best}

        texts = [
            tf.TensorSpec([None], tf.string, name="context"),
            tf.TensorSpec([None, num_choices], tf.string, name="endings"),
        ]
        self.add_signature("text", text, texts)
