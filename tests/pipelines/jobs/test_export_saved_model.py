from pipelines.jobs.export_saved_model import ExportConfig, run_export
from tests.support.model_folders import write_classifier


def test_an_export_tells_what_it_serves_and_how_large_it_is(tmp_path):
    model = write_classifier(tmp_path / "model", ["no", "yes"])
    result = run_export(ExportConfig(model_dir=model, output_dir=tmp_path / "saved", verify=False))
    assert list(result.signatures) == ["serving_default", "text", "text_pair"]
    assert result.signatures["text_pair"] == (
        ("text_a", "text_b"),
        ("label", "logits", "probabilities"),
    )
    files = [path for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert result.size == sum(path.stat().st_size for path in files)
    assert result.verification is None
