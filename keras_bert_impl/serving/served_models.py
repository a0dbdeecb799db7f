"""Each kind of model as it is served: by ids and by raw text."""

from typing import Any

import tensorflow as tf

from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.models.embedder import UnitLength
from keras_bert_impl.models.head_inputs import pooled_vector
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.signatures import ServedModel, ids_specs, text_specs
from keras_bert_impl.serving.text_inputs import (
    GraphTokenize,
    MaskedTextPacker,
    TextPacker,
    TextRows,
    join_in_graph,
)
from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS


class ServedClassifier(ServedModel):
    """The signatures of a `BertClassifier`.

    `serving_default`: input_ids, input_mask, segment_ids, int32 [batch, length]; `text`: text,
    strings [batch]; `text_pair`: text_a and text_b, strings [batch]. Each gives, with labels,
    label (strings [batch]), probabilities [batch, labels] and logits [batch, labels]; of a
    regression, score [batch]. Where each label is a question of its own (`problem_type` is
    "multi_label_classification"), labels (strings [batch, labels]) stands in place of label: its
    names where the probability is a half or more, "" elsewhere; probabilities do not add up to 1.

    A text that was trained on in windows is answered so: one answer of the logits of all of them.

    Args:
        opened: a fine-tuned model with its vocabulary and its labels; one label is a regression.
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (tokens)].
        max_length: the most tokens of a row.
        long_texts: what becomes of longer texts; truncated by default.
    """

    def __init__(
        self,
        opened: OpenedModel,
        tokenizer: GraphTokenize,
        max_length: int,
        long_texts: LongTexts | None = None,
    ) -> None:
        model = opened.model
        super().__init__(model)
        long_texts = long_texts or LongTexts()
        packer = TextPacker(tokenizer, opened.text.vocabulary, max_length, long_texts)
        names = tf.constant(opened.labels)

        def answer(logits: tf.Tensor) -> dict[str, tf.Tensor]:
            if model.num_labels == 1:
                return {"score": logits[:, 0]}
            if opened.is_multi_label:
                return {
                    "labels": tf.where(logits >= 0.0, names, ""),  # [batch, labels]
                    "probabilities": tf.sigmoid(logits),
                    "logits": logits,
                }
            return {
                "label": tf.gather(names, tf.argmax(logits, axis=-1)),
                "probabilities": tf.nn.softmax(logits),
                "logits": logits,
            }

        def classify(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            named = dict(zip(ENCODER_INPUTS, inputs, strict=True))
            return answer(model(named, training=False)["logits"])

        classify = self.add_signature("serving_default", classify, ids_specs(*ENCODER_INPUTS))

        def classify_texts(rows: TextRows) -> dict[str, tf.Tensor]:
            answers = classify(*rows.inputs)
            if not long_texts.has_windows:
                return answers
            logits = answers["score"][:, tf.newaxis] if "score" in answers else answers["logits"]
            return answer(join_in_graph(logits, rows.text, long_texts.window_answers))

        def text(text: tf.Tensor) -> dict[str, tf.Tensor]:
            return classify_texts(packer(text))

        def text_pair(text_a: tf.Tensor, text_b: tf.Tensor) -> dict[str, tf.Tensor]:
            return classify_texts(packer(text_a, text_b))

        self.add_signature("text", text, text_specs("text"))
        self.add_signature("text_pair", text_pair, text_specs("text_a", "text_b"))


class ServedEncoder(ServedModel):
    """The signatures of a `BertEncoder`.

    `serving_default`: input_ids, input_mask, segment_ids, int32 [batch, length] → sequence_output
    [batch, length, hidden], pooled_output [batch, hidden]; `text`: text, strings [batch] → these
    and input_mask [batch, length], which tells tokens from padding.

    `embed`, where the model directory says how a text becomes one vector: text, strings [batch] →
    embedding, float32 [batch, hidden], as `Embedder` gives it.

    Args:
        opened: an encoder with its vocabulary.
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (tokens)].
        max_length: texts are cut to this many tokens.
        sentence: how a text becomes one vector.
    """

    def __init__(
        self,
        opened: OpenedModel,
        tokenizer: GraphTokenize,
        max_length: int,
        sentence: SentenceSettings | None = None,
    ) -> None:
        model = opened.model
        super().__init__(model)
        packer = TextPacker(tokenizer, opened.text.vocabulary, max_length)

        def encode(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            named = dict(zip(ENCODER_INPUTS, inputs, strict=True))
            return opened.trained(model(named, training=False))

        encode = self.add_signature("serving_default", encode, ids_specs(*ENCODER_INPUTS))

        def text(text: tf.Tensor) -> dict[str, tf.Tensor]:
            packed = packer(text).inputs
            return {**encode(*packed), "input_mask": packed[1]}

        self.add_signature("text", text, text_specs("text"))
        if sentence is None:
            return
        unit_length, prompt = UnitLength(name="unit_length"), tf.constant(sentence.prompt)

        def embed(text: tf.Tensor) -> dict[str, tf.Tensor]:
            packed = packer(prompt + text).inputs
            vector = pooled_vector(sentence.pooling, encode(*packed), packed[1])
            return {"embedding": unit_length(vector) if sentence.normalize else vector}

        self.add_signature("embed", embed, text_specs("text"))


class ServedPretrainer(ServedModel):
    """The signatures of a `BertPretrainer`.

    `serving_default`: input_ids, input_mask, segment_ids, int32 [batch, length] →
    sequence_output [batch, length, hidden], pooled_output [batch, hidden].

    `masked_lm`: these and masked_lm_positions, int32 [batch, masks] → masked_lm_logits
    [batch, masks, vocabulary], next_sentence_logits [batch, 2].

    `fill_mask_text`: text, strings [batch] → tokens and probabilities [batch, masks, top_k], the
    best first; mask_counts [batch] (rows with fewer masks are padded with "" and 0);
    num_truncated [batch] (more than 0 where the text was longer than the model's positions).

    `next_sentence_text`: text_a, text_b, strings [batch] → probability, float32 [batch], that
    text_b follows text_a, and next_sentence_logits [batch, 2] (0: it follows; 1: it does not). In
    both text signatures all special tokens are recognised.

    An output that would come from weights which the model directory does not hold is left out.

    Args:
        opened: a pre-trained model with its vocabulary.
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (tokens)], where [MASK] is one.
        top_k: how many tokens `fill_mask_text` gives for a mask.
        max_length: the most tokens of a text, with [CLS] and [SEP].
    """

    def __init__(
        self,
        opened: OpenedModel,
        tokenizer: GraphTokenize,
        top_k: int,
        max_length: int,
    ) -> None:
        model, vocabulary = opened.model, opened.text.vocabulary
        super().__init__(model)
        top_k = min(top_k, len(vocabulary))
        packer = MaskedTextPacker(tokenizer, vocabulary, max_length)
        tokens = tf.constant(vocabulary.tokens)

        def encode(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            return opened.trained(model.encoder(_named(inputs), training=False))

        def masked_lm(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            return opened.trained(model(_named(inputs), training=False))

        masked_lm = self.add_signature("masked_lm", masked_lm, ids_specs(*MASKED_LM_INPUTS))

        def fill_mask_text(text: tf.Tensor) -> dict[str, tf.Tensor]:
            packed = packer(text)
            logits = masked_lm(*packed[:4])["masked_lm_logits"]  # [batch, masks, rows]
            # The table may have more rows than there are tokens: they mean nothing.
            logits = logits[:, :, : len(vocabulary)]
            best = tf.math.top_k(tf.nn.softmax(logits), top_k)  # [batch, masks, top_k]
            real = tf.sequence_mask(packed.mask_counts, tf.shape(logits)[1])[:, :, tf.newaxis]
            return {
                "tokens": tf.where(real, tf.gather(tokens, best.indices), ""),
                "probabilities": tf.where(real, best.values, 0.0),
                "mask_counts": packed.mask_counts,
                "num_truncated": packed.num_truncated,
            }

        self.add_signature("serving_default", encode, ids_specs(*ENCODER_INPUTS))
        self.add_signature("fill_mask_text", fill_mask_text, text_specs("text"))
        if opened.trained({"next_sentence_logits": None}):
            self._serve_next_sentence(model, TextPacker(tokenizer, vocabulary, max_length))

    def _serve_next_sentence(self, model: Any, packer: TextPacker) -> None:
        def next_sentence_text(text_a: tf.Tensor, text_b: tf.Tensor) -> dict[str, tf.Tensor]:
            inputs = _named(tuple(packer(text_a, text_b).inputs))
            pooled = model.encoder(inputs, training=False)["pooled_output"]
            logits = model.next_sentence(pooled, training=False)  # [batch, 2]
            return {
                "probability": tf.nn.softmax(logits)[:, 0],
                "next_sentence_logits": logits,
            }

        specs = text_specs("text_a", "text_b")
        self.add_signature("next_sentence_text", next_sentence_text, specs)


MASKED_LM_INPUTS = (*ENCODER_INPUTS, "masked_lm_positions")


def _named(inputs: tuple[tf.Tensor, ...]) -> dict[str, Any]:
    return dict(zip(MASKED_LM_INPUTS, inputs, strict=False))
