"""A BiLSTM in plain NumPy, float64, token by token, from its equations (Hochreiter and Schmidhuber
1997, with forget gates); padding is cut off before."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(inputs, kernel, recurrent, bias):
    """One direction over one row: [length, in] -> [length, units]."""
    units = len(recurrent)
    state, memory, states = np.zeros(units), np.zeros(units), []
    for token in inputs:
        gates = token @ kernel + state @ recurrent + bias
        into, forget, fresh, out = np.split(gates, 4)
        memory = sigmoid(forget) * memory + sigmoid(into) * np.tanh(fresh)
        state = sigmoid(out) * np.tanh(memory)
        states.append(state)
    return np.array(states)


def bilstm(inputs, lengths, weights, depth=2):
    """All layers over a batch, zeros at the padding.

    Args:
        inputs: [batch, length, in].
        lengths: the tokens of each row.
        weights: by names such as "forward_0/lstm_cell/kernel".
    """
    rows = [row[:length] for row, length in zip(inputs, lengths, strict=True)]
    for number in range(depth):
        for which, row in enumerate(rows):
            ways = []
            for direction, step in (("forward", 1), ("backward", -1)):
                cell = f"{direction}_{number}/lstm_cell"
                names = ("kernel", "recurrent_kernel", "bias")
                parts = [weights[f"{cell}/{name}"] for name in names]
                ways.append(lstm(row[::step], *parts)[::step])
            rows[which] = np.concatenate(ways, axis=-1)
    outputs = np.zeros([*inputs.shape[:2], rows[0].shape[-1]])
    for which, row in enumerate(rows):
        outputs[which, : len(row)] = row
    return outputs
