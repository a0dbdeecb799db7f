"""Makes pre-training shards on one machine: tokens, plan, shards, description.

Every stage leaves finished files; the same command continues where a run was interrupted. The
number of workers changes nothing but the time.
"""

import contextlib
import dataclasses
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_input, open_whole
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.documents import TextBlock, cut_into_blocks
from pipelines.pretraining_data.recipe import Pieces, PretrainingDataConfig, fingerprint
from pipelines.records.description import SUFFIX, Description, ShardEntry, description_path
from pipelines.records.patterns import match_files
from pipelines.records.tfds_metadata import metadata_files
from pipelines.runners import corpus as corpora
from pipelines.runners import plans, shards
from pipelines.runners.common import base_name, check_partners, choose_shards, describe, shard_names
from pipelines.runners.disk import check_disk
from pipelines.runners.workers import run_tasks

# What a tokenizing process loads: once, and shared by all of them.
_TOKENIZING = "pipelines.runners.tokenizing_process"


def run_local(config: PretrainingDataConfig) -> Description:
    """Makes the shards that a configuration asks for.

    Raises:
        UserError: bad input, or an output folder that cannot be written.
    """
    vocabulary = Vocabulary.load(config.vocab_file)
    output = Path(config.output_file)
    make_folder(output.parent)
    work = Path(config.work_folder or output.with_name(f".{output.name}.work"))
    make_folder(work)
    with _alone(work):
        _remove_leftovers(output, work)
        pieces = Pieces.of(vocabulary)
        corpus = _corpus(config, vocabulary, pieces, work)
        check_partners(config, corpus.documents)
        entries = _shards(config, corpus, pieces, work)
        description = describe(config, pieces, source_of(config, corpus), entries)
        description.write(description_path(output))
        _write_metadata(output)
    if config.work_folder is None:
        shutil.rmtree(work)
    return description


def _remove_leftovers(output: Path, work: Path) -> None:
    """Removes what a killed run was just writing."""
    for path in [*output.parent.glob(f".{output.name}*.incomplete"), *work.rglob("*.incomplete")]:
        path.unlink()


def _beside(config: PretrainingDataConfig) -> int:
    """Processes for stages that need NumPy alone: a single worker is this process."""
    return config.num_workers if config.num_workers > 1 else 0


def _write_metadata(output: Path) -> None:
    """Lets TensorFlow Datasets open the folder."""
    sets = {path.name: Description.read(path) for path in output.parent.glob(f"*{SUFFIX}")}
    for name, content in metadata_files(sets, output.name).items():
        with open_whole(output.with_name(name)) as file:
            file.write(content)


def source_of(config: PretrainingDataConfig, corpus: corpora.Corpus) -> dict[str, Any]:
    """What the description says of the text."""
    return {
        "files": [base_name(path) for path in find_inputs(config.input_file)],
        "bytes": corpus.text_bytes,
        "sha256": corpus.text_sha256,
        "documents": corpus.documents,
        "sentences": corpus.sentences,
        "tokens": corpus.tokens,
    }


def find_inputs(patterns: str) -> list[str]:
    """The files that comma-separated names and globs stand for, sorted within each glob.

    Raises:
        UserError: a name or glob matches no file.
    """
    found = []
    for pattern in patterns.split(","):
        paths = match_files(pattern)
        if not paths:
            raise UserError(f"--input_file: '{pattern}' matches no file; check the path.")
        found += paths
    return found


@contextlib.contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Keeps a second run out of the same work folder."""
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"{work}: another run is at work here; wait for it, or name another output."
            ) from error
        yield


def _corpus(
    config: PretrainingDataConfig, vocabulary: Vocabulary, pieces: Pieces, work: Path
) -> corpora.Corpus:
    """The tokenized corpus: found, or made from the text."""
    blocks: list[TextBlock] = []
    stamps = []
    for path in find_inputs(config.input_file):
        with open_input(path) as file:
            blocks += cut_into_blocks(path, file)
            status = os.fstat(file.fileno())
            stamps.append([str(Path(path).resolve()), status.st_size, status.st_mtime_ns])
    text_bytes = sum(block.end - block.start for block in blocks)
    check_disk(config, work, text_bytes, pieces)
    settings = corpora.TokenizerSettings(
        config.vocab_file,
        config.do_lower_case,
        config.strip_accents,
        config.invalid_utf8 == "drop",
    )
    key = {**dataclasses.asdict(settings), "vocab_file": vocabulary.sha256}
    folder = make_folder(work / f"tokens-{fingerprint([stamps, key])}")
    if (finished := corpora.find_corpus(folder)) is not None:
        return finished
    files = [folder / f"block-{number:06d}.tokens" for number in range(len(blocks))]
    tasks = [
        corpora.BlockTask(block, settings, str(file))
        for block, file in zip(blocks, files, strict=True)
        if not file.exists()
    ]
    todo = sum(task.block.end - task.block.start for task in tasks)
    progress = Progress("tokenize", text_bytes / 1e6, "MB")
    progress.resume_from((text_bytes - todo) / 1e6)
    for _, size in run_tasks(corpora.tokenize_block, tasks, config.num_workers, _TOKENIZING):
        progress.advance(size / 1e6)
    progress.close()
    return corpora.assemble(folder, files, text_bytes, config.input_file)


def _plan(config: PretrainingDataConfig, corpus: corpora.Corpus, folder: Path) -> list[tuple]:
    """The plan of all examples: (file, examples) of every slab."""
    tasks = plans.slab_tasks(corpus, config.recipe, folder)
    examples = [plans.planned_examples(task.target) for task in tasks]
    missing = [number for number, count in enumerate(examples) if count is None]
    progress = Progress("plan", len(tasks), "slabs")
    progress.resume_from(len(tasks) - len(missing))
    chosen = [tasks[number] for number in missing]
    for number, count in run_tasks(plans.plan_slab, chosen, _beside(config)):
        examples[missing[number]] = count
        progress.advance()
    progress.close()
    return [(task.target, count) for task, count in zip(tasks, examples, strict=True)]


def _shards(
    config: PretrainingDataConfig, corpus: corpora.Corpus, pieces: Pieces, work: Path
) -> list[ShardEntry]:
    """The finished shards."""
    name = [config.recipe.to_json(), corpus.text_sha256, Path(corpus.folder).name]
    folder = make_folder(work / f"plan-{fingerprint(name)}")
    slabs = _plan(config, corpus, folder)
    examples = sum(count for _, count in slabs)
    files = shard_names(config.output_file, choose_shards(examples, config.num_shards))
    tasks = [
        shards.ShardTask(
            corpus,
            config.recipe,
            pieces,
            slabs,
            number,
            len(files),
            file,
            str(folder / f"{base_name(file)}.json"),
        )
        for number, file in enumerate(files)
    ]
    entries = [shards.finished_shard(task) for task in tasks]
    missing = [number for number, entry in enumerate(entries) if entry is None]
    progress = Progress("write", examples, "examples")
    progress.resume_from(sum(entry.counts.get("examples", 0) for entry in entries if entry))
    chosen = [tasks[number] for number in missing]
    for number, entry in run_tasks(shards.write_shard, chosen, _beside(config)):
        entries[missing[number]] = entry
        progress.advance(entry.counts.get("examples", 0))
    progress.close()
    return [entry for entry in entries if entry is not None]
