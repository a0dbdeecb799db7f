"""From lines as they are to pieces with their places in these lines, in TensorFlow operations."""

import re
from typing import Any

import tensorflow as tf

from keras_bert_impl.tokenization import kernels
from keras_bert_impl.tokenization.exact_cutting import ExactCutting, replace_rows
from keras_bert_impl.tokenization.kernel_models import KernelModels
from keras_bert_impl.tokenization.kernels import Pieces, Replaced
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

_SPECIAL_TOKEN = "|".join(re.escape(token) for token in SPECIAL_TOKENS)


class LineCutter:
    """Cuts lines into pieces, the same in eager mode and in a graph.

    Args:
        models: the kernels' models.
        vocabulary: the vocabulary that they were made from.
        keep_special_tokens: whether a literal "[MASK]" and its like become that one token; the
            text on both sides is then cut on its own.
    """

    def __init__(
        self, models: KernelModels, vocabulary: Vocabulary, keep_special_tokens: bool
    ) -> None:
        self._cutting = ExactCutting(models, vocabulary.unk_id)
        self._keep = keep_special_tokens
        self._special_ids = [vocabulary.id_of(token) for token in SPECIAL_TOKENS]

    def cut(self, lines: Any, normalizer: Any, wordpiece: Any, with_spans: bool) -> Pieces:
        """Cuts lines.

        Args:
            lines: UTF-8, string [lines]; bytes that are no UTF-8 are dropped.
            normalizer: the model of the kernel that replaces characters, uint8 [bytes].
            wordpiece: the model of the kernel that cuts, uint8 [bytes].
            with_spans: whether `starts` and `ends` are bytes of the lines; else they have no
                meaning and cost nothing.

        Returns:
            The pieces; in eager mode `ids` may be a NumPy array of int32.
        """
        if self._keep:
            return self._cut_around_special_tokens(lines, normalizer, wordpiece, with_spans)
        return self._cut_text(lines, normalizer, wordpiece, with_spans)

    def _cut_text(self, lines: Any, normalizer: Any, wordpiece: Any, with_spans: bool) -> Pieces:
        replaced = kernels.replace_characters(lines, normalizer, with_spans)
        run = self._cutting.now if tf.executing_eagerly() else self._cutting.in_graph
        pieces = run(replaced.lines, wordpiece)
        return _in_original_lines(pieces, replaced, lines) if with_spans else pieces

    def _cut_around_special_tokens(
        self, lines: Any, normalizer: Any, wordpiece: Any, with_spans: bool
    ) -> Pieces:
        # NUL marks the borders. Where a line has it, any other control character will do: all of
        # them are dropped.
        free_of_nul = tf.strings.regex_replace(lines, "\\x00", "\x01")
        parts = tf.strings.split(
            tf.strings.regex_replace(free_of_nul, f"({_SPECIAL_TOKEN})", "\0\\1\0"), "\0"
        )
        behind = tf.cumsum(tf.cast(tf.strings.length(parts.values), tf.int64))
        before = tf.concat([[tf.constant(0, tf.int64)], behind], axis=0)
        line_starts = tf.gather(before, parts.row_splits[:-1])
        begins = before[:-1] - tf.repeat(line_starts, parts.row_lengths())  # [parts]
        is_special = tf.stack([parts.values == token for token in SPECIAL_TOKENS])  # [5, parts]
        special_id = tf.reduce_sum(
            tf.where(is_special, tf.constant(self._special_ids, tf.int64)[:, tf.newaxis] + 1, 0),
            axis=0,
        )  # [parts], 0 for text
        text = tf.where(special_id > 0, "", parts.values)
        pieces = self._cut_text(text, normalizer, wordpiece, with_spans)
        pieces = pieces._replace(ids=tf.cast(pieces.ids, tf.int64))

        rows = tf.where(special_id > 0)[:, 0]
        count = tf.size(rows, tf.int64)
        tokens = Pieces(
            ids=tf.gather(special_id, rows) - 1,
            row_splits=tf.range(count + 1),
            starts=tf.zeros(count[tf.newaxis], tf.int64),
            ends=tf.cast(tf.strings.length(tf.gather(parts.values, rows)), tf.int64),
        )
        pieces = replace_rows(pieces, rows, tokens)
        shift = tf.repeat(begins, pieces.row_splits[1:] - pieces.row_splits[:-1])
        return Pieces(
            ids=pieces.ids,
            row_splits=tf.gather(pieces.row_splits, parts.row_splits),
            starts=pieces.starts + shift,
            ends=pieces.ends + shift,
        )


def _in_original_lines(pieces: Pieces, replaced: Replaced, lines: Any) -> Pieces:
    """Moves the places of pieces from the replaced lines to the original ones.

    A piece begins where its first character came from. It ends where the next character begins
    that left something (or at the line's end): an accent that was dropped belongs to the letter
    before it, and two pieces of one Hangul syllable both have the whole syllable.
    """
    counts = pieces.row_splits[1:] - pieces.row_splits[:-1]
    # Places of all lines in one rising sequence: each line's are moved behind the one before.
    sizes = tf.cast(tf.strings.length(lines), tf.int64) + 1
    moves = tf.cumsum(sizes, exclusive=True)  # [lines]
    place_counts = replaced.row_splits[1:] - replaced.row_splits[:-1]
    rising = replaced.places + tf.repeat(moves, place_counts)
    first_place = tf.repeat(replaced.row_splits[:-1], counts)  # [pieces]
    move = tf.repeat(moves, counts)
    starts = tf.gather(rising, first_place + pieces.starts)
    last = tf.gather(rising, first_place + pieces.ends - 1)
    behind = tf.searchsorted(rising, last, side="right")
    return pieces._replace(starts=starts - move, ends=tf.gather(rising, behind) - move)
