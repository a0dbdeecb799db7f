"""Adapters in PEFT's form: a configuration, small matrices for each changed layer, whole heads.

An adapter is opened over its base as one checkpoint, whose matrices are read merged.
"""

import contextlib
import hashlib
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np

from keras_bert_impl.checkpoints.formats import safetensors_file
from keras_bert_impl.checkpoints.names import BILSTM, HEADS, Names, encoder_names, head_names
from keras_bert_impl.checkpoints.sources import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    FoundTensor,
    TensorSource,
    pickle_refused,
    weight_shape,
)
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import json_text, parse_json, read_json_object, typed
from keras_bert_impl.models.adapters import (
    Adapter,
    AdapterConfig,
    adapters_of,
    ends_with,
    module_names,
    scale_of,
)

_PICKLE = "adapter_model.bin"
_MODEL, _ENCODER, _POOLER = "base_model.model.", "bert.", "pooler.dense."
_BASE_SHA256 = "base_sha256"  # of the changed matrices, in metadata that PEFT does not read
# In patterns: what makes a search begin again (of alternatives the first), and what makes that
# grow without bounds.
_CHOICE, _MOST_CHOICES = re.compile(r"[*+{]|(?<!\()\?|(?:^|[()])(?=[^()|]*\|)"), 4
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_PART = re.compile(r"(.+)\.lora_[AB]\.weight")
_LAYER = re.compile(r"encoder\.layer\.([0-9]{1,9})\.")
_TASKS = {
    "classifier": ("SEQ_CLS", "BertForSequenceClassification"),
    "tagger": ("TOKEN_CLS", "BertForTokenClassification"),
    "span": ("QUESTION_ANS", "BertForQuestionAnswering"),
}
# What changes nothing of a trained adapter; any other entry that is not empty makes it another.
_FREE = (
    *("inference_mode", "lora_dropout", "modules_to_save", "layers_pattern", "peft_version"),
    *("megatron_core", "eva_config", "loftq_config", "qalora_group_size", "runtime_config"),
    *("megatron_config", "lora_ga_config", "ensure_weight_tying", "merge_weights"),
)
_PLAIN_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")  # others change the base
_DEFAULT = 8  # PEFT's, of rank and alpha
_ALL_LINEAR = "all-linear"
_OF_ENDINGS = "BertForMultipleChoice"  # which PEFT has no task for
_ANOTHER = "name another adapter"
_MERGE_FIRST = "merge it with PEFT (merge_and_unload) and name the merged model"


class _Config(TypedDict):
    peft_type: str
    r: NotRequired[int]
    lora_alpha: NotRequired[float]
    base_model_name_or_path: NotRequired[str | None]
    revision: NotRequired[str | None]
    task_type: NotRequired[str | None]
    auto_mapping: NotRequired[dict[str, Any] | None]
    target_modules: NotRequired[str | list[str] | None]
    exclude_modules: NotRequired[str | list[str] | None]
    layers_to_transform: NotRequired[int | list[int] | None]
    use_rslora: NotRequired[bool | None]
    bias: NotRequired[str | None]
    alpha_pattern: NotRequired[dict[str, float] | None]
    rank_pattern: NotRequired[dict[str, int] | None]
    init_lora_weights: NotRequired[bool | str | None]


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter: a configuration alone is left over from a merge."""
    weights = (folder / ADAPTER_WEIGHTS, folder / _PICKLE)
    return (folder / ADAPTER_CONFIG).is_file() and any(one.exists() for one in weights)


def refuse_adapter(tensors: TensorSource, option: str) -> None:
    """Refuses an adapter where an option needs a whole model."""
    if isinstance(tensors, AdapterSource):
        remedy = "merge it with convert_checkpoint and name the merged model as `init_checkpoint`"
        raise UserError(f"{option}: {tensors.location} is an adapter; {remedy}.")


def read_base_name(folder: Path) -> tuple[str, str | None]:
    """What an adapter calls its base, and which revision; refuses one that calls it nothing."""
    config = _read_config(folder)
    name = config.get("base_model_name_or_path")
    if not name:
        raise UserError(
            f"{folder / ADAPTER_CONFIG}: names no base (base_model_name_or_path); name the base as "
            f"the model, and the adapter by `adapter={folder}`."
        )
    return name, config.get("revision") or None


def _read_config(folder: Path) -> _Config:
    path = folder / ADAPTER_CONFIG
    if not path.is_file():
        raise UserError(f"{folder}: holds no {ADAPTER_CONFIG}; name the folder of an adapter.")
    values = read_json_object(path)
    config: _Config = typed(values, _Config, str(path), _ANOTHER)
    known = {*_FREE, *_Config.__annotations__}
    others = [name for name, value in values.items() if value and name not in known]
    if config["peft_type"] != "LORA":
        others.append(f"peft_type {shown(config['peft_type'])}")
    if config.get("bias") not in ("none", None):
        others.append(f"bias {shown(config.get('bias'))}")
    start = config.get("init_lora_weights")
    if (start.lower() if isinstance(start, str) else start) not in _PLAIN_STARTS:
        others.append(f"init_lora_weights {shown(config.get('init_lora_weights'))}")
    if others:
        raise UserError(f"{path}: says {others[0]}, which is not read here; {_MERGE_FIRST}.")
    return config


class _Change(NamedTuple):
    """What becomes of a tensor of the base; the digest is that of the matrix it was trained on."""

    module: str
    path: str
    adapter: Adapter
    transposed: bool
    sha256: str | None


class AdapterSource(TensorSource):
    """An adapter over its base: one checkpoint, whose matrices are read merged."""

    def __init__(self, folder: Path, base: TensorSource) -> None:
        self.location, self.reasons, self.keeps = str(folder), base.reasons, folder
        self.heads = base.heads
        self._base, self._config, weights = base, _read_config(folder), folder / ADAPTER_WEIGHTS
        if not weights.exists() and (folder / _PICKLE).exists():
            raise pickle_refused(folder / _PICKLE, f"name an adapter with {ADAPTER_WEIGHTS}")
        self.files = [*base.files, folder / ADAPTER_CONFIG, weights]
        shapes = safetensors_file.read_shapes(weights)
        self._names = {name.removeprefix(_MODEL).removeprefix(_ENCODER): name for name in shapes}
        self._own_shapes = {name: shapes[theirs] for name, theirs in self._names.items()}
        parts = {name: found[1] for name in self._own_shapes if (found := _PART.fullmatch(name))}
        self._saved = self._own_shapes.keys() - parts.keys()
        self._check_saved()
        self.has_head = any(not name.startswith(_POOLER) for name in self._saved)
        saved = {name: self._own_shapes[name] for name in self._saved}
        self.shapes = {**base.shapes, **saved}
        task = self._config.get("task_type")
        # Without a task PEFT keeps the class of the model that it was given.
        kept = {} if task else self._config.get("auto_mapping") or {}
        heads = dict(_TASKS.values())
        name = heads.get(task) if task else kept.get("base_model_class")
        self.extra = base.extra
        known = name in (*heads.values(), _OF_ENDINGS) and self.has_head
        self.overrides = {"architectures": [name]} if known else {}
        self._changed = self._find_changed({*parts.values()})

    def find(self, names: Names) -> FoundTensor | None:
        """The adapter's own tensor, else the base's, but no head of the base beside another."""
        if self.owns(names):
            own = names.hugging_face.removeprefix(_ENCODER)
            return FoundTensor(own, names.hugging_face_transposed)
        hidden = self.has_head and names.part not in ("encoder", "pooler")
        return None if hidden else self._base.find(names)

    def owns(self, names: Names) -> bool:
        """Whether a weight is the adapter's own and none of the base's."""
        return names.hugging_face.removeprefix(_ENCODER) in self._saved

    def read(self, name: str) -> np.ndarray:
        """A tensor; of a matrix that the adapter changes the changed one, at least float32."""
        if name in self._saved:
            return self._own(name)
        array = self._base.read(name)
        if name not in self._changed:
            return array
        change = self._changed[name]
        kernel = array.T if change.transposed else array
        if change.sha256 not in (None, _sha256(kernel)):
            raise self._another_base(f"was trained on other numbers of {change.module}")
        kernel = kernel + change.adapter.change
        return kernel.T if change.transposed else kernel

    def adapters(self) -> dict[str, Adapter]:
        """The adapters by the paths of their layers."""
        return {change.path: change.adapter for change in self._changed.values()}

    def _own(self, name: str) -> np.ndarray:
        return safetensors_file.read_tensor(self.files[-1], self._names[name])

    def _another_base(self, fault: str) -> UserError:
        base = self._base.location
        return UserError(f"{self.location}: {fault} than the base {base} has; name its own base.")

    def _check_saved(self) -> None:
        heads = {row.hugging_face for head in (BILSTM, *HEADS) for row in head_names(head)}
        if others := sorted(self._saved - {*heads, f"{_POOLER}weight", f"{_POOLER}bias"}):
            fault = f"holds {shown(others[0])}, which is no adapter of a matrix and no head"
            raise UserError(f"{self.location}: {fault}; {_MERGE_FIRST}.")

    def _find_changed(self, modules: Collection[str]) -> dict[str, _Change]:
        """What becomes of each changed tensor of the base."""
        most = len(self._base.shapes) // 6  # layers, of six matrices each
        rows = {row.ours: row for row in encoder_names(most)}
        hits = {
            name.removeprefix(_ENCODER): (path, hit)
            for path, name in module_names(most).items()
            if (hit := self._base.find(rows[f"{path}/kernel"]))
        }
        if others := sorted({*modules} - hits.keys()):
            if not others[0].startswith(("encoder.", "pooler.")):
                fault = f"changes {shown(others[0])}, and an adapter of a head is not read here"
                raise UserError(f"{self.location}: {fault}; {_MERGE_FIRST}.")
            raise self._another_base(f"changes {shown(others[0])}, which is another layer")
        # One of fewer layers may be of the same sizes.
        if lost := [one for one in hits if one not in modules and self._is_targeted(one)]:
            raise UserError(
                f"{self.location}: holds no matrices of {lost[0]}, which its target_modules name "
                f"and its base {self._base.location} has; name its own base, or get it again."
            )
        if not modules:
            raise UserError(f"{self.files[-1]}: holds no adapter of a matrix; {_ANOTHER}.")
        words = safetensors_file.read_metadata(self.files[-1]).get(_BASE_SHA256, "{}")
        origin = f"{self.files[-1]}: its {_BASE_SHA256}"
        said = parse_json(words, origin, _ANOTHER)
        noted: dict[str, str] = typed(said, dict[str, str], origin, _ANOTHER)
        changed = dict[str, _Change]()
        for module in sorted(modules):
            path, hit = hits[module]
            adapter = self._adapter(module, weight_shape(self._base, hit))
            changed[hit.name] = _Change(module, path, adapter, hit.transposed, noted.get(module))
        return changed

    def _is_targeted(self, module: str) -> bool:
        """Whether PEFT gives a matrix of a layer an adapter, by the configuration."""
        layer, layers = _LAYER.match(module), self._config.get("layers_to_transform")
        if layer is None:  # a model may have had no pooler
            return False
        targets, excluded = self._config.get("target_modules"), self._config.get("exclude_modules")
        bare = all(not name.startswith(f"{_MODEL}{_ENCODER}") for name in self._names.values())
        whole = module if bare else f"{_ENCODER}{module}"
        numbers = [layers] if isinstance(layers, int) else layers or [int(layer[1])]
        if int(layer[1]) not in numbers and whole not in (targets or ()):
            return False
        with contextlib.suppress(UserError):  # of a pattern that is not read nothing is known
            return self._named(whole, targets) and not self._named(whole, excluded)
        return False

    def _named(self, module: str, names: str | list[str] | None) -> bool:
        """Whether PEFT counts a module among names: a regular expression, or ends of names."""
        if isinstance(names, str):
            return names == _ALL_LINEAR or self._matches(module, names, start="")
        return any(ends_with(module, name) for name in names or ())

    def _matches(self, module: str, pattern: str, start: str = r"(.*\.)?") -> bool:
        """Whether PEFT counts a module under a pattern, a regular expression."""
        try:
            # Enough for layers and matrices, and nothing that takes hours to match.
            many = len(pattern) > 200 or len(_CHOICE.findall(pattern)) > _MOST_CHOICES
            if many or _REPEATED_GROUP.search(pattern):
                raise ValueError("may take hours")
            return re.fullmatch(f"{start}({pattern})", module) is not None
        except (re.error, ValueError, OverflowError) as error:
            fault = f"has a pattern {shown(pattern)}, which is not read here"
            raise UserError(f"{self.location}: {fault}; {_MERGE_FIRST}.") from error

    def _adapter(self, module: str, shape: tuple[int, ...]) -> Adapter:
        """Reads the adapter of a matrix [in, out]."""
        names = [f"{module}.lora_{part}.weight" for part in "AB"]
        for name, other in (names, names[::-1]):
            if name not in self._own_shapes:
                raise UserError(f"{self.files[-1]}: holds {other} without {name}; {_ANOTHER}.")
        whole = self._names[names[0]].removeprefix(_MODEL).removesuffix(".lora_A.weight")
        config = self._config
        ranks, alphas = config.get("rank_pattern") or {}, config.get("alpha_pattern") or {}
        rank = next((ranks[x] for x in ranks if self._matches(whole, x)), config.get("r", _DEFAULT))
        alpha = config.get("lora_alpha", _DEFAULT)
        alpha = next((alphas[x] for x in alphas if self._matches(whole, x)), alpha)
        sizes = [self._own_shapes[name] for name in names]
        if sizes != [(rank, *shape[:1]), (*shape[1:], rank)]:
            raise self._another_base(
                f"changes {module} by matrices {sizes[0]} and {sizes[1]} and says r={rank}, which "
                f"are other sizes {shape[::-1]}"
            )
        if not 0 < rank <= min(shape):
            fault = f"r={rank} is more than the size of {module}, {min(shape)}"
            raise UserError(f"{self.location}: {fault}; {_ANOTHER}.")
        a, b = (self._own(name).astype(np.float32).T for name in names)
        return Adapter(a, b, scale_of(alpha, rank, bool(self._config.get("use_rslora"))))


def _sha256(kernel: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(kernel, dtype="<f4").data).hexdigest()


def write_adapter_files(
    folder: Path, model: Any, rows: Collection[Names], how: AdapterConfig, base: str
) -> None:
    """Writes the adapters of a model, and what it has besides its base.

    `rows` are the names of the model's weights; `base` is a path, or "name@commit" on the hub.
    """
    weights = {weight.path: weight for weight in model.weights}
    own = [row for row in rows if row.part != "encoder" and weights[row.ours].trainable]
    heads = {row.part for row in own} - {"pooler"}
    # A model without head has bare names, as in transformers.
    prefix = _MODEL + (_ENCODER if heads else "")
    plain, modules = model.plain_weights(), module_names(model.config.num_hidden_layers)
    tensors, digests = dict[str, np.ndarray](), dict[str, str]()
    for path, one in adapters_of(model).items():
        module = modules[path].removeprefix(_ENCODER)
        digests[module] = _sha256(weights[f"{path}/kernel"])
        tensors |= {f"{module}.lora_A.weight": one.a.T, f"{module}.lora_B.weight": one.b.T}
    tensors = {f"{prefix}{name}": array for name, array in tensors.items()}
    for row in own:
        name = row.hugging_face if heads else row.hugging_face.removeprefix(_ENCODER)
        array = plain[row.ours]
        tensors[f"{_MODEL}{name}"] = array.T if row.hugging_face_transposed else array
    name, _, commit = (base, "", "") if Path(base).is_absolute() else base.rpartition("@")
    saved = {row.hugging_face.removeprefix(_ENCODER).split(".")[0] for row in own}
    values = {
        "peft_type": "LORA",
        "task_type": next((_TASKS[one][0] for one in heads if one in _TASKS), None),
        "base_model_name_or_path": name,
        "revision": commit or None,
        "r": how.lora_rank,
        "lora_alpha": how.alpha,
        "use_rslora": how.use_rslora,
        "target_modules": list(how.targets),
        "modules_to_save": sorted(saved) or None,
        "bias": "none",
        "fan_in_fan_out": False,
        "lora_dropout": 0.0,
        "inference_mode": True,
    }
    (folder / ADAPTER_CONFIG).write_text(json_text(values, indent=2), encoding="utf-8")
    metadata = {_BASE_SHA256: json_text(digests)}
    safetensors_file.write_safetensors(folder / ADAPTER_WEIGHTS, tensors, **metadata)
