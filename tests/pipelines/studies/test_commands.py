import json
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.interrupts import TerminatedError, signal_of
from keras_bert_impl.options import as_list_text
from pipelines.studies import commands
from pipelines.studies.commands import Command, run_step
from tests.support.toy_study import PretendingTools


def command(root, name="one", tool="run_pretraining", flags=("--seed=1",), **more):
    return Command(name, tool, flags, root, **more)


def test_a_folder_is_named_after_all_that_its_result_follows_from(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one")
    flags = (f"--input_file={text}", "--output_dir={out}")
    first = command(tmp_path / "study", flags=flags)
    assert first.folder.parent == tmp_path / "study" / "cells"
    moved = command(tmp_path / "elsewhere", flags=flags)
    assert moved.folder.name == first.folder.name
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "text.txt").write_text("two")
    others = [
        command(tmp_path / "study", flags=(*flags, "--seed=2")),
        command(tmp_path / "study", flags=flags, files={"bert_config.json": "{}"}),
        command(tmp_path / "study", flags=(f"--input_file={tmp_path}/other", flags[1])),
    ]
    assert len({first.folder, *(other.folder for other in others)}) == 4


def test_flags_from_which_nothing_follows_are_in_the_command_and_not_in_the_folder(tmp_path):
    made = command(tmp_path, free=("--num_workers=3",))
    assert made.folder == command(tmp_path).folder
    assert made.arguments == ("--seed=1", "--num_workers=3")


def score(root, tool="run_ner"):
    # All files of a folder count for the name: it is none as large as the checkout.
    flags = ("--output_dir={out}", *((f"--data_dir={root}",) if tool == "run_ner" else ()))
    return command(root, "MRPC-bert-seed-1-1", tool, flags, files={"bert_config.json": "{}"})


def test_a_command_is_done_once_and_leaves_its_figures_and_its_line(tmp_path):
    made, tools = score(tmp_path), PretendingTools()
    assert made.finished() is None
    assert made.figures(tools) == made.figures(tools)
    assert made.figures(tools)["eval_f1"] == pytest.approx(0.901)
    assert len(tools.started) == 1
    assert json.loads((made.folder / "result.json").read_text())["command"] == str(made)
    assert (made.folder / "bert_config.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("tool", "keep", "left"), [("run_ner", False, set()), ("run_pretraining", False, {"model"})]
)
def test_what_only_resuming_needs_is_removed(tmp_path, tool, keep, left):
    made = score(tmp_path, tool)
    made.figures(PretendingTools(), keep)
    assert {path.name for path in made.folder.iterdir() if path.is_dir()} == left


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (1, UserError, "baking failed: see the message above"),
        (129, TerminatedError, "baking is not finished, and the same command continues there"),
        (130, KeyboardInterrupt, "baking is not finished, and the same command continues there"),
        (143, TerminatedError, "baking is not finished, and the same command continues there"),
    ],
)
def test_a_step_that_fails_or_was_stopped_ends_the_job_as_itself(code, error, words):
    with pytest.raises(error) as ended:
        run_step("baking", lambda: code)
    assert words in "".join([str(ended.value), *getattr(ended.value, "__notes__", ())])
    assert signal_of(ended.value) == (None if code == 1 else code - 128)


@pytest.mark.parametrize("name", ["text.txt", "my, notes.txt", 'a "b".txt'])
@pytest.mark.parametrize("study", ["study", "."])
def test_a_changed_text_gives_another_folder_whatever_its_name_and_place(tmp_path, name, study):
    (tmp_path / "study").mkdir()
    text = tmp_path / "study" / name
    flags = (f"--input_file={as_list_text([str(text), 'none.txt'])}", f"--vocab_file={text}")
    digests = set()
    for part in (flags[:1], flags[1:]):
        for content in ("one", "two"):
            text.write_text(content)
            commands._sha256.cache_clear()
            digests.add(command(tmp_path / study, flags=part).folder.name)
    assert len(digests) == 4


def test_what_commands_have_made_is_named_by_their_folders_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Path("cells/text-1/text.txt")
    folders = set()
    for content in ("one", "two"):
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(content)
        folders.add(command(Path(), flags=(f"--input_file={made}",)).folder)
        commands._sha256.cache_clear()
    assert len(folders) == 1


def folder_names(root, path, contents, *flags, make=lambda path: path.parent.mkdir(parents=True)):
    """The names of a command's folder with one content of a file after the other."""
    make(path)
    names = []
    for content in contents:
        path.write_text(content)
        commands._sha256.cache_clear()
        names.append(command(root, flags=flags).folder.name)
    return names


@pytest.mark.parametrize("changed", ["bert_model.ckpt.index", "vocab.txt", "bert_config.json"])
@pytest.mark.parametrize("named", ["bert_model.ckpt", "bert_model.ckpt.index", "bert_config.json"])
def test_a_part_of_a_model_stands_for_the_others(tmp_path, changed, named):
    folder = tmp_path / "uncased"
    folder.mkdir()
    for name in ("bert_model.ckpt.index", "vocab.txt", "bert_config.json"):
        (folder / name).write_text("one")
    flag = f"--init_checkpoint={folder / named}"
    index = named.startswith("bert_config") and changed.endswith("index")  # no vocabulary of it
    names = folder_names(tmp_path, folder / changed, "ab", flag, make=lambda _: None)
    assert len({*names}) == (1 if index else 2)


def test_what_lies_beside_files_that_are_no_model_is_no_part_of_them(tmp_path):
    flag = f"--vocab_file={tmp_path}/vocab.txt"
    (tmp_path / "vocab.txt").write_text("one")
    names = folder_names(tmp_path, tmp_path / "config.json", "ab", flag, make=lambda _: None)
    assert len({*names}) == 1


def test_a_changed_text_at_home_gives_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    text = tmp_path / "data" / "text.txt"
    flag = "--input_file=none.txt,~/data/text.txt"
    assert len({*folder_names(tmp_path, text, "ab", flag)}) == 2


@pytest.mark.parametrize("name", ["openvino_graphs/model.bin", "README.md"])
def test_what_is_kept_beside_a_model_is_no_part_of_it(tmp_path, name):
    model = tmp_path / "model"
    flag = f"--init_checkpoint={model}"
    names = folder_names(tmp_path, model / "config.json", "ab", flag)
    names += folder_names(
        tmp_path, model / name, "ab", flag, make=lambda path: path.parent.mkdir(exist_ok=True)
    )
    assert len({*names[:2]}) == 2
    assert {*names[1:]} == {names[1]}


def test_only_a_path_begins_with_the_folder_of_the_study():
    def name(root, *flags):
        return command(Path(root), flags=flags).folder.name

    assert name("ab", "--a=ab/x,ab/y") == name("c", "--a=c/x,c/y")
    assert name("ab", "--a=/none/lab/x") == name("c", "--a=/none/lab/x")
