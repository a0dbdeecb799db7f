import pytest

from keras_bert_impl.errors import UserError
from pipelines.studies.recipe import RunAblationsConfig, Size

GIVEN = {
    "output_dir": "study",
    "input_file": "{data}/text",
    "data_dir": "here",
    "size": ("base 12 768 12",),
    "task": ("MRPC eval_f1 run_classifier --data_dir={data}/MRPC",),
}


def config(**changes):
    return RunAblationsConfig(**{**GIVEN, **changes})


def test_flags_are_words_of_a_shell_with_the_folder_of_data_in_them():
    made = config(data_flags="--a=1 '--b={data}/two words'")
    assert made.flags("data_flags") == ("--a=1", "--b=here/two words")
    assert made.filled(made.tasks[0].flags) == ("--data_dir=here/MRPC",)


def test_a_model_is_its_size_with_what_all_models_say():
    made = config(model_settings='{"hidden_dropout_prob": 0.0}', vocab_size=99)
    model = made.model(Size("x", 2, 128, 2), causal=True)
    assert (model.num_hidden_layers, model.intermediate_size, model.vocab_size) == (2, 512, 99)
    assert (model.hidden_dropout_prob, model.causal, model.hidden_act) == (0.0, True, "gelu_tanh")


def test_tables_take_all_tasks_or_those_that_are_named():
    tasks = (*GIVEN["task"], "NER eval_f1 run_ner --data_dir=x")
    made = config(task=tasks, masking_tasks=("NER",))
    assert [task.name for task in made.tasks_of("masking")] == ["NER"]
    assert [task.name for task in made.tasks_of("sizes")] == ["MRPC", "NER"]
    with pytest.raises(UserError, match="`steps_tasks=CoLA` is no task; choose from MRPC"):
        config(steps_tasks=("CoLA",)).tasks_of("steps")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": ()}, "give `size` and `task`"),
        (
            {"task": ("MRPC eval_f1 fill_mask",)},
            "fill_mask trains no task; choose from run_classifier",
        ),
        ({"other_model": ("x y",)}, "`other_model` is for the table models"),
        (
            {"tables": ("models",), "other_model": ("x y z",)},
            "`other_model=x y z`: give it as NAME CHECKPOINT, then flags",
        ),
        ({"seeds": (1, 1)}, "`seeds` needs at least one value, and each only once"),
        ({"pretraining_seeds": (2, 1, 2)}, "`pretraining_seeds` needs at least one value"),
        ({"masking_tasks": ("MRPC", "MRPC")}, "`masking_tasks` needs .* each only once"),
        ({"tables": ()}, "`tables` needs at least one value"),
        ({"seeds": ()}, "`seeds` needs at least one value"),
        ({"size": ("a 1 16 2", "a 2 16 2")}, "`size`: a name is given twice"),
        ({"size": ("a ² 16 2",)}, "`size=a ² 16 2`: give it as"),
        ({"model_settings": '{"hidden_act": "swish"}'}, "hidden_act is 'swish'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(changes, message):
    with pytest.raises(UserError, match=message):
        config(**changes)
