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


def test_a_mistake_is_one_sentence(capsys):
    assert plan_run.main(["--model_size=base", "--vocab_size=0"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: --vocab_size=0")
    assert said.count("\n") == 1
