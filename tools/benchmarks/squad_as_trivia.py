"""Writes a set in SQuAD's form as TriviaQA publishes its own: questions in qa/, texts in evidence/.

Every passage becomes a document of Wikipedia's part, every right answer an alias. Nothing says any
more where an answer stands, so that training has to find it as it does in TriviaQA. A model that is
trained on either layout should answer SQuAD's dev set equally well.

Example:
  python -m tools.benchmarks.squad_as_trivia --input_file=train-v1.1.json --output_dir=trivia
      --name=wikipedia-train
  keras-bert run_squad --train_file=trivia/qa/wikipedia-train.json --evidence_words=1000
      --predict_file=dev-v1.1.json --init_checkpoint=run/model --output_dir=as_trivia --do_train
      --do_eval
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.options import REQUIRED, check_options, option
from tools import command_line
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from pipelines.tasks.questions.passages import Question


@dataclass(frozen=True, kw_only=True)
class SquadAsTriviaConfig:
    """What is written, and where."""

    input_file: Path = option(REQUIRED, "Questions in SQuAD's form, all with an answer.")
    output_dir: Path = option(REQUIRED, "The folder that gets qa/ and evidence/.")
    name: str = option("wikipedia-train", "What the file in qa/ is called.")

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, SquadAsTriviaConfig)


class TriviaCounts(NamedTuple):
    """What was written.

    Attributes:
        questions: in the file in `qa/`.
        documents: files in `evidence/wikipedia/`.
        longest: the words of the longest document.
    """

    questions: int
    documents: int
    longest: int


def write_as_trivia(questions: Iterable["Question"], folder: Path, name: str) -> TriviaCounts:
    """Writes both folders.

    Args:
        questions: those of a passage stand together.
        folder: gets `qa/` and `evidence/`.
        name: of the file in `qa/`, without its ending.
    """
    pages = make_folder(make_folder(folder / "evidence") / "wikipedia")
    data: list[Mapping[str, Any]] = []
    document, written, longest = None, 0, 0
    for question in questions:
        if question.passage is not document:
            document, written = question.passage, written + 1
            longest = max(longest, len(document.text.split()))
            file = f"{name}-{written}.txt"
            (pages / file).write_bytes(document.text.encode("utf-8", "replace"))
        data.append(_entry(question, file))
    content = {"Data": data, "Domain": "Wikipedia", "VerifiedEval": False, "Version": 1.0}
    with open_whole(make_folder(folder / "qa") / f"{name}.json") as out:
        json.dump(content, out)
    return TriviaCounts(len(data), written, longest)


def _entry(question: "Question", file: str) -> Mapping[str, Any]:
    from pipelines.metrics.answer_texts import trivia_words

    aliases = list(dict.fromkeys(answer.text for answer in question.answers))
    normalized = [" ".join(trivia_words(alias)) for alias in aliases]
    answer = {
        "Aliases": aliases,
        "NormalizedAliases": list(dict.fromkeys(normalized)),
        "NormalizedValue": normalized[0] if normalized else "",
        "Type": "FreeForm",
        "Value": aliases[0] if aliases else "",
    }
    page = {"DocSource": "Search", "Filename": file, "Title": question.passage.article}
    return {
        "Answer": answer,
        "EntityPages": [page],
        "Question": question.text,
        "QuestionId": question.identifier,
        "QuestionSource": "SQuAD",
    }


def _run() -> None:
    config = FLAGS.config()
    from pipelines.tasks.questions.files import read_questions

    questions = read_questions(config.input_file, version_2_with_negative=False)
    counts = write_as_trivia(questions, config.output_dir, config.name)
    print(f"{counts.questions} questions, {counts.documents} documents")
    print(f"the longest document has {counts.longest} words; give run_squad --evidence_words")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
