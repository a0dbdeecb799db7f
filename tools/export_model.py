"""Writes a model directory for a server or a runtime: as SavedModel, ONNX, OpenVINO, LiteRT.

A SavedModel takes raw text (see export_saved_model). The others take ids, with free batch and
length, and give what the model gives: logits, vectors, or one vector for each text if the directory
says how. Each comes with the vocabulary, settings.json (labels, thresholds) and client.py, a
short program that asks the model with texts. The client needs tensorflow and
tensorflow_text, or numpy, tokenizers and the runtime, and nothing of this package. Only a
SavedModel holds windows over long texts and the choice of answers and entities; in the other
formats the client gives the model's numbers instead.

The result is compared with the model by its own runtime, and timed with a row of 32 tokens.

Examples:
  keras-bert export_model --model=mine --output_dir=mine_openvino --format=openvino
  python mine_openvino/client.py 'How do I get my money back?'
"""

from tools.table import made

FLAGS, main = made(__name__)
