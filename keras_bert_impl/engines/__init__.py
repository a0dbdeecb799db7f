"""Engines that compute a trained model's outputs: TensorFlow itself, or OpenVINO, fed alike."""

import sys

# OpenVINO's converter and NNCF report their use to their makers over the network, from processes
# that they fork, wherever they find this package; without it both work all the same.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
