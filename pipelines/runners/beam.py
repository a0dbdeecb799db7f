"""Makes pre-training shards with Apache Beam: the same bytes as the local runner's.

Elements are blocks of whole documents. Random next sentences are requests that a join by block
number answers; the only side inputs are the sizes of the blocks and the number of shards. Shards
are written by our own `DoFn`, because Beam's TFRecord sink puts records into any shard in any
order.
"""

import contextlib
import glob
import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import IO, Any

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions
from apache_beam.pvalue import AsSingleton, PCollection, TaggedOutput

from keras_bert_impl.backend import import_tensorflow_quietly
from keras_bert_impl.errors import UserError, cut
from keras_bert_impl.files import open_input, writing
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora.documents import match_files, refuse_output_among_input
from pipelines.pretraining_data import documents, partner_join
from pipelines.pretraining_data.chunks import pair_starts
from pipelines.pretraining_data.draws import key_ranges
from pipelines.pretraining_data.pairs import PlannedExamples
from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe, VocabularyFacts
from pipelines.records.description import (
    DESCRIPTION_SUFFIX,
    Description,
    ShardEntry,
    base_name,
    description_path,
    metadata_files,
    replaced_files,
    shard_names,
)
from pipelines.records.record_maker import RecordMaker, write_shard
from pipelines.runners.corpus import Corpus

_FINISHED, _REQUESTS = "finished", "requests"
_SAID = re.compile(r"UserError: (.*?)( \[while running|\\n|\n|$)")


def run_beam(config: PretrainingDataConfig) -> Description:
    """Makes the shards that a configuration asks for on the Beam runner that it names."""
    options = PipelineOptions([f"--runner={config.runner}", *config.beam_arguments])
    _check_shipping(options)
    files = documents.find_input(config.input_file, _match)
    vocabulary, blocks = documents.prepare(config, files, _open)
    facts = VocabularyFacts.of(vocabulary)
    try:
        with _pipeline(config.runner, options) as pipeline:
            cut_text = pipeline | "Blocks" >> beam.Create(list(enumerate(blocks)))
            _make_shards(cut_text | "Spread" >> beam.Reshuffle(), config, vocabulary, facts, files)
    except (RuntimeError, UserError) as error:  # some runners keep the kind of a worker's error
        if found := re.search(_SAID, f"{type(error).__name__}: {error}"):
            raise UserError(found[1]) from error
        raise
    return _read_description(description_path(config.set_name))


def unknown_options(words: Iterable[str]) -> list[str]:
    """The names among options that Beam does not know; it drops them."""
    options = PipelineOptions([*words])
    named = {*options.get_all_options(retain_unknown_options=True)} - {*options.get_all_options()}
    return sorted(name.partition("=")[0] for name in named)


def _make_shards(
    blocks: PCollection,
    config: PretrainingDataConfig,
    vocabulary: Vocabulary,
    facts: VocabularyFacts,
    files: list[str],
) -> None:
    """Tokenizes numbered blocks, plans, answers, sorts into shards, writes, describes."""
    recipe = config.recipe
    tokenized = (
        blocks
        | "Tokenize" >> beam.ParDo(TokenizeBlock(config, vocabulary))
        | "Keep tokens" >> beam.Reshuffle()
    )
    sizes = (
        tokenized
        | "Sizes" >> beam.Map(_block_size, WordCounter(vocabulary), recipe.token_budget)
        | "All sizes" >> beam.combiners.ToList()
        | "Check" >> beam.Map(_checked_sizes, config)
    )
    planned = tokenized | "Plan" >> beam.FlatMap(_planned, recipe, AsSingleton(sizes)).with_outputs(
        _FINISHED, _REQUESTS
    )
    answered = (
        {"block": tokenized, "requests": planned[_REQUESTS]}
        | "Join by block" >> beam.CoGroupByKey()
        | "Answer" >> beam.FlatMap(_answered, recipe, AsSingleton(sizes))
    )
    examples = (planned[_FINISHED], answered) | "Examples" >> beam.Flatten()
    shards = (
        examples
        | "Count" >> beam.Map(lambda block: len(block.rows))
        | "All examples" >> beam.CombineGlobally(sum)
        | "Number of shards" >> beam.Map(_choose_shards, config, files)
    )
    entries = (
        (
            examples | "By key" >> beam.FlatMap(_by_shard, AsSingleton(shards)),
            shards | "Every shard" >> beam.FlatMap(_empty_shards),
        )
        | "All parts" >> beam.Flatten()
        | "Into shards" >> beam.GroupByKey()
        | "Write" >> beam.Map(_written, config, facts, AsSingleton(shards))
    )
    _ = (
        entries
        | "All entries" >> beam.combiners.ToList()
        | "Describe" >> beam.Map(_write_description, config, facts, files, AsSingleton(sizes))
    )


class TokenizeBlock(beam.DoFn):
    """(number, FileBlock) → (number, (SentenceBlock, bytes of text, SHA-256 of the text))."""

    def __init__(self, config: PretrainingDataConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._config, self._vocabulary = config, vocabulary

    def setup(self) -> None:
        """Makes the tokenizer once a worker, which may be a process of its own."""
        import_tensorflow_quietly()
        from keras_bert_impl.tokenization.tokenizer import Tokenizer

        self._tokenizer = Tokenizer(self._config.text_settings(self._vocabulary))
        self._dtype = VocabularyFacts.of(self._vocabulary).dtype

    def process(self, element: tuple[int, documents.FileBlock]) -> Iterator[tuple[int, tuple]]:
        """Reads and tokenizes a block."""
        number, block = element
        with _open(block.path) as file:
            file.seek(block.start)
            data = file.read(block.end - block.start)
        if len(data) != block.end - block.start:
            raise documents.was_changed(block.path)
        lines = documents.read_lines(block, data, self._config.text_encoding)
        sentences = documents.encode_block(lines, self._tokenizer.encode_lines, self._dtype)
        yield number, (sentences, len(data), hashlib.sha256(data).digest())


def _choose_shards(examples: int, config: PretrainingDataConfig, files: list[str]) -> int:
    """Gives the number of shards, and removes an older set of this name: it is whole no longer."""
    count = documents.choose_shards(examples, config.shards_asked)
    targets = shard_names(config.output_names, count)
    refuse_output_among_input(files, targets, "output_file")
    gone = replaced_files(config.set_name, targets, _match(f"{glob.escape(config.set_name)}-*"))
    there = [path for path in gone if FileSystems.exists(path)]
    for part in (there[:1], there[1:]):  # a store need not keep to an order
        FileSystems.delete(part)
    return count


def _planned(element: tuple[int, tuple], recipe: Recipe, sizes: dict[str, Any]) -> Iterator[Any]:
    """(number, block) → finished examples, and requests keyed by the block that is asked."""
    number, (block, _, _) = element
    finished, requests = partner_join.plan_block(number, block, sizes["bases"], recipe)
    yield TaggedOutput(_FINISHED, finished)
    yield from (TaggedOutput(_REQUESTS, request) for request in requests.items())


def _answered(
    element: tuple[int, dict], recipe: Recipe, sizes: dict[str, Any]
) -> Iterator[partner_join.ExampleBlock]:
    """(number, {"block": [block], "requests": [...]}) → examples with a random B."""
    number, joined = element
    if requests := list(joined["requests"]):
        ((block, _, _),) = joined["block"]
        request = partner_join.join_requests(requests)
        yield partner_join.answer_requests(number, block, sizes["bases"], request, recipe)


def _written(
    element: tuple[int, Iterable[partner_join.ExampleBlock]],
    config: PretrainingDataConfig,
    facts: VocabularyFacts,
    shards: int,
) -> ShardEntry:
    """(shard, its example blocks) → the shard and its index on disk, and its entry."""
    number, blocks = element
    rows, tokens = partner_join.join_examples(list(blocks))
    maker = RecordMaker(config.recipe, facts)
    target = shard_names(config.output_names, shards)[number]
    return write_shard(target, maker.blocks(tokens, rows), maker.counts, _create_whole)


def _pipeline(runner: str, options: PipelineOptions) -> beam.Pipeline:
    try:
        return beam.Pipeline(options=options)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise UserError(
            f"`runner={cut(runner, 80)}`: Beam cannot start it ({cut(said, 300)}); name a runner "
            "of Beam's, or correct its options."
        ) from error


def _check_shipping(options: PipelineOptions) -> None:
    """Refuses to ship a package to the workers in which they would not find this module.

    Functions travel by name, and an installed package has other names than a checkout (setup.py).
    """
    setup = options.view_as(SetupOptions)
    installed = __name__.startswith("keras_bert_impl.")
    if (setup.setup_file or setup.extra_packages) and not installed:
        raise UserError(
            "The workers would install this package, but the job was started from a checkout, whose"
            " modules have other names; install the package here as well (pip install '.[beam]')"
            " and start the job with the command keras-bert."
        )


def _open(path: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if "://" not in path:
        return open_input(path)
    # A packed text is refused by its first bytes, and not unpacked by its name.
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def _match(pattern: str) -> list[str]:
    """The files that match, as the local runner has them, or those of a remote store."""
    if "://" not in pattern:
        return match_files(pattern)
    matched = FileSystems.match([pattern])[0].metadata_list
    hidden = base_name(pattern).startswith(".")  # hidden files are half written
    found = [one for one in matched if hidden or not base_name(one.path).startswith(".")]
    filled = [one for one in found if one.size_in_bytes] or found
    return sorted(one.path for one in filled)


def _block_size(
    element: tuple[int, tuple], counter: WordCounter, token_budget: int
) -> tuple[int, int, int, int, int, bytes, WordCount, int]:
    number, (block, text_bytes, digest) = element
    sizes = len(block.sentence_lengths), len(block.document_sizes), len(block.ids)
    starts = pair_starts(block.sentence_lengths, block.document_sizes, token_budget)
    return (number, *sizes, text_bytes, digest, counter.count(block.ids), starts)


def _checked_sizes(sizes: list[tuple], config: PretrainingDataConfig) -> dict[str, Any]:
    """The corpus in a few numbers; refuses one from which no pairs can be made."""
    ordered = sorted(sizes, key=itemgetter(0))
    words = sum((size[6] for size in ordered), WordCount())
    sentences, articles = (sum(size[field] for size in ordered) for field in (1, 2))
    documents.check_partners(config, articles, sentences, sum(size[7] for size in ordered))
    corpus = Corpus(
        folder="",
        dtype="",
        text_bytes=sum(size[4] for size in ordered),
        text_sha256=hashlib.sha256(b"".join(size[5] for size in ordered)).hexdigest(),
        documents=articles,
        sentences=sentences,
        tokens=sum(size[3] for size in ordered),
        words=words.words,
        unknown_words=words.unknown,
    )
    return {"bases": partner_join.BlockBases.of([size[:3] for size in ordered]), "corpus": corpus}


def _by_shard(
    block: partner_join.ExampleBlock, shards: int
) -> Iterator[tuple[int, partner_join.ExampleBlock]]:
    edges = [first for first, _ in key_ranges(0, 1 << 64, shards)[1:]]
    return block.split(np.array(edges, np.uint64))


def _empty_shards(shards: int) -> Iterator[tuple[int, partner_join.ExampleBlock]]:
    """A part without examples for every shard, so that each of them is written."""
    none = np.zeros(0, np.uint16)
    rows = PlannedExamples(
        none.astype(np.uint64), none.astype(np.int64), none.astype(np.int64), none, none, none > 0
    )
    return ((shard, partner_join.ExampleBlock(rows, none)) for shard in range(shards))


@contextlib.contextmanager
def _create_whole(path: str) -> Iterator[Any]:
    """A file that appears under its name when it is complete, on any of Beam's file systems."""
    name = base_name(path)
    aside = f"{path.removesuffix(name)}.{name}.{uuid.uuid4().hex}.incomplete"
    try:
        with writing(path), FileSystems.create(aside, "application/octet-stream") as file:
            yield file
    except BaseException:
        with contextlib.suppress(Exception):  # the first error is the one that is reported
            FileSystems.delete([aside])
        raise
    if FileSystems.exists(path):
        FileSystems.delete([path])
    FileSystems.rename([aside], [path])


def _write_description(
    entries: list[ShardEntry],
    config: PretrainingDataConfig,
    facts: VocabularyFacts,
    files: list[str],
    sizes: dict[str, Any],
) -> str:
    """Writes what says that the set is complete; gives back its summary."""
    names = [base_name(shard) for shard in shard_names(config.output_names, len(entries))]
    ordered = sorted(entries, key=lambda entry: names.index(entry.file))
    description = Description.of(config, facts, sizes["corpus"].source(files), ordered)
    folder = glob.escape(config.set_name.removesuffix(base_name(config.set_name)))
    others = _match(f"{folder}*{DESCRIPTION_SUFFIX}")
    made = metadata_files(config.set_name, description, others, _read_description)
    for path, content in made.items():
        with _create_whole(path) as file:
            file.write(content.encode())
    return description.summary()


def _read_description(path: str) -> Description:
    with FileSystems.open(path) as file:
        return Description.from_text(file.read(), path)
