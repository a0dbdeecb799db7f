"""AdamW and LAMB as they were published, in float64 NumPy."""

import keras
import numpy as np

RATE, DECAY, B1, B2, EPSILON = 0.1, 0.01, 0.9, 0.999, 1e-6


def numpy_steps(weight, gradients, decay, bias_correction=False, trust=False):
    """The published formulae, one line each."""
    weight = weight.astype(np.float64)
    m, v = np.zeros_like(weight), np.zeros_like(weight)
    for t, g in enumerate(gradients, start=1):
        m = B1 * m + (1 - B1) * g
        v = B2 * v + (1 - B2) * g * g
        scale = (1 - B1**t, 1 - B2**t) if bias_correction else (1, 1)
        update = (m / scale[0]) / (np.sqrt(v / scale[1]) + EPSILON) + decay * weight
        ratio = np.linalg.norm(weight) / np.linalg.norm(update) if trust else 1.0
        weight = weight - RATE * ratio * update
    return weight


def keras_steps(optimizer, name, weight, gradients):
    variable = keras.Variable(weight, name=name)
    for gradient in gradients:
        optimizer.apply([gradient], [variable])
    return np.array(variable)
