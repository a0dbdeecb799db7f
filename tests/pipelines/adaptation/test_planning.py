import gzip

import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from pipelines.adaptation.planning import plan_lines
from pipelines.adaptation.steps import Steps
from tests.support.adaptation import PretendingTrainers, toy_adaptation


def lines_of(folder, lacks_words=False, **changes):
    config = toy_adaptation(folder, **changes)
    source = find_model(config.init_checkpoint)
    asked = Steps(config, source, True, lacks_words).check(PretendingTrainers().config_of)
    return {line.split()[0]: line for line in plan_lines(config, source, asked)}


def test_a_task_whose_files_are_there_has_a_time(tmp_path):
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "a\tyes\nb\tno\n" * 400)
    files = f"--train_file={tmp_path}/rows.tsv --dev_file={tmp_path}/rows.tsv"
    task = lines_of(tmp_path, task=f"run_classifier {files}")["task"]
    assert task.split(":")[0].endswith("6 fine-tunings")
    assert "about" in task
    missing = lines_of(tmp_path, task="run_ner --train_file=/no/such --dev_file=/no/such")["task"]
    assert missing.endswith("6 fine-tunings")


def test_new_heads_take_steps_of_their_own(tmp_path):
    assert "heads" not in lines_of(tmp_path)
    heads = lines_of(tmp_path, lacks_words=True, num_head_steps=30, train_batch_size=8)["heads"]
    assert heads.split(None, 1)[1] == "30 steps in which only they learn: about 8s"


def test_more_tokens_and_a_larger_text_take_more_disk(tmp_path):
    def size(**changes):
        return lines_of(tmp_path, **changes)["disk"].split("about ")[1].split(" in ")[0]

    small = size()
    (tmp_path / "text.txt").write_text("one. two.\n\n" * 200_000)
    assert small.endswith("MB")
    assert float(size().split()[0]) > float(small.split()[0]) + 2


def test_an_evaluation_is_of_what_is_held_out_or_as_much_as_is_asked_for(tmp_path):
    few = lines_of(tmp_path)["evaluation"]
    assert "times up to 32 examples" in few
    (tmp_path / "text.txt").write_text("one. two.\n\n" * 200_000)
    many = lines_of(tmp_path, max_eval_steps=7, eval_batch_size=16)["evaluation"]
    assert "times up to 112 examples" in many


def test_a_text_that_is_not_there_is_told_before_anything_starts(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        lines_of(tmp_path, input_file=(str(tmp_path / "none.txt"),))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("text.txt", "한국어 위키백과\n".encode("cp949") * 9, "text.txt: is not UTF-8"),
        ("text.jsonl", b'{"text": "a."}\n' * 9 + b'{"body": "b."}\n', "text.jsonl: line 10"),
        (
            "text.txt.gz",
            gzip.compress((b"a" * 999 + b"\n") * 90_000),
            "unpacks to more than 200 times its size",
        ),
    ],
)
def test_a_bad_text_is_told_before_a_step_is_timed(tmp_path, monkeypatch, name, content, sentence):
    def timed(*_):
        pytest.fail("a step was timed")

    monkeypatch.setattr("pipelines.adaptation.planning._examples_per_second", timed)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        lines_of(tmp_path, input_file=(str(tmp_path / name),), examples_per_second=None)


@pytest.mark.slow
def test_without_a_rate_a_few_steps_are_timed(tmp_path):
    training = lines_of(tmp_path, examples_per_second=None)["training"]
    assert float(training.split(" at ")[2].split()[0].replace(",", "")) > 0
