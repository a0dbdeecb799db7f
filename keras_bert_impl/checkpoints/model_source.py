"""The one answer to "which model?": its weights, its configuration and how its text is cut.

Every tool and `from_pretrained` ask here, so all of them take a model in the same forms:

- a model directory (Hugging Face's form), ours or anybody's;
- google's TF1 checkpoint by its prefix, or the folder that it lies in, with `bert_config.json` and
  `vocab.txt` beside it as google's archives have them;
- a checkpoint of a run, also while it goes on: `run/checkpoints/step-N`, `run/checkpoints` (the
  newest one) or `run/best_checkpoint`;
- any one file of these, or the folder of a run: its `model/`, else its newest checkpoint;
- a name on the Hugging Face hub such as "klue/bert-base" (`hub.py`; the package `huggingface_hub`
  is installed with this one);
- an adapter in PEFT's form: its folder, which names its base, or its base and `adapter`;
- no weights at all: a configuration, or one of the published sizes, with a vocabulary.

What a file next to the weights says comes first; a parameter fills in what no file says.
"""

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints import sources
from keras_bert_impl.checkpoints.formats import keras_hub, tf_models
from keras_bert_impl.checkpoints.formats.peft_adapter import (
    AdapterSource,
    is_adapter,
    read_base_name,
)
from keras_bert_impl.checkpoints.hub import find_on_hub, may_be_hub_name
from keras_bert_impl.checkpoints.names import head_names
from keras_bert_impl.checkpoints.restore import check_sizes, open_source
from keras_bert_impl.checkpoints.sentence_modules import MODULES_FILE, read_activation, read_length
from keras_bert_impl.checkpoints.task_settings import task_settings, with_task_settings
from keras_bert_impl.checkpoints.text_files import (
    foreign_tokenizer,
    read_casing,
    refuse_foreign_tokenizer,
)
from keras_bert_impl.config import BertConfig, architecture_of, named_config
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import StrPath, is_named, real_path
from keras_bert_impl.json_files import read_json_object
from keras_bert_impl.options import FREE, Options, option
from keras_bert_impl.tokenization.model_files import check_keys
from keras_bert_impl.tokenization.reference import as_name
from keras_bert_impl.tokenization.text_settings import AS_IS, NFC, Casing, TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary

_NOTHING_SAID = Casing()
_UNUSED = re.compile(r"\[unused\d+\]", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointOptions(Options):
    """Options of every job that reads a checkpoint of any format; a run compares their content."""

    bert_config_file: str | None = option(
        None, "google's bert_config.json, if there is none beside the checkpoint.", resume=FREE
    )
    vocab_file: str | None = option(
        None, "The vocabulary, if there is none beside the checkpoint.", resume=FREE
    )
    do_lower_case: bool | None = option(
        None,
        "Whether text is lower-cased, where the checkpoint does not say it: yes for the tools that "
        "fine-tune and extract_features; the others ask for it.",
        resume=FREE,
    )

    def description(self) -> dict[str, Any]:
        """The options as keyword arguments of `find_model` and what opens models with it."""
        names = ("bert_config_file", "vocab_file", "do_lower_case")
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdaptedOptions(CheckpointOptions):
    """Options of every job that only reads a model, perhaps changed by an adapter."""

    adapter: str | None = option(
        None,
        "The folder of an adapter (LoRA, in PEFT's form) that changes the model. An adapter that "
        "names its base may be given as the model itself.",
    )

    def description(self) -> dict[str, Any]:
        """See `CheckpointOptions.description`."""
        return {**super().description(), "adapter": self.adapter}


@dataclasses.dataclass(frozen=True)
class ModelSource:
    """A model before it is built: everything but the numbers."""

    checkpoint: Path | None
    config: BertConfig
    found_text: TextSettings | None
    opened: sources.TensorSource | None = dataclasses.field(default=None, repr=False, compare=False)
    why_no_text: str = ""
    sentence_folder: Path | None = None  # where it is not that of the checkpoint

    @property
    def text(self) -> TextSettings:
        if self.found_text is None:
            raise ValueError(self.why_no_text)
        return self.found_text

    @property
    def folder(self) -> Path:
        """The folder that says how a text becomes a vector: of an adapter perhaps its own."""
        if self.checkpoint is None:
            raise ValueError("a new model has no weights")
        return self.sentence_folder or folder_of(self.checkpoint)

    @property
    def graphs_beside(self) -> Path:
        """The folder that graphs of it are kept in: of an adapter not its base's."""
        return self.tensors().keeps or self.folder

    @property
    def architecture(self) -> str:
        """The model that the configuration names first, e.g. "BertModel"; "" if it names none."""
        return architecture_of(self.config)

    @property
    def is_multi_label(self) -> bool:
        """Whether each label of a classifier is a question of its own."""
        return self.config.extra.get("problem_type") == "multi_label_classification"

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels' names in the order of the classes; () without weights that have labels.

        The weights say how many there are. A configuration may be wrong about it (`num_labels` and
        a stale `id2label`): its names count only if there are as many, as in transformers.
        """
        return named_labels(self.config, self._count_labels())

    def tensors(self) -> sources.TensorSource:
        if self.opened is None:
            raise ValueError("a new model has no weights")
        return self.opened

    def _count_labels(self) -> int:
        if self.checkpoint is None:
            return 0
        tensors, weights = self.tensors(), head_names("classifier")
        found = [hit for hit in map(tensors.find, weights) if hit]  # a tagger's are called the same
        return max(((sources.weight_shape(tensors, hit) or (0,))[-1] for hit in found), default=0)


def find_model(
    path_or_name: StrPath | None,
    *,
    bert_config_file: StrPath | None = None,
    vocab_file: StrPath | None = None,
    do_lower_case: bool | None = None,
    model_size: str | None = None,
    told: Casing = _NOTHING_SAID,
    default_lower_case: bool | None = None,
    needs_text: bool = True,
    adapter: StrPath | None = None,
    any_tokenizer: bool = False,
) -> ModelSource:
    """Finds a model, perhaps changed by an adapter, and what belongs to it; sees that all fits.

    `told` counts after the files next to the weights; where nothing says the casing,
    `default_lower_case` does.
    """
    opened = (None, None, None, None) if path_or_name is None else _open(path_or_name, adapter)
    checkpoint, words, beside, tensors = opened
    config = _find_config(checkpoint, bert_config_file, model_size, vocab_file)
    if beside is not None:
        config = _with_activation(_with_length(config, beside), beside)
    if tensors is not None:
        config = config.replace(extra={**tensors.extra, **config.extra, **tensors.overrides})
        # Before a model is made: a configuration may ask for more memory than there is.
        check_sizes(tensors, config)
    try:
        if words is not None and (words != checkpoint or not any_tokenizer):
            refuse_foreign_tokenizer(folder_of(words))
        vocab_file = vocab_file or _find_vocabulary(words, bert_config_file)
        vocabulary = Vocabulary.load(vocab_file)
        if words is not None:
            _check_same_tokens(vocabulary, vocab_file, folder_of(words))
        own = _NOTHING_SAID if words is None else _own_casing(words, any_tokenizer)
        lower, accents = _find_casing(own, words, do_lower_case, told, default_lower_case)
        form = NFC if NFC in (own.unicode_form, told.unicode_form) else AS_IS
        text = Casing(lower, accents, form, own.added, own.longest_word).settings(vocabulary)
        if len(text.vocabulary) > config.vocab_size:
            raise UserError(
                f"{vocab_file}: has {len(text.vocabulary)} tokens, but the model only knows "
                f"{config.vocab_size}; name the model's own vocabulary (`vocab_file`)."
            )
        if lower not in (own.do_lower_case, told.do_lower_case):
            _check_choice(text, vocab_file)
    except UserError as error:
        if needs_text:
            raise
        return ModelSource(checkpoint, config, None, tensors, str(error), beside)
    return ModelSource(checkpoint, config, text, tensors, sentence_folder=beside)


_Opened = tuple[Path, Path, Path, sources.TensorSource]


def _open(path_or_name: StrPath, adapter: StrPath | None) -> _Opened:
    """Where a model and its vocabulary lie, the folder of its sentence files, and its weights."""
    found = locate(path_or_name)
    if not (adapter or is_adapter(found)):
        return found, found, folder_of(found), open_source(found)
    places, tensors = _open_adapter(found, adapter)
    described = _first_with(lambda folder: (folder / sources.CONFIG_FILE).is_file(), places)
    sentences = _first_with(lambda folder: is_named(folder / MODULES_FILE), places)
    if tensors.has_head and sentences == places[-1]:  # the base's vectors are not its answer
        sentences = described
    # A tokenizer beside an adapter alone, as trainers save it, says less than the base's files.
    words = _first_with(_vocabulary_in, [described, places[-1]])
    return described, words, folder_of(sentences), tensors


def _first_with(there: Callable[[Path], object], places: Sequence[Path]) -> Path:
    """The first place whose folder has something; the last one where none has it."""
    return next((place for place in places if there(folder_of(place))), places[-1])


def _open_adapter(checkpoint: Path, adapter: StrPath | None) -> tuple[list[Path], AdapterSource]:
    """An adapter's folder and its base, whose files describe the model, and its weights."""
    if adapter is None:
        folder, base = checkpoint, locate(*read_base_name(checkpoint))
    else:
        folder, base = sources.find_checkpoint(_in_home(adapter)), checkpoint
    if is_adapter(base):
        remedy = "merge that with convert_checkpoint, and name the merged model as the base"
        raise UserError(f"{folder}: its base {base} is an adapter itself; {remedy}.")
    return [folder, base], AdapterSource(folder, open_source(base))


def locate(path_or_name: StrPath, revision: str | None = None) -> Path:
    """The model directory, TF1 checkpoint's prefix or run's checkpoint that a user's words mean.

    Of a model of the hub it may be another revision than the newest one.
    """
    if not isinstance(path_or_name, str | os.PathLike) or not str(path_or_name).strip():
        known = "a model directory, a TF1 checkpoint or a name on the Hugging Face hub"
        raise UserError(f"{shown(path_or_name)} names no model; give {known}.")
    found = sources.find_checkpoint(_in_home(path_or_name))
    if sources.is_saved_model(found):
        fault = "is a SavedModel, which its own client.py and TensorFlow Serving ask"
        raise UserError(f"{found}: {fault}; name the model directory that it was exported from.")
    if sources.is_google_checkpoint(found) or found.is_dir():
        return found
    if found.is_file() and sources.is_pickle(found):
        remedy = f"name the folder if {sources.WEIGHTS_FILE} lies there too"
        raise sources.pickle_refused(found, remedy)
    if found.is_file():
        remedy = "name the folder with model.safetensors, or a TF1 checkpoint's prefix"
        raise UserError(f"{found}: is no file of a model that can be read here; {remedy}.")
    if may_be_hub_name(str(path_or_name)):
        return find_on_hub(str(path_or_name), revision)
    hint = "check the path (a TF1 checkpoint is named without '.index')"
    raise UserError(f"{path_or_name}: no such file or folder; {hint}.")


def model_identity(path_or_name: StrPath) -> str:
    """Names a model the same from whatever folder: its whole path, or its name and commit."""
    found = locate(path_or_name)
    of_the_hub = found != sources.find_checkpoint(_in_home(path_or_name))
    return f"{path_or_name}@{found.name}" if of_the_hub else str(real_path(found))


def _in_home(path: StrPath) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111  # pathlib's refuses a file called "~x"


def label_names(config: BertConfig) -> dict[str, str]:
    """The names of a head's labels by their numbers, as a configuration has them; {} if none.

    They are composed (see `as_name`), but where two would be one.

    Example:
        >>> label_names(BertConfig(vocab_size=9, extra={"id2label": {"0": "no", "1": "yes"}}))
        {'0': 'no', '1': 'yes'}
    """
    names = config.extra.get("id2label") or {}
    given = {str(one): str(name) for one, name in names.items()} if isinstance(names, dict) else {}
    found = {one: given[one] for one in map(str, range(len(given))) if one in given}
    if not isinstance(names, dict) or len(found) < len(names):
        fault = "id2label does not name its labels by the numbers from 0 on"
        raise UserError(f'{config.origin}: {fault}; write it as {{"0": "no", "1": "yes"}}.')
    composed = {number: as_name(name) for number, name in found.items()}
    same = len({*composed.values()}) == len({*found.values()})
    return composed if same else found


def named_labels(config: BertConfig, count: int) -> tuple[str, ...]:
    """The names of so many labels; a configuration with another number of them names none."""
    names = label_names(config) if count else {}
    names = names if len(names) == count else {}
    return tuple(names.get(str(number), f"LABEL_{number}") for number in range(count))


def folder_of(checkpoint: Path) -> Path:
    """The folder of a located checkpoint: what lies beside its weights lies there."""
    return checkpoint if checkpoint.is_dir() else checkpoint.parent


def _find_config(
    checkpoint: Path | None,
    bert_config_file: StrPath | None,
    model_size: str | None,
    vocab_file: StrPath | None,
) -> BertConfig:
    if model_size:
        return _config_of_size(model_size, checkpoint, bert_config_file, vocab_file)
    if bert_config_file:
        return BertConfig.from_google_file(bert_config_file)
    if checkpoint is None:
        raise UserError(
            "no trained model is named; give `init_checkpoint`, or for a new model, which knows "
            "nothing yet, `model_size` or `bert_config_file`."
        )
    folder = folder_of(checkpoint)
    if checkpoint.is_dir():
        path = folder / sources.CONFIG_FILE
        if path.exists():
            values = read_json_object(path)
            if keras_hub.is_preset(values):
                return keras_hub.read_config(folder)
            config = BertConfig.from_hugging_face(values, str(path))
            check_keys(path, config.extra, sources.CONFIG_FILE)
            return config
    else:
        for name in (sources.GOOGLE_CONFIG_FILE, sources.CONFIG_FILE):
            if (folder / name).exists():
                return BertConfig.from_google_file(folder / name)
        if (folder / sources.PARAMS_FILE).exists():
            return tf_models.read_params(folder / sources.PARAMS_FILE)
        path = folder / sources.GOOGLE_CONFIG_FILE
    raise UserError(f"{path}: no such file; name the configuration with `bert_config_file`.")


def _with_length(config: BertConfig, folder: Path) -> BertConfig:
    """The configuration with the length that a foreign model's files truncate texts to."""
    kept, length = task_settings(config), read_length(folder)
    if "max_seq_length" in kept or not length or length >= config.max_position_embeddings:
        return config
    return with_task_settings(config, {**kept, "max_seq_length": length})


def _with_activation(config: BertConfig, folder: Path) -> BertConfig:
    """The configuration with the activation that a cross-encoder's other file names."""
    name = read_activation(folder)
    if name is None:
        return config
    return config.replace(extra={**config.extra, "sentence_transformers": {"activation_fn": name}})


def _config_of_size(
    model_size: str,
    checkpoint: Path | None,
    bert_config_file: StrPath | None,
    vocab_file: StrPath | None,
) -> BertConfig:
    if bert_config_file or checkpoint:
        fault = "is for a new model, without `bert_config_file` and `init_checkpoint`"
        raise UserError(f"`model_size={model_size}` {fault}; leave it out.")
    if not vocab_file:
        raise UserError("`model_size` needs `vocab_file`; name the vocabulary of the text.")
    return named_config(model_size, len(Vocabulary.load(vocab_file)))


def _find_vocabulary(checkpoint: Path | None, bert_config_file: StrPath | None) -> Path:
    folders = [folder_of(checkpoint)] if checkpoint else []
    folders += [Path(bert_config_file).parent] if bert_config_file else []
    if found := next(filter(None, map(_vocabulary_in, folders)), None):
        return found
    if checkpoint:
        missing = folders[0] / sources.VOCABULARY_FILE
        raise UserError(f"{missing}: no such file; name the vocabulary with `vocab_file`.")
    raise UserError("`vocab_file` is missing; name the vocabulary that the model is for.")


def _vocabulary_in(folder: Path) -> Path | None:
    names = (sources.VOCABULARY_FILE, keras_hub.VOCABULARY_PATH, sources.FAST_TOKENIZER_FILE)
    return next(filter(is_named, (folder / name for name in names)), None)


def _own_casing(checkpoint: Path, any_tokenizer: bool) -> Casing:
    """What the files beside the weights say; a foreign tokenizer's are only copied."""
    folder = folder_of(checkpoint)
    if not any_tokenizer or foreign_tokenizer(folder) is None:
        return read_casing(folder)
    path = folder / sources.TOKENIZER_FILE
    values = read_json_object(path) if is_named(path) else {}
    return Casing(values.get("do_lower_case"), values.get("strip_accents"))


def _check_same_tokens(vocabulary: Vocabulary, name: StrPath, folder: Path) -> None:
    """Refuses a named vocabulary that gives the rows of trained weights to other tokens.

    It may have more tokens at its end. Rows of [unused1] and the like are there to be given to new
    tokens; a file next to the weights that cannot be read says nothing.
    """
    path = _vocabulary_in(folder)
    try:
        own = Vocabulary.load(path) if path and path != Path(name) else vocabulary
    except UserError:
        return
    pairs = enumerate(zip_longest(vocabulary.tokens, own.tokens))
    other = [
        (number, token, known)
        for number, (token, known) in pairs
        if known not in (None, token) and not _UNUSED.fullmatch(known)
    ]
    if other:
        number, token, known = other[0]
        instead = f"not {shown(token)}" if token else "which it lacks"
        raise UserError(
            f"`vocab_file={name}`: has {len(vocabulary)} tokens, but the model's own vocabulary "
            f"{path} has {len(own)}, and {len(other)} of these are not where they are there "
            f"(number {number} is {shown(known)}, {instead}), so that weights would stand for "
            "other words; leave `vocab_file` out, or name another model."
        )


def _find_casing(
    own: Casing,
    checkpoint: Path | None,
    do_lower_case: bool | None,
    told: Casing,
    default_lower_case: bool | None,
) -> tuple[bool, bool | None]:
    if own.do_lower_case is not None:
        if do_lower_case not in (None, own.do_lower_case):
            trained = f"{checkpoint}, which was trained with {own.do_lower_case}"
            raise UserError(f"`do_lower_case={do_lower_case}` contradicts {trained}; leave it out.")
        return own.do_lower_case, own.strip_accents
    if told.do_lower_case is not None and do_lower_case in (None, told.do_lower_case):
        return told.do_lower_case, _first(own.strip_accents, told.strip_accents)
    lower = _first(do_lower_case, default_lower_case)
    if lower is None:
        subject = f"{folder_of(checkpoint)}: no file there" if checkpoint else "nothing"
        raise UserError(
            f"{subject} says whether text is lower-cased; give `do_lower_case=True` for an uncased "
            "model or `do_lower_case=False` for a cased one (or write it into "
            f'{sources.TOKENIZER_FILE} next to the weights: {{"do_lower_case": true}} or false).'
        )
    return lower, own.strip_accents


def _first(first: bool | None, second: bool | None) -> bool | None:
    return second if first is None else first


def _check_choice(text: TextSettings, vocab_file: StrPath) -> None:
    """Refuses a casing that was chosen or guessed and cannot be that of the vocabulary."""
    # Accents are not counted: no parameter says whether they are kept, and no file of google's.
    if contradiction := dataclasses.replace(text, strip_accents=False).contradiction():
        remedy = f"`do_lower_case={not text.do_lower_case}`"
        raise UserError(f"{vocab_file}: {contradiction} Then give {remedy}.")
