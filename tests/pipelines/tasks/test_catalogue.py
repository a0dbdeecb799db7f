import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.catalogue import find_task, task_names


@pytest.mark.parametrize(
    ("typed", "name"),
    [("CoLA", "CoLA"), ("cola", "CoLA"), ("SST2", "SST-2"), ("sts_b", "STS-B"), ("MNLI", "MNLI")],
)
def test_a_name_is_understood_however_it_is_written(typed, name):
    assert find_task(typed).name == name


def test_an_unknown_name_gets_the_list_of_names():
    with pytest.raises(UserError, match="--task_name=boolq: there is no such task; choose CoLA, "):
        find_task("boolq")


def test_all_nine_tasks_of_glue_are_there():
    assert len(task_names()) == len(set(task_names())) == 9
