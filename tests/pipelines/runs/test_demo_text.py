import json
from itertools import islice

from pipelines.runs.demo_text import demo_documents, write_demo_text


def test_every_16th_document_is_held_out_and_the_order_is_fixed(tmp_path):
    assert write_demo_text(tmp_path / "train.jsonl", tmp_path / "held_out.jsonl") > 500_000
    train, held_out = (
        [json.loads(line)["title"] for line in (tmp_path / f"{name}.jsonl").open()]
        for name in ("train", "held_out")
    )
    first = [document.title for document in islice(demo_documents(), 32)]
    assert held_out[:2] == first[15::16]
    assert train[:30] == [title for number, title in enumerate(first) if number % 16 != 15]
    assert len(train) // 15 == len(held_out)
