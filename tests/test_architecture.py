"""The structure that BUILD.md describes, held against the code."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tools.table import tool_names

ROOT = Path(__file__).parent.parent
ROOMS = ("keras_bert_impl", "pipelines", "tools")
LIBRARIES = ("keras_bert_impl", "pipelines")
MAY_IMPORT = {
    "keras_bert_impl": {"keras_bert_impl"},
    "pipelines": {"keras_bert_impl", "pipelines"},
    "tools": {"keras_bert_impl", "pipelines", "tools"},
}
LAUNCHER = "keras_bert_impl/__main__.py"  # `python -m keras_bert_impl`: nothing imports it
# The front door names what knows tasks and files, which the library does not: a line each for
# type checkers, and a string that is imported when it is used.
FRONT_DOOR = "keras_bert_impl/__init__.py"
ITS_LINES = {
    "pipelines.answering.predictor.Predictor",
    "pipelines.answering.predictor.Reranker",
    "pipelines.vectors.index.VectorIndex",
}
TOOLS = tool_names()

# Members that foreign objects have or have not: of the system's modules and of its errors.
FOREIGN_OPTIONAL_MEMBERS = {"__notes__", "lineno", "message", "sched_getaffinity", "strerror"}

# Beam's own options have no other name.
# A card is a page for people, with the commands that use the model; a client is such a command.
NAME_FLAGS = {
    "pipelines/runners/beam.py",
    "keras_bert_impl/checkpoints/model_card.py",
    "keras_bert_impl/serving/client.py",
    "keras_bert_impl/serving/export.py",
}

# The one place of TensorFlow's and Keras' private names.
PRIVATE_NAMES = {"keras_bert_impl/compat.py"}


def files_of(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_in(path):
    """All nodes of a file: a walk through all files takes longer than what any test does then."""
    return [*ast.walk(tree_of(path))]


def nodes_of(kind, *folders):
    """(file's name, node) for every node of a kind."""
    for path in files_of(*folders):
        for node in nodes_in(path):
            if isinstance(node, kind):
                yield name_of(path), node


def imported_modules(nodes):
    """The modules that import statements name; `from a import b` may mean `a` or `a.b`."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@cache
def modules_in(path):
    """The modules that a file imports, anywhere in it."""
    return imported_modules(nodes_in(path))


def imported_packages(path):
    """The top-level packages that a file imports, anywhere in it."""
    return {name.split(".")[0] for name in modules_in(path)}


def importers(paths, package):
    return [name_of(path) for path in paths if package in imported_packages(path)]


def test_the_map_shows_every_room():
    text = (ROOT / "BUILD.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"`(?:[├└] )?(\w+)/`", text[: text.index("## Formats")]))
    folders = {path.parent.name for path in files_of(*ROOMS)}
    others = {"recipes", "tests", "support", "golden", "programs", "fuzz", "docs", "extensions"}
    assert shown == folders | others


def test_each_answer_to_where_is_names_what_its_file_defines():
    text = (ROOT / "BUILD.md").read_text(encoding="utf-8")
    section = text[text.index("## Where is …?") : text.index("## Benchmarks")]
    answers = re.findall(r"^\| .+\? \| `([^`]+)` \| `([^`]+)` \|$", section, re.MULTILINE)
    assert len(answers) >= 30
    missing = [place for place in answers if place[1] not in names_defined_in(ROOT / place[0])]
    assert missing == []


def names_defined_in(path):
    """The functions and classes of a file, and the methods of its classes as `Class.method`."""
    kinds, names = (ast.FunctionDef, ast.ClassDef), set()
    for node in (node for node in tree_of(path).body if isinstance(node, kinds)):
        names.add(node.name)
        names |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, kinds)}
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room):
    for path in files_of(room):
        others = (imported_packages(path) & set(ROOMS)) - MAY_IMPORT[room]
        if name_of(path) == FRONT_DOOR:
            names = {x for x in modules_in(path) if x[:10] == "pipelines."}
            assert names == ITS_LINES | {line.rpartition(".")[0] for line in ITS_LINES}
            continue
        assert not others or name_of(path) == LAUNCHER, f"{name_of(path)} imports {others}"


def test_no_module_imports_itself_by_way_of_others():
    modules = {
        name_of(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__"): path
        for path in files_of(*ROOMS)
    }
    graph = {
        module: imported_modules(tree_of(path).body) & modules.keys() - {module}
        for module, path in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


FAMILIES = sorted(path.parent.name for path in (ROOT / "pipelines/tasks").glob("*/task.py"))

# Benchmarks are of certain tasks.
MAY_NAME_FAMILIES = ("pipelines/tasks/register.py", "tools/")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_one_family_of_tasks_needs_is_known_in_its_folder_only(family):
    """A new family is a folder, a thin tool and a line of the register."""
    own = f"pipelines/tasks/{family}/"
    found = {
        name_of(path)
        for path in files_of(*LIBRARIES)
        for module in modules_in(path)
        if f"{module}.".startswith(own.replace("/", "."))
        and not name_of(path).startswith((own, *MAY_NAME_FAMILIES))
    }
    assert found == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_file_has_the_same_part_in_every_family(family):
    files = {path.stem for path in (ROOT / "pipelines/tasks" / family).glob("*.py")}
    assert "task" in files
    page = (ROOT / "pipelines/tasks/README.md").read_text(encoding="utf-8")
    unknown = [name for name in files - {"__init__"} if f"`{name}.py`" not in page]
    assert unknown == []


def test_flags_are_read_in_tools_only():
    assert importers(files_of(*LIBRARIES), "absl") == []


def test_the_library_knows_no_beam_and_layers_and_models_know_no_tensorflow():
    assert importers(files_of("keras_bert_impl"), "apache_beam") == []
    assert (
        importers(files_of("keras_bert_impl/layers", "keras_bert_impl/models"), "tensorflow") == []
    )


def test_beam_is_imported_by_the_two_files_that_are_called_so_only():
    assert importers(files_of(*ROOMS), "apache_beam") == [
        "pipelines/runners/beam.py",
        "pipelines/vectors/beam.py",
    ]


def test_libraries_do_not_print():
    found = [
        f"{name}:{node.lineno}"
        for name, node in nodes_of(ast.Call, *LIBRARIES)
        if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert found == []


def test_messages_of_libraries_name_parameters_and_not_flags():
    docstrings = {id(node.value) for _, node in nodes_of(ast.Expr, *LIBRARIES)}
    found = {
        name
        for name, node in nodes_of(ast.Constant, *LIBRARIES)
        if isinstance(node.value, str) and id(node) not in docstrings
        if re.search(r"(?<![\w-])--[a-z]", node.value)
    }
    assert sorted(found - NAME_FLAGS) == []


def test_a_contract_declares_its_members():
    """`getattr(x, "member", default)` asks for what a contract should promise."""
    found = [
        f"{name}:{node.lineno} {node.args[1].value}"
        for name, node in nodes_of(ast.Call, *ROOMS)
        if isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and len(node.args) == 3
        and isinstance(node.args[1], ast.Constant)
        and node.args[1].value not in FOREIGN_OPTIONAL_MEMBERS
    ]
    assert found == []


def test_private_names_of_tensorflow_and_keras_stand_in_one_place():
    ours = {node.name for _, node in nodes_of((ast.FunctionDef, ast.ClassDef), *ROOMS)}
    ours |= {node.attr for _, node in nodes_of(ast.Attribute, *ROOMS) if is_own(node)}
    ours |= {node.id for _, node in nodes_of(ast.Name, *ROOMS) if isinstance(node.ctx, ast.Store)}
    ours |= {"_asdict", "_fields", "_make", "_replace", "_exit"}  # public in spite of their names
    found = defaultdict(set)
    for name, node in nodes_of(ast.Attribute, *LIBRARIES):
        private = node.attr.startswith("_") and not node.attr.endswith("__")
        if node.attr == "__internal__" or (private and node.attr not in ours):
            found[name].add(node.attr)
    for path in files_of(*LIBRARIES):
        for module in modules_in(path):
            if module.startswith(("keras.src", "tensorflow.python")):
                found[name_of(path)].add(module)
    assert {name: names for name, names in found.items() if name not in PRIVATE_NAMES} == {}


def is_own(attribute):
    return isinstance(attribute.value, ast.Name) and attribute.value.id in ("self", "cls")


def test_each_flag_of_a_tool_is_read_once():
    for path in files_of("tools"):
        text = path.read_text(encoding="utf-8")
        for holder in re.findall(r"^(_[A-Z0-9_]+) = FLAGS\.", text, re.MULTILINE):
            reads = len(re.findall(rf"\b{holder}\b", text)) - 1
            assert reads == 1, f"{path.name}: {holder} is read {reads} times"


def test_no_file_of_tools_hides_a_module_of_the_standard_library():
    assert not {path.stem for path in files_of("tools")} & set(sys.stdlib_module_names)


def test_files_stay_small():
    for path in files_of(*ROOMS):
        lines = path.read_text(encoding="utf-8").count("\n")
        assert lines <= 600, f"{name_of(path)} has {lines} lines"


def test_nothing_is_unpickled():
    for path in files_of(*ROOMS):
        assert not {"pickle", "dill", "joblib", "marshal"} & imported_packages(path), path
        assert "allow_pickle=True" not in path.read_text(encoding="utf-8"), path


def test_json_is_written_in_one_place_only():
    """There no number of it is NaN or infinite; a server's answers are checked where they are."""
    writers = {("json", "dump"), ("json", "dumps"), ("orjson", "dumps")}
    found = {
        name
        for name, node in nodes_of(ast.Attribute, *ROOMS)
        if isinstance(node.value, ast.Name) and (node.value.id, node.attr) in writers
    }
    found = {name for name in found if not name.startswith("tools/benchmarks/")}
    assert found == {"keras_bert_impl/json_files.py", "keras_bert_impl/serving/http/bodies.py"}


def test_json_is_read_in_one_place_only():
    """Elsewhere it would be believed: nested without end, and of any type."""
    found = {
        name
        for name, node in nodes_of(ast.Attribute, *LIBRARIES)
        if isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("json", "load"), ("json", "loads")}
    }
    # The client lies beside an export, where nothing of this package is, and checks its digest.
    assert found == {"keras_bert_impl/json_files.py", "keras_bert_impl/serving/client.py"}


def test_every_module_of_some_size_has_its_test_at_its_place():
    missing = [
        name_of(path)
        for path in files_of(*ROOMS)
        if path.stem != "__init__"
        and path.read_text(encoding="utf-8").count("\n") > 100
        and not (ROOT / "tests" / path.relative_to(ROOT).with_name(mirror_of(path))).exists()
    ]
    assert sorted(missing) == []


def mirror_of(path):
    return f"test_{path.stem.strip('_')}.py"


def test_every_test_file_has_its_module():
    for path in files_of(*(f"tests/{room}" for room in ROOMS)):
        folder = ROOT / path.parent.relative_to(ROOT / "tests")
        assert folder.is_dir(), f"{name_of(path)} tests a room that is gone"


def test_help_needs_no_tensorflow_and_shows_the_tools_flags():
    program = (
        "import sys, tools\n"
        "heavy = {'tensorflow', 'keras', 'apache_beam', 'matplotlib', 'jax', 'scipy', 'sklearn'}\n"
        "for name in sys.argv[1:]:\n"
        "    assert getattr(tools, name).main(['--help']) == 0\n"
        "    assert not heavy & set(sys.modules), (name, heavy & set(sys.modules))\n"
    )
    command = [sys.executable, "-c", program, *TOOLS]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\nFlags:\n  --") == len(TOOLS)


def test_importing_the_library_loads_neither_tensorflow_nor_beam_nor_tfds():
    program = (
        "import sys, keras_bert_impl, pipelines\n"
        "sys.exit(bool({'tensorflow', 'apache_beam', 'tensorflow_datasets'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
