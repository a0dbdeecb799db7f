"""Times the features of questions, the original's and transformers' as well; asks long passages.

Each contender is a fresh process on one core, and reads a file in SQuAD's form to train on:
  ours          reads, tokenizes and writes rows to shards, as run_squad does; the whole file
  transformers  the fast tokenizer with offsets, then the answers' positions, a thousand questions
                at a time, as its example scripts do; nothing is written
  original      google-research/bert's read_squad_examples and convert_examples_to_features, written
                to TFRecords as it writes them (--bert_source names a folder with its files)
The last two get --sample questions of the file, whole articles; their cost is linear. Imports and
the tokenizer's start are not counted. Seconds are those of the processor, which other programs on
the machine change little.

Then a model with random weights (--model_size) is asked about passages of so many tokens as
--passage_tokens says; what counts is the memory.

Example:
  python -m tools.benchmarks.questions --train_file=train-v1.1.json --model=all-MiniLM-L6-v2
      --bert_source=bert
"""

import importlib
import json
import os
import sys
import tempfile
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from keras_bert_impl.options import REQUIRED, check_options, option
from tools.benchmarks.measuring import (
    LeftOutError,
    Table,
    cores,
    in_child,
    in_turns,
    peak_bytes,
    show_json,
)
from tools.config_flags import ConfigFlags


@dataclass(frozen=True, kw_only=True)
class QuestionsConfig:
    """The options of the timing."""

    train_file: Path = option(REQUIRED, "Questions in SQuAD's form, plain or packed.")
    model: Path = option(REQUIRED, "A Hugging Face directory, for its vocabulary and casing.")
    bert_source: Path | None = option(None, "A folder with google-research/bert's files.")
    contenders: tuple[str, ...] = option(("ours", "transformers", "original"), "Whom to time.")
    sample: int = option(2000, "Questions for the other two, about so many.", at_least=1)
    max_seq_length: int = option(384, "The most tokens of a row.", at_least=5)
    doc_stride: int = option(128, "Tokens from one window to the next.", at_least=1)
    max_query_length: int = option(64, "The most tokens of a question.", at_least=1)
    model_size: str = option("tiny", "The published size that answers about long passages.")
    passage_tokens: tuple[int, ...] = option((1000, 10000, 100000), "How long these are.")
    child: str | None = option(None, "Internal: what this process is to measure.")

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, QuestionsConfig)

_AT_ONCE = 1000


def sampled(content: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Some articles of a file, from all over it, with about so many questions.

    Example:
        >>> articles = [{"title": n, "paragraphs": [{"qas": [1, 2]}]} for n in range(10)]
        >>> [one["title"] for one in sampled({"data": articles}, 4)["data"]]
        [0, 5]
    """
    articles = content["data"]
    sizes = [sum(len(part["qas"]) for part in one["paragraphs"]) for one in articles]
    wanted = min(len(articles), max(1, round(len(articles) * count / sum(sizes))))
    return {"version": content.get("version", "1.1"), "data": articles[:: len(articles) // wanted]}


def our_features(config: QuestionsConfig, file: Path, folder: Path) -> tuple[int, float]:
    """Writes all rows of a file to shards; gives the questions and the seconds."""
    from keras_bert_impl.checkpoints.model_source import find_model
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from pipelines.fine_tuning.task_data import TaskData
    from pipelines.tasks.questions.task import QuestionTask

    text = find_model(str(config.model)).text
    tokenizer = Tokenizer(text)
    tokenizer.encode_lines_with_spans(["ready"])
    task = QuestionTask(
        text,
        train_file=file,
        doc_stride=config.doc_stride,
        max_query_length=config.max_query_length,
    )
    start = time.process_time()
    rows = TaskData(task, tokenizer, config.max_seq_length, folder).rows(task.train_split)
    return rows.num_examples, time.process_time() - start


def original_features(config: QuestionsConfig, file: Path, folder: Path) -> tuple[int, float]:
    """The same with the original's own code, unmodified, under TensorFlow 2's compat.v1."""
    import tensorflow as tf2

    tf = tf2.compat.v1
    tf.python_io = types.SimpleNamespace(TFRecordWriter=tf2.io.TFRecordWriter)
    sys.modules["tensorflow"] = tf
    sys.path.insert(0, str(config.bert_source))
    run_squad, tokenization = map(importlib.import_module, ("run_squad", "tokenization"))
    tf.flags.FLAGS(["run_squad"], known_only=True)  # its functions read them
    tf.logging.set_verbosity(tf.logging.ERROR)
    tokenizer = tokenization.FullTokenizer(str(config.model / "vocab.txt"), do_lower_case=True)
    start = time.process_time()
    examples = run_squad.read_squad_examples(str(file), is_training=True)
    writer = run_squad.FeatureWriter(str(folder / "train.tfrecord"), is_training=True)
    run_squad.convert_examples_to_features(
        examples,
        tokenizer,
        config.max_seq_length,
        config.doc_stride,
        config.max_query_length,
        is_training=True,
        output_fn=writer.process_feature,
    )
    writer.close()
    return len(examples), time.process_time() - start


def transformers_features(config: QuestionsConfig, file: Path, folder: Path) -> tuple[int, float]:
    """The same with the fast tokenizer of transformers; nothing is written."""
    del folder
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(config.model))
    count, start = 0, time.process_time()
    questions = _plain_questions(file)
    while some := list(islice(questions, _AT_ONCE)):
        count += len(some)
        found = tokenizer(
            [one["question"].lstrip() for one in some],
            [one["context"] for one in some],
            truncation="only_second",
            max_length=config.max_seq_length,
            stride=config.doc_stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding="max_length",
        )
        owners = found.pop("overflow_to_sample_mapping")
        offsets = found.pop("offset_mapping")
        positions = [
            span_of(found.sequence_ids(row), spans, found["input_ids"][row], tokenizer, some[owner])
            for row, (owner, spans) in enumerate(zip(owners, offsets, strict=True))
        ]
        found["start_positions"] = [first for first, _ in positions]
        found["end_positions"] = [last for _, last in positions]
    return count, time.process_time() - start


def span_of(
    sides: Sequence[int | None],
    spans: Sequence[tuple[int, int]],
    ids: Sequence[int],
    tokenizer: Any,
    question: Mapping[str, Any],
) -> tuple[int, int]:
    """The answer's first and last token in a window; those of [CLS] where it is not inside."""
    nowhere = ids.index(tokenizer.cls_token_id)
    answer = question["answers"][0]
    begins, ends = answer["answer_start"], answer["answer_start"] + len(answer["text"])
    first, last = sides.index(1), len(sides) - 1
    while sides[last] != 1:
        last -= 1
    if spans[first][0] > begins or spans[last][1] < ends:
        return nowhere, nowhere
    while first < len(spans) and spans[first][0] <= begins:
        first += 1
    while spans[last][1] >= ends:
        last -= 1
    return first - 1, last + 1


def _plain_questions(file: Path) -> Iterator[dict[str, Any]]:
    for article in json.loads(file.read_bytes())["data"]:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                yield {**entry, "context": paragraph["context"]}


def ask_long_passage(config: QuestionsConfig, tokens: int, folder: Path) -> dict[str, float]:
    """Asks a model with random weights about a long passage; gives seconds and memory."""
    from keras_bert_impl.checkpoints.model_directory import write_model_directory
    from keras_bert_impl.checkpoints.model_source import find_model
    from keras_bert_impl.checkpoints.task_settings import with_task_settings
    from keras_bert_impl.config import named_config
    from keras_bert_impl.models.token_models import BertSpanLabeler
    from pipelines.tasks.questions.task import QuestionTask
    from pipelines.tasks.register import open_and_serve

    text = find_model(str(config.model)).text
    names = ("max_seq_length", "doc_stride", "max_query_length")
    settings = {name: vars(config)[name] for name in names}
    model = named_config(config.model_size, len(text.vocabulary))
    model = with_task_settings(model, {"task": QuestionTask.name, **settings})
    write_model_directory(folder / "model", BertSpanLabeler(model), text)
    _, served = open_and_serve(folder / "model")
    words = [word for word in text.vocabulary.tokens if word.isalpha()][-997:]
    passage = " ".join((words * (tokens // len(words) + 1))[:tokens])

    def ask(about: str) -> None:
        served.call("serving_default", {"question": ["Where is it?"], "passage": [about]})

    ask(passage[:1000])
    before, start = _peak_mib(), time.process_time()
    ask(passage)
    return {"seconds": time.process_time() - start, "before": before, "peak_mib": _peak_mib()}


CONTENDERS = {
    "ours": our_features,
    "transformers": transformers_features,
    "original": original_features,
}


_CHILDREN_NEED = (
    *("model", "bert_source", "sample", "max_seq_length"),
    *("doc_stride", "max_query_length", "model_size"),
)


def _peak_mib() -> float:
    return peak_bytes() / 2**20


def _measure_here(config: QuestionsConfig, what: str) -> dict[str, Any]:
    """Runs in a child process."""
    os.sched_setaffinity(0, cores()[:1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if what not in CONTENDERS:
            return ask_long_passage(config, int(what), folder)
        count, seconds = CONTENDERS[what](config, config.train_file, folder)
    return {"questions": count, "seconds": seconds, "peak_mib": _peak_mib()}


def _in_a_process(config: QuestionsConfig, what: str, train_file: Path) -> dict[str, Any]:
    if what == "original" and config.bert_source is None:
        raise LeftOutError("it needs --bert_source")
    given = asdict(config)
    flags = [f"--{name}={given[name]}" for name in _CHILDREN_NEED if given[name] is not None]
    return in_child(
        "tools.benchmarks.questions",
        {"what": what},
        *flags,
        f"--train_file={train_file}",
        TOKENIZERS_PARALLELISM="false",
    )


def _run(config: QuestionsConfig) -> None:
    from pipelines.corpora.unpacking import open_unpacked

    if config.child:
        show_json(_measure_here(config, **json.loads(config.child)))
        return
    with tempfile.TemporaryDirectory() as name:
        part = Path(name) / "part.json"
        with open_unpacked(str(config.train_file)) as file:
            part.write_text(json.dumps(sampled(json.loads(file.read()), config.sample)))
        files = {one: config.train_file if one == "ours" else part for one in config.contenders}
        files |= {str(tokens): part for tokens in config.passage_tokens}
        ways = {what: partial(_in_a_process, config, what, file) for what, file in files.items()}
        found = in_turns(ways)
    _show(found)


def _show(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    columns = {"questions": ",", "seconds": ".1f", "questions/s": ",.0f", "MiB": ".0f"}
    table, rows = Table({"contender": "", **columns}, first=13), []
    for what, (figures,) in found.items():
        if what in CONTENDERS:
            rate = figures["questions"] / figures["seconds"]
            rows.append({"contender": what, **figures, "questions_per_second": rate})
            table.row(what, figures["questions"], figures["seconds"], rate, figures["peak_mib"])
        else:
            rows.append({"passage_tokens": int(what), **figures})
            print(
                f"a passage of {int(what):,} tokens: {figures['seconds']:.1f} s, "
                f"{figures['peak_mib']:.0f} MiB ({figures['before']:.0f} before)"
            )
    show_json({"benchmark": "questions", "rows": rows})


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
