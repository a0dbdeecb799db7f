"""The tokenizer in the form of Hugging Face's library `tokenizers`, for clients in any language.

That library's own rules for BERT cut otherwise at some 138,000 characters, nearly all of them
private use. So the rules are written out from the pinned character table. Only characters of its
version of Unicode reach the library's own tables, which later versions do not change for them.
"""

from typing import Any

from keras_bert_impl.tokenization.character_table import (
    ACCENT,
    ASSIGNED,
    CASE_IGNORABLE,
    CASED,
    DROPPED,
    PUNCTUATION,
    SIGMA,
    SURROGATES,
    CharacterTable,
    character_class,
)
from keras_bert_impl.tokenization.reference import CHINESE, UNKNOWN_HALF
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import CLS, PAD, SEP, SPECIAL_TOKENS, UNK


def client_tokenizer(text: TextSettings, max_seq_length: int, keeps_special_tokens: bool) -> Any:
    """The tokenizer of plain clients: it cuts text as `Tokenizer` does.

    It pads to the longest row. Pairs are packed by the client: the library keeps a second [SEP]
    for no text, and truncates otherwise. Spacing marks of Unicode 13 and 14 are not sorted where
    accents are removed, which shows if the vocabulary has such marks of two classes.

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> text = TextSettings(Vocabulary([*SPECIAL_TOKENS, "dog", "##s"]))
        >>> tokenizer = client_tokenizer(text, 4, keeps_special_tokens=False)
        >>> tokenizer.encode("Dogs dog").tokens
        ['[CLS]', 'dog', '##s', '[SEP]']
    """
    import tokenizers
    from tokenizers import models, processors

    vocabulary = text.vocabulary
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(ids, unk_token=UNK, max_input_chars_per_word=text.longest_word)
    )
    table = CharacterTable.load()
    tokenizer.normalizer = _normalizer(table, text)
    tokenizer.pre_tokenizer = _pre_tokenizer(table)
    ends = (SEP, vocabulary.sep_id), (CLS, vocabulary.cls_id)
    tokenizer.post_processor = processors.BertProcessing(*ends)
    if keeps_special_tokens:
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    names = ("content", "lstrip", "rstrip", "normalized")
    tokenizer.add_tokens(
        [
            tokenizers.AddedToken(**{name: getattr(token, name) for name in names})
            for token in text.added
        ]
    )
    tokenizer.enable_truncation(max_seq_length)
    tokenizer.enable_padding(pad_id=vocabulary.pad_id, pad_token=PAD)
    return tokenizer


def usual_tokenizer(text: TextSettings) -> Any:
    """The tokenizer by the library's own rules for BERT, as others write and read it.

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> text = TextSettings(Vocabulary([*SPECIAL_TOKENS, "dog", "##s"]))
        >>> usual_tokenizer(text).encode("Dogs").tokens
        ['[CLS]', 'dog', '##s', '[SEP]']
    """
    from tokenizers import normalizers, pre_tokenizers

    tokenizer = client_tokenizer(text, 512, keeps_special_tokens=False)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rules = normalizers.BertNormalizer(
        lowercase=text.do_lower_case, strip_accents=text.removes_accents
    )
    composing = normalizers.Sequence([normalizers.NFC(), rules])
    tokenizer.normalizer = composing if text.composes else rules
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _normalizer(table: CharacterTable, text: TextSettings) -> Any:
    """Rules 2 and 4 of `reference.py`, but for white space."""
    from tokenizers import Regex, normalizers

    replace = lambda pattern, by: normalizers.Replace(Regex(pattern), by)  # noqa: E731
    dropped, accents, cased, ignorable = (
        character_class(table.facts & fact) for fact in (DROPPED, ACCENT, CASED, CASE_IGNORABLE)
    )
    steps: list[Any] = [normalizers.NFC()] if text.composes else []
    steps.append(replace(dropped, ""))
    if text.added:  # in whose normal form every blank is a space
        steps.append(replace(r"\s", " "))
    if text.do_lower_case or text.removes_accents:
        newer = table.facts & ASSIGNED == 0  # and unknown, whatever a later Unicode says of them
        for first, last in CHINESE:
            newer[first : last + 1] = False
        newer[[*SURROGATES, *map(ord, "".join(text.vocabulary.tokens))]] = False
        steps.append(replace(character_class(newer), UNKNOWN_HALF))
    if text.do_lower_case:  # what stands before `\K` stays
        final = rf"{cased}{ignorable}*\K{SIGMA}(?!{ignorable}*{cased})"
        steps += [replace(final, "ς"), normalizers.Lowercase()]
    if text.removes_accents:
        steps += [normalizers.NFD(), replace(accents, "")]
    return normalizers.Sequence(steps)


def _pre_tokenizer(table: CharacterTable) -> Any:
    """Rules 3 and 5: a word is one of the characters that stand alone, or a run of others."""
    from tokenizers import Regex, pre_tokenizers

    chinese = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in CHINESE)
    alone = character_class(table.facts & PUNCTUATION)[1:-1] + chinese
    words = Regex(rf"[{alone}]|[^{alone}\s]+")
    return pre_tokenizers.Split(words, "removed", invert=True)  # what is no word is removed
