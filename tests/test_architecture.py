"""The structure that BUILD.md describes, held against the code."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.__main__ import tool_names

ROOT = Path(__file__).parent.parent
ROOMS = ("keras_bert_impl", "pipelines", "tools")
MAY_IMPORT = {
    "keras_bert_impl": {"keras_bert_impl"},
    "pipelines": {"keras_bert_impl", "pipelines"},
    "tools": {"keras_bert_impl", "pipelines", "tools"},
}
TOOLS = tool_names()


def files_of(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def imported_packages(path):
    """The top-level packages that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def places(paths, package):
    return [str(p.relative_to(ROOT)) for p in paths if package in imported_packages(p)]


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room):
    for path in files_of(room):
        others = (imported_packages(path) & set(ROOMS)) - MAY_IMPORT[room]
        assert not others, f"{path.relative_to(ROOT)} imports {others}"


def test_flags_are_read_in_tools_only():
    assert places(files_of("keras_bert_impl", "pipelines"), "absl") == []


def test_the_library_knows_no_beam_and_layers_know_no_tensorflow():
    assert places(files_of("keras_bert_impl"), "apache_beam") == []
    assert places(files_of("keras_bert_impl/models"), "tensorflow") == []
    plain_layers = [p for p in files_of("keras_bert_impl/layers") if "tensorflow" not in p.stem]
    assert places(plain_layers, "tensorflow") == []


def test_beam_is_imported_by_the_beam_runner_only():
    importers = places(files_of(*ROOMS), "apache_beam")
    assert all(name.startswith("pipelines/runners/beam") for name in importers), importers


def test_each_flag_of_a_tool_is_read_once():
    for path in files_of("tools"):
        text = path.read_text(encoding="utf-8")
        for holder in re.findall(r"^(_[A-Z0-9_]+) = FLAGS\.", text, re.MULTILINE):
            reads = len(re.findall(rf"\b{holder}\b", text)) - 1
            assert reads == 1, f"{path.name}: {holder} is read {reads} times"


def test_no_tool_hides_a_module_of_the_standard_library():
    assert not set(TOOLS) & set(sys.stdlib_module_names)


def test_files_stay_small():
    for path in files_of(*ROOMS):
        lines = path.read_text(encoding="utf-8").count("\n")
        assert lines <= 400, f"{path.relative_to(ROOT)} has {lines} lines"


def test_nothing_is_unpickled():
    for path in files_of(*ROOMS):
        assert not {"pickle", "dill", "joblib", "marshal"} & imported_packages(path), path
        assert "allow_pickle=True" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("tool", TOOLS)
def test_help_needs_no_tensorflow_and_shows_the_tools_flags(tool):
    program = (
        "import sys, importlib\n"
        f"code = importlib.import_module('tools.{tool}').main(['--help'])\n"
        "heavy = {'tensorflow', 'keras', 'apache_beam', 'matplotlib', 'jax'} & set(sys.modules)\n"
        "sys.exit(code or (f'imported {heavy}' if heavy else 0))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "\nFlags:\n  --" in result.stdout


def test_importing_the_library_loads_neither_tensorflow_nor_beam_nor_tfds():
    program = (
        "import sys, keras_bert_impl, pipelines\n"
        "sys.exit(bool({'tensorflow', 'apache_beam', 'tensorflow_datasets'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
