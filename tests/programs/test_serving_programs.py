"""From a model directory to answers: export_saved_model, then its client in a process."""

import ast
import json

import pytest

from tests.support import programs
from tests.support.model_folders import write_pretrainer
from tools import export_saved_model, fill_mask


def ask_client(client, texts):
    """Runs a client in a process that cannot import this package; gives what it prints."""
    hidden = (
        "import runpy, sys\n"
        "assert not any(name.startswith('keras_bert_impl') for name in sys.modules)\n"
        "sys.modules['keras_bert_impl'] = None; sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = programs.run(["-c", hidden, client, *texts], check=True)
    return [ast.literal_eval(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_saved_model_is_verified_and_answers_as_the_model_directory(tmp_path, capsys):
    model, saved = write_pretrainer(tmp_path / "model"), tmp_path / "a saved model"
    assert export_saved_model.main([f"--model_dir={model}", f"--output_dir={saved}"]) == 0
    shown = capsys.readouterr().out
    assert "Loaded again: 8 calls, largest difference 0.0e+00." in shown
    assert "A call of serving_default with a row of 32 tokens takes" in shown
    texts = ["the [MASK] runs.", "[MASK] sleeps"]
    flags = [f"--model={model}", "--format=json", *(f"--text={text}" for text in texts)]
    assert fill_mask.main(flags) == 0
    by_directory = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_client = ask_client(saved / "client.py", texts)
    for left, right in zip(by_client, by_directory, strict=True):
        assert left["tokens"][0][:5] == [c["token"] for c in right["masks"][0]]
