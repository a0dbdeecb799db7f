"""The characters, words and lines of texts inside a TensorFlow graph, and which token is of which.

Everything is flat: the characters of all texts stand in one sequence, and so do words and lines.
"""

from typing import Any, NamedTuple

import tensorflow as tf

_BLANKS = " \t\r\n"
_RARE_BLANKS = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LINE_BREAK = "\n"
_MARKS = ".,;:!?()[]{}<>\"'`´“”„‟‘’‚‛«»‹›…·¡¿、。，．！？：；（）「」『』《》〈〉【】"


class TextCharacters(NamedTuple):
    """The characters of some texts.

    Attributes:
        text: int64 [characters], the text that each is of.
        position: int64 [characters], its position in its text.
        byte: int64 [characters], where it begins, in bytes of all texts with one between them.
        word: int64 [characters], the word that it is of, counted over all texts; without meaning
            for blanks.
        line: int64 [characters], its line, counted over all texts.
        word_start: int64 [words], the first character of each word, counted over all texts.
        word_end: int64 [words], the character after its last one.
        first_byte: int64 [texts], where each text begins, as `byte`.
    """

    text: tf.Tensor
    position: tf.Tensor
    byte: tf.Tensor
    word: tf.Tensor
    line: tf.Tensor
    word_start: tf.Tensor
    word_end: tf.Tensor
    first_byte: tf.Tensor

    def at_bytes(self, text: tf.Tensor, byte: tf.Tensor) -> tf.Tensor:
        """The characters that begin at or after some bytes of texts: int64 [n].

        Args:
            text: int64 [n], the numbers of the texts.
            byte: int64 [n], positions in them.
        """
        return tf.searchsorted(
            self.byte, tf.gather(self.first_byte, text) + byte, out_type=tf.int64
        )


def predecessors(values: tf.Tensor, first: Any) -> tf.Tensor:
    """The value in front of each; in front of the first one stands `first`.

    Example:
        >>> predecessors(tf.constant([7, 8, 9]), 0).numpy().tolist()
        [0, 7, 8]
    """
    start = tf.fill([tf.minimum(tf.size(values), 1)], tf.constant(first, values.dtype))
    return tf.concat([start, values[:-1]], axis=0)


def text_characters(texts: Any, *, split_marks: bool = False) -> TextCharacters:
    r"""Finds the words of texts: what stands between blanks (space, tab, line break).

    Args:
        texts: UTF-8, string [texts].
        split_marks: make punctuation marks at a word's ends words of their own, as the files have
            them that models of entities are trained on: `(Paris).` is four words. A word of marks
            only stays one. All that Unicode calls a space is a blank then, as for the tokenizer.

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
    blank = _is_one_of(flat, _BLANKS + _RARE_BLANKS if split_marks else _BLANKS)
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
        line=_counted((flat == ord(_LINE_BREAK)) | (position == 0)),
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
    core = ~_is_one_of(codes, _MARKS + _BLANKS + _RARE_BLANKS)
    segment = tf.maximum(word, 0)  # blanks in front of the first word
    first = tf.math.unsorted_segment_min(tf.where(core, number, count), segment, count)
    last = tf.math.unsorted_segment_max(tf.where(core, number, -1), segment, count)
    first, last = tf.gather(first, segment), tf.gather(last, segment)
    return (last >= 0) & ((number <= first) | (number > last))
