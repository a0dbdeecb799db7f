"""The demo's plan; `make demo` runs it whole."""

from pathlib import Path

from tools.demo import next_steps, plan
from tools.table import tool_named


def test_every_step_is_a_tool_with_flags_that_it_knows():
    for tool, *flags in plan(Path("folder"), num_train_steps=8, vocab_size=300).values():
        tool_named(tool).flags.parse(flags)


def test_each_step_reads_what_an_earlier_one_wrote():
    written = {"folder/bert_config.json"}  # by the demo itself
    for tool, *flags in plan(Path("folder"), num_train_steps=8, vocab_size=300).values():
        for flag in flags:
            name, _, value = flag.removeprefix("--").partition("=")
            path = value.removesuffix("*")
            if not path.startswith("folder"):
                continue
            if tool == "demo":
                written |= {"folder/train.jsonl", "folder/held_out.jsonl"}
            makes = tool == "learn_vocabulary" and name == "vocab_file"
            if makes or name in ("output_file", "held_out_file", "output_dir"):
                written.add(path)
            else:
                made = any(path == one or path.startswith(f"{one}/") for one in written)
                assert made, f"{tool} reads {path}"


def test_the_commands_to_try_next_are_tools_that_read_what_the_demo_leaves():
    steps = next_steps(Path("folder"))
    assert len(steps) == 3
    for tool, *flags in steps.values():
        tool_named(tool).flags.parse(flags)
        assert any("=folder/" in flag for flag in flags)


def test_the_text_alone_is_written_to_two_files(tmp_path, capsys):
    assert tool_named("demo").main(["--only_text", f"--output_dir={tmp_path}"]) == 0
    assert capsys.readouterr().out.endswith("MB of text\n")
    assert {path.name for path in tmp_path.iterdir()} == {"train.jsonl", "held_out.jsonl"}


def test_a_mistake_is_one_sentence(capsys):
    assert tool_named("demo").main(["--vocab_size=3"]) == 1
    assert capsys.readouterr().err.startswith("Error: --vocab_size=3")
