"""A model of tags as it is served: texts to entities, windows and whole words inside the graph.

The texts of a call are flat: the characters of all of them are in one sequence, and so are their
words and lines.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.signatures import ServedModel, ids_specs, text_specs, utf16_length
from keras_bert_impl.tokenization.graph_rows import (
    owned_in_graph,
    pack_in_graph,
    trim_to_longest,
    window_contents,
    windows_in_graph,
)
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from pipelines.metrics.entities import OUTSIDE
from pipelines.tasks.tagging.texts import BLANKS, LINE_BREAK, MARKS, RARE_BLANKS


class TextCharacters(NamedTuple):
    """The characters of some texts, int64 each; words and lines are counted over all texts."""

    text: tf.Tensor  # [characters], the text that each is of
    position: tf.Tensor  # [characters], its position in its text
    byte: tf.Tensor  # [characters], where it begins, in bytes of all texts with one between them
    word: tf.Tensor  # [characters], the word that it is of; without meaning for blanks
    line: tf.Tensor  # [characters]
    word_start: tf.Tensor  # [words], the first character of each word, counted over all texts
    word_end: tf.Tensor  # [words], the character after its last one
    first_byte: tf.Tensor  # [texts], where each text begins, as `byte`

    def at_bytes(self, text: tf.Tensor, byte: tf.Tensor) -> tf.Tensor:
        """The characters that begin at or after bytes of texts: int64 [n] each."""
        return tf.searchsorted(
            self.byte, tf.gather(self.first_byte, text) + byte, out_type=tf.int64
        )


def predecessors(values: tf.Tensor, first: Any) -> tf.Tensor:
    """The value in front of each; in front of the first one stands `first`."""
    start = tf.fill([tf.minimum(tf.size(values), 1)], tf.constant(first, values.dtype))
    return tf.concat([start, values[:-1]], axis=0)


def text_characters(texts: Any, *, split_marks: bool = False) -> TextCharacters:
    r"""Finds the words of texts, string [texts]: what stands between blanks.

    Example:
        >>> found = text_characters(["In Paris.\nYes", ""])
        >>> found.word_start.numpy().tolist(), found.word_end.numpy().tolist()
        ([0, 3, 10], [2, 9, 13])
        >>> found = text_characters(["(Paris)."], split_marks=True)
        >>> found.word_start.numpy().tolist(), found.word_end.numpy().tolist()
        ([0, 1, 6, 7], [1, 6, 7, 8])
    """
    texts = tf.convert_to_tensor(texts, tf.string)
    codes, bytes_in_text = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    flat, text = codes.flat_values, codes.value_rowids()
    number = tf.range(tf.size(flat, tf.int64))  # of each character
    position = number - tf.gather(codes.row_splits, text)
    blank = _is_one_of(flat, BLANKS + RARE_BLANKS if split_marks else BLANKS)
    starts = ~blank & (predecessors(blank, True) | (position == 0))
    if split_marks:
        starts |= ~blank & _part_begins(flat, number, _counted(starts))
    word = _counted(starts)
    first_byte = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64) + 1, exclusive=True)
    inside = tf.boolean_mask(number, ~blank)
    return TextCharacters(
        text=text,
        position=position,
        byte=bytes_in_text.flat_values + tf.gather(first_byte, text),
        word=word,
        line=_counted((flat == ord(LINE_BREAK)) | (position == 0)),
        word_start=tf.boolean_mask(number, starts),
        word_end=tf.math.segment_max(inside, tf.boolean_mask(word, ~blank)) + 1,
        first_byte=first_byte,
    )


def _is_one_of(codes: tf.Tensor, characters: str) -> tf.Tensor:
    wanted = tf.constant([ord(character) for character in characters], tf.int32)
    return tf.reduce_any(codes[:, tf.newaxis] == wanted, axis=1)


def _counted(starts: tf.Tensor) -> tf.Tensor:
    """How many starts there are up to each entry, counted from 0."""
    return tf.cumsum(tf.cast(starts, tf.int64)) - 1


def _part_begins(codes: tf.Tensor, number: tf.Tensor, word: tf.Tensor) -> tf.Tensor:
    """Whether each character is a mark at its word's end, or the first one that is none."""
    count = tf.size(number, tf.int64)
    core = ~_is_one_of(codes, MARKS + BLANKS + RARE_BLANKS)
    segment = tf.maximum(word, 0)  # blanks in front of the first word
    first = tf.math.unsorted_segment_min(tf.where(core, number, count), segment, count)
    last = tf.math.unsorted_segment_max(tf.where(core, number, -1), segment, count)
    first, last = tf.gather(first, segment), tf.gather(last, segment)
    return (last >= 0) & ((number <= first) | (number > last))


class Units(NamedTuple):
    """The units that are tagged, [units]: words, or tokens where characters were learned."""

    text: tf.Tensor  # int64, the text that each is of
    start: tf.Tensor  # int64, its first character, counted over all texts
    end: tf.Tensor  # int64, the character after its last one
    line: tf.Tensor  # int64, counted over all texts
    joins: tf.Tensor  # bool, whether nothing stands between it and the unit in front
    label: tf.Tensor  # int64, its tag
    score: tf.Tensor  # float32, the tag's probability


class ServedTagger(ServedModel):
    """The signatures of a `BertTokenClassifier` that finds entities.

    `serving_default`: input_ids, input_mask, segment_ids, int32 [batch, length] → logits
    [batch, length, labels].

    `text`: text, strings [batch] → the entities of each text in its order, padded to the most of
    them: type and text (strings), start and end (int32, characters of the text: its first one and
    the one after its last), score (float32, the mean probability of its words' tags), each
    [batch, entities]; count, int32 [batch], how many there are. Words stand between blanks, as the
    words of a file do when they are joined by blanks; a line break ends an entity, as the end of a
    sentence does.

    `raw_text`: the same for text as people write it: punctuation marks at a word's ends are words
    of their own, so that "in Paris." has the entity "Paris", and the wide and the no-break space
    are blanks, too.

    Longer texts are read in windows, and each word in the window that shows most around it. Where
    `characters` were learned each token has a tag, and both text signatures give the same. The
    `tags` are IOB2, one a label.
    """

    def __init__(
        self,
        opened: OpenedModel,
        tags: Sequence[str],
        *,
        max_seq_length: int,
        stride: int,
        characters: bool = False,
    ) -> None:
        model = opened.model
        super().__init__(model)
        self._vocabulary = opened.text.vocabulary
        self._tokenizer = GraphTokenizer(opened.text, with_spans=True)
        self._length, self._stride, self._characters = max_seq_length, stride, characters
        kinds = [tag.partition("-")[2] for tag in tags]  # "" of "O"
        types = list(dict.fromkeys(kinds))
        self._types = tf.constant(types)
        self._type = tf.constant([types.index(kind) for kind in kinds], tf.int64)
        self._begins = tf.constant([tag.startswith("B-") for tag in tags])
        self._inside = tf.constant([tag != OUTSIDE for tag in tags])

        def tag(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            named = dict(zip(ENCODER_INPUTS, inputs, strict=True))
            return {"logits": model(named, training=False)["logits"]}

        self._tag = self.add_signature("serving_default", tag, ids_specs(*ENCODER_INPUTS))

        for name, split_marks in (("text", False), ("raw_text", True)):
            entities = partial(self._entities, split_marks=split_marks)
            self.add_signature(name, entities, text_specs("text"))

    def _entities(self, texts: tf.Tensor, *, split_marks: bool) -> dict[str, tf.Tensor]:
        found = text_characters(texts, split_marks=split_marks)
        units = self._units(texts, found)
        inside = tf.gather(self._inside, units.label)
        kind = tf.gather(self._type, units.label)
        same = (units.line == predecessors(units.line, -1)) & (kind == predecessors(kind, -1))
        follows = same & units.joins & predecessors(inside, False)
        begins = inside & (tf.gather(self._begins, units.label) | ~follows)
        entity = tf.boolean_mask(_counted(begins), inside)
        end = tf.math.segment_max(tf.boolean_mask(units.end, inside), entity)
        text, start = tf.boolean_mask(units.text, begins), tf.boolean_mask(units.start, begins)
        columns = {
            "type": tf.gather(self._types, tf.boolean_mask(kind, begins)),
            **_places(texts, found, text, start, end),
            "score": tf.math.segment_mean(tf.boolean_mask(units.score, inside), entity),
        }
        rows = {
            name: tf.RaggedTensor.from_value_rowids(values, text, nrows=tf.size(texts, tf.int64))
            for name, values in columns.items()
        }
        count = tf.cast(rows["type"].row_lengths(), tf.int32)
        return {**{name: row.to_tensor() for name, row in rows.items()}, "count": count}

    def _units(self, texts: tf.Tensor, found: TextCharacters) -> Units:
        ids, starts, ends = (x.with_row_splits_dtype(tf.int64) for x in self._tokenizer(texts))
        text = ids.value_rowids()
        # The character that a token begins in, which may be of several tokens.
        first = found.at_bytes(text, starts.flat_values + 1) - 1
        probabilities = tf.nn.softmax(self._logits(ids))  # [tokens, labels]
        label, score = tf.argmax(probabilities, axis=-1), tf.reduce_max(probabilities, axis=-1)
        if self._characters:
            end = found.at_bytes(text, ends.flat_values)
            # A character of several tokens is the first one's.
            start = tf.maximum(first, predecessors(end, 0))
            begins, joins = start < end, tf.ones_like(text, tf.bool)
        else:
            word = tf.gather(found.word, first)
            start, end = tf.gather(found.word_start, word), tf.gather(found.word_end, word)
            begins, joins = word != predecessors(word, -1), word == predecessors(word, -2) + 1
        tokens = (text, start, end, tf.gather(found.line, first), joins, label, score)
        return Units(*(tf.boolean_mask(column, begins) for column in tokens))

    def _logits(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """The logits of all tokens, each from the window that owns it: [tokens, labels]."""
        windows = windows_in_graph(ids.row_lengths(), self._length - 2, self._stride)
        contents = window_contents(ids, windows)
        packed = trim_to_longest(pack_in_graph(contents, None, self._length, self._vocabulary))
        logits = self._tag(*(packed[name] for name in ENCODER_INPUTS))["logits"]
        owned = tf.where(owned_in_graph(windows).to_tensor())  # [tokens, 2], window and position
        return tf.gather_nd(logits[:, 1:], owned)  # after [CLS]


def _places(
    texts: tf.Tensor, found: TextCharacters, text: tf.Tensor, start: tf.Tensor, end: tf.Tensor
) -> dict[str, tf.Tensor]:
    """The characters of entities, and where they are in their texts: [entities]."""
    first_byte = tf.gather(found.byte, start)
    # After a text's last character comes the next text, one byte later.
    text_end = found.first_byte + tf.cast(tf.strings.length(texts), tf.int64)
    bytes_with_end = tf.concat([found.byte, text_end[-1:]], axis=0)
    last_byte = tf.minimum(tf.gather(bytes_with_end, end), tf.gather(text_end, text))
    own, place = tf.gather(texts, text), first_byte - tf.gather(found.first_byte, text)
    words = tf.strings.substr(own, place, last_byte - first_byte)
    utf16 = utf16_length(tf.strings.substr(own, tf.zeros_like(place), place))
    position = tf.gather(found.position, start)
    return {
        "text": words,
        "start": tf.cast(position, tf.int32),
        "end": tf.cast(position + end - start, tf.int32),
        "start_utf16": utf16,
        "end_utf16": utf16 + utf16_length(words),
    }
