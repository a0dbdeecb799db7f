from contextlib import nullcontext
from types import SimpleNamespace

from pipelines.runs.pretraining import KeepModels
from pipelines.runs.pretraining_config import kept_model


def run_at(folder, step, is_chief=True, first_step=0):
    return SimpleNamespace(
        directory=SimpleNamespace(path=folder),
        step=step,
        first_step=first_step,
        state=SimpleNamespace(averaged=nullcontext),
        is_chief=is_chief,
        is_due=lambda every: every > 0 and step % every == 0,
    )


def test_models_are_written_where_they_are_due_and_made_up_for_after_a_kill(tmp_path):
    written = []

    def write(folder):
        folder.mkdir(exist_ok=True)
        written.append(folder.name)

    keep = KeepModels(10, write)
    keep.begin(run_at(tmp_path, 0))
    keep.after_call(run_at(tmp_path, 10, is_chief=False))
    assert not list(tmp_path.iterdir())
    resumed = run_at(tmp_path, 10, first_step=10)  # the checkpoint was written, the model was not
    keep.begin(resumed)
    keep.begin(resumed)
    for step in (15, 20):
        keep.after_call(run_at(tmp_path, step, first_step=10))
    assert sorted(tmp_path.iterdir()) == [kept_model(tmp_path, 10), kept_model(tmp_path, 20)]
    assert written == ["model-10", "model-20"]
    # A run that went back to step 10, for a later end, comes to another model of step 20.
    keep.after_call(run_at(tmp_path, 20, first_step=10))
    assert written == ["model-10", "model-20", "model-20"]
