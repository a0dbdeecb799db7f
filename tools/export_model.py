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

import sys

from keras_bert_impl.serving.config import ExportConfig, ExportModelConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, ExportModelConfig)


def export_saved(config: ExportConfig) -> None:
    """Writes a SavedModel and says what it serves."""
    from pipelines.tasks.register import open_and_serve

    opened, served = open_and_serve(
        config.model,
        top_k=config.top_k,
        max_seq_length=config.max_seq_length,
        **config.description(),
    )
    from keras_bert_impl.serving.export import export_saved_model  # after the model is found

    result = export_saved_model(served, opened, config.output_dir, config.verify)
    print(f"{config.output_dir}: {result.size / 1e6:.1f} MB, with client.py, which sends texts")
    for name, (inputs, outputs) in result.signatures.items():
        print(f"  {name}: {', '.join(inputs)} -> {', '.join(outputs)}")
    if result.verification:
        print(
            f"Loaded again: {result.verification.calls} calls, largest difference "
            f"{result.verification.largest_difference:.1e}.\n"
            f"A call of {result.verification.timed} with a row of 32 tokens takes "
            f"{result.verification.milliseconds:.2f} ms there."
        )


def _run(config: ExportModelConfig) -> None:
    if config.format == "saved_model":
        export_saved(config)
        return
    from pipelines.tasks.register import open_and_serve

    opened, _ = open_and_serve(
        config.model, max_seq_length=config.max_seq_length, **config.description()
    )
    from keras_bert_impl.serving.portable_export import export_portable  # after it is found

    result = export_portable(
        opened, config.output_dir, config.format, config.max_seq_length, config.verify
    )
    print(f"{config.output_dir}: {result.size / 1e6:.1f} MB")
    print(f"  {', '.join(result.inputs)} -> {', '.join(result.outputs)}")
    if result.answers is None:
        print("  no client.py: the model takes more than texts are (positions of masks, choices)")
    else:
        print(f"  client.py: text -> {result.answers}")
    if result.largest_difference is not None:
        print(
            f"Its own runtime: largest difference {result.largest_difference:.1e}, "
            f"{result.milliseconds:.2f} ms for a row of 32 tokens."
        )


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
