from tools.table import ToolPrograms


def test_a_tool_says_its_mistakes_and_prints_beside_its_log(capsys, tmp_path):
    (tmp_path / "text.txt").write_text("A dog. A cat.\n")
    flags = [f"--input_file={tmp_path}/text.txt", f"--output_file={tmp_path}/out.txt"]
    assert ToolPrograms().run("split_sentences", flags) == 0
    assert ToolPrograms().run("split_sentences", ["--input_file=/no/such/file", flags[1]]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert "1 documents, 2 sentences" in error
    assert "no such file" in error
