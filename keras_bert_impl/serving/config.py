"""The options of the serving jobs."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.checkpoints.model_source import CheckpointOptions
from keras_bert_impl.options import REQUIRED, check_options, option


@dataclass(frozen=True, kw_only=True)
class ExportConfig(CheckpointOptions):
    """The options of an export."""

    model: Path = option(
        REQUIRED, "The model to export: the model/ of a run, a checkpoint of it, or another."
    )
    output_dir: Path = option(REQUIRED, "The SavedModel's folder.")
    top_k: int = option(10, "How many tokens fill_mask_text gives for each [MASK].", at_least=1)
    max_seq_length: int | None = option(
        None,
        "Texts are truncated to this many tokens; by default to as many as in fine-tuning, or as "
        "the model has positions.",
        at_least=5,
    )
    verify: bool = option(True, "Load the result again and compare it.")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class ExportModelConfig(ExportConfig):
    """The options of an export in any format."""

    format: str = option(
        "saved_model",
        "saved_model (text and ids in), or onnx, openvino or litert (ids in). Vocabulary, labels "
        "and a client in plain Python that takes text lie next to it.",
        choices=("saved_model", "onnx", "openvino", "litert"),
    )
