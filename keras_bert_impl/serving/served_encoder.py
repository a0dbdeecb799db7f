"""An encoder without heads as it is served: vectors of ids and of raw text."""

from collections.abc import Callable

import keras
import tensorflow as tf

from keras_bert_impl.serving.signatures import ENCODER_INPUTS, ServedModel, ids_specs, text_specs
from keras_bert_impl.serving.text_inputs import TextPacker
from keras_bert_impl.tokenization.vocabulary import Vocabulary


class ServedEncoder(ServedModel):
    """The signatures of a `BertEncoder`.

    `serving_default`: input_ids, input_mask, segment_ids, int32 [batch, length] → sequence_output
    [batch, length, hidden], pooled_output [batch, hidden]; `text`: text, strings [batch] → these
    and input_mask [batch, length], which tells pieces from padding.

    Args:
        model: the encoder.
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (pieces)].
        vocabulary: the model's vocabulary.
        max_length: texts are cut to this many pieces.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: Callable[[tf.Tensor], tf.RaggedTensor],
        vocabulary: Vocabulary,
        max_length: int,
    ) -> None:
        super().__init__(model, tokenizer)
        packer = TextPacker(tokenizer, vocabulary, max_length)

        def encode(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            return model(dict(zip(ENCODER_INPUTS, inputs, strict=True)), training=False)

        def text(text: tf.Tensor) -> dict[str, tf.Tensor]:
            packed = packer.pack(text)
            return {**encode(*packed), "input_mask": packed.input_mask}

        self.add_signature("serving_default", encode, ids_specs(*ENCODER_INPUTS))
        self.add_signature("text", text, text_specs("text"))
