"""Each kind of model as it is served: by ids and by raw text, inside a TensorFlow graph.

Long texts are packed, and the logits of their windows joined, as in training.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.checkpoints.task_settings import num_texts
from keras_bert_impl.models.embedder import UnitLength
from keras_bert_impl.models.encoder import pooled_vector
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.signatures import ServedModel, ids_specs, text_specs
from keras_bert_impl.tokenization.graph_rows import (
    first_of,
    pack_in_graph,
    stretch_of,
    trim_to_longest,
    window_contents,
    windows_in_graph,
)
from keras_bert_impl.tokenization.long_texts import MAX, LongTexts, window_room
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.vocabulary import Vocabulary

GraphTokenize = Callable[[tf.Tensor], tf.RaggedTensor]


class TextRows(NamedTuple):
    """Packs a batch of texts into the model's inputs.

    `inputs` are int32 [rows, length] each; `text`, int64 [rows], is the number of a row's text
    and never falls.
    """

    inputs: list[tf.Tensor]
    text: tf.Tensor


class TextPacker:
    """Tokenizes and packs `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, as in training.

    Rows are as long as the longest of the batch: a served text is seldom near the limit. A second
    text without tokens counts as none.

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
        >>> packer = TextPacker(lambda texts: tf.ragged.constant([[5, 5, 6]]),
        ...     Vocabulary(tokens), 4, LongTexts(long_text="windows", doc_stride=1))
        >>> rows = packer(tf.constant(["a a b"]))
        >>> rows.inputs[0].numpy().tolist(), rows.text.numpy().tolist()
        ([[2, 5, 5, 3], [2, 5, 6, 3]], [0, 0])
    """

    def __init__(
        self,
        tokenizer: GraphTokenize,
        vocabulary: Vocabulary,
        max_seq_length: int,
        long_texts: LongTexts | None = None,
    ) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._max_seq_length, self._long_texts = max_seq_length, long_texts or LongTexts()

    def __call__(self, texts_a: tf.Tensor, texts_b: tf.Tensor | None = None) -> TextRows:
        """Packs a batch of texts or pairs, strings [batch]."""
        ids_a = self._ids(texts_a)
        ids_b = tf.zeros_like(ids_a)[:, :0] if texts_b is None else self._ids(texts_b)
        text = tf.range(tf.cast(tf.shape(texts_a)[0], tf.int64))
        if self._long_texts.has_windows:
            ids_a, ids_b, text = self._windows(ids_a, ids_b)
        length, long_text = self._max_seq_length, self._long_texts.long_text
        packed = trim_to_longest(pack_in_graph(ids_a, ids_b, length, self._vocabulary, long_text))
        return TextRows([packed[name] for name in ENCODER_INPUTS], text)

    def _ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer(texts).with_row_splits_dtype(tf.int64)

    def _windows(self, ids_a: tf.RaggedTensor, ids_b: tf.RaggedTensor) -> tuple[Any, Any, Any]:
        """The two segments of every window, and the number of its text."""
        lengths_b = ids_b.row_lengths()
        has_b = tf.cast(lengths_b > 0, tf.int64)
        front, size = window_room(ids_a.row_lengths(), lengths_b, self._max_seq_length, tf)
        body = tf.concat([first_of(ids_a, ids_a.row_lengths() * (1 - has_b)), ids_b], axis=1)
        windows = windows_in_graph(body.row_lengths(), size, self._long_texts.doc_stride)
        contents = window_contents(body, windows)  # [windows, (tokens)]
        in_b = tf.gather(has_b, windows.document)  # [windows]
        lengths = contents.row_lengths()
        # A window over a second text has the first one in front; else it is the first one.
        in_front = tf.gather(first_of(ids_a, front), windows.document)
        first = tf.concat([in_front, first_of(contents, lengths * (1 - in_b))], axis=1)
        return first, first_of(contents, lengths * in_b), windows.document


def join_in_graph(logits: tf.Tensor, text: tf.Tensor, window_answers: str) -> tf.Tensor:
    """One answer a text: the mean of its windows' logits, or of each label the highest.

    `logits` are float32 [rows, labels]; `text`, int64 [rows], never falls, and every text has a
    row.

    Example:
        >>> logits = tf.constant([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]])
        >>> join_in_graph(logits, tf.constant([0, 0, 1]), "mean").numpy().tolist()
        [[1.0, 2.0], [5.0, 5.0]]
    """
    if window_answers == MAX:
        return tf.math.segment_max(logits, text)
    return tf.math.segment_mean(logits, text)


class MaskedInputs(NamedTuple):
    """A batch of texts as the model's inputs, int32 [batch, length] each, and where its masks are.

    `masked_lm_positions`, int32 [batch, masks], are padded with 0; of each text `mask_counts` are
    real, and `num_truncated` tokens are not read.
    """

    input_ids: tf.Tensor
    input_mask: tf.Tensor
    segment_ids: tf.Tensor
    masked_lm_positions: tf.Tensor
    mask_counts: tf.Tensor
    num_truncated: tf.Tensor


class MaskedTextPacker:
    """Tokenizes texts with [MASK] in them and packs `[CLS] text [SEP]`.

    A text that is too long keeps the tokens around its first [MASK].

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
        >>> tokenizer = lambda texts: tf.ragged.constant([[5, 5, 5, 4, 6]])
        >>> packer = MaskedTextPacker(tokenizer, Vocabulary(tokens), max_length=5)
        >>> packed = packer(tf.constant(["a a a [MASK] b"]))
        >>> packed.input_ids.numpy().tolist(), packed.masked_lm_positions.numpy().tolist()
        ([[2, 5, 4, 6, 3]], [[2]])
    """

    def __init__(self, tokenizer: GraphTokenize, vocabulary: Vocabulary, max_length: int) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._budget = max_length - 2  # for [CLS] and [SEP]

    def __call__(self, texts: tf.Tensor) -> MaskedInputs:
        """Packs a batch of texts, strings [batch]."""
        vocabulary, rows = self._vocabulary, tf.shape(texts)[0]
        tokens = self._tokenizer(texts).with_row_splits_dtype(tf.int64)
        kept = self._around_first_mask(tokens)
        first, last = (tf.fill([rows, 1], one) for one in (vocabulary.cls_id, vocabulary.sep_id))
        ids = tf.concat([first, kept, last], axis=1)
        positions = tf.ragged.range(ids.row_lengths())  # [batch, (length)]
        masked = tf.ragged.boolean_mask(positions, ids == vocabulary.mask_id)
        input_ids = ids.to_tensor(vocabulary.pad_id)
        return MaskedInputs(
            input_ids=input_ids,
            input_mask=tf.ones_like(ids).to_tensor(0),
            segment_ids=tf.zeros_like(input_ids),
            masked_lm_positions=tf.cast(masked.to_tensor(0), tf.int32),
            mask_counts=tf.cast(masked.row_lengths(), tf.int32),
            num_truncated=tf.cast(tokens.row_lengths() - kept.row_lengths(), tf.int32),
        )

    def _around_first_mask(self, tokens: tf.RaggedTensor) -> tf.RaggedTensor:
        """At most `_budget` tokens of each text, the first [MASK] in their middle."""
        lengths = tokens.row_lengths()
        positions = tf.ragged.range(lengths)
        masks = tf.ragged.boolean_mask(positions, tokens == self._vocabulary.mask_id)
        first = tf.minimum(tf.reduce_min(masks, axis=1), lengths)  # of no mask: the length
        last_start = tf.maximum(lengths - self._budget, 0)
        starts = tf.clip_by_value(first - self._budget // 2, tf.zeros_like(lengths), last_start)
        ends = tf.minimum(starts + self._budget, lengths)
        return stretch_of(tokens, starts, ends)


class ServedClassifier(ServedModel):
    """The signatures of a `BertClassifier`; see docs/how_to/exporting.md."""

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
                held = tf.where(logits >= 0.0, names, "")  # [batch, labels]
                return {"labels": held, "probabilities": tf.sigmoid(logits), "logits": logits}
            label = tf.gather(names, tf.argmax(logits, axis=-1))
            return {"label": label, "probabilities": tf.nn.softmax(logits), "logits": logits}

        def classify(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            return answer(model(_named(inputs), training=False)["logits"])

        classify = self.add_signature("serving_default", classify, ids_specs(*ENCODER_INPUTS))

        def classify_texts(*texts: tf.Tensor) -> dict[str, tf.Tensor]:
            rows = packer(*texts)
            answers = classify(*rows.inputs)
            if not long_texts.has_windows:
                return answers
            logits = answers["score"][:, tf.newaxis] if "score" in answers else answers["logits"]
            return answer(join_in_graph(logits, rows.text, long_texts.window_answers))

        trained_on = num_texts(opened.source.config)
        if trained_on != 2:
            self.add_signature("text", classify_texts, text_specs("text"))
        if trained_on != 1 and opened.source.config.type_vocab_size > 1:
            self.add_signature("text_pair", classify_texts, text_specs("text_a", "text_b"))


class ServedEncoder(ServedModel):
    """The signatures of a `BertEncoder`; see docs/how_to/exporting.md."""

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
            return opened.trained(model(_named(inputs), training=False))

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
    """The signatures of a `BertPretrainer`; see docs/how_to/exporting.md."""

    def __init__(
        self, opened: OpenedModel, tokenizer: GraphTokenize, top_k: int, max_length: int
    ) -> None:
        model, vocabulary = opened.model, opened.text.vocabulary
        super().__init__(model)
        top_k = min(top_k, len(vocabulary))
        packer = MaskedTextPacker(tokenizer, vocabulary, max_length)
        tokens = tf.constant(vocabulary.tokens)

        def encode(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            return opened.trained(model.encoder(_named(inputs), training=False))

        def masked_lm(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            return opened.trained(model(_named(inputs, MASKED_LM_INPUTS), training=False))

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
            inputs = _named(packer(text_a, text_b).inputs)
            pooled = model.encoder(inputs, training=False)["pooled_output"]
            logits = model.next_sentence(pooled, training=False)  # [batch, 2]
            return {"probability": tf.nn.softmax(logits)[:, 0], "next_sentence_logits": logits}

        specs = text_specs("text_a", "text_b")
        self.add_signature("next_sentence_text", next_sentence_text, specs)


MASKED_LM_INPUTS = (*ENCODER_INPUTS, "masked_lm_positions")


def _named(inputs: Sequence[tf.Tensor], names: Sequence[str] = ENCODER_INPUTS) -> dict[str, Any]:
    return dict(zip(names, inputs, strict=True))
