"""A checkpoint of any format as plain arrays under our names: converted, or with more words.

Conversions and vocabulary growth work here, on arrays of the type that the file holds: no number
passes through a model, so that what is converted there and back is the same bit by bit.
"""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.formats import google_tf1, keras_hub
from keras_bert_impl.checkpoints.model_directory import (
    check_apart,
    files_beside,
    heads_of,
    write_tensors_directory,
)
from keras_bert_impl.checkpoints.model_source import (
    AdaptedOptions,
    architecture_of,
    find_model,
    folder_of,
)
from keras_bert_impl.checkpoints.names import BILSTM, all_names
from keras_bert_impl.checkpoints.restore import (
    RestoreReport,
    check_sizes,
    check_tied_decoder,
    check_weights,
)
from keras_bert_impl.checkpoints.sentence_modules import (
    MODULES_FILE,
    module_folders,
    read_dense,
    read_sentence_settings,
)
from keras_bert_impl.checkpoints.sources import TensorSource, find_checkpoint, read_weight
from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.checkpoints.text_files import foreign_tokenizer, refuse_foreign_tokenizer
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import StrPath, make_folder, open_whole, text_lines
from keras_bert_impl.options import REQUIRED, option
from keras_bert_impl.tokenization.reference import longest_tokens
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, UNK, Vocabulary

_LOGGER = logging.getLogger(__name__)

FORMATS = ("hugging_face", "google_tf1", "keras_hub")
_TABLE, _BIAS = "embeddings/token_embeddings", "masked_lm/output_bias"
# Both name these heads alike: the architecture tells which one it is.
_LABEL_HEADS = {"BertForTokenClassification": "tagger", "BertForMultipleChoice": "choice"}


@dataclasses.dataclass(frozen=True)
class PortableModel:
    """A model as plain arrays, with our names and our variables' shapes, of the file's type."""

    weights: dict[str, np.ndarray]
    config: BertConfig
    text: TextSettings
    report: RestoreReport
    foreign_tokenizer: str | None = None
    files: Sequence[Path] = ()
    sentence_folder: Path | None = None  # of the files by which a text becomes a vector


def read_portable(checkpoint: StrPath, **description: Any) -> PortableModel:
    """Reads a checkpoint of any format, described as for `find_model`."""
    source = find_model(checkpoint, any_tokenizer=True, **description)
    foreign = foreign_tokenizer(folder_of(Path(str(source.checkpoint))))
    tensors = source.tensors()
    weights, report = _read_weights(tensors, str(source.checkpoint), source.config)
    why = foreign and foreign[1]
    parts = (source.config, source.text, report, why, tensors.files, source.folder)
    return PortableModel(weights, *parts)


def write_portable(model: PortableModel, output: StrPath, form: str) -> None:
    """Writes a model as a model directory, or as a TF1 checkpoint with its configuration beside."""
    check_weights(model.weights, model.report.location)
    check_apart(model.report.location, output, model.files)
    folder = model.sentence_folder
    if form == "hugging_face":
        refuse_foreign_tokenizer(folder_of(find_checkpoint(model.report.location)))
        how: tuple[Any, ...] = ()
        if folder:
            try:
                how = (read_sentence_settings(folder), read_dense(folder))
            except UserError as error:  # its weights are of use without that
                _LOGGER.warning(f"{output}: how a text becomes a vector is lost: {error}")
        write_tensors_directory(output, model.weights, model.config, model.text, *how)
        return
    if folder and "Pooling" in dict(module_folders(folder)):
        _LOGGER.warning(
            f"{output}: this form has no place for how a text becomes a vector ({MODULES_FILE}), "
            "which is lost; give `output_format=hugging_face` to keep it."
        )
    if form == "keras_hub":
        positions = model.config.max_position_embeddings
        length = task_settings(model.config).get("max_seq_length", positions)
        keras_hub.write_preset(Path(output), model.weights, model.config, model.text, length)
        return
    if Path(output).is_dir():
        instead = f"name a prefix in it, such as {Path(output) / 'bert_model.ckpt'}"
        raise UserError(f"{output}: is a folder; {instead}.")
    for part in model.config.unknown_to_google():
        _LOGGER.warning(f"{output}: google's programs open this checkpoint without {part}.")
    names = all_names(model.config.num_hidden_layers, (BILSTM, *heads_of(model.weights)))
    variables = {
        row.google: model.weights[row.ours].T if row.google_transposed else model.weights[row.ours]
        for row in names
        if row.ours in model.weights
    }
    beside = files_beside(Path(output), model.config, model.text, model.foreign_tokenizer)
    make_folder(Path(output).parent)
    for path, content in beside.items():
        with open_whole(path, "wb") as file:
            file.write(content)
    google_tf1.write_google_checkpoint(output, variables)


def _read_weights(
    source: TensorSource, location: str, config: BertConfig
) -> tuple[dict[str, np.ndarray], RestoreReport]:
    labels = _LABEL_HEADS.get(architecture_of(config), "classifier")
    found = check_sizes(source, config, ("masked_lm", "next_sentence", labels, "span"))
    check_tied_decoder(source)
    weights = {path: read_weight(source, hit) for path, hit in found.items()}
    used = {hit.name for hit in found.values()}
    left = source.ignored(used, "no part of a BERT that is known here")
    return weights, RestoreReport(location, tuple(sorted(weights)), (), left)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertConfig(AdaptedOptions):
    """The options of a conversion."""

    input: str = option(
        REQUIRED,
        "A model directory, the prefix, folder or a file of a TF1 checkpoint, or a run's folder or "
        "checkpoint.",
    )
    output: str = option(REQUIRED, "A folder, or a prefix such as folder/bert_model.ckpt.")
    output_format: str = option(
        "auto", "The format to write; auto goes by the output's name.", choices=("auto", *FORMATS)
    )


def convert_checkpoint(config: ConvertConfig) -> str:
    """Converts; no number is changed, and no type."""
    model = read_portable(config.input, **config.description())
    form = _write_output(model, config)
    table = model.report.table().replace("loaded from", "converted from", 1)
    lines = [line for line in table.splitlines() if "newly initialised" not in line]
    lines = [line.replace("  loaded   ", "  converted", 1) for line in lines]
    types = sorted({str(array.dtype) for array in model.weights.values()})
    return "\n".join([*lines, f"written to {config.output} ({form}, {', '.join(types)})"])


def _write_output(model: PortableModel, config: ConvertConfig) -> str:
    """Writes a model where and in the format that a configuration says; gives the format."""
    form = config.output_format
    if form == "auto":  # ".ckpt" is in the name of a TF1 checkpoint's prefix
        form = "google_tf1" if ".ckpt" in Path(config.output).name else "hugging_face"
    write_portable(model, config.output, form)
    return form


@dataclasses.dataclass(frozen=True)
class NewToken:
    """A token that was added; its row starts as the mean of those of `made_from`."""

    token: str
    id: int
    made_from: tuple[str, ...]


def grow_vocabulary(
    model: PortableModel, words: Sequence[str], fill_unused: bool = True
) -> tuple[PortableModel, list[NewToken]]:
    """Adds words; a new row is the mean of the rows of the tokens that the word was cut into.

    Words that the vocabulary has, or that come twice, are skipped and counted in the log: a whole
    vocabulary that was learned on other text may be given.

    Words are as the tokenizer sees them; one that starts with "##" continues another.
    """
    tokens = list(model.text.vocabulary.tokens)
    known = {token: number for number, token in enumerate(tokens)}
    words = _new_words(words, known)
    # Rows between the vocabulary's end and the table's end have no token: they are free as well.
    size = model.config.vocab_size
    added = {token.content for token in model.text.added}
    unused = [n for token, n in known.items() if token.startswith("[unused") and token not in added]
    free = [*(unused if fill_unused else ()), *range(len(tokens), size + len(words))]
    positions = free[: len(words)]
    new = []
    for word, position in zip(words, positions, strict=True):
        made_from = _cut(word, known)
        new.append(NewToken(word, position, made_from))
        tokens += [""] * (position + 1 - len(tokens))
        tokens[position] = word
    grown_size = max(size, len(tokens))
    weights = dict(model.weights)
    for name in (_TABLE, _BIAS):
        if name in weights:
            weights[name] = _grow(weights[name], new, known, grown_size)
    grown = dataclasses.replace(
        model,
        weights=weights,
        config=model.config.replace(vocab_size=grown_size),
        text=dataclasses.replace(model.text, vocabulary=Vocabulary(tokens)),
    )
    return grown, new


def _cut(word: str, known: dict[str, int]) -> tuple[str, ...]:
    """The old tokens of a new word, which may begin with "##"; [UNK] where it cannot be cut."""
    continues = word.startswith(CONTINUATION)
    tokens = longest_tokens(word.removeprefix(CONTINUATION), known, continues=continues)
    return tuple(tokens or (UNK,))


def _grow(rows: np.ndarray, new: list[NewToken], known: dict[str, int], size: int) -> np.ndarray:
    """Enlarges a table [tokens, ...] to `size` rows and fills the new tokens' rows."""
    grown = np.zeros((size, *rows.shape[1:]), rows.dtype)
    grown[: len(rows)] = rows
    for entry in new:
        sources = rows[[known[token] for token in entry.made_from]].astype(np.float64)
        grown[entry.id] = sources.mean(axis=0).astype(rows.dtype)
    return grown


def _new_words(words: Sequence[str], known: Mapping[str, int]) -> list[str]:
    """The words that are not in the vocabulary, each once, in their order."""
    for number, word in enumerate(words, start=1):
        if not word.removeprefix("##") or any(character.isspace() for character in word):
            fault = f"{shown(word)} is no single word"
            raise UserError(f"new word {number}: {fault}; give one word a line.")
    different = list(dict.fromkeys(words))
    new = [word for word in different if word not in known]
    if not new:
        what = "every one of them is in the vocabulary" if words else "there are none"
        raise UserError(f"`words` has none to add: {what}; give at least one that is new.")
    there, twice = len(different) - len(new), len(words) - len(different)
    if there or twice:
        skipped = f"{there} that are in the vocabulary, {twice} given twice"
        _LOGGER.info("of %d words %d are new; skipped: %s", len(words), len(new), skipped)
    return new


@dataclasses.dataclass(frozen=True, kw_only=True)
class GrowConfig(ConvertConfig):
    """Which words to add to which checkpoint; what is read and written as in `ConvertConfig`."""

    words: Sequence[str] = option((), "The new words, separated by commas.")
    words_file: str | None = option(None, "A UTF-8 file with more new words, one a line.")
    fill_unused: bool = option(True, "Use up [unused…] entries before the tables are enlarged.")


def grow_checkpoint(config: GrowConfig) -> list[NewToken]:
    """Adds the words and writes the grown checkpoint."""
    model = read_portable(config.input, **config.description())
    lines = text_lines(config.words_file) if config.words_file else ()
    words = [*config.words, *filter(None, map(str.strip, lines))]
    grown, new = grow_vocabulary(model, words, config.fill_unused)
    _check_reachable(grown.text, [one.token for one in new])
    _write_output(grown, config)
    return new


def _check_reachable(text: TextSettings, words: Sequence[str]) -> None:
    """Sees that the tokenizer gives each new word as the one token that it now is."""
    from keras_bert_impl.tokenization.reference import split_words
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

    tokenizer, casing = Tokenizer(text), (text.do_lower_case, text.removes_accents)
    for word in words:
        before = "q" * word.startswith("##")  # a letter that composes with nothing
        wanted = before + word.removeprefix("##")
        tokens = split_words(wanted, *casing) if before else tokenizer.tokenize(word)
        if tokens != [wanted]:
            cut = " ".join(tokens).removeprefix(before)
            raise UserError(
                f"new word {shown(word)}: the tokenizer would never give it (it cuts it into "
                f"{shown(cut)}); give words without spaces and punctuation, in lower case for an "
                "uncased model."
            )
