"""The signatures of served choices; `test_choice_task.py` holds them to the offline answers."""

import numpy as np

from pipelines.tasks.choices.served import ServedChooser
from pipelines.tasks.choices.task import ChoiceTask
from pipelines.tasks.register import open_task_model
from tests.support.model_folders import write_chooser


def test_texts_and_ids_give_the_same(tmp_path):
    write_chooser(tmp_path / "model")
    opened = open_task_model(tmp_path / "model", ChoiceTask(2), do_lower_case=True)
    served = ServedChooser(opened, 2, 10)
    assert served.names == ("serving_default", "text")
    found = served.call("text", {"context": ["the dog"], "endings": [["runs", "a list ."]]})
    ids = [[[2, 5, 6, 3, 8, 3, 0, 0], [2, 5, 6, 3, 10, 11, 13, 3]]]
    mask = [[[1, 1, 1, 1, 1, 1, 0, 0], [1] * 8]]
    segments = [[[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]]]
    inputs = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
    by_ids = served.call("serving_default", {k: np.array(v, np.int32) for k, v in inputs.items()})
    for name in ("logits", "probabilities"):
        np.testing.assert_allclose(found[name], by_ids[name], atol=1e-6)
    assert found["ending"].numpy().tolist() == np.argmax(by_ids["logits"], axis=-1).tolist()
