"""What the tests of the tools that read text share."""

import pytest


def run(tool, *flags):
    return tool.main([str(flag) for flag in flags])


def assert_one_sentence(tool, flags, sentence, capsys, folder):
    """A mistake is said in one sentence, and nothing is written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(tool, *flags) == 1
    said = capsys.readouterr().err
    assert said.startswith(sentence)
    assert said.count("\n") == 1
    assert list(folder.iterdir()) == []


def assert_output_is_no_input(tool, flags, output, folder, capsys):
    """What a tool has written is not its input the next time; nothing is replaced."""
    text = folder / "text"
    text.mkdir()
    (text / "text.txt").write_text("One sentence here. Two sentences there.\n\nMore of them.\n")
    (folder / "text.v").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\none\n")
    arguments = [flag.replace("{}", str(text)) for flag in flags]
    if output != "text.txt":
        assert run(tool, *arguments) == 0
    capsys.readouterr()
    before = {path: path.read_bytes() for path in text.iterdir()}
    assert run(tool, *arguments) == 1
    said = capsys.readouterr().err
    assert f"{output}: is input, but the output would take its place; name another --" in said
    assert {path: path.read_bytes() for path in text.iterdir()} == before
