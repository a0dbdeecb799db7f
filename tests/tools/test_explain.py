"""explain as a user runs it."""

import base64
import json
import re

import numpy as np
import pytest

from tests.support.model_folders import write_encoder
from tools import explain


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("explain") / "model")


def run(capsys, *flags):
    code = explain.main([*flags])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err.strip()


def test_texts_and_pairs_become_one_page(model, tmp_path, capsys):
    page = tmp_path / "page.html"
    flags = [f"--model={model}", "--text=the dog", "--text=a cat", f"--output_file={page}"]
    pairs = ["--text_pair=runs", "--text_pair=sleeps"]
    code, out, _ = run(capsys, *flags, *pairs)
    assert (code, out) == (0, f"2 texts, 2 layers of 2 heads: {page}\n")
    assert page.read_text().count('"probabilities"') == 2


def attention_in(page):
    (found,) = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', page.read_text(), re.S)[1])
    return found


def shares_of(attention):
    return np.frombuffer(base64.b64decode(attention["probabilities"]), "<u2") / 65535


def test_either_engine_gives_the_attention(model, tmp_path, capsys):
    pages = [tmp_path / "tensorflow.html", tmp_path / "openvino.html"]
    for page in pages:
        flags = [f"--model={model}", f"--engine={page.stem}", f"--output_file={page}"]
        assert run(capsys, *flags, "--text=the dog runs")[0] == 0
    first, second = (attention_in(page) for page in pages)
    assert first["tokens"] == second["tokens"] == ["[CLS]", "the", "dog", "runs", "[SEP]"]
    # Rounded as the page holds them.
    assert np.abs(shares_of(first) - shares_of(second)).max() < 1e-3


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "there is no text"),
        (["--text=a", "--text=b", "--text_pair=c"], "--text_pair 1 times"),
        (["--text=" + "the dog " * 40], "text 1 has more than the 12 tokens"),
    ],
    ids=["no text", "a pair is missing", "too long"],
)
def test_a_mistake_is_one_sentence(model, tmp_path, capsys, flags, said):
    page = tmp_path / "page.html"
    code, _, error = run(capsys, f"--model={model}", f"--output_file={page}", *flags)
    assert code == 1
    assert error.startswith("Error: ")
    assert said in error.replace("`", "")
    assert len(error.splitlines()) == 1
    assert not page.exists()
