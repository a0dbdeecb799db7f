"""The tokenizer that everything uses: lines in, ids out, exactly as BERT was trained."""

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from keras_bert_impl.errors import UserError, check_kind, shown
from keras_bert_impl.json_files import argument
from keras_bert_impl.options import bounded
from keras_bert_impl.tokenization.kernel_models import load_kernel_models
from keras_bert_impl.tokenization.long_texts import TRUNCATE, LongTexts
from keras_bert_impl.tokenization.packing import as_lines, as_texts, pack_batch
from keras_bert_impl.tokenization.reference import as_text
from keras_bert_impl.tokenization.text_settings import REMEDY, TextSettings
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, SPECIAL_TOKENS

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer

SpecialTokens = Literal["split", "keep"]
LENGTH = bounded(int, at_least=3)  # [CLS] A [SEP] B [SEP] has three that are not of the texts
_LINES_AT_ONCE = 1024
_LONGEST = 512  # tokens of a row where nothing says it


class TokenBlock(NamedTuple):
    """The ids of many lines as one flat array.

    Line i has the ids from offsets[i] to offsets[i + 1]: int32 [tokens], int64 [lines + 1].
    """

    ids: np.ndarray
    offsets: np.ndarray


class SpanBlock(NamedTuple):
    """The ids of many lines with the part of the line that each came from.

    Ids and offsets are as in `TokenBlock`; a token stands from `starts` to before `ends` in its
    line, int64 [tokens] each.
    """

    ids: np.ndarray
    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


LineTokenizer: TypeAlias = "Tokenizer | PlainTokenizer"
"""What cuts lines into ids, with TensorFlow or before it is loaded."""


class PackingAsTrained:
    """What packs texts, and can be made so that it packs them as for a model's answers."""

    _usual_length: int | None = None

    @classmethod
    def from_pretrained(
        cls,
        path_or_name: str | os.PathLike[str],
        max_seq_length: int | None = None,
        *,
        special_tokens: SpecialTokens | None = None,
        long_text: str | None = None,
        bert_config_file: str | os.PathLike[str] | None = None,
        vocab_file: str | os.PathLike[str] | None = None,
        do_lower_case: bool | None = None,
        **options: Any,
    ) -> Self:
        """Makes what fits a published model, or one that was trained here.

        Args:
            path_or_name: the model, as for `BertEncoder.from_pretrained`.
            max_seq_length: see above; by default as the model's answers are made. For a model
                that keeps no length and answers, these are all its positions.
            special_tokens: see above; by default what the model keeps.
            long_text: likewise.
            bert_config_file: the configuration, if there is none beside the weights.
            vocab_file: the vocabulary, if there is none beside the weights.
            do_lower_case: the casing, if no file says it.
            **options: further arguments of the class.

        Raises:
            UserError: there is no such model, or it has no vocabulary, or its casing is unknown, or
                it reads long texts in windows, which a layer cannot, and `long_text` is not given.
        """
        # They stand on this package.
        from keras_bert_impl.checkpoints.model_source import find_model
        from keras_bert_impl.checkpoints.task_settings import long_texts_of, task_settings

        source = find_model(
            path_or_name,
            bert_config_file=bert_config_file,
            vocab_file=vocab_file,
            do_lower_case=do_lower_case,
        )
        heads_of_text = ("QuestionAnswering", "MultipleChoice")
        answers = source.labels or source.architecture.endswith(heads_of_text)
        kept, positions = task_settings(source.config), source.config.max_position_embeddings
        longest = kept.get("max_seq_length", positions if answers else None)
        if max_seq_length is None:
            max_seq_length = longest or cls._usual_length
        make: Callable[..., Self] = cls
        return make(
            settings=source.text,
            special_tokens=special_tokens or kept.get("special_tokens", "split"),
            max_seq_length=max_seq_length,
            long_text=long_text or long_texts_of(source.config).long_text,
            **options,
        )


class Tokenizer(PackingAsTrained):
    """Splits text into the tokens of a vocabulary, exactly as BERT does.

    Args:
        settings: the vocabulary, the casing and the accents.
        special_tokens: "split" treats a literal "[MASK]" in a line like any text, as google's
            code does; "keep" reads it as the special token, as Hugging Face does. The same holds
            for the other four.
        max_seq_length: longer texts are shortened to this many tokens; None leaves it to each call.
        long_text: what stays of a longer text: "truncate" keeps its beginning, "head_tail" both
            ends; "windows" refuses it, for they are several rows.

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "word", "##s", "."]
        >>> tokenizer = Tokenizer(TextSettings(Vocabulary(tokens)))
        >>> tokenizer(["The words.", "the"])["input_ids"].tolist()
        [[2, 5, 6, 7, 8, 3], [2, 5, 3, 0, 0, 0]]
        >>> tokenizer([("the", "word")])["segment_ids"].tolist()
        [[0, 0, 0, 1, 1]]
        >>> tokenizer.tokenize("The Words."), tokenizer.detokenize([2, 5, 6, 7, 8, 3], True)
        (['the', 'word', '##s', '.'], 'the words .')
        >>> block = tokenizer.encode_lines(["The words.", "", "The"])
        >>> block.ids.tolist(), block.offsets.tolist()
        ([5, 6, 7, 8, 5], [0, 4, 4, 5])
        >>> tokenizer.encode_lines_with_spans(["The words."]).starts.tolist()
        [0, 4, 8, 9]
    """

    def __init__(
        self,
        settings: TextSettings,
        special_tokens: SpecialTokens = "split",
        max_seq_length: int | None = None,
        long_text: str = TRUNCATE,
    ) -> None:
        # Imported here: work without TensorFlow uses this module's blocks and functions.
        import tensorflow as tf

        from keras_bert_impl.tokenization.cutting import LineCutter

        check_kind(settings, TextSettings, REMEDY)
        argument("special_tokens", special_tokens, SpecialTokens)
        if max_seq_length is not None:
            argument("max_seq_length", max_seq_length, LENGTH)
        LongTexts(long_text=long_text)  # refuses what is no such way
        if contradiction := settings.contradiction():
            warnings.warn(contradiction, stacklevel=2)
        self.settings, self.vocabulary = settings, settings.vocabulary
        self.special_tokens = special_tokens
        self.max_seq_length, self.long_text = max_seq_length, long_text
        self._tf = tf
        models = load_kernel_models(settings)
        # Out of a graph that may be being traced, to which they would belong; and on the CPU, which
        # alone has the kernels.
        with tf.init_scope(), tf.device("CPU"):
            self._models = tf.constant(models.normalizer), tf.constant(models.wordpiece)
        self._cutter = LineCutter(models, settings, special_tokens == "keep")

    def __call__(
        self,
        texts: Any,
        text_pairs: Any = None,
        max_seq_length: int | None = None,
        pad_to_longest: bool = True,
    ) -> dict[str, np.ndarray]:
        """Turns texts into what a model takes.

        Args:
            texts: a text, a list of texts, or a list of pairs of texts.
            text_pairs: the second texts of pairs, where they are given apart.
            max_seq_length: longer texts are shortened to this many tokens, [CLS] and [SEP]
                included; by default the tokenizer's own length, else 512.
            pad_to_longest: whether rows are as long as the longest of them, not `max_seq_length`.

        Returns:
            `input_ids`, `input_mask` and `segment_ids`, int32 [texts, length] each; one text is a
            batch of one.

        Raises:
            UserError: something is no text, or `max_seq_length` has no room for a token, or a text
                is longer and the model reads such texts in windows.
        """
        first, second = as_texts(texts, text_pairs)
        length = self.max_seq_length or _LONGEST
        if max_seq_length is not None:
            length = argument("max_seq_length", max_seq_length, LENGTH)
        return pack_batch(
            self._rows(first),
            None if second is None else self._rows(second),
            self.vocabulary,
            length,
            pad_to_longest,
            self.long_text,
        )

    def _rows(self, texts: Sequence[str | bytes]) -> list[np.ndarray]:
        block = self.encode_lines(texts)
        # Of no texts `np.split` would make one empty row.
        return np.split(block.ids, block.offsets[1:-1]) if texts else []

    def encode_lines(self, lines: Sequence[str | bytes]) -> TokenBlock:
        """Splits lines into ids, without [CLS] and [SEP].

        Args:
            lines: lines of text; bytes are UTF-8, and bytes that are not are dropped.
        """
        ids, offsets, _, _ = self._encoded(lines, None)
        return TokenBlock(ids, offsets)

    def encode_lines_with_spans(
        self, lines: Sequence[str | bytes], unit: Literal["bytes", "characters"] = "bytes"
    ) -> SpanBlock:
        """Splits lines into ids and gives the position of each token in its line.

        A token reaches to where the next character begins that left something, or to the line's
        end: an accent that is stripped belongs to its letter. Where two tokens share a character
        (parts of a Hangul syllable), both have all of it.

        Args:
            lines: lines of text; bytes are UTF-8.
            unit: whether positions count the bytes of the UTF-8 or the characters of the text. For
                characters, bytes that are no UTF-8 are dropped before counting.
        """
        return self._encoded(lines, argument("unit", unit, Literal["bytes", "characters"]))

    def _encoded(self, lines: Sequence[str | bytes], unit: str | None) -> SpanBlock:
        """Cuts lines; without positions where no unit for them is given."""
        ids, counts, starts, ends = [], [], [], []
        lines = as_lines(lines)
        for start in range(0, len(lines), _LINES_AT_ONCE):
            batch = lines[start : start + _LINES_AT_ONCE]
            if unit == "characters":
                batch = [as_text(x) if isinstance(x, bytes) else x for x in batch]
            tokens = self._cut(batch, with_spans=unit is not None)
            ids.append(_as_int32(tokens.ids))
            counts.append(np.diff(_view(tokens.row_splits)))
            if unit is not None:
                # Copies: the views are of memory that goes with the batch's tensors.
                spans = [_view(tokens.starts).copy(), _view(tokens.ends).copy()]
                if unit == "characters":
                    spans = _characters_before(batch, counts[-1], spans)
                starts.append(spans[0])
                ends.append(spans[1])
        return SpanBlock(
            ids=_joined(ids, np.int32),
            offsets=np.concatenate([[0], np.cumsum(_joined(counts, np.int64))]),
            starts=_joined(starts, np.int64),
            ends=_joined(ends, np.int64),
        )

    def encode(self, line: str | bytes) -> list[int]:
        """Splits one line into ids, without [CLS] and [SEP].

        Raises:
            UserError: several lines were given.
        """
        if not isinstance(line, (str, bytes)):
            raise UserError(
                f"encode takes one text, not {type(line).__name__}; for several texts call the "
                "tokenizer itself, tokenizer(texts), or encode_lines(texts)."
            )
        return _as_int32(self._cut([line], with_spans=False).ids).tolist()

    def tokenize(self, line: str | bytes) -> list[str]:
        """Splits one line into tokens."""
        tokens = self.vocabulary.tokens
        return [tokens[number] for number in self.encode(line)]

    def detokenize(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """Joins tokens to words, with one space between words; case and spacing are not restored.

        Args:
            ids: the ids of tokens.
            skip_special_tokens: whether [CLS], [SEP], [PAD], [MASK] and [UNK] are left out.
        """
        numbers, known = np.array([*ids]).tolist(), self.vocabulary.tokens
        for number in numbers:
            if type(number) is not int or not 0 <= number < len(known):
                raise UserError(f"{shown(number)} is no id; those are 0 to {len(known) - 1}.")
        tokens = [known[number] for number in numbers]
        if skip_special_tokens:
            tokens = [token for token in tokens if token not in SPECIAL_TOKENS]
        return " ".join(tokens).replace(f" {CONTINUATION}", "")

    def _cut(self, lines: Sequence[str | bytes], with_spans: bool) -> Any:
        constant, string = self._tf.constant, self._tf.string
        try:
            tensor = constant(lines, string)
        except ValueError:  # half of a surrogate pair, which has no UTF-8
            tensor = constant([x if isinstance(x, bytes) else as_text(x) for x in lines], string)
        return self._cutter.cut(tensor, *self._models, with_spans)


def _view(tensor: Any) -> np.ndarray:
    """The numbers of a tensor in its own memory; it must not be changed or outlive the tensor."""
    return np.asarray(memoryview(tensor))


def _as_int32(ids: Any) -> np.ndarray:
    return ids if isinstance(ids, np.ndarray) else _view(ids).astype(np.int32)


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    if len(parts) == 1:  # the usual case needs no copy
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _characters_before(
    lines: Sequence[str | bytes], counts: np.ndarray, positions: list[np.ndarray]
) -> list[np.ndarray]:
    """Turns positions in bytes into positions in characters."""
    encoded = [x.encode("utf-8", "surrogatepass") if isinstance(x, str) else x for x in lines]
    text = np.frombuffer(b"".join(encoded), np.uint8)
    first_bytes = np.cumsum((text & 0xC0) != 0x80)  # a character has one byte that is none of these
    characters = np.concatenate([[0], first_bytes])
    sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
    line_starts = np.repeat(np.cumsum(sizes) - sizes, counts)
    return [characters[line_starts + position] - characters[line_starts] for position in positions]
