"""What answering by an export for OpenVINO needs: no TensorFlow, and little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert_impl.serving.export import export_portable
from pipelines.tasks.register import open_and_serve
from tests.support.model_folders import write_classifier
from tools import predict

PROJECT = Path(__file__).parents[2]
MOST_MEGABYTES = 400
PROGRAM = r"""
import json, re, sys
from tools import predict
code = predict.main(sys.argv[1:])
heavy = sorted({"tensorflow", "keras", "torch", "jax", "transformers"} & set(sys.modules))
# Not what getrusage says: that has the memory of the process which started this one, too.
peak = int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) / 1000
json.dump({"code": code, "heavy": heavy, "peak": peak}, sys.stderr)
"""


def asked(model, *flags):
    """What a process of its own answers, and what it loaded and took."""
    words = [f"--model={model}", "--text=the dog runs", "--format=json", *flags]
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True, text=True)
    return json.loads(done.stdout)["answer"], json.loads(done.stderr.splitlines()[-1])


@pytest.mark.slow
def test_an_export_and_a_kept_graph_are_answered_without_tensorflow(tmp_path, capsys):
    model = write_classifier(tmp_path / "model", ["no", "yes"])
    opened, _ = open_and_serve(model)
    export_portable(opened, tmp_path / "export", "openvino", verify=False)
    # Here the graph is made, and kept.
    words = [f"--model={model}", "--text=the dog runs", "--format=json", "--engine=openvino"]
    assert predict.main(words) == 0
    first = json.loads(capsys.readouterr().out)["answer"]
    for found, needed in (asked(tmp_path / "export"), asked(model, "--engine=openvino")):
        assert (needed["code"], needed["heavy"]) == (0, [])
        assert needed["peak"] < MOST_MEGABYTES
        assert found["probabilities"] == pytest.approx(first["probabilities"], abs=1e-5)
