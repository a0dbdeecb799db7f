import json

from tools import write_python_documentation


def test_held_out_documents_are_others_than_those_to_train_on(tmp_path, capsys):
    train, held_out = tmp_path / "train.jsonl", tmp_path / "held_out.jsonl"
    flags = [f"--output_file={train}", f"--held_out_file={held_out}"]
    assert write_python_documentation.main(flags) == 0
    assert capsys.readouterr().out.endswith("MB of text\n")
    texts = [
        {json.loads(line)["text"] for line in path.read_text().splitlines()}
        for path in (train, held_out)
    ]
    assert all(texts)
    assert texts[0].isdisjoint(texts[1])
