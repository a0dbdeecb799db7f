import base64

import numpy as np

from keras_bert_impl.serving.attention import TextAttention
from keras_bert_impl.serving.page.written import written_attention


def test_shares_come_back_to_a_thirty_thousandth():
    shares = np.random.default_rng(0).dirichlet(np.ones(7), size=(2, 3, 7)).astype(np.float32)
    written = written_attention(TextAttention(tuple("abcdefg"), (0,) * 7, shares))
    flat = np.frombuffer(base64.b64decode(written["probabilities"]), "<u2")
    read = flat.reshape(written["layers"], written["heads"], 7, 7) / 65535
    assert np.abs(read - shares).max() < 1 / 65535
