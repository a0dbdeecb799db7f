"""Whatever a killed run's work folder holds, the same command makes the same shards."""

import shutil

import pytest

from pipelines.runners import local
from pipelines.runners.local import run_local
from tests.support.damage import DAMAGES, damage, other_files
from tests.support.pretraining_corpus import contents, make_config

STOPPED_AT = {
    "tokens": "tokens-*/block-*.tokens",
    "plan": "plan-*/plan-*",
    "write": "plan-*/*.tfrecord.json",
}
"""What each stage leaves when the run is killed after it."""


class _KilledError(Exception):
    """Ends a run as a kill would: nothing is tidied up."""


@pytest.fixture
def small_blocks(monkeypatch):
    cut = local.cut_into_blocks
    monkeypatch.setattr(local, "cut_into_blocks", lambda path, file: cut(path, file, 1500))
    monkeypatch.setattr("pipelines.runners.plans._SENTENCES_AT_ONCE", 300)


@pytest.fixture
def killed(tmp_path, monkeypatch, small_blocks):
    """A function that kills a run after a stage and gives its command and its folder."""

    def kill(stage):
        config = make_config(tmp_path / "killed", work_folder=str(tmp_path / "killed" / "work"))
        target = {
            "tokens": "pipelines.runners.corpus.assemble",
            "plan": "pipelines.runners.local.choose_shards",
            "write": "pipelines.runners.local.describe",
        }[stage]

        def die(*_):
            raise _KilledError

        with monkeypatch.context() as patched:
            patched.setattr(target, die)
            with pytest.raises(_KilledError):
                run_local(config)
        return config, tmp_path / "killed"

    return kill


@pytest.fixture
def undisturbed(tmp_path, small_blocks):
    run_local(make_config(tmp_path / "undisturbed"))
    return contents(tmp_path / "undisturbed" / "out")


@pytest.mark.slow
@pytest.mark.parametrize("stage", STOPPED_AT)
def test_each_file_is_found_damaged_and_made_again(killed, undisturbed, tmp_path, stage):
    config, folder = killed(stage)
    shutil.copytree(folder, tmp_path / "kept")
    files = [path.relative_to(folder) for path in folder.glob(f"work/{STOPPED_AT[stage]}")]
    files += [path.relative_to(folder) for path in folder.glob("work/tokens-*/*.bin")]
    files += [path.relative_to(folder) for path in folder.glob("out/*-of-*")]
    files += [path.relative_to(folder) for path in folder.glob("work/tokens-*/*.json")]
    assert files
    for number, name in enumerate(files):
        for how in DAMAGES[number % 3 :: 3] if number else DAMAGES:
            _restore(tmp_path / "kept", folder)
            damage(folder / name, how)
            run_local(config)
            assert contents(folder / "out") == undisturbed, (name, how)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["plan", "write"])
def test_a_note_with_anything_else_in_it_is_made_again(killed, undisturbed, tmp_path, stage):
    config, folder = killed(stage)
    shutil.copytree(folder, tmp_path / "kept")
    notes = [*folder.glob("work/tokens-*/*.json"), *folder.glob("work/plan-*/*.json")]
    for note in (notes[0], notes[-1]):
        for at, _ in enumerate(other_files(note)):
            if at % 5 == 0:
                run_local(config)
                assert contents(folder / "out") == undisturbed, (note, note.read_bytes())
        _restore(tmp_path / "kept", folder)


def _restore(kept, folder):
    shutil.rmtree(folder)
    # With their times: by these a change of the text is noticed.
    shutil.copytree(kept, folder)
