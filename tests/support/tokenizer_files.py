"""A `tokenizer.json` with BERT's rules, made by Hugging Face's library, which is its judge."""

import json

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, processors

from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS


def bert_tokenizer(tokens, added=(), lowercase=True, strip_accents=None):
    """The library's own tokenizer."""
    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    frame = (("[SEP]", ids.get("[SEP]", 0)), ("[CLS]", ids.get("[CLS]", 0)))
    tokenizer.post_processor = processors.BertProcessing(*frame)
    tokenizer.add_special_tokens([token for token in SPECIAL_TOKENS if token in ids])
    tokenizer.add_tokens(list(added))
    return tokenizer


def write_tokenizer_json(folder, tokens, changes=(), **options):
    """Writes the file, with parts of it replaced."""
    values = json.loads(bert_tokenizer(tokens, **options).to_str())
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**values, **dict(changes)}))
    return path
