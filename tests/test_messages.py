"""What a message tells its reader to give is there: its parameters are flags of the tool."""

import ast
import functools
import re
from pathlib import Path

from tools.table import tool_named, tool_names

ROOT = Path(__file__).resolve().parent.parent

TOOLS_OF = {
    "pipelines/answering": ["predict", "serve", "playground", "explain", "fill_mask", "answer"],
    "pipelines/corpora/learn_vocabulary.py": ["learn_vocabulary"],
    "pipelines/corpora/split_sentences.py": ["split_sentences"],
    "pipelines/corpora/tokenize_text.py": ["tokenize_text"],
    "pipelines/fine_tuning/teaching": ["distill"],
    "pipelines/fine_tuning": [
        *("run_classifier", "run_embedder", "run_ner", "run_reranker", "run_squad", "run_swag")
    ],
    "pipelines/pretraining_data": ["create_pretraining_data", "inspect_pretraining_data"],
    "pipelines/runs": ["run_pretraining", "plan_run"],
    "pipelines/studies/ablations.py": ["run_ablations"],
    "pipelines/studies/adapt": ["adapt", "run_classifier"],  # the flags of `task` are in its room
    "pipelines/studies/distill.py": ["distill"],
    "pipelines/tasks/choices": ["run_swag"],
    "pipelines/tasks/labels": ["run_classifier", "glue_submission"],
    "pipelines/tasks/questions": ["run_squad", "score_answers"],
    "pipelines/tasks/tagging": ["run_ner", "score_tags"],
    "pipelines/tasks/vectors": ["run_embedder", "run_reranker"],
    "pipelines/vectors": ["embed", "similar", "search", "extract_features"],
}
"""The tools that show the messages of a room; of the other rooms any tool may."""

OTHER_NAMES = {
    *("answer_start", "endings", "id", "id2label", "spans"),  # entries of files
    *("dimensions", "examples", "inputs", "instances", "signature_name"),  # fields of requests
    *("documents", "encoding_format", "positive_label", "truncate"),
    *("from_pretrained", "models", "text", "texts"),  # of the library, and a table of a study
    *tool_names(),
}
"""What stands in backticks and is no parameter of a tool."""

MODULES = [
    path.relative_to(ROOT).as_posix()
    for house in ("keras_bert_impl", "pipelines")
    for path in sorted((ROOT / house).rglob("*.py"))
]


@functools.cache
def messages(code):
    """The texts in code that a user may read: its strings, but for docstrings."""
    nodes, found = [*ast.walk(ast.parse(code))], []
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        skipped |= {id(part) for part in parts if part is not node}
        texts = [part.value if isinstance(part, ast.Constant) else "…" for part in parts]
        if id(node) not in skipped and all(isinstance(text, str) for text in texts):
            found.append("".join(texts))
    return found


def parameters(code):
    """The names in backticks, alone or with a value."""
    found = (re.findall(r"`([a-z][a-z0-9_]*)(?:=[^`]*)?`", text) for text in messages(code))
    return {name for names in found for name in names}


def flags_of(module):
    """The flags of the tools that show a module's messages."""
    rooms = [tools for room, tools in TOOLS_OF.items() if module.startswith(room)]
    return set().union(*(tool_named(name).flags.names() for name in (rooms or [tool_names()])[0]))


def test_parameters_are_found_in_parts_of_a_text_but_not_in_docstrings():
    code = 'def f():\n    "`a`"\n    g(f"`b={1}`, or `c`"\n      " and `d=2`")'
    assert parameters(code) == {"b", "c", "d"}


def test_a_message_names_flags_that_the_tool_has():
    asked = {one: parameters((ROOT / one).read_text(encoding="utf-8")) for one in MODULES}
    unknown = {one: names - OTHER_NAMES - flags_of(one) for one, names in asked.items()}
    assert {one: names for one, names in unknown.items() if names} == {}
    assert sum(map(len, asked.values())) > 200


def test_a_command_in_a_message_is_a_tool_with_its_flags():
    for module in MODULES:
        text = "\n".join(messages((ROOT / module).read_text(encoding="utf-8")))
        for tool, flags in re.findall(r"\b(\w+)((?: --\w+(?:=\S+)?)+)", text):
            if tool in tool_names():
                unknown = set(re.findall(r"--(\w+)", flags)) - tool_named(tool).flags.names()
                assert not unknown, f"{module}: {tool} has no {unknown}"
