"""The text settings in the files next to a model's weights: casing, accents, tokenizer."""

import re
from pathlib import Path
from typing import TypedDict

from keras_bert_impl.checkpoints.formats import keras_hub
from keras_bert_impl.checkpoints.sources import (
    CONFIG_FILE,
    FAST_TOKENIZER_FILE,
    LENGTH_FILE,
    TOKENIZER_FILE,
)
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import is_named, real_path
from keras_bert_impl.json_files import read_json_object, read_typed
from keras_bert_impl.tokenization.text_settings import AS_IS, NFC, Casing
from keras_bert_impl.tokenization.vocabulary import read_tokenizer_json

_BERT_TOKENIZERS = (  # those that cut text by BERT's rules, or leave them to tokenizer.json
    "BertTokenizer",
    "BertTokenizerFast",
    "DistilBertTokenizer",
    "DistilBertTokenizerFast",
    "ElectraTokenizer",
    "ElectraTokenizerFast",
    "PreTrainedTokenizerFast",
    "TokenizersBackend",
)
# The folders of google's archives say the casing in their names, and nowhere else.
_GOOGLE_FOLDER = re.compile(r"(?:wwm_)?(uncased|cased|multi_cased|multilingual|chinese)_L-\d+_H-")
_CASED_FOLDERS = ("cased", "multi_cased")


class _Cutting(TypedDict, total=False):
    tokenizer_class: str | None
    word_tokenizer_type: str | None


def read_casing(folder: Path) -> Casing:
    """Reads how a model's text is treated; `tokenizer_config.json` comes first."""
    if keras_hub.is_preset_folder(folder):
        return keras_hub.read_casing(folder)
    path, fast = folder / TOKENIZER_FILE, folder / FAST_TOKENIZER_FILE
    values = read_json_object(path) if is_named(path) else {}
    lower, accents = values.get("do_lower_case"), values.get("strip_accents")
    form = values.get("unicode_form")
    if not isinstance(lower, bool) and is_named(fast):
        described = read_tokenizer_json(fast)
        lower = described.do_lower_case
        accents = described.strip_accents if accents is None else accents
    if accents is not None and not isinstance(accents, bool):
        raise UserError(
            f"{path}: strip_accents is {shown(accents)}; it must be true, false or null."
        )
    if form not in (None, AS_IS, NFC):
        raise UserError(f"{path}: unicode_form is {shown(form)}; it must be {AS_IS} or {NFC}.")
    if values.get("tokenize_chinese_chars") is False:
        raise UserError(
            f"{path}: tokenize_chinese_chars is false, but BERT's tokenizer always puts spaces "
            "around Chinese characters; name a model that was trained that way."
        )
    archive = _GOOGLE_FOLDER.match(real_path(folder).name)
    if not isinstance(lower, bool) and archive:
        lower = archive[1] not in _CASED_FOLDERS
    # sentence-transformers lower-cases before its tokenizer, which then keeps accents if cased.
    sentence = folder / LENGTH_FILE
    if lower is False and is_named(sentence) and read_json_object(sentence).get("do_lower_case"):
        lower, accents = True, bool(accents)
    return Casing(lower if isinstance(lower, bool) else None, accents, form)


def foreign_tokenizer(folder: Path) -> tuple[Path, str] | None:
    """The tokenizer of a model whose text BERT's own rules do not cut, and the file that names it.

    Example:
        >>> import tempfile
        >>> foreign_tokenizer(Path(tempfile.mkdtemp()))  # nothing says anything
    """
    for path in (folder / TOKENIZER_FILE, folder / CONFIG_FILE):
        values = read_typed(path, _Cutting, "get the model again") if is_named(path) else _Cutting()
        name, words = values.get("tokenizer_class"), values.get("word_tokenizer_type", "basic")
        if (name is not None and name not in _BERT_TOKENIZERS) or words not in (None, "basic"):
            return path, shown(name or words)[1:-1]
    return None


def refuse_foreign_tokenizer(folder: Path) -> None:
    """Refuses a model whose text is cut by other rules than BERT's."""
    if (found := foreign_tokenizer(folder)) is not None:
        path, name = found
        raise UserError(
            f"{path}: its text is cut by {name}, not by BERT's own rules, so that its tokens would "
            "not be found; name a model with a BertTokenizer."
        )
