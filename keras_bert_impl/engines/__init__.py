"""Engines that compute a trained model's outputs: TensorFlow itself, or OpenVINO, fed alike."""
