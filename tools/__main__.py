"""The command `keras-bert TOOL --flags`: the same as `python -m tools.TOOL --flags`."""

import importlib
import sys
from pathlib import Path

from tools.endings import end_quietly, run_to_an_end
from tools.gone import TOOLS

# Of tools.
_PARTS = {
    *("command_line", "config_flags", "endings", "fine_tuning", "gone", "list_flags", "programs"),
    "streams",
}

_GROUPS = {
    "Use a model": {
        "predict": "the answers of any model to texts of a line or a file",
        "fill_mask": "the words that fit a masked text",
        "answer": "the answers to a question in a text",
        "serve": "models behind HTTP: TensorFlow Serving's form, OpenAI's embeddings",
        "playground": "a page to try a model on",
        "embed": "a vector for each text",
        "similar": "the texts that are nearest to a text",
        "explain": "a page that shows the attention of texts",
        "extract_features": "the vectors of all tokens, of any layers",
    },
    "Fine-tune it on labelled text": {
        "run_classifier": "labels, several labels, numbers, pairs; GLUE",
        "run_squad": "answers found in passages; SQuAD, KorQuAD, TriviaQA",
        "run_ner": "named entities, and any tags of words",
        "run_swag": "the ending that follows a text; SWAG",
    },
    "Export it": {
        "export_saved_model": "a SavedModel that takes texts or ids",
        "export_model": "the same, ONNX, OpenVINO or LiteRT, with a client",
        "convert_checkpoint": "google's TF1 checkpoint from or to a Hugging Face directory",
        "grow_vocabulary": "a model that knows more words",
    },
    "Pre-train on your own text": {
        "split_sentences": "documents to sentences",
        "learn_vocabulary": "sentences to a vocabulary, in any language",
        "create_pretraining_data": "sentences to shards",
        "inspect_pretraining_data": "the content of shards: examples, figures, a page",
        "plan_run": "what a run takes: memory, hours, money",
        "run_pretraining": "shards to a model",
        "adapt": "any BERT and own text to a model that knows its words",
    },
    "Score and submit": {
        "score_answers": "answers to questions, by the official rules",
        "score_tags": "tags, by the rules of conlleval",
        "glue_submission": "the archive for GLUE's server",
    },
    "Study, check": {
        "run_ablations": "the tables of BERT's paper, in small",
        "tokenize_text": "lines to tokens, exactly BERT's",
        "demo": "all of it in small: from raw text to a model",
    },
}
"""The tools by what a person wants to do, each with what it gives."""


def tool_names() -> list[str]:
    """The tools there are: every module of this package that is a program.

    Example:
        >>> "split_sentences" in tool_names()
        True
    """
    return sorted({file.stem for file in Path(__file__).parent.glob("[!_]*.py")} - _PARTS)


def help_text() -> str:
    """The tools in their groups, a line each."""
    width = max(map(len, tool_names()))
    lines = ["usage: keras-bert TOOL --flags   (keras-bert TOOL --help says more about one)"]
    for group, tools in _GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:{width}}  {gives}" for name, gives in tools.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the tool that the first word of the command line names."""
    end_quietly()
    return run_to_an_end(lambda _: _run(sys.argv[1:]))  # modules are imported, too


def _run(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        sys.stdout.write(help_text())
        return 0 if words else 1
    if words[0] in TOOLS:
        sys.stderr.write(f"Error: {words[0]} is gone; {TOOLS[words[0]]}.\n")
        return 1
    if words[0] not in tool_names():
        from keras_bert_impl.errors import nearest, shown

        name = nearest(words[0], tool_names())
        mean = f"did you mean {name}?" if name else "keras-bert --help lists them."
        sys.stderr.write(f"Error: there is no tool {shown(words[0])}; {mean}\n")
        return 1
    return importlib.import_module(f"{__package__}.{words[0]}").main(words[1:])


if __name__ == "__main__":
    sys.exit(main())
