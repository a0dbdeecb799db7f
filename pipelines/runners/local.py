"""Makes pre-training shards on one machine, in three stages: tokens, plan, shards.

Every stage leaves finished files, and the same command continues where a run was interrupted. The
number of worker processes changes nothing but the time.
"""

import contextlib
import dataclasses
import functools
import glob
import shutil
from collections import deque
from pathlib import Path

from keras_bert_impl import files
from keras_bert_impl.json_files import json_text, read_json_value
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora.documents import match_files, refuse_output_among_input
from pipelines.pretraining_data import documents
from pipelines.pretraining_data.recipe import PretrainingDataConfig, VocabularyFacts, fingerprint
from pipelines.processes import in_order
from pipelines.records.description import (
    DESCRIPTION_SUFFIX,
    Description,
    ShardEntry,
    base_name,
    index_path,
    metadata_files,
    replaced_files,
    shard_names,
)
from pipelines.runners import corpus as corpora
from pipelines.runners import shards

# Modules that worker processes load when they start: with TensorFlow to tokenize, without it for
# all other work.
_TOKENIZING, _NUMBERS = "pipelines.runners.tokenizing_process", "pipelines.runners.shards"
# Raise it when tokens or plans are made in another way, so that kept ones are not used again.
_FORMAT = 6
# A text of up to this size is tokenized without TensorFlow in less time than loading it takes.
_PLAIN_BYTES = 8 << 20


def run_local(config: PretrainingDataConfig) -> Description:
    """Makes the shards that a configuration asks for."""
    inputs, stamps = documents.find_input(config.input_file), list[list]()
    for name in inputs:  # before they are looked at, so that later changes are noticed
        with files.open_input(name) as file:
            stamps.append([str(files.real_path(name)), *corpora.stamp_of(file)])
    vocabulary, blocks = documents.prepare(config, inputs, files.open_input)
    text = _Text(inputs, blocks, stamps, sum(block.end - block.start for block in blocks))
    output = Path(config.set_name)
    files.make_folder(output.parent)  # refuses an address, which `prepare` leaves to Beam
    work = files.without_links(output.with_name(f".{output.name}.work"))
    with contextlib.ExitStack() as stack:
        for path in map(Path, config.output_names):
            busy = f"{path}: another run is at work here; wait for it, or name another output."
            stack.enter_context(files.owned(path.with_name(f".{path.name}.lock"), busy))
        files.make_folder(work)
        facts = VocabularyFacts.of(vocabulary)
        corpus = _corpus(config, text, vocabulary, work)
        starts = corpus.pair_starts(config.recipe.token_budget)
        documents.check_partners(config, corpus.documents, corpus.sentences, starts)
        entries = _shards(config, text, corpus, facts, work)
        description = Description.of(config, facts, corpus.source(text.files), entries)
        others = map(str, output.parent.glob(f"*{DESCRIPTION_SUFFIX}"))
        for name, content in metadata_files(config.set_name, description, others).items():
            with files.open_whole(name) as file:
                file.write(content)
        _remove_work(work)  # still alone: the next run begins a work folder of its own
    return description


@dataclasses.dataclass(frozen=True)
class _Text:
    """The input; `stamps` are path, size and time of each file, by which a change is noticed."""

    files: list[str]
    blocks: list[documents.FileBlock]
    stamps: list[list]
    bytes: int


def _beside(config: PretrainingDataConfig) -> int:
    """Processes for stages that need NumPy alone: a single worker is this process."""
    return config.num_workers if config.num_workers > 1 else 0


def _remove_work(work: Path) -> None:
    """Removes the work folder; last of all, what says of the shards that they are whole."""
    for path in (*work.glob("tokens-*"), *work.glob("plan-*/*.rows")):
        files.remove(path)
    shutil.rmtree(work)


def _corpus(
    config: PretrainingDataConfig, text: _Text, vocabulary: Vocabulary, work: Path
) -> corpora.Corpus:
    """The tokenized corpus: found, or made from the text."""
    how = [config.do_lower_case, config.strip_accents, dataclasses.asdict(config.text_encoding)]
    name = fingerprint([text.stamps, vocabulary.sha256, *how, _FORMAT])
    folder = files.make_folder(work / f"tokens-{name}")
    return corpora.find_corpus(folder) or _tokenized(config, text, vocabulary.sha256, folder)


def _tokenized(
    config: PretrainingDataConfig, text: _Text, vocab_sha256: str, folder: Path
) -> corpora.Corpus:
    """Tokenizes what an earlier run has not, and joins the blocks."""
    targets = [folder / f"block-{number:06d}.tokens" for number in range(len(text.blocks))]
    pairs = zip(text.blocks, targets, strict=True)
    missing = [pair for pair in pairs if not pair[1].is_file()]
    todo = sum(block.end - block.start for block, _ in missing)
    plain = todo <= _PLAIN_BYTES
    stamps = dict(zip(text.files, ((size, time) for _, size, time in text.stamps), strict=True))
    tasks = [
        corpora.BlockTask(block, config, vocab_sha256, str(file), stamps[block.path], plain)
        for block, file in missing
    ]
    progress = Progress("tokenize", text.bytes / 1e6, "MB")
    progress.resume_from((text.bytes - todo) / 1e6)
    if plain:
        done = in_order(corpora.tokenize_block, tasks, _beside(config), _NUMBERS)
    else:
        threads = max(1, config.num_workers)
        starts = range(0, len(tasks), 4 * threads)
        groups = (tasks[at : at + 4 * threads] for at in starts)
        work = functools.partial(corpora.tokenize_blocks, threads=threads)
        done = in_order(work, groups, min(1, config.num_workers), _TOKENIZING)
    deque(progress.over(done, lambda size: size / 1e6), maxlen=0)
    return corpora.assemble(folder, targets, text.bytes, config.input_file)


def _plan(config: PretrainingDataConfig, corpus: corpora.Corpus, folder: Path) -> list[tuple]:
    """The plan of all examples: the file of each batch and the number of its examples."""
    tasks = shards.plan_tasks(corpus, config.recipe, folder)
    note = folder / "plan.json"  # written when all files are
    # A run that was killed while it removed the folder may have left the note alone.
    if not all(file.is_file() for file in (note, *(Path(task.target) for task in tasks))):
        progress = Progress("plan", len(tasks), "batches")
        done = in_order(shards.plan_batch, tasks, _beside(config), _NUMBERS)
        counts = [*progress.over(done)]
        with files.open_whole(note) as file:
            file.write(json_text(counts))
    return [(task.target, count) for task, count in zip(tasks, read_json_value(note), strict=True)]


def _shards(
    config: PretrainingDataConfig,
    text: _Text,
    corpus: corpora.Corpus,
    facts: VocabularyFacts,
    work: Path,
) -> list[ShardEntry]:
    output = str(files.real_path(Path(config.set_name)))
    recipe = dataclasses.asdict(config.recipe)
    name = [recipe, corpus.text_sha256, Path(corpus.folder).name, output, _FORMAT]
    folder = files.make_folder(work / f"plan-{fingerprint(name)}")
    plan = _plan(config, corpus, folder)
    examples = sum(count for _, count in plan)
    count = documents.choose_shards(examples, config.shards_asked)
    targets = shard_names(config.output_names, count)
    tasks = [
        shards.ShardTask(
            corpus,
            config.recipe,
            facts,
            plan,
            number,
            count,
            file,
            # A note is for one number of shards only: with more of them, the same file name would
            # hold other examples.
            str(folder / f"{number:05d}-of-{count:05d}-{base_name(file)}.json"),
        )
        for number, file in enumerate(targets)
    ]
    entries = [shards.finished_shard(task) for task in tasks]
    chosen = [task for task, entry in zip(tasks, entries, strict=True) if entry is None]
    progress = Progress("write", examples, "examples")
    progress.resume_from(sum(entry.counts.get("examples", 0) for entry in entries if entry))
    refuse_output_among_input(text.files, targets, "output_file")
    beside = match_files(f"{glob.escape(config.set_name)}-*")
    kept = [entry.file for entry in entries if entry]
    for path in replaced_files(config.set_name, targets, beside, kept):
        files.remove(Path(path))
    _remove_half_written(Path(config.set_name), targets)
    written = in_order(shards.write_shard, chosen, _beside(config), _NUMBERS)
    for task, entry in zip(
        chosen, progress.over(written, lambda x: x.counts.get("examples", 0)), strict=True
    ):
        entries[task.number] = entry
    return [entry for entry in entries if entry is not None]


def _remove_half_written(output: Path, targets: list[str]) -> None:
    """Removes what killed runs have left of these shards; in a container a host has many names."""
    names = {base_name(file) for one in targets for file in (one, index_path(one))}
    for path in output.parent.glob(".*.incomplete"):
        if path.name[1:].rsplit(".", 3)[0] in names:
            files.remove(path)
