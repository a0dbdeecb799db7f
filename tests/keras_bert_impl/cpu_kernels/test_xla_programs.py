import os
from pathlib import Path

import pytest

from keras_bert_impl.cpu_kernels import xla_programs
from keras_bert_impl.kept_programs import EFFORT
from tests.support import compiling, programs

FUSION, FLAG = "__ynn_fusion", "--xla_cpu_experimental_ynn_fusion_type"


def run(ways, xla_flags=compiling.QUICKLY):
    env = {**compiling.anew(), "XLA_FLAGS": xla_flags}
    return programs.run(["tests.support.xla_steps", *ways], env)


def dump_to(folder):
    """XLA_FLAGS that keep the optimized programs in a folder."""
    return f"--xla_dump_to={folder} --xla_dump_hlo_as_text {compiling.QUICKLY}"


def compiled_to(folder):
    """The optimized programs that XLA dumped."""
    return [path.read_text() for path in folder.glob("*.cpu_after_optimizations.txt")]


@pytest.mark.slow
def test_no_program_of_ours_races_with_itself(tmp_path):
    result = run(["train", "infer"], dump_to(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "slower kernels" not in result.stderr
    dumped = compiled_to(tmp_path)
    assert not any(FUSION in program for program in dumped)
    assert len(dumped) > 20


@pytest.mark.slow
def test_whatever_flags_the_user_gives(tmp_path):
    flags = tmp_path / "flags"
    flags.write_text("\n".join(f"{dump_to(tmp_path)} {FLAG}=reduce,individual_dot".split()))
    result = run(["one_program"], str(flags))
    assert result.returncode == 0, result.stderr
    dumped = compiled_to(tmp_path)
    assert not any(FUSION in program for program in dumped)
    assert len(dumped) == 2  # what is looked at, and ours


@pytest.mark.slow
def test_where_xla_was_used_before_nothing_of_ours_is_compiled_and_one_line_says_so(tmp_path):
    result = run(["use_xla_before", "all_late"], dump_to(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("slower kernels") == 1
    (before, looked_at) = sorted(compiled_to(tmp_path), key=len)
    assert FUSION in before
    assert FUSION in looked_at


@pytest.mark.parametrize("given", [None, "--xla_cpu_enable_fast_math=false"])
def test_the_users_flags_are_left_as_they_were(monkeypatch, given):
    if given is None:
        monkeypatch.delenv("XLA_FLAGS", raising=False)
    else:
        monkeypatch.setenv("XLA_FLAGS", given)
    seen = []
    monkeypatch.setattr(xla_programs, "_program", lambda: seen.append(os.environ["XLA_FLAGS"]))
    xla_programs._first_use()  # asks, but XLA was used long ago
    assert seen[0].split() == [f"--{EFFORT}", *([given] if given else []), f"{FLAG}="]
    assert os.environ.get("XLA_FLAGS") == given


def test_a_flag_that_this_tensorflow_does_not_know_is_not_set(monkeypatch):
    import tensorflow as tf

    folder = Path(tf.sysconfig.get_lib())
    assert xla_programs._known(folder)
    monkeypatch.setattr(xla_programs, "_FLAG", "xla_cpu_use_ynnpack")
    assert not xla_programs._known(folder)
