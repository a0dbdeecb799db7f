"""Serves models over HTTP: TensorFlow Serving's REST form, and OpenAI's for vectors.

Any model of this package: labels, numbers, answers, entities, choices, masked words, vectors. With
--engine=openvino it is faster on CPUs and starts in a second from the second time on. Requests are
computed together while others are computed, and one client alone never waits. It listens on this
machine only unless --host says otherwise; Ctrl-C or SIGTERM finish what was begun.

Examples:
  keras-bert serve --model=mrpc/model --model_name=mrpc --engine=openvino
      curl http://127.0.0.1:8501/v1/models/mrpc:predict
          -d '{"instances": [{"text_a": "He left.", "text_b": "He went away."}]}'
  keras-bert serve --model=minilm=all-MiniLM-L6-v2 --port=8501
      curl http://127.0.0.1:8501/v1/embeddings -d '{"model": "minilm", "input": "a text"}'
"""

from tools.table import made

FLAGS, main = made(__name__)
