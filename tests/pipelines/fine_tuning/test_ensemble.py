"""Outputs of several models; a whole run of them is tested with run_squad."""

from types import SimpleNamespace

import numpy as np

from pipelines.fine_tuning.outputs import compute_outputs


def test_a_model_is_made_when_the_one_before_has_answered(capsys):
    events = []

    def model(value):
        def predict(_):
            for number in range(2):
                events.append(f"answers {value}")
                yield {"logits": np.full([1], number + value)}

        def make():
            events.append(f"made {value}")
            return predict

        return make

    sums = np.zeros(2)

    def add(numbers, outputs, share):
        sums[numbers] += share * outputs["logits"]

    rows = SimpleNamespace(num_rows=2, numbers=lambda: iter([np.array([0]), np.array([1])]))
    compute_outputs("dev", SimpleNamespace(add=add), rows, [model(10), model(20)])
    assert sums.tolist() == [15.0, 16.0]
    made = ["made 10", *["answers 10"] * 2, "made 20", *["answers 20"] * 2]
    assert events == made
    assert capsys.readouterr().err.startswith("compute dev: 4 of 4 rows in ")
