"""python client.py 'a text' 'another text' asks the exported model that lies beside this program.

A model of pairs is asked with two words, a question and its passage say, and one of endings with a
context and its endings. `python client.py - < lines.txt` answers each line by a line; fields of a
pair stand with a tab between them. Programs import its function `answer`.
"""

import functools
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
INPUTS = {"input_ids": "ids", "input_mask": "attention_mask", "segment_ids": "type_ids"}
BESIDE = ["settings.json", "tokenizer.json"]
MODELS = {  # what must be there, by the first file of a model
    "model.onnx": ["model.onnx", *BESIDE],
    "model.xml": ["model.xml", "model.bin", *BESIDE],
    "model.tflite": ["model.tflite", *BESIDE],
    "saved_model.pb": ["saved_model.pb", "variables/variables.index", "assets/settings.json"],
}
PACKAGES = {
    "model.onnx": "numpy tokenizers onnxruntime",
    "model.xml": "numpy tokenizers openvino",
    "model.tflite": "numpy tokenizers ai-edge-litert",
    "saved_model.pb": "tensorflow tensorflow-text",
}


def answer(texts: Any) -> Any:
    """Answers a list of texts; or of pairs, questions with passages, contexts with endings.

    A text alone, or a pair as a tuple, gets its one answer.
    """
    if isinstance(texts, (str, tuple, Mapping)):
        return answer([texts])[0]
    settings, ask = opened()
    rows = [[*one] if isinstance(one, (list, tuple)) else [one] for one in texts]
    ways = {len(names) - 1: " and ".join(names[1:]) for names in settings["asks"]}
    if not rows or not {*map(len, rows)} <= ways.keys():
        raise ValueError(f"This model is asked with {' or '.join(ways.values())}; give these.")
    if any(len(row[-1]) != settings["endings"] for row in rows if "endings" in settings):
        raise ValueError(f"This model was trained on {settings['endings']} endings; give as many.")
    outputs, kind = ask(rows), settings["answers"]
    if kind in ("label", "labels"):
        return [*zip(outputs[kind], outputs["probabilities"], strict=True)]
    if kind in ("score", "embedding"):
        return list(outputs[kind])
    return [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]


@functools.cache
def opened() -> tuple[dict[str, Any], Callable[[list[Any]], dict[str, Any]]]:
    """The export's settings and its model, every file as it was exported."""
    lines = (HERE / "SHA256SUMS").read_text("utf-8", "replace").splitlines()
    noted = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    model = next((name for name in MODELS if name in noted), "model.xml")
    for name in sorted({*MODELS[model], *noted}):
        if name not in MODELS[model] and not (HERE / name).is_file():
            continue
        if hashlib.sha256((HERE / name).read_bytes()).hexdigest() != noted.get(name):
            fault = "is not the file that SHA256SUMS is about; copy or export the model again."
            raise OSError(f"{HERE / name}: {fault}")
    if model == "saved_model.pb":
        settings = json.loads((HERE / "assets" / "settings.json").read_text(encoding="utf-8"))
        return settings, of_texts(settings)
    settings = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
    return settings, of_ids(settings, RUNTIMES[model](HERE / model))


def of_texts(settings: dict[str, Any]) -> Callable[[list[Any]], dict[str, Any]]:
    """What asks a SavedModel."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  # its kernels cut the texts

    model = tf.saved_model.load(str(HERE))

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(one) for one in value]
        return value.decode() if isinstance(value, bytes) else value

    def ask(rows: list[Any]) -> dict[str, Any]:
        found = [names for names in settings["asks"] if {len(names) - 1} == {*map(len, rows)}]
        if not found:
            raise ValueError("These are single texts and pairs of texts; give one kind at a time.")
        columns = (tf.constant(list(column)) for column in zip(*rows, strict=True))
        outputs = model.signatures[found[0][0]](**dict(zip(found[0][1:], columns, strict=True)))
        arrays = finite({name: outputs[name].numpy() for name in sorted(outputs)})
        answers = {name: plain(array.tolist()) for name, array in arrays.items()}
        if "labels" in answers:  # of those that do not hold ""
            answers["labels"] = [[one for one in row if one] for row in answers["labels"]]
        return answers

    return ask


def of_ids(
    settings: dict[str, Any], compute: Callable[[dict[str, Any]], Mapping[str, Any]]
) -> Callable[[list[Any]], dict[str, Any]]:
    """What asks a model of token ids."""
    import numpy as np
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(HERE / "tokenizer.json"))

    def encode(text: str, *pair: str) -> Any:
        parts = [tokenizer.encode(one, add_special_tokens=False) for one in (text, *pair) if pair]
        if not pair or not parts[1].ids:  # a second text without tokens is none
            return tokenizer.encode(settings.get("prompt", "") + text)
        first, second = parts  # the longer one is truncated first
        room, sizes = settings["max_seq_length"] - 3, (len(first), len(second))
        first.truncate(max(room - sizes[1], (room + 1) // 2))
        second.truncate(max(room - sizes[0], room // 2))
        return tokenizer.post_process(first, second)

    def ask(texts: list[Any]) -> dict[str, Any]:
        try:
            rows = [encode(*row) for row in texts]
        except TypeError as error:  # bytes, or half of a surrogate pair
            raise ValueError("One of these is no text that UTF-8 can hold; fix it.") from error
        if settings["long_text"] != "truncate" and any(row.overflowing for row in rows):
            raise ValueError("A text is longer than a row; only the SavedModel reads it whole.")
        longest = max(map(len, rows))
        for row in rows:
            row.pad(longest, pad_id=settings["pad_id"])
        parts = ([getattr(row, name) for row in rows] for name in INPUTS.values())
        features = {
            name: np.array(part, np.int32) for name, part in zip(INPUTS, parts, strict=True)
        }
        return answers_of(finite(compute(features)), settings)

    return ask


def answers_of(outputs: Mapping[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """A model's numbers as answers, by the names that a SavedModel gives them."""
    import numpy as np

    kind, labels = settings["answers"], settings.get("labels", [])
    logits = np.asarray(outputs.get("logits"))
    if kind == "label":
        powers = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
        shares = (powers / powers.sum(axis=-1, keepdims=True)).tolist()
        return {"label": [labels[x.argmax()] for x in logits], "probabilities": shares}
    if kind == "labels":
        shares = (1 / (1 + np.exp(-logits))).tolist()
        least = settings["threshold"]
        held = [[name for name, x in zip(labels, row, strict=True) if x >= least] for row in shares]
        return {"labels": held, "probabilities": shares}
    if kind == "score":
        return {"score": logits[:, 0].tolist()}
    return {name: x.tolist() if kind == "embedding" else x for name, x in outputs.items()}


def finite(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The outputs, after a look at each number of theirs."""
    import numpy as np

    if not all(np.isfinite(x).all() for x in outputs.values() if x.dtype.kind == "f"):
        fault = "The model gives numbers that are not finite, so it has no answer"
        raise ValueError(f"{fault}; check its weights, and export a sound model.")
    return outputs


def onnx(path: Path) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    """What computes all outputs by their names."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda features: dict(zip(names, session.run(names, features), strict=True))


def openvino(path: Path) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    """See `onnx`."""
    if "openvino" not in sys.modules:  # it reports each import over the network
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino

    model = openvino.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda features: {port.any_name: x for port, x in model(features).items()}


def litert(path: Path) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    """See `onnx`."""
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(str(path)).get_signature_runner()
    return lambda features: dict(runner(**features))


RUNTIMES = {"model.onnx": onnx, "model.xml": openvino, "model.tflite": litert}


def of_command(words: list[str]) -> Iterator[tuple[str, list[Any]]]:
    """What a command line asks: texts, or one pair or context with endings; or these by lines."""
    for word in words:
        if word.startswith("--"):
            raise ValueError(f"{word} is no option; --help says what is asked, and how by a file.")
    settings, _ = opened()
    sizes = {len(names) - 1 for names in settings["asks"]}
    if words != ["-"] and 1 in sizes:
        yield "", words
        return
    # What is no UTF-8 is refused with its line, as a text.
    lines = (line.decode("utf-8-sig", "surrogateescape") for line in sys.stdin.buffer)
    rows = (line.rstrip("\r\n").split("\t", -1 if max(sizes) > 1 else 0) for line in lines)
    for number, row in enumerate(rows if words == ["-"] else [words], 1):
        where = f"line {number}: " if words == ["-"] else ""
        yield where, [(row[0], row[1:]) if "endings" in settings else row]


if __name__ == "__main__":
    if len(sys.argv) == 1 or {"-h", "--help"} & {*sys.argv[1:]}:
        (sys.stdout if sys.argv[1:] else sys.stderr).write(str(__doc__))
        sys.exit(0 if sys.argv[1:] else 2)
    where = ""
    try:
        for where, some in of_command(sys.argv[1:]):  # noqa: B007 (for what fails)
            sys.stdout.writelines(f"{one}\n" for one in answer(some))
    except ModuleNotFoundError as error:
        needed = next(PACKAGES[name] for name in MODELS if (HERE / name).is_file())
        sys.exit(f"The package {error.name} is not installed; pip install {needed}")
    except (OSError, ValueError) as error:
        sys.exit(f"{where}{error}")
