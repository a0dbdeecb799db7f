"""The table of the tools: what each is for, its config, its job.

A module `tools/NAME.py` is a tool's manual page and two names, `FLAGS` and `main`; all else is in
its row here. `keras-bert NAME` and `python -m tools.NAME` run it.
"""

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.config_flags import ConfigFlags, add_ignored_flags, add_tpu_flags

_LABELS, _QUESTIONS = "pipelines.tasks.labels", "pipelines.tasks.questions"
_TAGGING, _CHOICES = "pipelines.tasks.tagging", "pipelines.tasks.choices"
_ANSWERING, _VECTORS = "pipelines.answering", "pipelines.vectors"


@dataclass(frozen=True)
class Tool:
    """A row of the table.

    Attributes:
        gives: what a person gets from it, a line.
        config: the config class as `module:Class`; None where the tool's module has it.
        job: `module:function` that takes the config; None where it is the function of the tool's
            name in `tools/jobs.py`, which takes the flags, too. What it gives is printed.
        continues: whether the same command continues where it was stopped.
        of_google: adds the flags that google's commands have besides.
    """

    gives: str
    config: str | None = None
    job: str | None = None
    continues: bool = False
    of_google: Callable[[ConfigFlags[Any]], None] | None = None


_trainer = functools.partial(Tool, continues=True, of_google=add_tpu_flags)
_SERVING = f"{_ANSWERING}.serving:ServeConfig"

GROUPS: Mapping[str, Mapping[str, Tool]] = {
    "Use a model": {
        "predict": Tool(
            "the answers of any model to texts of a line or a file",
            f"{_ANSWERING}.config:PredictConfig",
        ),
        "fill_mask": Tool(
            "the words that fit a masked text",
            f"{_ANSWERING}.named:FillMaskConfig",
            f"{_ANSWERING}.named:fill_mask",
        ),
        "answer": Tool(
            "the answers to a question in a text",
            f"{_ANSWERING}.named:AnswerConfig",
            f"{_ANSWERING}.named:answer",
        ),
        "serve": Tool(
            "models behind HTTP: TensorFlow Serving's form, OpenAI's embeddings",
            _SERVING,
            f"{_ANSWERING}.serving:serve_models",
        ),
        "playground": Tool("a page to try a model on", _SERVING),
        "embed": Tool("a vector for each text", f"{_VECTORS}.options:EmbedConfig", continues=True),
        "similar": Tool(
            "the texts that are nearest to a text", f"{_VECTORS}.options:SimilarConfig"
        ),
        "explain": Tool(
            "a page that shows the attention of texts",
            "keras_bert_impl.serving.page.explain:ExplainConfig",
        ),
        "extract_features": Tool(
            "the vectors of all tokens, of any layers",
            f"{_VECTORS}.options:FeaturesConfig",
            of_google=add_ignored_flags,
        ),
    },
    "Fine-tune it on labelled text": {
        "run_classifier": _trainer(
            "labels, several labels, numbers, pairs; GLUE", f"{_LABELS}.options:RunClassifierConfig"
        ),
        "run_squad": _trainer(
            "answers found in passages; SQuAD, KorQuAD, TriviaQA",
            f"{_QUESTIONS}.options:RunSquadConfig",
        ),
        "run_ner": _trainer(
            "named entities, and any tags of words", f"{_TAGGING}.options:RunNerConfig"
        ),
        "run_swag": _trainer(
            "the ending that follows a text; SWAG", f"{_CHOICES}.options:RunSwagConfig"
        ),
    },
    "Export it": {
        "export_saved_model": Tool(
            "a SavedModel that takes texts or ids", "keras_bert_impl.serving.config:ExportConfig"
        ),
        "export_model": Tool(
            "the same, ONNX, OpenVINO or LiteRT, with a client",
            "keras_bert_impl.serving.config:ExportModelConfig",
        ),
        "convert_checkpoint": Tool(
            "google's TF1 checkpoint from or to a Hugging Face directory",
            "keras_bert_impl.checkpoints.convert:ConvertConfig",
            "keras_bert_impl.checkpoints.convert:convert_checkpoint",
        ),
        "grow_vocabulary": Tool(
            "a model that knows more words", "keras_bert_impl.checkpoints.grow:GrowConfig"
        ),
    },
    "Pre-train on your own text": {
        "split_sentences": Tool(
            "documents to sentences", "pipelines.corpora.split_sentences:SplitSentencesConfig"
        ),
        "learn_vocabulary": Tool(
            "sentences to a vocabulary, in any language",
            "pipelines.corpora.learn_vocabulary:LearnVocabularyConfig",
        ),
        "create_pretraining_data": Tool(
            "sentences to shards", "pipelines.pretraining_data.recipe:PretrainingDataConfig"
        ),
        "inspect_pretraining_data": Tool(
            "the content of shards: examples, figures, a page",
            "pipelines.inputs.inspect:InspectConfig",
            "pipelines.inputs.inspect:inspect_pretraining_data",
        ),
        "plan_run": Tool(
            "what a run takes: memory, hours, money",
            "pipelines.runs.plan_run:PlanRunConfig",
            of_google=add_tpu_flags,
        ),
        "run_pretraining": _trainer(
            "shards to a model", "pipelines.runs.pretraining_config:RunPretrainingConfig"
        ),
        "adapt": Tool(
            "any BERT and own text to a model that knows its words",
            "pipelines.adaptation.config:AdaptConfig",
            continues=True,
        ),
    },
    "Score and submit": {
        "score_answers": Tool(
            "answers to questions, by the official rules",
            f"{_QUESTIONS}.options:ScoreAnswersConfig",
            f"{_QUESTIONS}.scores:score_answers",
        ),
        "score_tags": Tool(
            "tags, by the rules of conlleval",
            f"{_TAGGING}.options:ScoreTagsConfig",
            f"{_TAGGING}.scores:score_tags",
        ),
        "glue_submission": Tool(
            "the archive for GLUE's server", f"{_LABELS}.submission:SubmissionConfig"
        ),
    },
    "Study, check": {
        "run_ablations": Tool(
            "the tables of BERT's paper, in small",
            "pipelines.ablations.config:RunAblationsConfig",
            continues=True,
        ),
        "tokenize_text": Tool(
            "lines to tokens, exactly BERT's",
            "pipelines.corpora.tokenize_text:TokenizeTextConfig",
        ),
        "demo": Tool("all of it in small: from raw text to a model"),
    },
}
"""The tools by what a person wants to do."""

_TOOLS = {name: tool for group in GROUPS.values() for name, tool in group.items()}


def tool_names() -> list[str]:
    """The tools there are.

    Example:
        >>> "split_sentences" in tool_names()
        True
    """
    return sorted(_TOOLS)


def made(module: str, *, ends: bool = True) -> tuple[ConfigFlags[Any], Callable[..., int]]:
    """The flags and the `main` of the tool of a module, which may be the program that runs.

    Args:
        ends: whether the program runs `main` here, and ends.
    """
    this = sys.modules[module]
    name = Path(str(this.__file__)).stem
    tool = _TOOLS[name]
    flags = ConfigFlags[Any](this.__doc__, _named(str(tool.config)))
    if tool.of_google:
        tool.of_google(flags)

    def job(config: Any) -> Any:
        if tool.job:
            return _named(tool.job)(config)
        return _named(f"tools.jobs:{name}")(config, flags)

    main = flags.main_of(job, continues=tool.continues)
    if module == "__main__" and ends:
        sys.exit(main())
    return flags, main


def _named(place: str) -> Any:
    room, _, name = place.partition(":")
    return getattr(importlib.import_module(room), name)


class ToolPrograms:
    """The other tools, for one that runs some of them in its process: configs, and runs."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        """The config of a tool's job."""
        flag_set = _module(tool).FLAGS
        flag_set.parse(list(flags))
        return flag_set.config()

    def run(self, tool: str, flags: Sequence[str]) -> int:
        """Runs a tool; what it prints goes to standard error, beside what it logs."""
        with contextlib.redirect_stdout(sys.stderr):
            return run_tool(tool, flags)


def run_tool(tool: str, flags: Sequence[str]) -> int:
    """Runs a tool in this process; gives its exit code."""
    return int(_module(tool).main(list(flags)))


def _module(tool: str) -> Any:
    return importlib.import_module(f"{__package__}.{tool}")
