"""The commands and the code that the pages show."""

import csv
import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import keras
import pytest

from docs.extensions.commands import Commands
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.tasks.vectors.options import LOSSES_OF
from tests.support import programs
from tests.support.elsewhere import TRANSFORMERS
from tests.support.model_folders import tiny_config, write_any, write_start
from tools.table import tool_named, tool_names

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("docs", "keras_bert_impl", "pipelines", "tools")
PAGES = [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_run" not in page.parts]


def blocks(page, *languages):
    """The code blocks of a page in these languages."""
    fence = rf"^```(?:\{{run\}} )?(?:{'|'.join(languages)})\n(.*?)^```"
    return re.findall(fence, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(page):
    """(tool, flags) of every `keras-bert` command in a page's blocks of shell."""
    for block in blocks(page, "sh", "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.search(r"(?:^|&& |\s)keras-bert (\w+)( .*)?$", line)
            if found:
                words = shlex.split(found[2] or "", comments=True)
                ends = [n for n, word in enumerate(words) if re.match(r"\d?[>|&;<]", word)]
                yield found[1], words[: ends[0] if ends else None]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_are_tools_with_flags_that_they_know(page):
    for tool, flags in commands(page):
        assert tool in tool_names(), f"{page.name} names {tool}"
        known = tool_named(tool).flags.names() | {"help", "flagfile"}
        for name in re.findall(r"^--(\w+)", "\n".join(flags), re.M):
            assert {name, name.removeprefix("no")} & known, f"{page.name}: {tool} has no --{name}"


def test_words_to_search_for_become_entries_of_the_index():
    pytest.importorskip("sphinx")
    from docs.extensions.search_words import as_index

    page = "a\n\n<!-- search: NER, named entities -->\n## Entities\n"
    assert as_index(page) == "a\n\n```{index} ! NER, ! named entities\n```\n## Entities\n"


def test_words_to_search_for_lead_to_one_place_each():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    lists = re.findall(r"^<!-- search: (.*) -->$", pages, re.MULTILINE)
    words = [word for words in lists for word in words.split(", ")]
    assert len(words) > 20
    assert len(words) == len({word.lower() for word in words})


def test_nobody_is_sent_to_an_index_for_our_package():
    """The name is on no index, and free for anyone to take."""
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    files += [ROOT / "Makefile", *ROOT.glob("*.md"), *PAGES, *(ROOT / "tests").rglob("*.py")]
    ours = re.compile(
        r"keras_bert_impl\[[a-z]|pip install [^\n]*?[ '\"]keras[_-]bert[_-]impl(?!/|-\d)"
    )
    assert [str(file) for file in files if ours.search(file.read_text(encoding="utf-8"))] == []


def test_there_are_commands_to_check():
    assert sum(len(list(commands(page))) for page in PAGES) > 60


def test_code_that_trains_shuffles_its_data():
    found = [block for page in PAGES for block in blocks(page, "python") if ".fit(" in block]
    assert len(found) > 2
    assert [block for block in found if ".shuffle(" not in block] == []


PUBLISHED = "sentence-transformers/all-MiniLM-L6-v2"  # of pages; here a folder of this name
EXAMPLES = {  # of a tutorial's file
    "classifier": lambda text: text.splitlines()[1:],
    "entities": lambda text: text.strip().split("\n\n"),
    "questions": lambda text: re.findall(r'"context": "(.*?)"', text),
}


@pytest.mark.parametrize("tutorial", EXAMPLES)
def test_a_tutorial_evaluates_on_other_examples_than_it_trains_on(tmp_path, monkeypatch, tutorial):
    monkeypatch.chdir(tmp_path)
    exec(blocks(ROOT / "docs" / "tutorials" / f"{tutorial}.md", "python")[0], {})
    files = [next(tmp_path.glob(f"{name}.*")).read_text() for name in ("train", "dev")]
    train, dev = map(EXAMPLES[tutorial], files)
    assert len(train) > len(dev) >= 80
    assert not {*train} & {*dev}


def test_the_shop_is_asked_what_it_was_not_trained_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(blocks(ROOT / "docs" / "tutorials" / "shop.md", "python")[0], {})
    (train, right), (dev, answers) = (
        zip(*csv.reader((tmp_path / name).read_text().splitlines()[1:]), strict=True)
        for name in ("train.csv", "dev.csv")
    )
    assert (len(train), len(dev)) == (60, 20) == (len({*train}), len({*dev} - {*train}))
    assert {*right} == {*answers}


@pytest.mark.slow
def test_the_shop_s_model_is_trained_in_python_too(tmp_path, monkeypatch):
    """What the site shows and does not run, with a small model for the published one."""
    monkeypatch.chdir(tmp_path)
    for name in (PUBLISHED, "shop/model"):
        write_start(tmp_path / name, max_position_embeddings=64)
    names = {}
    for block in blocks(ROOT / "docs" / "tutorials" / "shop.md", "python"):
        exec(re.sub("^:recorded: .*", "", block), names)
    assert len(names["history"].history["loss"]) == 2


@pytest.mark.parametrize("kind", LOSSES_OF)
def test_the_page_on_training_vectors_names_the_losses_of_its_kinds(kind):
    page = (ROOT / "docs" / "how_to" / "training_vectors.md").read_text(encoding="utf-8")
    (cell,) = re.findall(rf"^\|[^|]*\| {kind}\b[^|]*\|(.*)\|$", page, re.MULTILINE)
    assert tuple(re.findall("`(.*?)`", cell)) == LOSSES_OF[kind]
    assert re.findall("`(.*?)` ★", cell) == [LOSSES_OF[kind][0]]


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("openvino"), reason="needs the extra `openvino`")
def test_the_first_commands_of_readme_run_as_they_stand(tmp_path, monkeypatch):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme[readme.index("\n## From labelled texts to answers") :]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1]
    words = ["a", "moving", ",", "funny", "film", "waste", "of", "time", "so", "very"]
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *words])
    shape = {"vocab_size": len(vocabulary), "max_position_embeddings": 64}
    write_any(tmp_path / PUBLISHED, BertEncoder(tiny_config(**shape)), vocabulary)
    for name, how in {"train.csv": "so", "dev.csv": "very"}.items():
        rows = [f"a {how} funny film,good", f"{how} a funny waste,bad"]  # of one length
        (tmp_path / name).write_text("\n".join(["text,label", *rows * 16, ""]))
    commands = Commands()
    path = [commands.folder, str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    command = ["bash", "-euc", block]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for shown in ("eval_accuracy", "  good", "client.py: text -> label"):
        assert shown in done.stdout
    *_, first, second = done.stdout.splitlines()
    assert first[:2] == second[:2] == "('"  # the client's: a label and its probabilities


@pytest.mark.slow
def test_ours_of_the_page_for_those_who_come_from_elsewhere_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = write_start(tmp_path / "published", max_position_embeddings=128)
    names, whole = {}, keras.Model.compile  # README's are compiled; compiling is most of the time
    quickly = functools.partialmethod(whole, jit_compile=False)
    monkeypatch.setattr(keras.Model, "compile", quickly)
    for snippet in blocks(ROOT / "docs" / "coming_from.md", "python"):
        named = snippet.replace("bert-base-uncased", str(model))
        exec(named.replace("my-tf-model", str(TRANSFORMERS / "classification")), names)
    assert names["vectors"].shape[0] == 2
    assert names["again"].labels == ("negative", "positive")
    assert (tmp_path / "mine" / "config.json").exists()


@pytest.mark.slow
def test_a_tutorial_as_a_notebook_runs(tmp_path):
    """Its cells, as Jupyter runs them: one process for Python, a shell for each `%%bash`."""
    pytest.importorskip("sphinx", reason="the notebooks are made with the site")
    from docs.extensions.notebooks import notebook

    page = (ROOT / "docs" / "tutorials" / "from_tensorflow.md").read_text(encoding="utf-8")
    cells = [cell for cell in notebook(page)["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == 7
    program = ["import subprocess"]
    for cell in cells[:3]:  # the folder, a command, a model; the site runs them all
        first, _, command = cell["source"].partition("\n")
        is_shell = first == "%%bash"
        shell = f"subprocess.run(['bash', '-ec', {command!r}], check=True)"
        program.append(shell if is_shell else cell["source"])
    path = os.pathsep.join([Commands().folder, os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = programs.run(["-c", "\n".join(program)], environment, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "positive" in done.stdout
