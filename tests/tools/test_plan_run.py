import re

from tools import plan_run


def test_a_plan_of_base_says_its_parameters_and_hours(capsys):
    flags = ["--model_size=base", "--train_batch_size=256", "--num_train_steps=1000000"]
    flags += ["--vocab_size=30522", "--examples_per_second=480", "--device_memory_gb=80"]
    assert plan_run.main(flags) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^hours +148\.1$", shown, re.MULTILINE)  # 256 million examples / 480 / 3600
    assert re.search(r"^examples +256,000,000$", shown, re.MULTILINE)
    assert "largest batch that fits" in shown


def shown_of(capsys, *flags):
    """The rows by name, and the notes."""
    usual = ["--model_size=tiny", "--num_train_steps=200", "--num_warmup_steps=20"]
    assert plan_run.main([*usual, "--train_batch_size=32", *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    notes = [line for line in lines if line.startswith("Note: ")]
    rows = (re.split(r"  +", line.strip()) for line in lines if line not in notes)
    return dict(rows), notes


def test_a_short_run_takes_minutes_or_seconds_and_never_no_hours(capsys):
    for rate, unit, value in [("2", "minutes", "53.3"), ("6400", "seconds", "1.0")]:
        rows, _ = shown_of(capsys, f"--examples_per_second={rate}")
        assert rows[unit] == value
        assert "hours" not in rows


def test_the_price_is_that_of_all_hours(capsys):
    rows, _ = shown_of(capsys, "--examples_per_second=2", "--price_per_hour=2.7")
    assert rows["price"] == "2.40"  # 6,400 examples are 3,200 s
    assert plan_run.main(["--model_size=tiny", "--price_per_hour=2"]) == 1
    assert "--price_per_hour=2.0 needs the rate" in capsys.readouterr().err


def test_epochs_are_said_and_too_many_are_noted(capsys):
    rows, notes = shown_of(capsys, "--num_examples=6400")
    assert (rows["epochs"], notes) == ("1.0", [])
    rows, (note,) = shown_of(capsys, "--num_examples=100")
    assert rows["epochs"] == "64.0"
    assert note.startswith("Note: 200 steps of 32 examples are 64 epochs over 100 examples")


def test_mistakes_of_the_run_are_noted_by_the_names_of_its_flags(capsys):
    _, (warmup, mirrored) = shown_of(
        capsys, "--num_warmup_steps=10000", "--distribution_strategy=mirrored"
    )
    assert warmup.startswith("Note: --num_warmup_steps=10000 with --num_train_steps=200: ")
    assert mirrored.startswith("Note: --distribution_strategy=mirrored with one device")
    _, notes = shown_of(capsys, "--distribution_strategy=mirrored", "--num_replicas=8")
    assert notes == []
