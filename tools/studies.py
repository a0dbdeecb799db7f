"""The tools that score answers, make studies and show what there is."""

import sys
from collections.abc import Iterator
from typing import Any

from tools.config_flags import ConfigFlags, add_recipe
from tools.table import SCORE, STUDY, ToolPrograms, tool, written


@tool(
    SCORE,
    "pipelines.tasks.questions.options:ScoreAnswersConfig",
    "pipelines.tasks.questions.scores:score_answers",
)
def score_answers() -> None:
    """Scores answers as the official scripts of SQuAD, KorQuAD and TriviaQA do.

    They may be any system's. Each figure comes with its 95 % interval (bootstrap over articles). A
    file of TriviaQA is recognised by its content, and its evidence is not needed.

    Example:
      keras-bert score_answers --data_file=dev-v2.0.json --predictions_file=predictions.json
          --null_odds_file=null_odds.json --version_2_with_negative
    """


@tool(
    SCORE,
    "pipelines.tasks.tagging.options:ScoreTagsConfig",
    "pipelines.tasks.tagging.scores:score_tags",
)
def score_tags() -> None:
    """Scores predicted tags as conlleval does, with intervals.

    run_ner writes dev_predictions.txt: the file's own columns and the predicted tag. The 95 %
    intervals are from the bootstrap over documents (or sentences, if there is no line -DOCSTART-).

    Example:
      keras-bert score_tags --predictions_file=run/dev_predictions.txt
    """


@tool(SCORE, "pipelines.tasks.labels.glue:SubmissionConfig")
def glue_submission(config: Any, _: ConfigFlags) -> Iterator[str]:
    """Puts answers to GLUE's test sets into the archive that its server takes.

    Collects CoLA.tsv, MNLI-m.tsv, AX.tsv and so on from output folders of run_classifier, checks
    them, and says which of the eleven files are missing.

    Example:
      keras-bert glue_submission --run_dir=glue_runs --output_file=submission.zip
    """
    from pipelines.tasks.labels.glue import ROWS, write_submission_archive

    found = write_submission_archive(config)
    yield from (f"{name:8} {path}" for name, path in found.items())
    if missing := [f"{name}.tsv" for name in ROWS if name not in found]:
        yield f"missing: {', '.join(missing)}; the server wants all eleven files"
    yield f"wrote {config.output_file}"


@tool(
    STUDY,
    "pipelines.studies.recipe:RunAblationsConfig",
    continues=True,
    more_flags=add_recipe,
    compiles=True,
)
def run_ablations(config: Any, _: ConfigFlags) -> Iterator[str]:
    """Makes the tables of the BERT paper's ablations in small: 5, 6 and 8 and the figure of steps.

    A recipe, which is a flag file, names the text, the sizes, the tasks and the seeds. Every run is
    a command of its own that the report lists with its seeds and its time; what tables share is run
    once. The same command again leaves finished runs alone and goes on with the one that was
    stopped or killed. First of all BERT is compared with random weights: a task on which it is no
    better shows nothing. The output folder gets ablations.md (the tables), ablations.json,
    steps.png and, in cells/, what each run left.

    Examples:
      keras-bert run_ablations --recipe=tools/recipes/ablations_small.cfg --data_dir=data
          --output_dir=ablations --dry_run
      keras-bert run_ablations --recipe=tools/recipes/ablations_small.cfg --data_dir=data
          --output_dir=ablations
    """
    from pipelines.studies.ablations import run_ablations

    lines, files = run_ablations(config, ToolPrograms())
    yield from lines
    yield from written(files)


@tool(STUDY, "pipelines.corpora.tokenize_text:TokenizeTextConfig")
def tokenize_text(config: Any, _: ConfigFlags) -> None:
    """Splits lines into WordPiece tokens: lines in, JSON lines with `tokens` and `ids` out.

    Examples:
      keras-bert tokenize_text --vocab_file=vocab.txt --do_lower_case --input_file=text.txt
      echo 'Some text.' | keras-bert tokenize_text --vocab_file=vocab.txt --offsets=characters
    """
    from pipelines.corpora.tokenize_text import run_tokenize_text

    run_tokenize_text(config, sys.stdout)


@tool(STUDY, "tools.demo:DemoConfig", ":run_demo", continues=True, compiles=True)
def demo() -> None:
    """Does the whole main job on real text: from sentences to a model that fills in masked words.

    The text is the documentation that Python itself ships, so nothing is downloaded. Every step is
    one of the other tools; its command is shown before it runs and can be typed by hand. After a
    stop the same command continues.

    Example:
      keras-bert demo --output_dir=demo
    """
