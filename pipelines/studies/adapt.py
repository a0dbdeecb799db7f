"""Adapts a trained BERT to a text: the commands, one after the other, each done once.

One step is no tool: `adapt_start` chooses the words to add and makes the model that training starts
from.
"""

import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from keras_bert_impl.backend import usable_cores
from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.checkpoints.formats.peft_adapter import refuse_adapter
from keras_bert_impl.checkpoints.model_directory import check_apart, check_folder
from keras_bert_impl.checkpoints.model_source import CheckpointOptions, ModelSource, find_model
from keras_bert_impl.checkpoints.names import head_names
from keras_bert_impl.checkpoints.sources import is_google_checkpoint
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole, whole_folder, without_links
from keras_bert_impl.json_files import read_json_object
from keras_bert_impl.options import FREE, ONCE, REQUIRED, as_list_text, nested, option
from keras_bert_impl.tokenization.text_settings import NFC
from keras_bert_impl.training.learning_curve import read_guesses
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.corpora.documents import Reading, find_sources, raw_paragraphs_of, read_blocks
from pipelines.corpora.split_sentences import SplitSentencesConfig
from pipelines.studies.adapt_report import Adaptation, task_figures
from pipelines.studies.adapt_words import Cut, prepare, seems_decomposed
from pipelines.studies.commands import (
    FINE_TUNING_TOOLS,
    Command,
    Tools,
    flag,
    flags,
    given,
    once,
    overriding,
    words_of,
)

_HEADS = {"masked_lm": "masked words", "next_sentence": "next sentences"}
_HEAD_LEARNING_RATE = 1e-3
_PARTS = 20  # files of sentences, of which the last one is held out
_SAMPLE = 1000  # paragraphs whose form is looked at
# A file that unpacks to far more than a text does is known after 64 of them.
_BLOCKS_LOOKED_AT = 80


@dataclass(frozen=True, kw_only=True)
class AdaptConfig(CheckpointOptions):
    """The options of an adaptation."""

    init_checkpoint: str = option(
        REQUIRED,
        "The model to adapt: a model directory, a TF1 checkpoint (prefix or folder), a run's "
        "folder, or a name on the Hugging Face hub.",
    )
    input_file: tuple[str, ...] = option(
        (),
        "The text, as split_sentences reads it: paths, folders, glob patterns or tfds:NAME:SPLIT, "
        "separated by commas. One document of 20 is never trained on; all figures about text come "
        "from these.",
    )
    output_dir: Path = option(REQUIRED, "The folder for everything.", resume=FREE)
    num_new_tokens: int = option(
        8000, "Add at most this many tokens; 0 leaves the vocabulary as it is.", at_least=0
    )
    max_seq_length: int = option(128, "Length of an example in tokens.", at_least=5)
    max_predictions_per_seq: int = option(20, "Most masked positions of an example.", at_least=1)
    num_train_steps: int = option(10_000, "Optimizer steps at most.", at_least=1)
    train_batch_size: int = option(32, "Examples of a step.", at_least=1)
    learning_rate: float = option(
        5e-5,
        "The peak learning rate: low, because a short training does not repair what a high one "
        "breaks in a model that has learned.",
        more_than=0,
    )
    seed: int = option(
        12345, "Fixes the weights of new heads, dropout and the order of the data.", at_least=0
    )
    reading: Reading = nested(Reading)
    text_flags: str = option("", "Further flags of split_sentences (its language, say).")
    data_flags: str = option(
        "", "Further flags of create_pretraining_data (its dupe_factor, say, which is 3 here)."
    )
    pretraining_flags: str = option(
        "",
        "Further flags of run_pretraining (its precision or early_stopping_evals, say); "
        "they override ours.",
    )
    task: str | None = option(
        None,
        "A task that shows the gain: run_classifier, run_ner, run_squad or run_swag and its flags. "
        "The original and the adapted model are fine-tuned for it, with the same flags and three "
        "seeds.",
    )
    num_workers: int | None = option(
        None, "Processes for the text; by default one for each processor.", at_least=1, resume=FREE
    )
    dry_run: bool = option(
        False, "Look at all that a run looks at first, and list the commands.", resume=ONCE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.input_file:
            raise UserError("`input_file` is missing; name the text to adapt the model to.")
        if self.task is not None and (tool := words_of("task", self.task, "TOOL")[0]) not in (
            FINE_TUNING_TOOLS
        ):
            known = ", ".join(FINE_TUNING_TOOLS)
            raise UserError(f"`task={tool}`: begin with one of {known}, then its flags.")


def adapt(config: AdaptConfig, tools: Tools) -> tuple[list[str], list[Path]]:
    """Adapts a model to a text; gives the report's lines (of a dry run the commands) and files."""
    source = find_model(config.init_checkpoint, **config.description())
    refuse_adapter(source.tensors(), "`init_checkpoint`")
    missing = _missing_heads(source)
    lacks_words = "masked_lm" in missing
    planned = commands_of(config, source, config.num_new_tokens > 0, lacks_words)
    _check(config, source, planned, tools)
    if config.dry_run:
        return [f"{one.name}\n    {one}" for one in planned.values()], []
    folder = config.output_dir
    with RunDirectory.open(folder).taken():
        text, start = planned["text"], start_folder(config, source, planned["text"])
        text.figures(tools)
        asked = (config.num_new_tokens, lacks_words, config.seed, config.num_workers)
        read = partial(read_portable, str(source.checkpoint), **config.description())
        chosen = once(start, lambda: prepare(source, text.folder, start, read, *asked))
        commands = commands_of(config, source, chosen["new_tokens"] > 0, lacks_words)
        figures = {name: one.figures(tools) for name, one in commands.items()}
        original = figures.get("evaluated-original", {})
        trained = RunDirectory(commands["trained"].folder)
        tuned = [one.folder for one in commands.values() if one.tool in FINE_TUNING_TOOLS]
        of_task = [read_json_object(folder / "runs.json")["runs"] for folder in tuned]
        report = Adaptation(
            config.init_checkpoint,
            [_HEADS[one] for one in missing],
            chosen["new_tokens"],
            (taken := trained.finished_step() or 0, trained.best_step() or taken),
            {name: one for name, one in original.items() if not name.startswith(tuple(missing))},
            figures["trained"],
            {name: guess.value for name, guess in read_guesses(trained).items()},
            Cut(*chosen["before"]),
            Cut(*chosen["after"]),
            task_figures(*of_task) if of_task else [],
            [str(one) for one in commands.values()],
        )
        older = check_folder(folder / "model")
        with whole_folder(folder / "model", replaces=older) as aside:
            shutil.copytree(trained.model, aside, dirs_exist_ok=True)
        with open_whole(folder / trained.learning_curve.name, "wb") as file:
            file.write(trained.learning_curve.read_bytes())
        files = [folder / "model", *report.write(folder), folder / trained.learning_curve.name]
        return report.lines(), files


def _check(
    config: AdaptConfig, source: ModelSource, planned: Mapping[str, Command], tools: Tools
) -> None:
    """Looks at all flags, the text, the task and the folder before the first command is started."""
    check_apart(config.init_checkpoint, config.output_dir / "model")
    check_folder(config.output_dir / "model")
    for name in ("cells", "model"):
        without_links(config.output_dir / name)
    for one in planned.values():
        asked = tools.config_of(one.tool, one.arguments)
        if one.name == "text":
            _check_text(asked, source)
        elif one.name == "trained":
            source.config.check_length(asked.max_seq_length)
            if asked.training.train_hours:
                raise UserError(
                    "`pretraining_flags`: leave `train_hours` out; `num_train_steps` says how long."
                )
        elif one.name == "task-original":
            if asked.many.search:
                raise UserError("`task`: leave `search` out: it has three seeds of one setting.")
            try:
                tools.check(one.tool, one.arguments)
            except UserError as error:
                raise UserError(f"`task`: {error}") from error


def _check_text(asked: SplitSentencesConfig, source: ModelSource) -> None:
    """Looks at the beginning of the text, but not of pipes and data sets, which are read once."""
    reading, name = asked.reading, asked.input_file[0]
    sources = find_sources(asked.input_file, encoding=reading.text_encoding)
    files = [source for source in sources if Path(source.name).is_file()]
    blocks = (block for source in files for block in read_blocks(source, reading))
    sample, documents, is_open = list[str](), 0, False
    for block in itertools.islice(blocks, _BLOCKS_LOOKED_AT):
        for paragraph in raw_paragraphs_of(block, reading):
            documents += is_open and paragraph is None
            is_open = paragraph is not None
            sample += [paragraph] if paragraph and len(sample) < _SAMPLE else []
    if documents < _PARTS and len(files) == len(sources) and next(blocks, None) is None:
        raise UserError(
            f"{name}: has {documents} documents, of which one of {_PARTS} is held out; give "
            f"{_PARTS} at least (in plain text an empty line ends a document)."
        )
    if seems_decomposed(sample, source.text):
        raise UserError(
            f"{name}: its characters are in pieces (NFD: Hangul in jamo, accents beside their "
            f"letters), which {source.text.vocabulary.name} lacks, so that pieces would be added "
            "to it in place of words; give `unicode_form=nfc`."
        )


def start_folder(config: AdaptConfig, source: ModelSource, text: Command) -> Path:
    """The folder of the words to add, and of the model with them that training starts from."""
    facts = flags(input_file=text.folder, init_checkpoint=source.checkpoint)
    facts += flags(num_new_tokens=config.num_new_tokens, seed=config.seed)
    facts += given(config, CheckpointOptions)
    return Command("start", "adapt", tuple(facts), config.output_dir).folder


def commands_of(
    config: AdaptConfig, source: ModelSource, grows: bool, lacks_words: bool
) -> dict[str, Command]:
    """All commands by their names, in their order.

    The model `grows` by new tokens, or `lacks_words`: the head. The model as it came is fine-tuned
    before training begins: a mistake in the task shows then.
    """
    made: dict[str, Command] = {}

    def add(name: str, tool: str, *flags: str, **more: Any) -> Path:
        made[name] = Command(name, tool, flags, config.output_dir, **more)
        return made[name].folder

    text, original = source.text, str(source.checkpoint)
    described = given(config, CheckpointOptions)
    free = tuple(flags(num_workers=config.num_workers or usable_cores()))
    composes = text.composes or config.reading.text_encoding.composes
    form = flags(unicode_form=NFC) if composes else []
    own_text = words_of("text_flags", config.text_flags)
    add(
        "text",
        "split_sentences",
        *flags(input_file=as_list_text(config.input_file), output_dir="{out}", num_shards=_PARTS),
        *overriding(given(config.reading, Reading), form, own_text),
        free=free,
    )
    start = start_folder(config, source, made["text"]) / "model"
    lengths = flags(max_seq_length=config.max_seq_length)
    lengths += flags(max_predictions_per_seq=config.max_predictions_per_seq)

    def shards(which: str, part: str) -> Path:
        """Masked sentence pairs in the tokens of a model.

        Whole words are masked: a token is easy to tell from the other tokens of its word, and the
        more so the finer a vocabulary cuts. Held-out pairs are masked once, so that all
        evaluations are of the same.
        """
        tokens = "".join(f"{token}\n" for token in text.vocabulary.tokens)
        is_original = which == "original"
        ours = [
            made["text"].sentences(part, _PARTS),
            *flags(output_file=f"{{out}}/{part}.tfrecord"),
            *flags(vocab_file="{out}/vocab.txt" if is_original else start / "vocab.txt"),
            flag("do_lower_case", text.do_lower_case),
            *([] if text.strip_accents is None else [flag("strip_accents", text.strip_accents)]),
            *form,
            *lengths,
            *flags(dupe_factor=3, masking="dynamic", do_whole_word_mask=True),
            *flags(allow_unknown_words=True),  # the report tells what the model makes of the text
        ]
        own = words_of("data_flags", config.data_flags)
        fixed = [] if part == "train" else flags(dupe_factor=1, masking="static")
        files = {"vocab.txt": tokens} if is_original else {}
        asked, name = overriding(ours, own, fixed), f"data-{which}-{part}"
        folder = add(name, "create_pretraining_data", *asked, files=files, free=free)
        return folder / f"{part}.tfrecord"

    def pretraining(
        name: str, which: str, init: Path | None, *ours: str, fixed: Sequence[str] = ()
    ) -> Path:
        """Trains or evaluates the model in `init`, or the one as it came.

        The user's flags override `ours`, and `fixed` ones the user's.
        """
        evaluated = shards(which, "held-out")
        asked = [
            *flags(input_file=shards(which, "train") if ours else evaluated),
            *flags(eval_input_file=evaluated, init_checkpoint=init or original),
            *(() if init else described),
            *flags(output_dir="{out}"),
            *lengths,
            *flags(eval_batch_size=32, max_eval_steps=100),
            *flags(seed=config.seed),  # new heads are the same before training and at its begin
            *flags(do_eval=True),
            *ours,
        ]
        own = words_of("pretraining_flags", config.pretraining_flags)
        return add(name, "run_pretraining", *overriding(asked, own, fixed))

    def task(which: str, model: str | Path, *more: str) -> None:
        if config.task:
            tool, *own = words_of("task", config.task, "TOOL")
            runs = flags(output_dir="{out}", do_train=True, do_eval=True, seed=1, num_seeds=3)
            ours = [*flags(init_checkpoint=model), *more, *runs]
            add(f"task-{which}", tool, *overriding(own, ours))

    steps = config.num_train_steps
    # Without bias correction the first hundreds of steps go several times as far as the rate says,
    # and a short training never makes good what they cost an encoder that has learned.
    training = flags(do_train=True, bias_correction=True)
    training += flags(train_batch_size=config.train_batch_size, keep_checkpoint_max=1)
    if not lacks_words:
        pretraining("evaluated-original", "original", None)
    task("original", original, *described)
    trains = "grown" if grows else "original"
    init = start if grows or lacks_words else None
    if lacks_words:
        # New heads learn alone first: what they do not know yet changes no encoder.
        fixed = flags(eval_steps=0, early_stopping_evals=0, train_encoder=False)
        fixed += flags(num_train_steps=max(1, steps // 10), num_warmup_steps=steps // 100)
        fixed += flags(learning_rate=_HEAD_LEARNING_RATE)
        init = pretraining("heads", trains, init, *training, fixed=fixed) / "model"
    training += flags(num_train_steps=steps, num_warmup_steps=steps // 10)
    training += flags(learning_rate=config.learning_rate, eval_steps=max(1, steps // 20))
    training += flags(early_stopping_evals=3, save_best=True)
    trained = pretraining("trained", trains, init, *training)
    task("adapted", trained / "model")
    return made


def _missing_heads(source: ModelSource) -> Sequence[str]:
    if source.checkpoint is None or is_google_checkpoint(source.checkpoint):
        return []  # google's have both; TensorFlow would have to be loaded to look
    find = source.tensors().find
    return [head for head in _HEADS if not all(map(find, head_names(head)))]
