"""From lines to tokens with their positions in these lines, in TensorFlow operations.

Two things are beyond the kernels, both rare. They are noticed by one look at a batch's result, and
only then, and only for the lines or words concerned, something is done about them:

* The lower-case form of a capital sigma depends on its neighbors. The normalizer leaves a mark;
  `settle_sigmas` writes the right form and cuts those lines again.
* The kernel's limit on the length of words is in bytes, BERT's in characters. With the same number
  of bytes no word is cut that BERT does not cut; `cut_long_words` cuts those that BERT does.
"""

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert_impl.tokenization import kernels
from keras_bert_impl.tokenization.added_tokens import Extraction, extractions
from keras_bert_impl.tokenization.character_table import (
    CASE_IGNORABLE,
    CASED,
    CharacterTable,
    character_class,
)
from keras_bert_impl.tokenization.kernel_models import (
    KernelModels,
    longest_word_position,
    with_longest_word,
)
from keras_bert_impl.tokenization.kernels import CutTokens, Replaced
from keras_bert_impl.tokenization.reference import joining_characters
from keras_bert_impl.tokenization.text_settings import TextSettings


class ExactCutting:
    """Cuts replaced lines into tokens exactly as the reference does."""

    def __init__(self, models: KernelModels, unk_id: int) -> None:
        self._models, self._unk_id = models, unk_id
        self._longest, self._most_bytes = models.longest_word, 4 * models.longest_word
        self._limit_position = longest_word_position(models.wordpiece)
        self._settle = _sigma_settler(models.sigma_mark) if models.sigma_mark else None
        self._patient_model: Any = None

    def in_graph(self, lines: Any, wordpiece_model: Any) -> CutTokens:
        """Cuts lines of replaced characters inside a graph: what is rare is in branches."""
        tokens = kernels.cut_tokens(lines, wordpiece_model)
        if self._settle is not None:
            lines, tokens = tf.cond(
                tf.reduce_any(tokens.ids >= self._models.sigma_id),
                lambda: self.settle_sigmas(lines, tokens, wordpiece_model),
                lambda: (lines, tokens),
            )
        return tf.cond(
            tf.reduce_any(tokens.ends - tokens.starts > self._longest),
            lambda: self.cut_long_words(lines, tokens, wordpiece_model),
            lambda: tokens,
        )

    def now(self, lines: Any, wordpiece_model: Any) -> CutTokens:
        """Cuts lines in eager mode, in which the tokens are NumPy arrays, their ids int32.

        The arrays lie in the kernel's own memory and must not be changed.
        """
        tokens = _in_numpy(kernels.cut_tokens(lines, wordpiece_model))
        if self._settle is not None and tokens.ids.size:
            marks = np.flatnonzero(tokens.ids >= self._models.sigma_id)
            if marks.size:
                rows = np.unique(_row_in_numpy(marks, tokens.row_splits))
                settled = self._settle(tf.gather(lines, rows))
                again = _in_numpy(kernels.cut_tokens(settled, wordpiece_model))
                lines = tf.tensor_scatter_nd_update(lines, rows[:, np.newaxis], settled)
                tokens = splice_rows(tokens, rows, again)
        # A word over the kernel's limit is one of the unknown ones, which are few.
        unknown = np.flatnonzero(tokens.ids == self._unk_id)
        lengths = tokens.ends[unknown] - tokens.starts[unknown]
        long = unknown[lengths > self._longest]
        return self._cut_long_words_now(lines, tokens, long) if long.size else tokens

    def _cut_long_words_now(
        self, lines: Any, tokens: CutTokens, positions: np.ndarray
    ) -> CutTokens:
        """Does what `cut_long_words` does, in eager mode for the few words at `positions`."""
        rows = tf.gather(lines, _row_in_numpy(positions, tokens.row_splits)).numpy()
        spans = zip(rows, tokens.starts[positions], tokens.ends[positions], strict=True)
        words = [row[start:end] for row, start, end in spans]
        few = [i for i, word in enumerate(words) if len(word.decode()) <= self._longest]
        if not few:
            return tokens
        if self._patient_model is None:
            with tf.device("CPU"):
                self._patient_model = tf.constant(
                    with_longest_word(self._models.wordpiece, self._most_bytes)
                )
        cut = _in_numpy(kernels.cut_tokens([words[i] for i in few], self._patient_model))
        moved = np.repeat(tokens.starts[positions[few]], np.diff(cut.row_splits))
        cut = cut._replace(starts=cut.starts + moved, ends=cut.ends + moved)
        # Each token is a row here, so that one can give way to several.
        each = tokens._replace(row_splits=np.arange(tokens.ids.size + 1))
        replaced = splice_rows(each, positions[few], cut)
        return replaced._replace(row_splits=replaced.row_splits[tokens.row_splits])

    def settle_sigmas(
        self, lines: Any, tokens: CutTokens, wordpiece_model: Any
    ) -> tuple[Any, CutTokens]:
        """Writes every capital sigma in its form and cuts the lines that have one again."""
        assert self._settle is not None
        marks = tf.where(tokens.ids >= self._models.sigma_id)[:, 0]  # [marks]
        rows = tf.unique(_row_of(marks, tokens.row_splits))[0]  # [rows]
        settled = self._settle(tf.gather(lines, rows))
        again = kernels.cut_tokens(settled, wordpiece_model)
        lines = tf.tensor_scatter_nd_update(lines, rows[:, tf.newaxis], settled)
        return lines, replace_rows(tokens, rows, again)

    def cut_long_words(self, lines: Any, tokens: CutTokens, wordpiece_model: Any) -> CutTokens:
        """Cuts words of more bytes and at most as many characters as the longest word may have."""
        lengths = tokens.ends - tokens.starts
        positions = tf.where(lengths > self._longest)[:, 0]  # [words]
        starts, lengths = tf.gather(tokens.starts, positions), tf.gather(lengths, positions)
        rows = _row_of(positions, tokens.row_splits)
        words = tf.strings.substr(tf.gather(lines, rows), starts, lengths)
        short = tf.strings.length(words, unit="UTF8_CHAR") <= self._longest
        words, positions, starts = (tf.boolean_mask(x, short) for x in (words, positions, starts))

        # Made of the first model: every SavedModel would hold a second constant, too.
        limit = tf.constant(np.frombuffer(struct.pack("<i", self._most_bytes), np.uint8))
        after = self._limit_position + 4
        patient_model = tf.concat(
            [wordpiece_model[: self._limit_position], limit, wordpiece_model[after:]], axis=0
        )
        cut = kernels.cut_tokens(words, patient_model)
        moved = tf.gather(starts, _row_of(tf.range(tf.size(cut.ids, tf.int64)), cut.row_splits))
        cut = cut._replace(starts=cut.starts + moved, ends=cut.ends + moved)
        # Each token is a row here, so that one can give way to several.
        each = tokens._replace(row_splits=tf.range(tf.size(tokens.ids, tf.int64) + 1))
        replaced = replace_rows(each, positions, cut)
        return replaced._replace(row_splits=tf.gather(replaced.row_splits, tokens.row_splits))


def replace_rows(tokens: CutTokens, rows: Any, others: CutTokens) -> CutTokens:
    """Puts other tokens instead of some rows int64 [n], each once.

    Example:
        >>> def of(*rows):
        ...     splits = np.cumsum([0, *map(len, rows)])
        ...     flat = tf.constant([x for row in rows for x in row], tf.int64)
        ...     return CutTokens(flat, tf.constant(splits, tf.int64), flat, flat)
        >>> replaced = replace_rows(of([1], [2, 2], [3]), tf.constant([1], tf.int64), of([7] * 3))
        >>> replaced.ids.numpy().tolist(), replaced.row_splits.numpy().tolist()
        ([1, 7, 7, 7, 3], [0, 1, 4, 5])
    """
    shift = tf.size(tokens.ids, tf.int64)
    at = rows[:, tf.newaxis]
    firsts = tf.tensor_scatter_nd_update(tokens.row_splits[:-1], at, others.row_splits[:-1] + shift)
    limits = tf.tensor_scatter_nd_update(tokens.row_splits[1:], at, others.row_splits[1:] + shift)
    order = tf.ragged.range(firsts, limits, row_splits_dtype=tf.int64)
    ids, starts, ends = (
        tf.gather(tf.concat([ours, theirs], axis=0), order.values)
        for ours, theirs in (
            (tokens.ids, others.ids),
            (tokens.starts, others.starts),
            (tokens.ends, others.ends),
        )
    )
    return CutTokens(ids, order.row_splits, starts, ends)


def splice_rows(tokens: CutTokens, rows: np.ndarray, others: CutTokens) -> CutTokens:
    """Does what `replace_rows` does to few rows of NumPy arrays."""
    counts = np.diff(tokens.row_splits)
    counts[rows] = np.diff(others.row_splits)
    borders = tokens.row_splits[np.stack([rows, rows + 1])]  # [2, rows]

    def splice(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        kept = np.split(ours, borders.ravel(order="F"))[::2]
        put = np.split(theirs, others.row_splits[1:-1])
        return np.concatenate([*itertools.chain(*zip(kept, put, strict=False)), kept[-1]])

    return CutTokens(
        splice(tokens.ids, others.ids),
        np.concatenate([[0], np.cumsum(counts)]),
        splice(tokens.starts, others.starts),
        splice(tokens.ends, others.ends),
    )


def _row_of(positions: Any, row_splits: Any) -> Any:
    return tf.searchsorted(row_splits, positions, side="right", out_type=tf.int64) - 1


def _row_in_numpy(positions: np.ndarray, row_splits: np.ndarray) -> np.ndarray:
    return np.searchsorted(row_splits, positions, side="right") - 1


def _in_numpy(tokens: CutTokens) -> CutTokens:
    ids, row_splits, starts, ends = (np.asarray(memoryview(x)) for x in tokens)  # no copies
    return CutTokens(ids.astype(np.int32), row_splits, starts, ends)


def _sigma_settler(mark: str) -> Callable[[Any], Any]:
    """Gives the function that writes marked sigmas as `str.lower` does."""
    # A sigma is final where a cased character comes before it and none after it, not counting
    # case-ignorable characters in between.
    table = CharacterTable.load()
    is_cased = table.facts & CASED
    is_cased[ord(mark)] = CASED
    cased, ignorable = character_class(is_cased), character_class(table.facts & CASE_IGNORABLE)
    steps = [
        # RE2 has no look-ahead: a match takes in the cased character, which may be the next sigma.
        # Hence twice.
        (f"{mark}({ignorable}*{cased})", r"σ\1"),
        (f"{mark}({ignorable}*{cased})", r"σ\1"),
        (f"({cased}{ignorable}*){mark}", r"\1ς"),
        (mark, "σ"),
    ]

    def settle(lines: Any) -> Any:
        for pattern, form in steps:
            lines = tf.strings.regex_replace(lines, pattern, form)
        return lines

    return settle


class LineCutter:
    """Cuts lines into tokens, the same in eager mode and in a graph."""

    def __init__(
        self, models: KernelModels, settings: TextSettings, keeps_special_tokens: bool
    ) -> None:
        self._cutting = ExactCutting(models, settings.vocabulary.unk_id)
        self._steps = extractions(settings, keeps_special_tokens=keeps_special_tokens)
        self._composes = settings.composes

    def cut(self, lines: Any, normalizer: Any, wordpiece: Any, with_spans: bool) -> CutTokens:
        """Cuts lines, string [lines], by the models of the two kernels, uint8 [bytes] each.

        Bytes that are no UTF-8 are dropped. Without spans, `starts` and `ends` have no meaning and
        cost nothing. In eager mode `ids` may be a NumPy array of int32.
        """
        return self._cut_around(self._steps, lines, normalizer, wordpiece, with_spans)

    def _cut_text(self, lines: Any, normalizer: Any, wordpiece: Any, with_spans: bool) -> CutTokens:
        if not self._composes:
            return self._cut_characters(lines, normalizer, wordpiece, with_spans)
        composed = kernels.composed_characters(lines)
        tokens = self._cut_characters(composed, normalizer, wordpiece, with_spans)
        return _in_original_lines(tokens, _places(lines), lines) if with_spans else tokens

    def _cut_characters(
        self, lines: Any, normalizer: Any, wordpiece: Any, with_spans: bool
    ) -> CutTokens:
        replaced = kernels.replace_characters(lines, normalizer, with_spans)
        run = self._cutting.now if tf.executing_eagerly() else self._cutting.in_graph
        tokens = run(replaced.lines, wordpiece)
        return _in_original_lines(tokens, replaced, lines) if with_spans else tokens

    def _cut_around(
        self, steps: Sequence[Extraction], lines: Any, normalizer: Any, wordpiece: Any, spans: bool
    ) -> CutTokens:
        """Takes the tokens of each step out of the lines, and cuts what is left."""
        if not steps:
            return self._cut_text(lines, normalizer, wordpiece, spans)
        # NUL marks the borders. Where a line has it, any other control character will do: all of
        # them are dropped.
        free_of_nul = tf.strings.regex_replace(lines, "\\x00", "\x01")
        step, marked = steps[0], f"({steps[0].pattern})"
        parts = tf.strings.split(tf.strings.regex_replace(free_of_nul, marked, "\0\\1\0"), "\0")
        after = tf.cumsum(tf.cast(tf.strings.length(parts.values), tf.int64))
        before = tf.concat([[tf.constant(0, tf.int64)], after], axis=0)
        line_starts = tf.gather(before, parts.row_splits[:-1])
        begins = before[:-1] - tf.repeat(line_starts, parts.row_lengths())  # [parts]
        is_token = tf.strings.regex_full_match(parts.values, step.pattern)
        text = tf.where(is_token, "", parts.values)
        tokens = self._cut_around(steps[1:], text, normalizer, wordpiece, spans)
        tokens = tokens._replace(ids=tf.cast(tokens.ids, tf.int64))

        rows = tf.where(is_token)[:, 0]
        found, count = tf.gather(parts.values, rows), tf.size(rows, tf.int64)
        ids = tf.zeros([count], tf.int64)
        for pattern, number in reversed(step.tokens):  # the first that matches is written last
            is_this = tf.strings.regex_full_match(found, pattern)
            ids = tf.where(is_this, tf.constant(number, tf.int64), ids)
        taken_out = CutTokens(
            ids=ids,
            row_splits=tf.range(count + 1),
            starts=tf.zeros([count], tf.int64),
            ends=tf.cast(tf.strings.length(found), tf.int64),
        )
        tokens = replace_rows(tokens, rows, taken_out)
        shift = tf.repeat(begins, tokens.row_splits[1:] - tokens.row_splits[:-1])
        return CutTokens(
            ids=tokens.ids,
            row_splits=tf.gather(tokens.row_splits, parts.row_splits),
            starts=tokens.starts + shift,
            ends=tokens.ends + shift,
        )


def _places(lines: Any) -> Replaced:
    """The places of composed lines' bytes in the lines; see `composing.composed_places`."""
    # NUL stands between units, and a character after each line, whose end is a place, too.
    marked = tf.strings.regex_replace(lines, "\\x00", "\x01") + "\x01"
    for pattern, written in ((f"[^{joining_characters()}]", "\0\\0"), (" ", " \0")):
        marked = tf.strings.regex_replace(marked, pattern, written)
    units = tf.strings.split(marked, "\0")
    composed = kernels.composed_characters(units.values)
    sizes, kept = (tf.cast(tf.strings.length(x), tf.int64) for x in (units.values, composed))
    begins = tf.cumsum(sizes, exclusive=True)  # [units]
    begins -= _repeat(tf.gather(begins, units.row_splits[:-1]), units.row_lengths())
    moves = tf.cast(composed == units.values, tf.int64)
    inside = tf.ragged.range(kept).values  # [bytes of all units]
    positions = _repeat(begins, kept) + inside * _repeat(moves, kept)
    row_splits = tf.gather(tf.concat([[0], tf.cumsum(kept)], axis=0), units.row_splits)
    return Replaced(lines, positions, row_splits)


def _in_original_lines(tokens: CutTokens, replaced: Replaced, lines: Any) -> CutTokens:
    """Moves the positions of tokens from the replaced lines to the original ones."""
    # A token begins where its first character came from. It ends where the next character begins
    # that left something (or at the line's end): an accent that was dropped belongs to the letter
    # before it, and two tokens of one Hangul syllable both have the whole syllable.
    counts = tokens.row_splits[1:] - tokens.row_splits[:-1]
    # Positions of all lines in one rising sequence: each line's are moved after the one before it.
    sizes = tf.cast(tf.strings.length(lines), tf.int64) + 1  # a line's end is a position, too
    moves = tf.cumsum(sizes, exclusive=True)  # [lines]
    position_counts = replaced.row_splits[1:] - replaced.row_splits[:-1]
    rising = replaced.positions + _repeat(moves, position_counts)
    first_position = _repeat(replaced.row_splits[:-1], counts)  # [tokens]
    move = _repeat(moves, counts)
    starts = tf.gather(rising, first_position + tokens.starts)
    last = tf.gather(rising, first_position + tokens.ends - 1)
    # All bytes that came from one character have its position: the next one is a larger number.
    after = tf.searchsorted(rising, last, side="right")
    return tokens._replace(starts=starts - move, ends=tf.gather(rising, after) - move)


def _repeat(values: Any, counts: Any) -> Any:
    # `tf.repeat` makes a mask [values, largest count]: its cost grows with the longest line.
    if tf.executing_eagerly():
        return tf.constant(np.repeat(np.asarray(values), np.asarray(counts)))
    return tf.repeat(values, counts)
