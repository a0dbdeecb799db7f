"""The two models that make tensorflow-text's kernels cut text as BERT does, and their cache.

Building them takes a fraction of a second; they are kept in the user's cache (`user_cache.py`), in
a file that begins with a digest of its content and of everything that went into it, this code
included. What is damaged, or of something else, is made again.
"""

import contextlib
import hashlib
import io
import struct
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_impl.compat import wordpiece_model_builder
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole, read_small
from keras_bert_impl.tokenization.character_table import DROPPED, PINNED_FILE, SIGMA, CharacterTable
from keras_bert_impl.tokenization.normalizer import CharacterRules, build_normalizer_model
from keras_bert_impl.tokenization.reference import is_chinese
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, MAX_CHARACTERS_PER_WORD, UNK
from keras_bert_impl.user_cache import keep_newest, own_folder

_SHAPED_BY = (  # a change in one of these may change the models: kept ones do not count any more
    "character_table.py",
    "kernel_models.py",
    "normalizer.py",
    "reference.py",
    PINNED_FILE.name,
)
_MOST_MEBIBYTES = 64  # of one vocabulary, and of all together
_DIGEST_BYTES = hashlib.sha256().digest_size
_LIMIT_FIELD = 4  # of the kernel's flatbuffer: the longest word in bytes
_KERNEL_MAY_SPLIT = [  # no ideographs, Hangul or private use: there the kernel follows fixed blocks
    *(range(0x21, 0xAC00)),
    *(range(0xD7A4, 0xD800)),
    *(range(0xFB00, 0x20000)),
    *(range(0xE0000, 0xE1000)),
]


class KernelModels(NamedTuple):
    """The models of the two kernels, and what the code around them needs to know.

    Attributes:
        normalizer: the model of `FastBertNormalize`, uint8 [bytes].
        wordpiece: the model of `FastWordpieceTokenizeWithOffsets` for words of at most
            `longest_word` bytes, uint8 [bytes].
        sigma_mark: how the normalizer writes a capital sigma; "" where text keeps its case.
        sigma_id: the id that the kernel gives to that mark, one more than the vocabulary's last.
        longest_word: the most characters of a word that is cut.
    """

    normalizer: np.ndarray
    wordpiece: np.ndarray
    sigma_mark: str
    sigma_id: int
    longest_word: int


def load_kernel_models(settings: TextSettings) -> KernelModels:
    """Builds the models or finds them in the cache."""
    folder = None
    with contextlib.suppress(UserError):  # a cache that cannot be used is no reason to stop
        folder = own_folder("tokenizers")
    if folder is None:
        return build_kernel_models(settings)
    path = folder / cache_name(settings)
    with contextlib.suppress(UserError):
        content = read_small(path, _MOST_MEBIBYTES, "no tokenizer needs")
        arrays = content[_DIGEST_BYTES:]
        if content.startswith(_digest(path, arrays)):
            with np.load(io.BytesIO(arrays)) as kept:
                mark, sigma_id = str(kept["sigma_mark"]), len(settings.vocabulary)
                longest = settings.longest_word
                return KernelModels(kept["normalizer"], kept["wordpiece"], mark, sigma_id, longest)
    models = build_kernel_models(settings)
    packed = io.BytesIO()
    np.savez(
        packed,
        normalizer=models.normalizer,
        wordpiece=models.wordpiece,
        sigma_mark=np.array(models.sigma_mark),
    )
    with contextlib.suppress(UserError):
        with open_whole(path, "wb") as file:
            file.write(_digest(path, packed.getvalue()) + packed.getvalue())
        keep_newest(folder, _MOST_MEBIBYTES << 20)
    return models


def _digest(path: Path, arrays: bytes) -> bytes:
    """Of what a file holds and of what it is called by, which says what it was made from."""
    return hashlib.sha256(path.name.encode() + arrays).digest()


def cache_name(settings: TextSettings) -> str:
    """The name of the models' file: another one for whatever could make other models."""
    digest = hashlib.sha256()
    for name in _SHAPED_BY:
        digest.update((Path(__file__).parent / name).read_bytes())
    casing = settings.do_lower_case, settings.removes_accents, settings.longest_word
    words = (version("tensorflow-text"), settings.vocabulary.sha256, *casing)
    digest.update(repr(words).encode())
    return f"tokenizer-{digest.hexdigest()[:32]}.bin"


def build_kernel_models(settings: TextSettings) -> KernelModels:
    """Builds the models from the vocabulary and the pinned character table."""
    table = CharacterTable.load()
    all_tokens = settings.vocabulary.tokens
    in_vocabulary = set("".join(all_tokens))
    if settings.removes_accents:
        _warn_of_reordering(table, in_vocabulary)
    rules = CharacterRules(
        table,
        settings.do_lower_case,
        settings.removes_accents,
        characters_that_kernels_split(),
        in_vocabulary,
    )
    tokens = [_kernel_token(token, number, rules) for number, token in enumerate(all_tokens)]
    return KernelModels(
        normalizer=build_normalizer_model(rules.changes()),
        wordpiece=_wordpiece_model([*tokens, *rules.sigma_mark], settings.longest_word),
        sigma_mark=rules.sigma_mark,
        sigma_id=len(settings.vocabulary),
        longest_word=settings.longest_word,
    )


def characters_that_kernels_split() -> set[str]:
    """The characters that the WordPiece kernel's ICU takes for punctuation, found by asking it."""
    from keras_bert_impl.tokenization import kernels

    model = _wordpiece_model([UNK, "a"], MAX_CHARACTERS_PER_WORD)
    candidates = [chr(number) for number in _KERNEL_MAY_SPLIT if not is_chinese(chr(number))]
    # "a?a" is three tokens where the kernel splits at "?", otherwise one (or two, at white space).
    words = [f"a{character}a " for character in candidates]
    ends = np.cumsum([len(word.encode()) for word in words])
    tokens = kernels.cut_tokens(["".join(words)], model)
    counts = np.diff(np.searchsorted(tokens.starts.numpy(), ends), prepend=0)
    return {candidates[number] for number in np.flatnonzero(counts == 3)}


def with_longest_word(wordpiece_model: np.ndarray, max_bytes: int) -> np.ndarray:
    """The same WordPiece model with another limit on the length of words, uint8 [bytes]."""
    position = longest_word_position(wordpiece_model)
    changed = wordpiece_model.copy()
    changed[position : position + 4] = np.frombuffer(struct.pack("<i", max_bytes), np.uint8)
    return changed


def longest_word_position(wordpiece_model: np.ndarray) -> int:
    """Where in the model the limit on the length of words stands: an int32."""
    head = wordpiece_model.tobytes()
    # A flatbuffer: the root's position, from there back to the table of fields, whose entries (2
    # bytes each, after 4 of sizes) are positions relative to the root.
    (root,) = struct.unpack_from("<I", head, 0)
    (to_fields,) = struct.unpack_from("<i", head, root)
    (position,) = struct.unpack_from("<H", head, root - to_fields + 4 + 2 * _LIMIT_FIELD)
    return root + position


def _wordpiece_model(tokens: list[str], max_bytes: int) -> np.ndarray:
    builder = wordpiece_model_builder()
    model = builder.build_fast_wordpiece_model(tokens, max_bytes, CONTINUATION, UNK, False, False)
    return np.frombuffer(model, np.uint8)


def _kernel_token(token: str, number: int, rules: CharacterRules) -> str:
    text = rules.rewrite_token(token)
    if token != UNK and _never_in_text(token, rules):
        # The first character is one that is dropped from text, so that nothing can match.
        return f"\x01{number}"
    return text


def _never_in_text(token: str, rules: CharacterRules) -> bool:
    """Whether no word can have this token: the kernel might find it where BERT does not look."""
    text = token.removeprefix(CONTINUATION)
    is_word = len(text) == 1 and text == token
    gone = any(c.isspace() or rules.table.has(c, DROPPED) for c in text)
    apart = any(map(rules.splits_at, text))
    has_sigma = rules.do_lower_case and SIGMA in text
    too_long = len(text) > MAX_CHARACTERS_PER_WORD
    return not text or gone or has_sigma or too_long or (apart and not is_word)


def _warn_of_reordering(table: CharacterTable, in_vocabulary: set[str]) -> None:
    # Decomposing sorts marks of several classes within a word. Each character is replaced by
    # itself here, so that is not done; it shows only in words that mix such marks and only if the
    # vocabulary has marks of two classes at least (with one the other word is unknown anyway).
    classes = {table.reordered[character] for character in in_vocabulary & table.reordered.keys()}
    if len(classes) > 1:
        warnings.warn(
            "The vocabulary has spacing marks of several combining classes; words that mix them in "
            "an unusual order may be cut otherwise than by the reference.",
            stacklevel=2,
        )
