"""From a model directory to a verified SavedModel."""

from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.serving.export import export_saved_model, serve_model
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.serving.verify import Verification


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """What an export is told.

    Attributes:
        model_dir: the model directory to export.
        output_dir: the SavedModel's folder.
        top_k: pieces that `fill_mask_text` gives for each mask.
        max_seq_length: texts are cut to this many pieces; None is the model's positions.
        verify: load the result in a fresh process and compare.
    """

    model_dir: Path
    output_dir: Path
    top_k: int = 10
    max_seq_length: int | None = None
    verify: bool = True


@dataclass(frozen=True)
class ExportResult:
    """What was written.

    Attributes:
        signatures: each signature's name and what goes in and comes out.
        size: bytes of all files.
        verification: what the comparison found; None where it was not asked for.
    """

    signatures: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    size: int
    verification: Verification | None


def run_export(config: ExportConfig) -> ExportResult:
    """Writes the SavedModel and compares it with the model.

    Raises:
        UserError: the model directory cannot be opened, or the SavedModel cannot be written.
    """
    opened = open_model(config.model_dir)
    served = serve_model(opened, config.top_k, config.max_seq_length)
    verification = export_saved_model(served, opened, config.output_dir, config.verify)
    files = [path for path in config.output_dir.rglob("*") if path.is_file()]
    return ExportResult(
        served.interface(), sum(path.stat().st_size for path in files), verification
    )
