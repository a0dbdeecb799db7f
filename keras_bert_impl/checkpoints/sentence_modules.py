"""The files by which a model directory says how a text becomes one vector.

They are sentence-transformers' own: `modules.json` lists what follows the encoder, `1_Pooling`
says what is pooled, `sentence_bert_config.json` how many tokens are read. So what is written here
opens there, and what is published there opens here. BERT's pooler is [CLS] and a dense layer with
tanh there (`2_Dense`).
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

from numpy.typing import NDArray

from keras_bert_impl.checkpoints.formats import keras_hub
from keras_bert_impl.checkpoints.formats.safetensors_file import (
    read_shapes,
    read_tensor,
    write_safetensors,
)
from keras_bert_impl.checkpoints.sources import (
    CONFIG_FILE,
    FAST_TOKENIZER_FILE,
    LENGTH_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
)
from keras_bert_impl.errors import UserError, reading, shown
from keras_bert_impl.files import is_named, make_folder
from keras_bert_impl.json_files import argument, read_json_object, read_typed, typed
from keras_bert_impl.models.head_settings import CLS, MEAN, POOLER, POOLINGS
from keras_bert_impl.options import Rules
from keras_bert_impl.tokenization.model_files import check_keys, read_checked

MODULES_FILE = "modules.json"
PROMPTS_FILE = "config_sentence_transformers.json"
STATIC_MODULE, STATIC_TYPE = "StaticEmbedding", "model2vec"
_UNLIMITED = 10**6  # tokenizers without a limit write a very large number
_POOLING, _DENSE, _NORMALIZE = "1_Pooling", "2_Dense", "3_Normalize"
_FILES = (MODULES_FILE, LENGTH_FILE, PROMPTS_FILE)
SENTENCE_FILES = (*_FILES, _POOLING, _DENSE, _NORMALIZE, "2_Normalize")

SENTENCE_PATTERNS = (
    *_FILES,
    *(f"*_{kind}/{CONFIG_FILE}" for kind in ("Pooling", "Dense", "Normalize")),
    f"*_Dense/{WEIGHTS_FILE}",
    *(f"*_{STATIC_MODULE}/{name}" for name in (WEIGHTS_FILE, FAST_TOKENIZER_FILE)),
)
"""What is fetched of a model of the hub besides the encoder."""

_CLASSES = "sentence_transformers.models"
_TANH = "torch.nn.modules.activation.Tanh"
_KNOWN = (
    ["Transformer", "Pooling"],
    ["Transformer", "Pooling", "Normalize"],
    ["Transformer", "Pooling", "Dense"],
    ["Transformer", "Pooling", "Dense", "Normalize"],
)
_OF_CROSS_ENCODERS = (["Transformer"],)
_AGAIN = "get the model again"
_MODES = {"pooling_mode_cls_token": CLS, "pooling_mode_mean_tokens": MEAN}


class _Module(TypedDict):
    type: str
    path: NotRequired[str]


class _Prompts(TypedDict, total=False):
    prompts: dict[str, str | None] | None
    default_prompt_name: str | None
    model_type: str | None
    activation_fn: str | None
    similarity_fn_name: str | None
    # An entry of our own, called as vLLM calls it in the encoder's configuration.
    matryoshka_dimensions: list[Annotated[int, Rules(sentence="", at_least=1)]] | None


COSINE, DOT = "cosine", "dot"
QUERY, DOCUMENT = "query", "document"
"""The prompts that every model has; without one in its files they are empty."""

_OF_DOCUMENTS = ("passage", "corpus")  # of models whose files name no "document"
OTHER_NAMES = {
    **dict.fromkeys((*_OF_DOCUMENTS, "search_document"), DOCUMENT),
    "search_query": QUERY,
}
"""What models and clients call these two."""


@dataclasses.dataclass(frozen=True)
class SentenceSettings:
    """How a text becomes one vector.

    `prompt` is written in front of a text for which no prompt is named; one that was given, in
    place of what the files say, is that of queries and documents, too. Without `max_seq_length`
    all positions are read. To `dimensions` the vectors may be truncated: the model was trained for
    it.
    """

    pooling: str = MEAN
    normalize: bool = False
    max_seq_length: int | None = None
    prompt: str = ""
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    dimensions: tuple[int, ...] = ()
    similarity: str = COSINE
    prompt_is_given: bool = dataclasses.field(default=False, repr=False)  # not of the files

    def __post_init__(self) -> None:
        if self.pooling not in POOLINGS:
            raise UserError(f"`pooling={self.pooling}` is unknown; choose {', '.join(POOLINGS)}.")
        argument("normalize", self.normalize, bool)
        argument("max_seq_length", self.max_seq_length, int | None)

    def named(self, name: str) -> str | None:
        """The name to ask `prompt_of` for; None is the default one.

        It is that of models without a prompt for queries or documents.
        """
        is_for_search = any(OTHER_NAMES.get(x, x) in (QUERY, DOCUMENT) for x in self.prompts)
        return name if is_for_search and not self.prompt_is_given else None

    def prompt_of(self, name: str | None) -> str:
        """The prompt of a name; None is the default one.

        Example:
            >>> SentenceSettings(prompts={"query": "query: "}).prompt_of("search_query")
            'query: '
        """
        if name is None:
            return self.prompt
        known = {QUERY: "", DOCUMENT: "", **self.prompts}
        found = known.get(name, known.get(OTHER_NAMES.get(name, "")))
        if found is None:
            raise UserError(f"the model has no prompt {shown(name)}; choose {', '.join(known)}.")
        return found


class DenseWeights(NamedTuple):
    """The dense layer behind [CLS], which is the pooler here: float [in, out] and float [out]."""

    kernel: NDArray[Any]
    bias: NDArray[Any]


def read_sentence_settings(folder: Path) -> SentenceSettings | None:
    """Reads the settings of a sentence model; None where the directory has no `modules.json`."""
    path = folder / MODULES_FILE
    if not is_named(path):
        found = keras_hub.read_pooling(folder) if keras_hub.is_preset_folder(folder) else None
        return found and SentenceSettings(*found, read_length(folder))
    modules = _read_modules(path)
    if "Pooling" not in modules:
        return None
    pooling = _read_pooling(folder / modules["Pooling"] / CONFIG_FILE)
    if "Normalize" in modules:
        read_checked(folder / modules["Normalize"] / CONFIG_FILE, "Normalize")
    if "Dense" in modules:
        _check_dense(folder / modules["Dense"] / CONFIG_FILE, pooling)
        pooling = POOLER
    return SentenceSettings(
        pooling=pooling,
        normalize="Normalize" in modules,
        max_seq_length=read_length(folder),
        **read_prompts(folder / PROMPTS_FILE, is_normalized="Normalize" in modules),
    )


def module_files(folder: Path) -> list[Path]:
    """The files with weights that are not the encoder's, and what names them."""
    path = folder / MODULES_FILE
    dense = _read_modules(path).get("Dense") if is_named(path) else None
    return [] if dense is None else [path, folder / dense / WEIGHTS_FILE]


def read_dense(folder: Path) -> DenseWeights | None:
    """The weights of the dense layer of a model directory; None where it has none."""
    files = module_files(folder)
    if not files:
        return None
    weights = files[-1]
    names, there = ("linear.weight", "linear.bias"), read_shapes(weights)
    if lost := [name for name in names if name not in there]:
        raise UserError(f"{weights}: has no {lost[0]} of a dense layer; {_AGAIN}.")
    kernel, bias = (read_tensor(weights, name) for name in names)
    return DenseWeights(kernel.T, bias)


def restore_pooler(weights: Sequence[Any], folder: Path) -> bool:
    """Gives the pooler the weights of a directory's dense layer; tells whether it has one."""
    dense = read_dense(folder)
    if dense is None:
        return False
    with reading(folder, "a model whose dense layer fits its encoder", _AGAIN):
        for weight, value in zip(weights, dense, strict=True):
            weight.assign(value)
    return True


def module_folders(folder: Path) -> list[tuple[str, str]]:
    """The modules that a directory names: the last part of each one's class' name, and its folder.

    Their classes are never imported: a name only says which of the modules here is meant.
    """
    path = folder / MODULES_FILE
    modules = read_typed(path, list[_Module], _AGAIN) if is_named(path) else []
    for module in modules:
        check_keys(path, module, MODULES_FILE)
        name = module.get("path", "")
        if Path(name).is_absolute() or ".." in name or not name.isprintable():
            raise UserError(f"{path}: the module {shown(name)} lies outside of the model's folder.")
    return [(_kind(one["type"]), one.get("path", "")) for one in modules]


def _kind(name: str) -> str:
    """The kind of a class of sentence-transformers; another's stays a name that nobody knows."""
    return name.rpartition(".")[2] if name.startswith("sentence_transformers.") else name


def check_modules(path: Path, kinds: Sequence[str], known: Collection[Sequence[str]]) -> None:
    """Refuses modules that do not exist here, in this order."""
    if kinds not in known:
        found = shown(", ".join(kinds))[1:-1] or "no module"
        raise UserError(
            f"{path}: a model of {found} cannot be opened here; name one of Transformer, Pooling "
            "and perhaps Dense and Normalize, or of StaticEmbedding and perhaps Normalize."
        )


def _read_modules(path: Path) -> dict[str, str]:
    """The folder of each module, of a kind that exists here."""
    modules = module_folders(path.parent)
    known = _OF_CROSS_ENCODERS if _cross_encoder(path.parent) else _KNOWN
    check_modules(path, [kind for kind, _ in modules], known)
    folders = dict(modules)
    if folders["Transformer"] not in ("", "."):
        raise UserError(
            f"{path}: the encoder lies in the folder {shown(folders['Transformer'])}; move its "
            f"files beside {MODULES_FILE}, and leave its path empty there."
        )
    return folders


def _check_dense(path: Path, pooling: str) -> None:
    values = read_json_object(path)
    check_keys(path, values, "Dense")
    width, out = values.get("in_features"), values.get("out_features")
    activation = values.get("activation_function")
    if pooling != CLS or out != width or activation != _TANH or not values.get("bias", True):
        raise UserError(
            f"{path}: a dense layer of {shown(width)} to {shown(out)} with {shown(activation)} "
            f"over the pooling {pooling} does not exist here; name a model without it, or one "
            "whose layer is BERT's pooler (of one size, with tanh and bias, over [CLS])."
        )


def _read_pooling(path: Path) -> str:
    values = read_json_object(path)
    check_keys(path, values, "Pooling")
    if "pooling_mode" in values:  # the later form names the mode
        named = typed(values["pooling_mode"], str | list[str], f"{path}: pooling_mode")
        modes = [named] if isinstance(named, str) else named
    else:
        modes = [
            _MODES.get(name, name.removeprefix("pooling_mode_"))
            for name, on in values.items()
            if name.startswith("pooling_mode_") and on
        ]
    if modes not in ([CLS], [MEAN]):
        found = shown(" and ".join(modes))[1:-1] or "nothing"
        remedy = "name a model that pools by the mean or by [CLS]"
        raise UserError(f"{path}: pools by {found}, which does not exist here; {remedy}.")
    return str(modes[0])


def read_length(folder: Path) -> int | None:
    """The most tokens of a text, as sentence-transformers' file says it, or the tokenizer's."""
    if keras_hub.is_preset_folder(folder):
        return keras_hub.read_sequence_length(folder)
    for name, entry in ((LENGTH_FILE, "max_seq_length"), (TOKENIZER_FILE, "model_max_length")):
        path = folder / name
        length = read_json_object(path).get(entry) if is_named(path) else None
        if length is None:
            continue
        # A tokenizer without a limit may say 10^30.
        number = isinstance(length, (int, float)) and not isinstance(length, bool)
        if not number or not length >= 3:
            raise UserError(f"{path}: {entry} is {shown(length)}; write a number of tokens.")
        return int(length) if length < _UNLIMITED else None
    return None


def read_prompts(path: Path, *, is_normalized: bool = True) -> dict[str, Any]:
    """The settings of a file of prompts, by their names; those of none where it is not there."""
    values = read_typed(path, _Prompts, _AGAIN) if is_named(path) else _Prompts()
    check_keys(path, values, PROMPTS_FILE)
    prompts = {one: text or "" for one, text in (values.get("prompts") or {}).items()}
    name, sizes = values.get("default_prompt_name"), values.get("matryoshka_dimensions")
    with reading(path, "prompts with a default one", "add it, or remove the name"):
        prompt = "" if name is None else prompts[name]
    of_documents = next((one for one in (DOCUMENT, *_OF_DOCUMENTS) if one in prompts), None)
    if of_documents is not None:
        prompts[DOCUMENT] = prompts[of_documents]
    measure = values.get("similarity_fn_name") or COSINE
    # Distances of other kinds order vectors of length 1 as the cosine does.
    if measure not in (COSINE, DOT) and not is_normalized:
        fault = f"similarity_fn_name is {shown(measure)}, which does not exist here"
        raise UserError(f"{path}: {fault}; name a model with {COSINE} or {DOT}.")
    similarity = DOT if measure == DOT else COSINE
    of_vectors = {"dimensions": tuple(sizes or ()), "similarity": similarity}
    return {"prompt": prompt, "prompts": prompts, **of_vectors}


def read_activation(folder: Path) -> str | None:
    """The class of what a directory's cross-encoder puts behind its logits; None where none is."""
    values = _cross_encoder(folder)
    if values and read_prompts(folder / PROMPTS_FILE)["prompt"]:
        raise UserError(
            f"{folder / PROMPTS_FILE}: a cross-encoder with a prompt in front of queries does not "
            "exist here; remove default_prompt_name, and write the prompt into the queries."
        )
    return values.get("activation_fn")


def _cross_encoder(folder: Path) -> _Prompts:
    """What sentence-transformers says of a cross-encoder; nothing of another model."""
    path = folder / PROMPTS_FILE
    values = read_typed(path, _Prompts, _AGAIN) if is_named(path) else _Prompts()
    return values if values.get("model_type") == "CrossEncoder" else _Prompts()


def write_sentence_files(
    folder: Path,
    settings: SentenceSettings,
    hidden_size: int,
    pooler: DenseWeights | None,
    write_json: Callable[[Path, Any], None],
) -> None:
    """Writes the files next to a model that is being written."""
    kinds = {"Transformer": "", "Pooling": _POOLING}
    if settings.pooling == POOLER and pooler is not None:
        kinds["Dense"] = _DENSE
        make_folder(folder / _DENSE)
        sizes = {"in_features": hidden_size, "out_features": hidden_size}
        dense = {**sizes, "bias": True, "activation_function": _TANH}
        write_json(folder / _DENSE / CONFIG_FILE, dense)
        tensors = {"linear.weight": pooler.kernel.T, "linear.bias": pooler.bias}
        write_safetensors(folder / _DENSE / WEIGHTS_FILE, tensors)
    if settings.normalize:
        kinds["Normalize"] = _NORMALIZE
        make_folder(folder / _NORMALIZE)
    write_json(folder / MODULES_FILE, modules_of(kinds))
    make_folder(folder / _POOLING)
    pooling = {
        "word_embedding_dimension": hidden_size,
        "pooling_mode_cls_token": settings.pooling != MEAN,
        "pooling_mode_mean_tokens": settings.pooling == MEAN,
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    write_json(folder / _POOLING / CONFIG_FILE, pooling)
    if settings.max_seq_length is not None:
        length = {"max_seq_length": settings.max_seq_length, "do_lower_case": False}
        write_json(folder / LENGTH_FILE, length)
    if settings.prompt or settings.prompts or settings.dimensions or settings.similarity != COSINE:
        write_json(folder / PROMPTS_FILE, _prompts(settings))


def modules_of(kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    """What `modules.json` says of modules: their classes' names, and the folder of each."""
    return [
        {"idx": number, "name": str(number), "path": path, "type": f"{_CLASSES}.{kind}"}
        for number, (kind, path) in enumerate(kinds.items())
    ]


def _prompts(settings: SentenceSettings) -> dict[str, Any]:
    prompts, default = dict(settings.prompts), None
    if settings.prompt:
        same = (name for name, text in prompts.items() if text == settings.prompt)
        default = next(same, "default")
        while prompts.setdefault(default, settings.prompt) != settings.prompt:
            default = f"other_{default}"  # the model has another one of this name
    written: dict[str, Any] = {"prompts": prompts, "default_prompt_name": default}
    if settings.dimensions:
        written["matryoshka_dimensions"] = list(settings.dimensions)
    if settings.similarity != COSINE:
        written["similarity_fn_name"] = settings.similarity
    return written
