"""The model that BERT is pre-trained with: masked words and next sentences."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.heads import Logits, MaskedLmHead
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs
from keras_bert_impl.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertPretrainer(ConfiguredModel):
    """Encoder, masked-LM head and next-sentence head.

    Takes what `BertEncoder` takes and `masked_lm_positions`, int32 [batch, predictions]. Gives a
    dict of float32 logits: `masked_lm_logits` [batch, predictions, vocabulary] and
    `next_sentence_logits` [batch, 2] (index 0: B follows A; index 1: B is random).

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import named_config
        >>> inputs = {"input_ids": np.array([[2, 5, 3]]), "masked_lm_positions": np.array([[1, 0]])}
        >>> tuple(BertPretrainer(named_config("tiny", 10))(inputs)["masked_lm_logits"].shape)
        (1, 2, 10)
    """

    def __init__(self, config: BertConfig, dtype: Any = None, **kwargs: Any) -> None:
        encoder = BertEncoder(config, name="encoder", dtype=dtype)
        masked_lm = MaskedLmHead(config.of_masked_lm(), name="masked_lm", dtype=dtype)
        next_sentence = Logits(config, 2, dropout=False, name="next_sentence", dtype=dtype)

        inputs = encoder_inputs()
        encoded = encoder(inputs)
        positions = keras.Input(shape=(None,), dtype="int32", name="masked_lm_positions")
        inputs["masked_lm_positions"] = positions
        table = encoder.embeddings.token_table
        outputs = {
            "masked_lm_logits": masked_lm(encoded["sequence_output"], positions, table),
            "next_sentence_logits": next_sentence(encoded["pooled_output"]),
        }
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.masked_lm, self.next_sentence = encoder, masked_lm, next_sentence
