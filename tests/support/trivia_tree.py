"""SQuAD's questions laid out as TriviaQA's published trees are."""

import json


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
        normalized = [alias.lower() for alias in aliases]
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
