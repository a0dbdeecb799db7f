"""Questions laid out as TriviaQA's published trees are: in qa/, with texts in evidence/.

Nothing says where an answer stands, so training has to find it. RESULTS.md compares a model that
was trained on a set in SQuAD's form with one that was trained on the same set in this layout:

  python -m tests.support.trivia_tree train-v1.1.json trivia
  keras-bert run_squad --train_file=trivia/qa/wikipedia-train.json --evidence_words=1000
      --predict_file=dev-v1.1.json --init_checkpoint=run/model --output_dir=as_trivia --do_train
      --do_eval
"""

import json
import sys
from itertools import groupby
from pathlib import Path

from pipelines.metrics.question_answering import trivia_words
from pipelines.tasks.questions.files import read_questions


def write_trivia(folder, questions, domain="Wikipedia", name="wikipedia-train", **more):
    """Writes both folders of (identifier, question, aliases, {file: text}); gives qa's file."""
    pages, where = (
        ("EntityPages", "wikipedia") if domain == "Wikipedia" else ("SearchResults", "web")
    )
    data = []
    for identifier, question, aliases, documents in questions:
        for file, text in documents.items():
            path = folder / "evidence" / where / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_bytes(text.encode())
        normalized = list(dict.fromkeys(" ".join(trivia_words(alias)) for alias in aliases))
        data.append(
            {
                "Answer": {
                    "Aliases": aliases,
                    "NormalizedAliases": normalized,
                    "Value": aliases[0],
                },
                pages: [{"Filename": file, "Title": file} for file in documents],
                "Question": question,
                "QuestionId": identifier,
            }
        )
    (folder / "qa").mkdir(parents=True, exist_ok=True)
    path = folder / "qa" / f"{name}.json"
    content = {"Data": data, "Domain": domain, "VerifiedEval": False, **more}
    path.write_text(json.dumps(content))
    return path


def write_squad_as_trivia(source, folder, name="wikipedia-train"):
    """Every passage becomes a document of Wikipedia's part, every right answer an alias."""
    questions = list(read_questions(source, version_2_with_negative=False))
    passages = groupby(questions, key=lambda question: id(question.passage))
    rows = [
        (
            one.identifier,
            one.text,
            list(dict.fromkeys(answer.text for answer in one.answers)),
            {f"{name}-{number}.txt": one.passage.text},
        )
        for number, (_, asked) in enumerate(passages, start=1)
        for one in asked
    ]
    return write_trivia(folder, rows, name=name)


if __name__ == "__main__":
    write_squad_as_trivia(*map(Path, sys.argv[1:]))
