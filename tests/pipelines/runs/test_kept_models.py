from contextlib import nullcontext
from types import SimpleNamespace

from pipelines.runs.pretraining import KeepModels
from pipelines.runs.pretraining_config import kept_model


def run_at(folder, step, is_chief=True):
    return SimpleNamespace(
        directory=SimpleNamespace(path=folder),
        step=step,
        state=SimpleNamespace(averaged=nullcontext),
        is_chief=is_chief,
        is_due=lambda every: every > 0 and step % every == 0,
    )


def test_models_are_written_where_they_are_due_and_made_up_for_after_a_kill(tmp_path):
    keep = KeepModels(10, lambda folder: folder.mkdir())
    keep.begin(run_at(tmp_path, 0))
    keep.after_call(run_at(tmp_path, 10, is_chief=False))
    assert not list(tmp_path.iterdir())
    keep.begin(run_at(tmp_path, 10))  # the checkpoint was written, the model was not
    for step in (15, 20, 20):
        keep.after_call(run_at(tmp_path, step))
    assert sorted(tmp_path.iterdir()) == [kept_model(tmp_path, 10), kept_model(tmp_path, 20)]
