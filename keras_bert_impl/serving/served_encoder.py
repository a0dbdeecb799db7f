"""An encoder without heads as it is served: vectors of ids and of raw text."""

import tensorflow as tf

from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.signatures import ENCODER_INPUTS, ServedModel, ids_specs, text_specs
from keras_bert_impl.serving.text_inputs import GraphTokenize, TextPacker


class ServedEncoder(ServedModel):
    """The signatures of a `BertEncoder`.

    `serving_default`: input_ids, input_mask, segment_ids, int32 [batch, length] → sequence_output
    [batch, length, hidden], pooled_output [batch, hidden]; `text`: text, strings [batch] → these
    and input_mask [batch, length], which tells pieces from padding.

    Args:
        opened: an encoder with its vocabulary.
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

        def encode(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            named = dict(zip(ENCODER_INPUTS, inputs, strict=True))
            return opened.trained(model(named, training=False))

        encode = self.add_signature("serving_default", encode, ids_specs(*ENCODER_INPUTS))

        def text(text: tf.Tensor) -> dict[str, tf.Tensor]:
            packed = packer(text)
            return {**encode(*packed), "input_mask": packed[1]}

        self.add_signature("text", text, text_specs("text"))
