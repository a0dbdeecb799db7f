"""The card of a model: `README.md` with the front matter that the Hugging Face hub reads.

Whoever finds the folder reads what it is, how it was trained, what its figures are worth and how it
is used. A card that a person edited stays as it is: the last line of ours holds its digest.
"""

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.config import BertConfig, architecture_of
from keras_bert_impl.errors import escaped
from keras_bert_impl.files import open_whole, read_small
from keras_bert_impl.tokenization.text_settings import TextSettings

CARD_FILE = "README.md"
_MARK = re.compile(r"<!-- written by keras_bert_impl, sha256 ([0-9a-f]{64}) -->\n\Z")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_MOST_LABELS = 100
_USE = re.compile(r"^## Use\n\nIn this folder; .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_PACKAGES = ("keras", "tensorflow")
_SIMILARITY, _SENTENCE_TRANSFORMERS = "sentence-similarity", "sentence-transformers"


class _Kind(NamedTuple):
    """What a model of one architecture is for, as the hub says it and in words, and its use."""

    pipeline: str
    words: str
    here: str = 'print(kb.Predictor.from_pretrained(".")(["a text"]))'


_MASKED = 'print(kb.Predictor.from_pretrained(".")(["a [MASK] text"]))'
_KINDS = {  # transformers calls the classes that open them AutoModelFor…
    "BertForSequenceClassification": _Kind("text-classification", "classes of texts"),
    "BertForTokenClassification": _Kind("token-classification", "tags of words"),
    "BertForQuestionAnswering": _Kind(
        "question-answering",
        "answers in a passage",
        'print(kb.Predictor.from_pretrained(".")([{"question": "Who?", "passage": "It is I."}]))',
    ),
    "BertForMultipleChoice": _Kind(
        "multiple-choice", "choices among endings", 'model = kb.open_model(".").model'
    ),
    "BertForMaskedLM": _Kind("fill-mask", "masked words", _MASKED),
    "BertForPreTraining": _Kind("fill-mask", "masked words and next sentences", _MASKED),
}
_THEIRS = """```python
import transformers

model = transformers.AutoModel{}.from_pretrained(".")
```

"""
_VECTORS = ("vectors of texts", 'print(kb.Embedder.from_pretrained(".").embed(["a text"]))')
_ENCODER, _SENTENCES = (_Kind(one, *_VECTORS) for one in ("feature-extraction", _SIMILARITY))


@dataclasses.dataclass(frozen=True)
class TrainingFacts:
    """What a training run adds to a card; the figures are those of held-out data."""

    flags: str = ""
    base_model: str = ""
    steps: int = 0
    hours: float = 0.0
    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    guesses: Mapping[str, float] = dataclasses.field(default_factory=dict)


def edited_card(folder: Path) -> str | None:
    """The card of a folder where a person wrote or edited it; None where it may be replaced."""
    path = folder / CARD_FILE
    card = None if path.is_symlink() else read_card(path)  # what a link leads to is not ours
    mark = card and _MARK.search(card)
    ours = card and mark and mark[1] == _digest(card[: mark.start()])
    return None if ours else card


def read_card(path: Path) -> str | None:
    """The text of a card; None where there is no plain file."""
    if not path.is_file():
        return None
    content = read_small(path, 4, "no card needs; shorten it", stream_or_empty=True)
    return content.decode("utf-8", "surrogateescape")


def sealed_card(card: str) -> str:
    """A card with the line that says that nobody has edited it since."""
    body = _MARK.sub("", card)
    body = body if body.endswith("\n") else f"{body}\n"
    return f"{body}<!-- written by keras_bert_impl, sha256 {_digest(body)} -->\n"


def write_card(folder: Path, card: str) -> None:
    """Writes a card, unless a person has edited the one that is there."""
    if edited_card(folder) is None:
        with open_whole(folder / CARD_FILE, "wb") as file:
            file.write(card.encode("utf-8", "surrogateescape"))


def model_card(
    config: BertConfig,
    text: TextSettings,
    facts: TrainingFacts | None = None,
    *,
    sentences: bool = False,
) -> str:
    """The card of a model; the same model has the same, whatever its folder is called."""
    facts = facts or TrainingFacts()
    kind = _SENTENCES if sentences else _KINDS.get(architecture_of(config), _ENCODER)
    parts = [
        f"---\n{_front_matter(kind, config, facts)}\n---\n",
        f"# BERT for {kind.words}\n",
        _description(config, text),
        _labels(config),
        _figures(facts),
        _training(facts),
        _use(kind, config),
        "## Licence\n\nNot said yet: add `license: …` to the front matter, and say here what the "
        "model may be used for.\n",
    ]
    return sealed_card("\n".join(filter(None, parts)))


def export_card(card: str, use: str) -> str:
    """The card of a model beside an export of it, which is used otherwise."""
    body, found = _USE.subn(lambda _: f"{use}\n", _MARK.sub("", card), count=1)
    body = re.sub(r"(?m)(?<=^library_name: )[\w-]*transformers$", "keras_bert_impl", body, count=1)
    return sealed_card(body if found else f"{body}\n{use}")


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()


def _is_theirs(config: BertConfig) -> bool:
    """Whether transformers computes what the model does."""
    return config.to_hugging_face().get("model_type") == "bert"


def _front_matter(kind: _Kind, config: BertConfig, facts: TrainingFacts) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    results = [
        EvalResult(
            task_type=kind.pipeline,
            dataset_type="own",
            dataset_name="held-out data of the run",
            metric_type=figure.removeprefix("eval_"),
            metric_value=value,
        )
        for figure, value in facts.figures.items()
    ]
    # The form of the files is transformers' own, whose classes open them, too.
    library, tags = "transformers" if _is_theirs(config) else "keras_bert_impl", list[str]()
    if kind is _SENTENCES:
        tags = [_SIMILARITY, "feature-extraction"]
        if _is_theirs(config):
            library, tags = _SENTENCE_TRANSFORMERS, [_SENTENCE_TRANSFORMERS, *tags]
    data = ModelCardData(
        library_name=library,
        pipeline_tag=kind.pipeline,
        tags=[*tags, "bert", "keras", "tensorflow", "keras_bert_impl"],
        base_model=facts.base_model if _HUB_NAME.fullmatch(facts.base_model) else None,
        model_name=f"BERT for {kind.words}" if results else None,
        eval_results=results or None,
    )
    return str(data.to_yaml()).strip()


def _description(config: BertConfig, text: TextSettings) -> str:
    casing = "uncased" if text.do_lower_case else "cased"
    return (
        f"{config.num_hidden_layers} layer{'s' * (config.num_hidden_layers > 1)} of width "
        f"{config.hidden_size}, {config.num_attention_heads} heads, {len(text.vocabulary):,} "
        f"tokens ({casing}), {config.max_position_embeddings} positions.\n"
    )


def _labels(config: BertConfig) -> str:
    names = config.extra.get("id2label")
    if not isinstance(names, Mapping) or not names:
        return ""
    shown = [f"`{_plain(name)}`" for name in list(names.values())[:_MOST_LABELS]]
    more = f" and {len(names) - _MOST_LABELS} more" if len(names) > _MOST_LABELS else ""
    return f"## Labels\n\n{', '.join(shown)}{more}\n"


def _plain(name: Any) -> str:
    """A name from elsewhere, of which nothing is markup inside of backquotes."""
    return " ".join(escaped(str(name)).split()).replace("`", "'")


def _figures(facts: TrainingFacts) -> str:
    if not facts.figures:
        return ""
    lines = ["## Figures", "", "| figure | this model | guessing reaches |", "|---|---|---|"]
    for name, value in sorted(facts.figures.items()):
        guess = f"{facts.guesses[name]:.4g}" if name in facts.guesses else ""
        lines.append(f"| {name} | {value:.6g} | {guess} |")
    return "\n".join(lines) + "\n"


def _training(facts: TrainingFacts) -> str:
    if not facts.flags:
        return ""
    start = f"from `{_plain(facts.base_model)}`" if facts.base_model else "from random weights"
    longest = max(map(len, re.findall("`+", facts.flags)), default=0)
    fence = "`" * max(3, longest + 1)
    hours = f" in {facts.hours:.2g} hours (the steps alone)" if facts.hours else ""
    versions = ", ".join(f"{name} {_version(name)}" for name in ("keras_bert_impl", *_PACKAGES))
    return (
        f"## Training\n\n{facts.steps:,} steps {start}{hours}, with {versions}.\n\n"
        f"{fence}\n{facts.flags.strip()}\n{fence}\n"
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of an unknown version"


def _use(kind: _Kind, config: BertConfig) -> str:
    has_head = kind is not _ENCODER and kind is not _SENTENCES
    head = architecture_of(config).removeprefix("Bert") if has_head else ""
    theirs = _THEIRS.format(head) if _is_theirs(config) else ""
    return f"""## Use

In this folder; elsewhere "." is its path, or its name on the hub.

```python
import keras_bert_impl as kb

{kind.here}
```

{theirs}```
keras-bert export_model --model=. --output_dir=served
python served/client.py --help
```
"""
