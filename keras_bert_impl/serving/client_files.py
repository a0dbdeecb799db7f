"""What lies beside an exported model for its clients: tokenizer, labels, threshold, lengths."""

from typing import Any

from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.tokenization.reference import MAX_CHARACTERS_PER_WORD
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import CLS, PAD, SEP, SPECIAL_TOKENS, UNK

SETTINGS_FILE, TOKENIZER_FILE, CLIENT_FILE = "settings.json", "tokenizer.json", "client.py"


def label_settings(opened: OpenedModel) -> dict[str, Any]:
    """The names of a model's labels in the order of its logits, and its thresholds.

    Returns:
        JSON values: `labels`, where there are several; `threshold`, the probability from which on
        a label holds, where each is a question of its own; and the thresholds of its task.
    """
    settings: dict[str, Any] = {}
    if len(opened.labels) > 1:
        settings["labels"] = list(opened.labels)
    if opened.is_multi_label:
        settings["threshold"] = 0.5
    own = task_settings(opened.source.config)
    return {**settings, **{name: x for name, x in own.items() if name.endswith("_threshold")}}


def text_settings(opened: OpenedModel, max_seq_length: int) -> dict[str, Any]:
    """How a text becomes ids, for clients in any language, as JSON values."""
    text = opened.text
    return {
        "max_seq_length": max_seq_length,
        "pad_id": text.vocabulary.pad_id,
        "tokenizer": {"lowercase": text.do_lower_case, "strip_accents": text.removes_accents},
    }


def client_tokenizer(text: TextSettings, max_seq_length: int, keeps_special_tokens: bool) -> Any:
    """The tokenizer of plain clients, in the form of the library `tokenizers`.

    It truncates to `max_seq_length` tokens, of pairs the longer text first, and pads to the longest
    row.

    Args:
        text: the vocabulary, the casing and the accents.
        max_seq_length: the most tokens of a row, with [CLS] and [SEP].
        keeps_special_tokens: whether "[MASK]" in a text is one token; else it is text.

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> text = TextSettings(Vocabulary([*SPECIAL_TOKENS, "dog", "##s"]))
        >>> tokenizer = client_tokenizer(text, 4, keeps_special_tokens=False)
        >>> tokenizer.encode("Dogs dog").tokens
        ['[CLS]', 'dog', '##s', '[SEP]']
    """
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers, processors

    vocabulary = text.vocabulary
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(ids, unk_token=UNK, max_input_chars_per_word=MAX_CHARACTERS_PER_WORD)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=text.do_lower_case, strip_accents=text.removes_accents
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = (SEP, vocabulary.sep_id), (CLS, vocabulary.cls_id)
    tokenizer.post_processor = processors.BertProcessing(*ends)
    if keeps_special_tokens:
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.enable_truncation(max_seq_length)
    tokenizer.enable_padding(pad_id=vocabulary.pad_id, pad_token=PAD)
    return tokenizer
