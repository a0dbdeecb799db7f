"""`keras-bert playground`: its mistakes are those of `serve`."""

import pytest

import tools.playground


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "no model is named; give --model"),
        (["--model=/no/such/model", "--port=0"], "/no/such/model"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, flags, sentence):
    assert tools.playground.main(flags) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
