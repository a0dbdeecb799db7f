"""The installed package, alone and beside foreign packages `tools` and `pipelines` (setup.py).

A wheel is built and installed without the network; what a server's environment needs besides, pip
has in its cache or fetches. Foreign packages of both names stand next to it in site-packages, and
in the working folder, which Python searches first.
"""

import ast
import contextlib
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

import keras_bert_impl as kb
from keras_bert_impl.serving.export import export_portable
from keras_bert_impl.serving.opened_model import open_model
from tests.support.model_folders import write_classifier, write_prompted
from tests.support.pretraining_corpus import contents, make_config, make_shards
from tools.table import tool_names

pytest.importorskip("setuptools", reason="builds a wheel; needs the extra `dev`")

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
MOVED = ("pipelines", "tools")
PACKAGES = ("keras_bert_impl", *MOVED)
FOREIGN = "MINE = __name__\n"


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, result.stderr
    return result


def without_network(*words):
    run(sys.executable, "-m", "pip", *words, "--quiet", "--no-deps", "--no-index")


def write_foreign_packages(folder):
    for name in MOVED:
        (folder / name / "runners").mkdir(parents=True)
        (folder / name / "__init__.py").write_text(FOREIGN)
        (folder / name / "runners" / "__init__.py").write_text(FOREIGN)


def names_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix != ".pyc"}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the checkout, so that nothing is built in it."""
    folder = tmp_path_factory.mktemp("source")
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    """The wheel, built where an older version's module was left behind."""
    left = source / "build" / "lib" / "keras_bert_impl" / "older.py"
    left.parent.mkdir(parents=True)
    left.touch()
    folder = tmp_path_factory.mktemp("wheel")
    without_network("wheel", "--no-build-isolation", f"--wheel-dir={folder}", str(source))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """A site-packages folder where the foreign packages were first."""
    folder = tmp_path_factory.mktemp("site")
    write_foreign_packages(folder)
    without_network("install", f"--target={folder}", str(wheel))
    return folder


@pytest.fixture
def environment(site, tmp_path, monkeypatch):
    """Makes a working folder with foreign packages the current one; gives the variables to set."""
    write_foreign_packages(tmp_path)
    monkeypatch.chdir(tmp_path)
    return {**os.environ, "PYTHONPATH": str(site), "TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.fixture
def keras_bert(site, environment):
    """Runs the installed command."""

    def call(*words):
        return run(sys.executable, str(site / "bin" / "keras-bert"), *words, env=environment)

    return call


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Shards that the checkout makes."""
    folder = tmp_path_factory.mktemp("expected")
    make_shards(folder)
    return contents(folder / "out")


def pretraining_flags(config):
    recipe = config.recipe
    return [
        f"--input_file={config.input_file}",
        f"--output_file={config.output_file}",
        f"--vocab_file={config.vocab_file}",
        f"--num_shards={config.num_shards}",
        f"--max_seq_length={recipe.max_seq_length}",
        f"--max_predictions_per_seq={recipe.max_predictions_per_seq}",
        f"--dupe_factor={recipe.dupe_factor}",
        f"--random_seed={recipe.random_seed}",
    ]


def test_a_wheel_has_one_top_level_package_and_all_of_its_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (top_level,) = (name for name in names if name.endswith("top_level.txt"))
        assert archive.read(top_level).split() == [b"keras_bert_impl"]
    metadata = {name for name in names if ".dist-info/" in name}
    files = {
        file.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.suffix in (".py", ".npz", ".cfg")
        or file.name in ("py.typed", "requirements.txt")
        or file.parent.name == "static"
        if file.parent.name not in ("benchmarks", "recipes") or file.suffix == ".cfg"
    }
    prefix = "keras_bert_impl/"
    assert names - metadata == {prefix + name.removeprefix(prefix) for name in files}


def test_what_beam_ships_to_its_workers_is_the_same_package(source, wheel, tmp_path):
    run(sys.executable, "setup.py", "-q", "sdist", f"--dist-dir={tmp_path}", cwd=source)
    (archive,) = tmp_path.glob("*.tar.gz")
    without_network("wheel", "--no-build-isolation", f"--wheel-dir={tmp_path}", str(archive))
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as shipped, zipfile.ZipFile(wheel) as ours:
        assert set(shipped.namelist()) == set(ours.namelist())


def test_no_installed_file_names_a_module_as_the_checkout_does(site):
    for file in (site / "keras_bert_impl").rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        if not re.search(r"(?<![\w.])(pipelines|tools)\.", source):
            continue  # not even in a comment: most files, whose trees are slow to walk
        for node in ast.walk(ast.parse(source)):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = [node.module]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = node.value.split("\n")
            for name in found:
                assert not name.startswith(("pipelines.", "tools.")), f"{file}: {name}"


def changed_statements(one, other):
    """The statements of two programs whose text differs, in pairs: walking all takes seconds."""
    lines, ends = [one.splitlines(), other.splitlines()], [0, 0]
    for pair in zip(ast.parse(one).body, ast.parse(other).body, strict=True):
        begins, ends = ends, [node.end_lineno for node in pair]  # decorators stand before a node
        texts = [lines[n][begins[n] : ends[n]] for n in range(2)]
        if texts[0] != texts[1]:
            yield pair


def names_left_out(tree):
    """A statement without the names of modules that it imports, and without its strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            node.module = ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def test_installing_changes_names_in_imports_and_strings_only(site):
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            if file.parent.name in ("benchmarks", "recipes"):
                continue  # in no wheel
            installed = site / ("" if package == "keras_bert_impl" else "keras_bert_impl")
            found = (installed / file.relative_to(ROOT)).read_text()
            for ours, theirs in changed_statements(file.read_text(), found):
                assert names_left_out(theirs) == names_left_out(ours), file


def test_installing_leaves_foreign_packages_alone(site, tmp_path):
    write_foreign_packages(tmp_path)
    for name in MOVED:
        assert names_in(site / name) == names_in(tmp_path / name)


def test_ours_and_foreign_packages_are_imported_side_by_side(environment):
    program = (
        "import sys, keras_bert_impl\n"
        "assert not {'pipelines', 'tools'} & set(sys.modules)\n"
        "from keras_bert_impl.pipelines.records.reader import RecordReader\n"
        "from keras_bert_impl.tools import split_sentences\n"
        "import pipelines.runners, tools\n"
        "assert (tools.MINE, pipelines.runners.MINE) == ('tools', 'pipelines.runners')\n"
    )
    run(sys.executable, "-c", program, env=environment)


FRONT_DOOR = {"bin/keras-bert": 1, "bin/keras-bert help": 0, "-m keras_bert_impl --help": 0}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("words", FRONT_DOOR)
def test_the_command_alone_lists_the_tools_in_a_second(site, environment, words):
    begun = processor_seconds()
    command = [sys.executable, *words.replace("bin", f"{site}/bin").split()]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (FRONT_DOOR[words], "")
    assert set(tool_names()) <= set(done.stdout.split())
    assert processor_seconds() - begun < 1


def test_every_tool_says_what_it_does(environment):
    program = (
        "import sys, time\n"
        "from keras_bert_impl.tools.table import tool_named\n"
        "for name in sys.argv[1:]:\n"
        "    begun = time.process_time()\n"
        "    tool = tool_named(name)\n"
        "    assert tool.main(['--help']) == 0\n"
        "    assert time.process_time() - begun < 1, name\n"
    )
    shown = run(sys.executable, "-c", program, *tool_names(), env=environment).stdout
    assert shown.count("\nFlags:\n  --") == len(tool_names())


REQUIREMENTS = "keras_bert_impl/serving/requirements.txt"


def test_a_server_asks_for_some_of_the_packages_that_the_wheel_asks_for(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        asked = BytesParser().parsebytes(archive.read(metadata)).get_all("Requires-Dist")
        lines = archive.read(REQUIREMENTS).decode().splitlines()
    known = {re.split("[ ;(]", one)[0] for one in asked}
    assert {re.split("[ ;]", line)[0] for line in lines if not line.startswith("#")} <= known


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Exports, and a model directory with a kept graph; each with what is answered here."""
    folder = tmp_path_factory.mktemp("models")
    write_prompted(folder / "directory")
    for name, made in {
        "labels": write_classifier(folder / "classifier", ["good", "bad"]),
        "vectors": folder / "directory",
    }.items():
        export_portable(open_model(made), folder / name, "openvino", verify=False)
    kept = kb.Embedder.from_pretrained(folder / "directory", engine="openvino")
    return folder, kept.embed(["the dog"])[0]


@pytest.fixture(scope="module")
def server(wheel, tmp_path_factory):
    """An environment of its own, as the page on deployment makes one."""
    folder = tmp_path_factory.mktemp("server") / "env"
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    pip = (*(sys.executable, "-m", "pip", "--python", str(folder)), "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    (file,) = folder.glob(f"lib/python3.*/site-packages/{REQUIREMENTS}")
    run(*pip, "install", "--quiet", "-r", str(file))
    return folder / "bin"


SERVER_JOBS = {  # what a tool is told, what its exit code is, and what it says
    "predict --model=labels --text=the": (0, "good"),
    "predict --model=classifier --engine=openvino --text=the": (1, "no graph of this version"),
    "predict --model=classifier --text=the": (1, "--engine=tensorflow needs the package keras"),
    "embed --model=vectors --input_file=in.txt --output_file=out.npy": (0, "1 vectors"),
    "embed --model=directory --engine=openvino --input_file=in.txt --output_file=kept.npy": (0, ""),
    "embed --model=vectors --input_file=in.txt --output_file=a.parquet": (1, "pip install 'pyarr"),
    "search --model=vectors --index=i --input_file=in.txt --query=cat": (0, "the dog"),
    "split_sentences --input_file=in.txt --output_file=s.txt": (1, "sentencex, which is not"),
    "export_model --model=directory --output_dir=x": (1, "with all that it depends on"),
}


@pytest.mark.long
@pytest.mark.skipif(not importlib.util.find_spec("openvino"), reason="needs the extra `openvino`")
def test_an_environment_without_tensorflow_answers_and_says_what_it_cannot_do(server, models):
    size = sum(file.lstat().st_blocks * 512 for file in server.parent.rglob("*"))
    assert size < 420e6  # and pip, 20 MB
    folder, vector = models
    (folder / "in.txt").write_text("the dog\n")
    program = (
        "import contextlib, io, sys, time\n"
        "from keras_bert_impl.tools.table import tool_named, tool_names\n"
        "for name in tool_names():\n"
        "    begun = time.process_time()\n"
        "    assert tool_named(name).main(['--help']) == 0\n"
        "    assert time.process_time() - begun < 1, name\n"
        "import json\n"
        "said = {}\n"
        "for words in sys.argv[1:]:\n"
        "    name, *flags = words.split()\n"
        "    shown = io.StringIO()\n"
        "    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):\n"
        "        said[words] = [tool_named(name).main(flags), shown.getvalue()]\n"
        "assert not {'tensorflow', 'keras', 'pyarrow'} & set(sys.modules)\n"
        "print('\\n' + json.dumps(said))\n"
    )
    done = run(str(server / "python"), "-c", program, *SERVER_JOBS, cwd=folder)
    said = json.loads(done.stdout.splitlines()[-1])
    for words, (code, sentence) in SERVER_JOBS.items():
        assert said[words][0] == code, said[words]
        assert sentence in said[words][1]
    for name in ("out.npy", "kept.npy"):
        np.testing.assert_allclose(np.load(folder / name)[0], vector, atol=1e-6)


def answer_of(port, path, content=None):
    body = None if content is None else json.dumps(content).encode()
    with urlopen(Request(f"http://127.0.0.1:{port}{path}", body), timeout=10) as answer:
        return answer.read()


@pytest.mark.long
@pytest.mark.usefixtures("keyboard")
@pytest.mark.skipif(not importlib.util.find_spec("openvino"), reason="needs the extra `openvino`")
def test_an_environment_without_tensorflow_serves_with_its_page(server, models):
    folder, vector = models
    command = [str(server / "keras-bert"), "playground", "--model=labels", "--model=vectors"]
    begun = processor_seconds()
    with subprocess.Popen(
        [*command, "--port=0"], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            line = next(line for line in process.stderr if "Listening" in line)
            port = re.search(r":(\d+)", line)[1]
            (found,) = json.loads(
                answer_of(port, "/v1/models/labels:predict", {"instances": ["the dog"]})
            )["predictions"]
            assert found["label"] in ("good", "bad")
            (made,) = json.loads(
                answer_of(port, "/v1/embeddings", {"model": "vectors", "input": "the dog"})
            )["data"]
            np.testing.assert_allclose(made["embedding"], vector, atol=1e-6)
            assert b"<title>" in answer_of(port, "/")
            tokens = answer_of(port, "/playground/models/labels/tokens", {"instances": ["the dog"]})
            assert b"[CLS]" in tokens
        finally:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
    assert process.returncode == 0
    assert processor_seconds() - begun < 3  # 1.2 were measured, among other work


def test_the_command_works_with_worker_processes(tmp_path, expected, keras_bert):
    (tmp_path / "articles.txt").write_text("The fox ran. A hen saw the fox.\n\nHome. They ran.\n")
    keras_bert(
        "split_sentences", "--input_file=articles.txt", "--output_file=s.txt", "--num_workers=2"
    )
    assert (tmp_path / "s.txt").read_text() == (
        "The fox ran.\nA hen saw the fox.\n\nHome.\nThey ran.\n\n"
    )
    config = make_config(tmp_path)
    keras_bert("create_pretraining_data", *pretraining_flags(config), "--num_workers=2")
    assert contents(tmp_path / "out") == expected


@pytest.mark.long
@pytest.mark.skipif(not importlib.util.find_spec("apache_beam"), reason="needs the extra `beam`")
def test_beams_worker_processes_find_our_functions_by_name(tmp_path, expected, keras_bert):
    config = make_config(tmp_path)
    keras_bert(
        "create_pretraining_data",
        *pretraining_flags(config),
        "--runner=DirectRunner",
        "--direct_running_mode=multi_processing",
        "--direct_num_workers=1",
    )
    assert contents(tmp_path / "out") == expected
