"""A file of texts to a file of vectors."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.smaller_vectors import quantized, ranges_of
from keras_bert_impl.tokenization.unknown_words import UnknownWords
from pipelines.vectors.embed import EmbedResult, embed_file
from pipelines.vectors.options import EmbedConfig
from tests.pipelines.vectors.conftest import TEXTS
from tests.support.model_folders import write_prompted


@pytest.fixture(autouse=True)
def blocks_of_two(monkeypatch):
    monkeypatch.setattr(Embedder, "texts_at_once", 2)


def embed(model, input_file, output, **options):
    config = EmbedConfig(model=model, input_file=str(input_file), output_file=output, **options)
    return embed_file(config)


def test_the_vectors_are_the_embedders_in_the_order_of_the_texts(model, lines, tmp_path):
    output = tmp_path / "new" / "x.npy"
    assert embed(model, lines, output) == EmbedResult(6, 16, 6)
    expected = Embedder.from_pretrained(model).embed(TEXTS)
    np.testing.assert_array_equal(np.load(output), expected)


@pytest.mark.parametrize("kind", ["int8", "ubinary"])
@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_smaller_vectors_are_those_of_all_with_their_ranges(model, lines, tmp_path, kind, ending):
    output = tmp_path / f"x{ending}"
    assert embed(model, lines, output, vector_type=kind, dimensions=12).width == 12
    vectors = Embedder.from_pretrained(model).embed(TEXTS, dimensions=12)
    if ending == ".npy":
        found, said = np.load(output), json.loads(Path(f"{output}.json").read_text())
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(output)
        found = np.array(table["embedding"].to_pylist())
        metadata = table.schema.metadata
        said = {name.decode(): json.loads(value) for name, value in metadata.items()}
    assert said["vector_type"] == kind
    ranges = np.float32(said["ranges"]) if kind == "int8" else None
    if ranges is not None:
        np.testing.assert_allclose(ranges, ranges_of([vectors]), atol=1e-6)
    np.testing.assert_allclose(found, quantized(vectors, kind, ranges), atol=kind == "int8")


def test_a_killed_run_goes_on_to_the_same_bytes(model, lines, tmp_path, monkeypatch, caplog):
    embed(model, lines, tmp_path / "whole.npy", max_seq_length=4)
    own = Embedder.embed_blocks

    def killed(self, texts, **how):
        for number, block in enumerate(own(self, texts, **how)):
            if number == 2:
                raise KeyboardInterrupt
            yield block

    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "embed_blocks", killed)
        with pytest.raises(KeyboardInterrupt) as stop:
            embed(model, lines, tmp_path / "x.npy", max_seq_length=4)
    assert stop.value.__notes__[0].startswith("4 of 6 vectors are kept")
    caplog.clear()
    assert embed(model, lines, tmp_path / "x.npy", max_seq_length=4) == EmbedResult(6, 16, 2)
    assert "computed now: 2 of 2 texts are longer than the 4 tokens" in caplog.text
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


@pytest.mark.parametrize("change", ["text", "option", "weights"])
def test_other_texts_options_or_weights_are_noticed(
    model, lines, tmp_path, monkeypatch, change, caplog
):
    output, options = tmp_path / "x.npy", {}
    monkeypatch.setattr("pipelines.vectors.embed.GrowingVectors.finish", lambda *_: None)
    embed(model, lines, output)
    if change == "text":
        Path(lines).write_text("the dog\na cat\n")
    elif change == "option":
        options["pooling"] = "cls"
    else:
        embedder = Embedder.from_pretrained(model)
        embedder.model.weights[0].assign(0 * embedder.model.weights[0])
        embedder.save_pretrained(tmp_path / "model")
        model = str(tmp_path / "model")
    with caplog.at_level("INFO"):
        result = embed(model, lines, output, **options)
    assert result.computed == result.rows
    assert "begun anew" in caplog.text


def test_the_input_and_a_folder_are_no_output(model, tmp_path):
    (tmp_path / "x.npy").write_text("a text\n")
    with pytest.raises(UserError, match="is input, but the output would"):
        embed(model, tmp_path / "x.npy", tmp_path / "x.npy")
    (tmp_path / "y.npy").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        embed(model, tmp_path / "x.npy", tmp_path / "y.npy")


_SECOND_START = """
import sys
from pathlib import Path
from pipelines.vectors.embed import embed_file
from pipelines.vectors.options import EmbedConfig
model, lines, output = sys.argv[1:]
embed_file(EmbedConfig(model=model, input_file=lines, output_file=Path(output), engine="openvino"))
print(*sorted({"tensorflow", "keras", "tensorflow_text"} & set(sys.modules)))
"""


def test_the_second_start_with_openvino_needs_no_tensorflow(model, lines, tmp_path):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    folder = shutil.copytree(model, tmp_path / "model")
    embed(str(folder), lines, tmp_path / "x.npy", engine="openvino")
    command = [sys.executable, "-c", _SECOND_START, folder, lines, tmp_path / "y.npy"]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == ""
    found = [np.load(tmp_path / name) for name in ("x.npy", "y.npy")]
    np.testing.assert_allclose(*found, atol=1e-6)


def test_texts_that_the_vocabulary_does_not_fit_leave_nothing(model, tmp_path, caplog):
    (tmp_path / "x.txt").write_text("비가 온다\n" * 30)
    with pytest.raises(UserError, match=r"x\.txt: 100\.0 % of the words of a sample become"):
        embed(model, tmp_path / "x.txt", tmp_path / "new" / "x.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]
    allowed = UnknownWords(allow_unknown_words=True)
    embed(model, tmp_path / "x.txt", tmp_path / "x.npy", unknown=allowed)
    assert "100.0 % of the words of a sample" in caplog.messages[0]


def test_vectors_that_nobody_trained_are_told_once(model, lines, tmp_path, caplog):
    embed(model, lines, tmp_path / "x.npy")
    (said,) = [one for one in caplog.messages if "were not trained to be compared" in one]
    assert "run_embedder" in said
    caplog.clear()
    embed(str(write_prompted(tmp_path / "trained")), lines, tmp_path / "y.npy")
    assert not any("were not trained" in one for one in caplog.messages)
