import json

import pytest

from pipelines.runs.demo_text import (
    demo_documents,
    write_demo_text,
)


@pytest.fixture(scope="module")
def documents():
    return list(demo_documents())


def test_every_16th_document_is_held_out_and_the_order_is_fixed(documents, tmp_path):
    write_demo_text(tmp_path / "train.jsonl", tmp_path / "held_out.jsonl")
    titles = {
        name: [json.loads(line)["title"] for line in (tmp_path / f"{name}.jsonl").open()]
        for name in ("train", "held_out")
    }
    everything = [document.title for document in documents]
    assert titles["held_out"] == everything[15::16]
    assert titles["train"] == [t for n, t in enumerate(everything) if n % 16 != 15]
