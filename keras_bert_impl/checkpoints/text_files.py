"""The text settings in the files next to a model's weights: casing, accents, tokenizer."""

import contextlib
import re
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypedDict

from keras_bert_impl.checkpoints.formats import keras_hub
from keras_bert_impl.checkpoints.sources import (
    ADDED_TOKENS_FILE,
    CONFIG_FILE,
    FAST_TOKENIZER_FILE,
    LENGTH_FILE,
    SPECIAL_TOKENS_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
)
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import is_named, real_path
from keras_bert_impl.json_files import read_typed, typed_entries
from keras_bert_impl.options import bounded
from keras_bert_impl.tokenization.added_tokens import AddedToken
from keras_bert_impl.tokenization.model_files import (
    TokenizerFile,
    WordLength,
    check_reachable,
    read_added_tokens,
    read_checked,
    read_tokenizer_json,
)
from keras_bert_impl.tokenization.text_settings import AS_IS, NFC, Casing
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

_SAID = {
    "do_lower_case": bool | None,
    "strip_accents": bool | None,
    "unicode_form": bounded(str, choices=(AS_IS, NFC)) | None,
    "max_input_chars_per_word": WordLength | None,
}

_BERT_TOKENIZERS = (  # those that cut text by BERT's rules, or leave them to tokenizer.json
    *("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "TokenizersBackend"),
    *("BertTokenizerFast", "DistilBertTokenizerFast", "ElectraTokenizerFast"),
    "PreTrainedTokenizerFast",
)
# The folders of google's archives say the casing in their names, and nowhere else.
_GOOGLE_FOLDER = re.compile(r"(?:wwm_)?(uncased|cased|multi_cased|multilingual|chinese)_L-\d+_H-")
_CASED_FOLDERS = ("cased", "multi_cased")


class _Cutting(TypedDict, total=False):
    tokenizer_class: str | None
    word_tokenizer_type: str | None


def read_casing(folder: Path, *, is_export: bool = False) -> Casing:
    """Reads how a model's text is treated; what is not followed here is refused."""
    if keras_hub.is_preset_folder(folder):
        return keras_hub.read_casing(folder)
    path, fast = folder / TOKENIZER_FILE, folder / FAST_TOKENIZER_FILE
    values = read_checked(path, TOKENIZER_FILE)
    said = typed_entries(values, _SAID, str(path), "correct it")
    lower, accents, form, longest_word = map(said.get, _SAID)
    archive = _GOOGLE_FOLDER.match(real_path(folder).name)
    described = read_tokenizer_json(fast) if is_named(fast) and not is_export else None
    file = Casing() if described is None else described.casing
    if lower is None:
        lower, accents = file.do_lower_case, file.strip_accents if accents is None else accents
    if lower is None and archive:
        lower = archive[1] not in _CASED_FOLDERS
    own = Casing(lower, accents, form)
    sentence = read_checked(folder / LENGTH_FILE, LENGTH_FILE)
    if sentence.get("do_lower_case") and lower is False:
        # sentence-transformers lower-cases before its tokenizer, which then keeps the accents.
        lower, accents = True, bool(accents)
    tokens = () if is_export else _own_tokens(folder)  # whose digests hold what was checked
    if described is not None:
        _check_same(folder, described, tokens, own, Casing(lower, accents))
        form, longest_word = file.unicode_form or form, file.longest_word
    added = _added_tokens(folder, values, file.added)
    check_reachable(added, tokens or [token.content for token in added], bool(lower), folder)
    return Casing(lower, accents, form, added, longest_word)


def _own_tokens(folder: Path) -> tuple[str, ...]:
    """The tokens of a `vocab.txt` beside the weights; one that cannot be read says nothing."""
    path = folder / VOCABULARY_FILE
    with contextlib.suppress(UserError):
        return Vocabulary.load(path).tokens if is_named(path) else ()
    return ()


def _check_same(
    folder: Path, described: TokenizerFile, tokens: tuple[str, ...], *casings: Casing
) -> None:
    """Refuses a `tokenizer.json` that contradicts the files beside it."""
    found, *others = (
        (one.do_lower_case, one.do_lower_case if one.strip_accents is None else one.strip_accents)
        for one in (described.casing, *casings)
    )
    if found not in others:
        raise UserError(
            f"{folder / FAST_TOKENIZER_FILE}: lower-cases text ({found[0]}) or removes accents "
            f"({found[1]}) otherwise than {folder / TOKENIZER_FILE} says; correct one of them."
        )
    added = {token.content for token in described.casing.added}
    pairs = zip_longest(tokens, described.tokens) if tokens else ()
    for number, (token, other) in enumerate(pairs):
        if token not in (other, (other or "").strip()) and (token or other not in added):
            raise UserError(
                f"{folder / VOCABULARY_FILE}: token {number} is {_said(token)}, but "
                f"{FAST_TOKENIZER_FILE} beside it has {_said(other)}; remove the file that is "
                "not the model's."
            )


def _said(token: str | None) -> str:
    return "missing" if token is None else shown(token)


def _added_tokens(
    folder: Path, values: Mapping[str, Any], described: tuple[AddedToken, ...]
) -> tuple[AddedToken, ...]:
    """All tokens that are taken out of a text; of what two files say of one the first counts."""
    special, plain = folder / SPECIAL_TOKENS_FILE, folder / ADDED_TOKENS_FILE
    mapped = read_checked(special, SPECIAL_TOKENS_FILE)
    found = [*described, *read_added_tokens(values, folder / TOKENIZER_FILE)]
    found += read_added_tokens(mapped, special)
    names = {token.content for token in found}
    numbers = read_typed(plain, dict[str, int], "save it again") if is_named(plain) else {}
    for content, number in numbers.items():
        found.append(AddedToken(content, number, normalized=content not in names))
    tokens: dict[str, AddedToken] = {}
    for token in found:
        if token.content in SPECIAL_TOKENS:
            continue
        known = tokens.setdefault(token.content, token)
        if known.id is None:
            tokens[token.content] = known._replace(id=token.id)
        elif token.id not in (None, known.id):
            raise UserError(
                f"{folder}: the added token {shown(token.content)} has the id {known.id} in one "
                f"file and {token.id} in another; get the model's files again."
            )
    return tuple(tokens.values())


def foreign_tokenizer(folder: Path) -> tuple[Path, str] | None:
    """The tokenizer that cuts by other rules than BERT's, and the file that names it."""
    for path in (folder / TOKENIZER_FILE, folder / CONFIG_FILE):
        values = read_typed(path, _Cutting, "get the model again") if is_named(path) else _Cutting()
        name, words = values.get("tokenizer_class"), values.get("word_tokenizer_type", "basic")
        if (name is not None and name not in _BERT_TOKENIZERS) or words not in (None, "basic"):
            return path, shown(name or words)[1:-1]
    return None


def refuse_foreign_tokenizer(folder: Path) -> None:
    """Refuses a model whose text is cut by other rules than BERT's."""
    if found := foreign_tokenizer(folder):
        fault = f"its text is cut by {found[1]}, not by BERT's own rules"
        what = "so that its tokens would not be found"
        raise UserError(f"{found[0]}: {fault}, {what}; name a model with a BertTokenizer.")
