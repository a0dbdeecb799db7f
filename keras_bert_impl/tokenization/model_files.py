"""What a model's files say of its tokens: every key that is written there, and `tokenizer.json`.

A key is read, or changes no token, or has the values that are followed here: any other is refused,
and so is a key that is not in the table and not empty. The keys are those of transformers 5 and of
sentence-transformers 6.2, and of the versions before them.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

from keras_bert_impl.errors import UserError, reading, shown
from keras_bert_impl.files import is_named
from keras_bert_impl.json_files import read_json_object, typed
from keras_bert_impl.options import Rules
from keras_bert_impl.tokenization.added_tokens import AddedToken
from keras_bert_impl.tokenization.text_settings import NFC, Casing
from keras_bert_impl.tokenization.vocabulary import CLS, CONTINUATION, SEP, SPECIAL_TOKENS, UNK

WordLength = Annotated[int, Rules(sentence="", at_least=1, at_most=1 << 20)]
READ, FREE = "read", "changes no token"
_EMPTY: tuple[Any, ...] = (None, False, "", [], {})


def _keys(read: str = "", free: str = "", **followed: tuple[Any, ...]) -> dict[str, Any]:
    return {**dict.fromkeys(read.split(), READ), **dict.fromkeys(free.split(), FREE), **followed}


KEYS: Mapping[str, Mapping[str, Any]] = {
    "config.json": _keys(
        read="""vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size
        hidden_act hidden_dropout_prob attention_probs_dropout_prob max_position_embeddings
        type_vocab_size initializer_range layer_norm_eps model_type is_decoder id2label label2id
        add_cross_attention position_embedding_type architectures problem_type num_labels
        classifier_dropout task_specific_params tokenizer_class word_tokenizer_type pad_token_id""",
        # Of tokens it names some for programs that write text. Any other key is of the model.
        free="""bos_token_id eos_token_id sep_token_id cls_token_id mask_token_id unk_token_id
        decoder_start_token_id forced_bos_token_id forced_eos_token_id suppress_tokens
        begin_suppress_tokens max_new_tokens min_new_tokens chunk_size_feed_forward dtype
        is_encoder_decoder output_attentions output_hidden_states return_dict tie_word_embeddings
        transformers_version use_cache _name_or_path""",
    ),
    "tokenizer_config.json": _keys(
        read="""do_lower_case strip_accents unicode_form model_max_length tokenizer_class
        word_tokenizer_type added_tokens_decoder additional_special_tokens extra_special_tokens
        max_input_chars_per_word model_specific_special_tokens cls_token sep_token mask_token
        unk_token pad_token bos_token eos_token""",
        free="""backend is_local local_files_only name_or_path special_tokens_map_file
        tokenizer_file vocab_file merges_file full_tokenizer_file slow_tokenizer_class use_fast
        from_slow legacy init_inputs files_loaded clean_up_tokenization_spaces
        clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output model_input_names
        max_len max_length stride truncation truncation_strategy padding pad_to_multiple_of
        pad_token_type_id return_tensors chat_template response_schema response_template
        chat_control_tokens processor_class verbose device_map trust_remote_code revision cache_dir
        subfolder token use_auth_token errors add_bos_token add_eos_token""",
        tokenize_chinese_chars=(True, None),
        clean_text=(True, None),
        do_basic_tokenize=(True, None),
        do_word_tokenize=(True, None),
        do_subword_tokenize=(True, None),
        subword_tokenizer_type=("wordpiece", None),
        wordpieces_prefix=(CONTINUATION, None),
        padding_side=("right", None),
        truncation_side=("right", None),
        split_special_tokens=(False, None),
    ),
    "special_tokens_map.json": _keys(
        read="""cls_token sep_token mask_token unk_token pad_token bos_token eos_token
        additional_special_tokens extra_special_tokens"""
    ),
    "tokenizer.json": _keys(
        read="""added_tokens normalizer post_processor model.type model.vocab
        model.max_input_chars_per_word""",
        free="""version decoder truncation.max_length truncation.strategy truncation.stride
        padding.strategy padding.pad_to_multiple_of padding.pad_id padding.pad_type_id
        padding.pad_token""",
        pre_tokenizer=({"type": "BertPreTokenizer"},),
        **{
            "model.unk_token": (UNK,),
            "model.continuing_subword_prefix": (CONTINUATION,),
            "truncation.direction": ("Right",),
            "padding.direction": ("Right",),
        },
    ),
    "an added token": _keys(
        read="id content lstrip rstrip normalized special",
        single_word=(False,),
        __type=("AddedToken",),
    ),
    "BertNormalizer": _keys(
        read="type strip_accents lowercase", clean_text=(True,), handle_chinese_chars=(True,)
    ),
    "modules.json": _keys(read="path type", free="idx name", kwargs=([], {}, None)),
    "Pooling": _keys(
        read="""pooling_mode pooling_mode_cls_token pooling_mode_mean_tokens
        pooling_mode_max_tokens pooling_mode_mean_sqrt_len_tokens pooling_mode_weightedmean_tokens
        pooling_mode_lasttoken""",
        free="embedding_dimension word_embedding_dimension",
        include_prompt=(True, None),
    ),
    "Dense": _keys(
        read="in_features out_features bias activation_function",
        module_input_name=("sentence_embedding", None),
        module_output_name=("sentence_embedding", None),
        use_residual=(False, None),
    ),
    "Normalize": _keys(
        module_input_name=("sentence_embedding", None),
        module_output_name=("sentence_embedding", None),
    ),
    "sentence_bert_config.json": _keys(
        read="max_seq_length do_lower_case",
        free="unpad_inputs transformer_task module_output_name",  # of the outputs
        modality_config=(
            *(
                {"text": {"method": "forward", "method_output_name": output}}
                for output in ("last_hidden_state", "logits")
            ),
            None,
        ),
        processing_kwargs=({}, None),
        query_length=(None,),
        document_length=(None,),
        query_expansion=(None,),
    ),
    "config_sentence_transformers.json": _keys(
        read="prompts default_prompt_name matryoshka_dimensions",
        free="__version__ similarity_fn_name activation_fn",
        model_type=("SentenceTransformer", "CrossEncoder", None),
        truncate_dim=(None,),
    ),
}
_OF_TOKENS = re.compile("token|vocab|lower_?case|accent|prompt|prefix")


def check_keys(
    path: str | os.PathLike[str], values: Mapping[str, Any], kind: str, where: str = ""
) -> None:
    """Refuses what a file says of tokens that is not followed here.

    `kind` is the file, or the part of one, as `KEYS` has it; a message has `where` before a key.
    """
    table = KEYS[kind]
    for name, value in values.items():
        followed = table.get(name, _EMPTY)
        if followed in (READ, FREE) or value in followed:
            continue
        if name in table:
            raise UserError(
                f"{path}: {where}{name} is {shown(value)}, but only {shown(followed[0])} is "
                "followed here, so that its tokens would be others; name a model of BERT's own "
                "kind."
            )
        if kind == "tokenizer_config.json" and name.endswith("_token"):
            continue  # transformers gives every such name a special token; it is read
        if kind != "config.json" or _OF_TOKENS.search(name):
            raise UserError(
                f"{path}: {where}{name} ({shown(value)}) is not known here and may change the "
                "tokens of a text; remove it where it changes none, or name another model."
            )


def read_checked(path: Path, kind: str) -> dict[str, Any]:
    """What a JSON file of a model says, {} where it is not there; see `check_keys`."""
    values = read_json_object(path) if is_named(path) else {}
    check_keys(path, values, kind)
    return values


class _Entry(TypedDict):
    content: str
    id: NotRequired[int]
    lstrip: NotRequired[bool]
    rstrip: NotRequired[bool]
    normalized: NotRequired[bool]
    special: NotRequired[bool]


def read_added_token(
    value: Any, path: str | os.PathLike[str], where: str, number: int | None = None
) -> AddedToken:
    """Reads an added token: its content, or an object with its flags."""
    if isinstance(value, str):
        return AddedToken(value, number)
    entry = typed(value, _Entry, f"{path}: {where}", _REMEDY)
    check_keys(path, entry, "an added token", f"{where}: ")
    if not entry["content"]:
        raise UserError(f"{path}: {where}: has no content; {_REMEDY}.")
    return AddedToken(
        entry["content"],
        entry.get("id", number),
        entry.get("lstrip", False),
        entry.get("rstrip", False),
        entry.get("normalized", not entry.get("special", False)),
    )


def read_added_tokens(
    values: Mapping[str, Any], path: str | os.PathLike[str]
) -> tuple[AddedToken, ...]:
    """The added tokens of a file of settings; those that say their ids come first."""
    for token in SPECIAL_TOKENS:
        name = f"{token[1:-1].lower()}_token"
        given = values.get(name)
        content = given.get("content") if isinstance(given, dict) else given
        if content not in (None, token):
            raise UserError(
                f"{path}: {name} is {shown(content)}, but only {token} is followed here; name a "
                "model of BERT's own kind."
            )
    decoder = typed(values.get("added_tokens_decoder") or {}, dict, f"{path}: added_tokens_decoder")
    with reading(path, "added tokens by their ids", _REMEDY):
        found = [
            read_added_token(value, path, f"added_tokens_decoder.{number}", int(number))
            for number, value in decoder.items()
        ]
    named: list[Any] = [value for name, value in values.items() if name.endswith("_token")]
    for name in (
        *("additional_special_tokens", "extra_special_tokens"),
        "model_specific_special_tokens",
    ):
        more = typed(values.get(name) or [], list | dict, f"{path}: {name}", _REMEDY)
        named += more.values() if isinstance(more, dict) else more
    found += [read_added_token(value, path, "a special token") for value in named if value]
    return tuple(found)


class TokenizerFile(NamedTuple):
    """What a `tokenizer.json` says: all tokens in the order of their ids, and the rest.

    `truncation` says how many tokens of a text are read; None is all.
    """

    tokens: tuple[str, ...]
    casing: Casing
    truncation: int | None


class _Model(TypedDict):
    type: NotRequired[Literal["WordPiece"]]
    vocab: dict[str, int]
    max_input_chars_per_word: NotRequired[WordLength]


class _BertNormalizer(TypedDict):
    type: Literal["BertNormalizer"]
    lowercase: bool
    strip_accents: bool | None


_REMEDY = "save the tokenizer again, or name BERT's own vocab.txt"


def read_tokenizer_json(path: str | os.PathLike[str], *, framed: bool = True) -> TokenizerFile:
    """Reads a `tokenizer.json` whose rules are BERT's; others are refused.

    Args:
        framed: whether a text shall get [CLS] and [SEP]; else it does not matter whether it does.
    """
    values = read_json_object(path)
    model = typed(values.get("model"), _Model, f"{path}: model", _REMEDY)
    ids = dict(model["vocab"])
    known = set(ids)
    added = typed(values.get("added_tokens") or [], list, f"{path}: added_tokens", _REMEDY)
    tokens = [
        read_added_token(row, path, f"added_tokens: {number}") for number, row in enumerate(added)
    ]
    with reading(path, "added tokens with ids", _REMEDY):
        ids |= {token.content: int(token.id or 0) for token in tokens}
    if sorted(ids.values()) != list(range(len(ids))):
        raise UserError(
            f"{path}: its {len(ids)} tokens do not have the ids from 0 to {len(ids) - 1}, each "
            f"once; {_REMEDY}."
        )
    parts = ("model", "truncation", "padding")
    flat = {name: value for name, value in values.items() if name not in parts}
    for part in parts:
        entries = typed(values.get(part) or {}, dict, f"{path}: {part}", _REMEDY)
        flat |= {f"{part}.{key}": value for key, value in entries.items()}
    needed = {"normalizer": None, "pre_tokenizer": None, "post_processor": None}
    check_keys(path, {**needed, **flat}, "tokenizer.json")
    if framed:
        _check_frame(flat.get("post_processor"), ids, path)
    lower, accents, composes = _read_normalizer(flat.get("normalizer"), path)
    added_tokens = tuple(token for token in tokens if token.content not in SPECIAL_TOKENS)
    check_reachable(added_tokens, known, lower, path)
    ordered = tuple(sorted(ids, key=ids.__getitem__))
    longest_word, form = model.get("max_input_chars_per_word"), NFC if composes else None
    length = flat.get("truncation.max_length")
    length = typed(length, int | None, f"{path}: truncation.max_length", _REMEDY)
    casing = Casing(lower, accents, form, added_tokens, longest_word)
    return TokenizerFile(ordered, casing, length)


def check_reachable(
    added: tuple[AddedToken, ...], known: Any, lower: bool, path: str | os.PathLike[str]
) -> None:
    """Refuses an added token that words would be cut into, though the vocabulary has it not."""
    for token in added:
        word = token.content.removeprefix(CONTINUATION)
        hidden = word != token.content or (lower and not token.normalized)
        if hidden and token.content not in known and word.isalnum() and word == word.lower():
            raise UserError(
                f"{path}: the added token {shown(token.content)} is not in the vocabulary, and "
                "words would be cut into it here where it is not taken out of the text; "
                "add it with normalized=True."
            )


def _check_frame(post_processor: Any, ids: Mapping[str, int], path: Any) -> None:
    """Sees that a text becomes [CLS] A [SEP], and a pair [CLS] A [SEP] B [SEP]."""
    token = lambda name, segment: {"SpecialToken": {"id": name, "type_id": segment}}  # noqa: E731
    text = lambda name, segment: {"Sequence": {"id": name, "type_id": segment}}  # noqa: E731
    first = [token(CLS, 0), text("A", 0), token(SEP, 0)]
    names = {name: {"id": name, "ids": [ids.get(name)], "tokens": [name]} for name in (CLS, SEP)}
    template = {"type": "TemplateProcessing", "single": first, "special_tokens": names}
    known = (
        {"type": "BertProcessing", "sep": [SEP, ids.get(SEP)], "cls": [CLS, ids.get(CLS)]},
        {**template, "pair": [*first, text("B", 1), token(SEP, 1)]},
    )
    if post_processor not in known:
        raise UserError(
            f"{path}: its post_processor does not make [CLS] A [SEP] B [SEP] of a pair of texts; "
            "name a model of BERT's own kind."
        )


def _read_normalizer(normalizer: Any, path: Any) -> tuple[bool, bool | None, bool]:
    """Whether text is lower-cased, loses its accents, and is composed first."""
    steps = _steps(normalizer)
    before, last = [step.get("type") for step in steps[:-1]], steps[-1] if steps else {}
    if last.get("type") != "BertNormalizer" or before not in (
        *([], ["NFC"], ["Lowercase"], ["NFC", "Lowercase"]),
    ):
        found = ", ".join(str(step.get("type")) for step in steps) or "nothing"
        raise UserError(
            f"{path}: its normalizer is {shown(found)[1:-1]}, but only BertNormalizer is followed "
            "here, so that its tokens would be others; name a model of BERT's own kind."
        )
    rules = typed({"strip_accents": None, **last}, _BertNormalizer, f"{path}: normalizer", _REMEDY)
    check_keys(path, last, "BertNormalizer", "normalizer.")
    lower, accents = rules["lowercase"], rules["strip_accents"]
    if "Lowercase" in before and not lower:  # as sentence-transformers writes `do_lower_case`
        lower, accents = True, bool(accents)
    return lower, accents, "NFC" in before


def _steps(normalizer: Any) -> list[dict[str, Any]]:
    if not isinstance(normalizer, dict):
        return []
    if normalizer.get("type") != "Sequence":
        return [normalizer]
    parts = normalizer.get("normalizers")
    return [one for part in parts for one in _steps(part)] if isinstance(parts, list) else []
