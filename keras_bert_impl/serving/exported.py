"""An export as it is opened again, without TensorFlow, and the digests of its files."""

import dataclasses
import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from keras_bert_impl.checkpoints.hub import may_be_hub_name
from keras_bert_impl.checkpoints.model_card import CARD_FILE
from keras_bert_impl.checkpoints.model_source import AdaptedOptions, locate
from keras_bert_impl.checkpoints.sentence_modules import (
    COSINE,
    PROMPTS_FILE,
    SentenceSettings,
    read_prompts,
)
from keras_bert_impl.checkpoints.sources import CONFIG_FILE, TOKENIZER_FILE, VOCABULARY_FILE
from keras_bert_impl.checkpoints.text_files import read_casing
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.config import FLOAT32, OPENVINO, TENSORFLOW
from keras_bert_impl.engines.kept_graph import GRAPH_FILE, WEIGHTS_FILE, Calibration
from keras_bert_impl.engines.open_engine import no_rows, open_graph
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath, file_sha256, is_named, is_there, read_small
from keras_bert_impl.json_files import read_json_object, read_typed
from keras_bert_impl.options import REQUIRED, option
from keras_bert_impl.serving.static_vectors import (
    STATIC,
    StaticEngine,
    StaticVectors,
    is_static,
    read_static,
)
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary

if TYPE_CHECKING:
    from keras_bert_impl.engines.openvino_engine import OpenVinoEngine

_LOGGER = logging.getLogger(__name__)

SETTINGS_FILE = "settings.json"
LABEL, LABELS, SCORE, EMBEDDING, OUTPUTS = "label", "labels", "score", "embedding", "outputs"
"""What an export answers: the best label with all probabilities, all labels that hold with them, a
number, a vector; or what the model gives, by name, where the answer is none of these."""

DIGESTS_FILE = "SHA256SUMS"
"""A line for each file, as `sha256sum` writes and checks them."""

_AGAIN = "export it again"
_READ = (GRAPH_FILE, WEIGHTS_FILE, SETTINGS_FILE, VOCABULARY_FILE, TOKENIZER_FILE, CONFIG_FILE)
_OTHERS = {"model.onnx": "ONNX", "model.tflite": "LiteRT"}


class ExportSettings(TypedDict, total=False):
    """What an export's `settings.json` says."""

    answers: str | None
    max_seq_length: int
    labels: list[str]
    prompt: str
    prompts: dict[str, str]
    normalize: bool
    dimensions: list[int]
    similarity: Literal["cosine", "dot"]


@dataclasses.dataclass(frozen=True)
class ExportedModel:
    """All that is known of an exported model but its graph; a `KnownModel`.

    `static`: what is known of static vectors, which have a table in place of a graph.
    """

    checkpoint: Path
    config: BertConfig
    text: TextSettings
    labels: tuple[str, ...]
    is_multi_label: bool
    gives_vectors: bool
    sentence: SentenceSettings
    max_seq_length: int
    static: StaticVectors | None = None

    @property
    def engine(self) -> str:
        """What computes it."""
        return STATIC if self.static else OPENVINO

    @property
    def files(self) -> list[Path]:
        """The files of its numbers, by which it is told from others."""
        graph = [self.checkpoint / GRAPH_FILE, self.checkpoint / WEIGHTS_FILE]
        return [self.static.file] if self.static else graph

    def open(
        self,
        precision: str = FLOAT32,
        calibration: Calibration = no_rows,
        deterministic: bool = False,
    ) -> "StaticEngine | OpenVinoEngine":
        """Gives what computes it; TensorFlow is not needed."""
        if self.static is None:
            return open_graph(self.checkpoint, precision, calibration, deterministic)
        if precision != FLOAT32:
            fault = "holds static vectors, which are added in float32"
            raise UserError(f"{self.checkpoint}: {fault}; leave out `precision={precision}`.")
        return self.static.open()


def is_openvino_export(folder: Path) -> bool:
    """Whether a folder holds what `export_model` wrote for OpenVINO."""
    if not is_named(folder / SETTINGS_FILE):
        return False
    for name, runtime in _OTHERS.items():
        if is_named(folder / name):
            fault = f"is an export for {runtime}, which its own client asks"
            raise UserError(f"{folder}: {fault}; name one for OpenVINO or the model directory.")
    return is_named(folder / GRAPH_FILE) or is_named(folder / WEIGHTS_FILE)


def located(path: StrPath) -> StrPath:
    """A path as it is; the folder of a name on the hub, which is then asked once."""
    there = isinstance(path, str | os.PathLike) and is_there(Path(path).expanduser())
    return path if there or not may_be_hub_name(str(path)) else locate(path)


def find_exported(path: StrPath, engine: str | None = None, **options: Any) -> ExportedModel | None:
    """The export for OpenVINO, or the static vectors, at a path or of a name on the hub.

    None where something else is there.
    """
    folder = Path(located(path)).expanduser()
    static = not (of_openvino := is_openvino_export(folder)) and is_static(folder)
    if not static and not of_openvino:
        return None
    if engine == TENSORFLOW or (static and engine):
        what = "a folder of static vectors" if static else "an export for OpenVINO"
        fault = f"is {what}, which {engine} cannot compute"
        raise UserError(f"{folder}: {fault}; leave `engine` out, or name the model directory.")
    for name, value in options.items():
        if value is not None:
            fault = "is an export, which says itself what it reads"
            raise UserError(f"{folder}: {fault}; leave out `{name}`, or name the model directory.")
    return _of_static(folder) if static else read_exported(folder)


def room_of(model: Any, max_seq_length: int) -> int:
    """How many tokens of a text are read, without [CLS] and [SEP]; static vectors have neither.

    They have no positions either, so that only a length that leaves no room is refused.
    """
    frame = 0 if isinstance(model, ExportedModel) and model.static else 2
    positions = model.config.max_position_embeddings
    most = max_seq_length if frame else min(max_seq_length, positions)
    model.config.check_length(most, at_least=1 + frame)
    return max_seq_length - frame


def _of_static(folder: Path) -> ExportedModel:
    if is_named(folder / DIGESTS_FILE):  # else it is another library's
        check_digests(folder, ())
    found = read_static(folder)
    length, positions = found.most, found.most + 2  # by the latter an index knows its model
    tokens = len(found.text.vocabulary)
    config = BertConfig(tokens, found.width, 1, 1, max_position_embeddings=positions)
    prompts = read_prompts(folder / PROMPTS_FILE)
    sentence = SentenceSettings(normalize=found.normalize, max_seq_length=length, **prompts)
    facts = config, found.text, (), False, True, sentence, length
    return ExportedModel(folder, *facts, static=found)


def read_exported(folder: Path) -> ExportedModel:
    """Reads what stands beside an exported graph, the one place where an export is checked."""
    check_digests(folder, _READ)
    settings = read_typed(folder / SETTINGS_FILE, ExportSettings, _AGAIN)
    vocabulary = Vocabulary.load(folder / VOCABULARY_FILE)
    casing = read_casing(folder, is_export=True)
    if casing.do_lower_case is None or "max_seq_length" not in settings:
        raise UserError(f"{folder}: does not say how its text is cut; {_AGAIN}.")
    answers, length = settings.get("answers"), settings["max_seq_length"]
    path = folder / CONFIG_FILE
    config = BertConfig.from_hugging_face(read_json_object(path), str(path))
    if len(vocabulary) > config.vocab_size:
        fault = f"has more tokens than its model ({config.vocab_size})"
        raise UserError(f"{folder}: {fault}; {_AGAIN}.")
    labels = tuple(settings.get("labels", ()))
    return ExportedModel(
        checkpoint=folder,
        config=config,
        text=casing.settings(vocabulary),
        labels=labels or ((SCORE,) if answers == SCORE else ()),
        is_multi_label=answers == LABELS,
        gives_vectors=answers == EMBEDDING,
        sentence=SentenceSettings(
            prompt=settings.get("prompt", ""),
            prompts=settings.get("prompts", {}),
            normalize=settings.get("normalize", False),
            dimensions=tuple(settings.get("dimensions", ())),
            max_seq_length=length,
            similarity=settings.get("similarity", COSINE),
        ),
        max_seq_length=length,
    )


def write_digests(folder: Path) -> None:
    """Notes the digest of every file of an export but its card; the last thing that is written."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CARD_FILE)
    lines = [f"{file_sha256(file)}  {file.relative_to(folder).as_posix()}\n" for file in files]
    (folder / DIGESTS_FILE).write_bytes("".join(lines).encode())


def check_digests(folder: Path, needed: Collection[str]) -> None:
    """Holds the files of an export against their digests, as its client does by itself."""
    if not is_named(folder / DIGESTS_FILE):
        lost = "has no SHA256SUMS, by which damaged files and those of another export are known"
        _LOGGER.warning("%s: %s; export it again.", folder, lost)
        return
    lines = read_small(folder / DIGESTS_FILE, 1, "no such file needs; export it again").splitlines()
    parts = (line.decode("utf-8", "replace").partition("  ") for line in lines)
    noted = {name: digest for digest, _, name in parts}
    for name in sorted({*needed, *noted} - {""}):
        if (name in needed or is_there(folder / name)) and (
            file_sha256(folder / name) != noted.get(name)
        ):
            fault = f"is not the file that {DIGESTS_FILE} is about"
            raise UserError(f"{folder / name}: {fault}; copy or export the model again.")


@dataclass(frozen=True, kw_only=True)
class ExportConfig(AdaptedOptions):
    """The options of an export."""

    model: Path = option(
        REQUIRED, "The model to export: the model/ of a run, a checkpoint of it, or another."
    )
    output_dir: Path = option(REQUIRED, "The export's folder.")
    top_k: int = option(10, "How many tokens fill_mask_text gives for each [MASK].", at_least=1)
    max_seq_length: int | None = option(
        None,
        "Texts are truncated to this many tokens; by default to as many as in fine-tuning, or as "
        "the files of a sentence model say, or as the model has positions; of static vectors not "
        "at all.",
        at_least=5,
    )
    verify: bool = option(True, "Load the result again and compare it.")


@dataclass(frozen=True, kw_only=True)
class ExportModelConfig(ExportConfig):
    """The options of an export in any format."""

    format: str = option(
        "saved_model",
        "saved_model (text and ids in), or onnx, openvino or litert (ids in). Vocabulary, labels "
        "and a client in plain Python that takes text lie next to it. static: a vector for each "
        "token, whose mean is a text's, for sentence-transformers, model2vec and `embed`.",
        choices=("saved_model", "onnx", "openvino", "litert", STATIC),
    )
    dimensions: int | None = option(
        None,
        "Of static vectors: how many numbers one has; by default 256, or the model's if fewer.",
        at_least=1,
    )
    input_file: str | None = option(
        None,
        "Of static vectors: text, one a line, that gives the frequencies of tokens; by default "
        "their order in the vocabulary does, as in BERT's own.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("dimensions", "input_file"):
            if self.format != STATIC and getattr(self, name) is not None:
                raise UserError(f"`{name}` is for `format={STATIC}`; leave it out.")
        if self.format != "saved_model" and self.top_k != ExportConfig.top_k:
            raise UserError("`top_k` is for `format=saved_model`; leave it out.")
