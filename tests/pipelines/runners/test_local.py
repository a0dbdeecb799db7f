"""What a run of the local runner leaves when it is killed, and what the next one makes of it."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.reference import split_tokens, split_words
from keras_bert_impl.tokenization.unknown_words import UnknownWords, WordCount
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS
from pipelines.records.check import find_shards
from pipelines.runners import local, shards
from pipelines.runners.local import run_local
from tests.support.pretraining_corpus import (
    RECIPE,
    WORDS,
    contents,
    make_config,
    make_shards,
    write_corpus,
)


@pytest.fixture
def small_blocks(monkeypatch):
    """Many blocks and batches, so that there is something to share and to interrupt."""
    monkeypatch.setattr(
        local.documents, "cut_into_blocks", lambda path, file: _cut(path, file, block_bytes=300)
    )
    monkeypatch.setattr("pipelines.runners.shards._SENTENCES_AT_ONCE", 90)


_cut = local.documents.cut_into_blocks


def test_the_set_is_whole_and_nothing_else_is_left(expected):
    assert sorted(expected) == [
        "dataset_info.json",
        "features.json",
        *(f"train.tfrecord-0000{number}-of-00003{end}" for number in range(3)
          for end in ("", ".index")),
        "train.tfrecord.recipe.json",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(tmp_path, expected, small_blocks):
    make_shards(tmp_path, num_workers=3)
    made = contents(tmp_path / "out")
    described = "train.tfrecord.recipe.json"
    assert _without_text_digest(made.pop(described)) == _without_text_digest(expected[described])
    assert made == {name: data for name, data in expected.items() if name != described}


def _without_text_digest(description: bytes) -> dict:
    """The digest of the text is put together from those of its blocks."""
    values = json.loads(description)
    del values["source"]["sha256"]
    return values


def test_stages_that_are_done_are_not_done_again(tmp_path, monkeypatch, expected):
    """With shard 1 gone and the tokens kept, exactly that shard is made again."""
    monkeypatch.setattr(local, "_remove_work", lambda folder: None)
    config = make_shards(tmp_path)
    (tmp_path / "out" / "train.tfrecord-00001-of-00003").unlink()
    done = []
    true_run = local.in_order

    def in_order(function, tasks, *args):
        done.extend((function.__name__, Path(task.target).name) for task in tasks)
        return true_run(function, tasks, *args)

    monkeypatch.setattr(local, "in_order", in_order)
    run_local(config)
    assert done == [("write_shard", "train.tfrecord-00001-of-00003")]
    assert contents(tmp_path / "out") == expected


_KILLED = """
import sys
from pathlib import Path
from pipelines.pretraining_data import documents
from pipelines.runners import corpus, shards
import time
cut = documents.cut_into_blocks
documents.cut_into_blocks = lambda path, file: cut(path, file, block_bytes=300)
shards._SENTENCES_AT_ONCE = 90
for module, name in ((corpus, "tokenize_block"), (shards, "plan_batch"), (shards, "write_shard")):
    def slow(task, true=getattr(module, name)):
        time.sleep(float(sys.argv[2]))
        return true(task)
    slow.__name__ = name
    setattr(module, name, slow)
from tests.support.pretraining_corpus import make_shards
make_shards(Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_killed_again_and_again_it_ends_with_the_same_bytes(tmp_path, expected, small_blocks):
    make_config(tmp_path)
    work = tmp_path / "out" / ".train.tfrecord.work"
    for finished in ("tokens-*/block-*.tokens", "plan-*/plan-*.rows", "plan-*/*-of-*.json"):
        process = subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(tmp_path), "0.1"],
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[3],
        )
        while not list(work.glob(finished)):
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert process.returncode == -signal.SIGKILL
        assert not (tmp_path / "out" / "train.tfrecord.recipe.json").exists()
    make_shards(tmp_path)
    made = contents(tmp_path / "out")
    shards = [name for name in expected if "-of-" in name]
    assert {name: made[name] for name in shards} == {name: expected[name] for name in shards}
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_another_vocabulary_in_the_same_file_makes_other_shards_in_the_same_process(tmp_path):
    make_shards(tmp_path)
    before = contents(tmp_path / "out")
    vocabulary = tmp_path / "vocab.txt"
    first, *others = vocabulary.read_text().split("\n")[6:-1]
    vocabulary.write_text("\n".join([*SPECIAL_TOKENS, "[unused0]", *others, first]) + "\n")
    make_shards(tmp_path)
    after = contents(tmp_path / "out")
    name = "train.tfrecord-00000-of-00003"
    assert after[name] != before[name]
    same = {"vocab_file": str(vocabulary), "input_file": f"{tmp_path}/corpus.txt"}
    make_shards(tmp_path / "fresh", **same, num_workers=1)
    assert contents(tmp_path / "fresh" / "out")[name] == after[name]


def test_text_that_changes_while_it_is_read_is_noticed(tmp_path, monkeypatch):
    config = make_config(tmp_path)
    true_corpus = local._corpus

    def change(*args):
        path = Path(config.input_file)
        path.write_bytes(path.read_bytes().replace(b"fox", b"hen"))
        return true_corpus(*args)

    monkeypatch.setattr(local, "_corpus", change)
    _refused(config, "corpus.txt: was changed while it was read")


def test_a_second_run_at_the_same_time_is_refused(tmp_path, monkeypatch):
    config = make_config(tmp_path)
    true_plan = local._plan

    def plan(*args):
        with pytest.raises(UserError, match="another run is at work"):
            run_local(config)
        return true_plan(*args)

    monkeypatch.setattr(local, "_plan", plan)
    run_local(config)


def test_a_new_set_takes_the_place_of_an_older_one_of_its_name(tmp_path, expected):
    make_shards(tmp_path, num_shards=4, recipe=dataclasses.replace(RECIPE, random_seed=6))
    (tmp_path / "out" / "train.tfrecord-notes").write_text("not ours")
    (tmp_path / "out" / "train.tfrecord-00000-of-00004").unlink()  # as a kill may leave it
    make_shards(tmp_path)
    made = contents(tmp_path / "out")
    assert made.pop("train.tfrecord-notes") == b"not ours"
    assert made == expected


def _refused(config, message: str) -> None:
    with pytest.raises(UserError, match=message):
        run_local(config)
    output = Path(config.output_file)
    assert not output.with_name(f"{output.name}.recipe.json").exists()


def test_the_description_of_a_text_whose_name_is_not_utf8_is_read(tmp_path):
    name = os.fsdecode("한.txt".encode("cp949"))
    write_corpus(tmp_path).rename(tmp_path / name)
    make_shards(tmp_path, input_file=str(tmp_path / name))
    (one, *_) = find_shards([f"{tmp_path}/out/train.tfrecord"])
    assert one.description.source["files"] == ["\ufffd\ufffd.txt"]


def test_a_corpus_without_a_token_is_refused(tmp_path):
    (tmp_path / "corpus.txt").write_text("\u200b\n\n\x00\n")
    _refused(make_config(tmp_path), "corpus.txt: has no sentence with a token")


def test_ill_formed_utf8_is_refused(tmp_path):
    path = write_corpus(tmp_path)
    text = path.read_bytes()
    path.write_bytes(text[:500] + b"\xff\xfe" + text[500:])
    _refused(make_config(tmp_path), r"corpus.txt: line \d+ is not UTF-8")


# Eight words, of which "dog" and "barks" have no tokens, and a line of three without one.
_PARTLY_KNOWN = "The fox saw a dog. It barks\n\nthe hen ran.\n" * 20


def _words_cut_one_by_one(text: str, vocabulary: set[str]) -> tuple[int, int]:
    words = [word for line in text.split("\n") for word in split_words(line)]
    return len(words), sum(split_tokens(word, vocabulary) == ["[UNK]"] for word in words)


@pytest.mark.parametrize("plain_bytes", [0, 1 << 20])
def test_the_description_has_the_words_that_are_unknown(tmp_path, monkeypatch, plain_bytes):
    monkeypatch.setattr(local, "_PLAIN_BYTES", plain_bytes)
    (tmp_path / "corpus.txt").write_text(_PARTLY_KNOWN)
    config = make_config(tmp_path)
    source = run_local(config).source
    found = source["words"], source["unknown_words"]
    assert found == _words_cut_one_by_one(_PARTLY_KNOWN, {*SPECIAL_TOKENS, *WORDS})
    assert found == (20 * 12, 20 * 3)


def test_a_text_that_the_vocabulary_does_not_fit_leaves_nothing(tmp_path):
    (tmp_path / "corpus.txt").write_text("비가 온다.\n\n해가 떴다.\n" * 40)
    config = make_config(tmp_path)
    with pytest.raises(UserError, match=r"corpus\.txt: 66\.7 % of the words of a sample become"):
        run_local(config)
    assert not (tmp_path / "out").exists()
    allowed = dataclasses.replace(config, unknown=UnknownWords(allow_unknown_words=True))
    assert run_local(allowed).word_count() == WordCount(words=240, unknown=160)


def _stopped_after_one_shard(monkeypatch, config) -> None:
    true_write = shards.write_shard

    def write_shard(task):
        if task.number:
            raise UserError("out of luck")
        return true_write(task)

    monkeypatch.setattr(shards, "write_shard", write_shard)
    with pytest.raises(UserError, match="out of luck"):
        run_local(config)


def test_shards_of_an_older_set_do_not_stand_beside_new_ones(tmp_path, monkeypatch):
    """A glob would take both for one set: the names are the same."""
    make_shards(tmp_path)
    other = dataclasses.replace(RECIPE, random_seed=6)
    _stopped_after_one_shard(monkeypatch, make_config(tmp_path, recipe=other))
    found = sorted(path.name for path in (tmp_path / "out").glob("train.tfrecord-*"))
    assert found == ["train.tfrecord-00000-of-00003", "train.tfrecord-00000-of-00003.index"]
    with pytest.raises(UserError, match="00001-of-00003: this shard of the set is missing"):
        find_shards([f"{tmp_path}/out/train.tfrecord-*"])


def test_an_address_is_for_beam(tmp_path):
    write_corpus(tmp_path)
    config = dataclasses.replace(make_config(tmp_path), output_file="gs://bucket/x.tfrecord")
    _refused(config, "^gs:/bucket: is an address; name a folder of this machine")


def test_text_that_is_named_as_a_shard_is_kept(tmp_path):
    text = write_corpus(tmp_path)
    before = text.read_bytes()
    config = make_config(tmp_path, output=f"a,{text}", num_shards=0)
    with pytest.raises(UserError, match=r"corpus.txt: is input, but .* another `output_file`"):
        run_local(config)
    assert text.read_bytes() == before


@pytest.mark.parametrize(
    ("gone", "written"),
    [(["tokens-*/*"], 0), (["tokens-*/*", "plan-*/*.rows"], 0), (["plan-*/*-of-*", "*/*.rows"], 3)],
)
def test_killed_while_it_cleans_up_a_run_ends_as_it_had_ended(
    tmp_path, monkeypatch, expected, gone, written
):
    with monkeypatch.context() as patch:
        patch.setattr(local, "_remove_work", lambda folder: None)
        config = make_shards(tmp_path)
    work = tmp_path / "out" / ".train.tfrecord.work"
    for path in (path for pattern in gone for path in work.glob(pattern)):
        path.unlink()
    shard = tmp_path / "out" / "train.tfrecord-00001-of-00003"
    before = shard.stat().st_ino, shard.stat().st_mtime_ns
    run_local(config)
    assert contents(tmp_path / "out") == expected
    assert ((shard.stat().st_ino, shard.stat().st_mtime_ns) == before) == (not written)
    assert not work.exists()


def test_what_says_that_shards_are_whole_is_removed_last(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        local.shutil, "rmtree", lambda path, **_: seen.append((path.name, [*path.rglob("*.rows")]))
    )
    make_shards(tmp_path)
    (first, _), (last, rows) = seen[0], seen[-1]
    assert first.startswith("tokens-")
    assert (last, rows) == (".train.tfrecord.work", [])


def test_a_vocabulary_that_changes_while_the_run_starts_is_noticed(tmp_path, monkeypatch):
    config = make_config(tmp_path)
    true_corpus = local._corpus

    def change(*args):
        path = Path(config.vocab_file)
        path.write_text(path.read_text().replace("fox", "elk"))
        return true_corpus(*args)

    monkeypatch.setattr(local, "_corpus", change)
    _refused(config, "vocab.txt: was changed while it was read")


@pytest.mark.parametrize("form", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_text_in_utf16_without_a_mark_is_refused(tmp_path, form):
    path = write_corpus(tmp_path)
    path.write_bytes(path.read_text().encode(form))
    _refused(
        make_config(tmp_path), r"corpus.txt: is not UTF-8, .* line 1 on, .*give its `encoding`"
    )


def test_what_killed_runs_left_of_the_shards_is_removed_whatever_their_host(tmp_path):
    config = make_config(tmp_path)
    (tmp_path / "out").mkdir()
    shard = "train.tfrecord-00001-of-00003"
    for name in (f"{shard}.0a1b2c.1", f"{shard}.index.0a1b2c.17", f"other-{shard}.0a1b2c.1"):
        (tmp_path / "out" / f".{name}.incomplete").write_text("half")
    run_local(config)
    left = [path.name for path in (tmp_path / "out").glob(".*")]
    assert left == [f".other-{shard}.0a1b2c.1.incomplete"]


def test_a_second_run_with_one_file_of_a_list_in_common_is_refused(tmp_path, monkeypatch):
    first, second = (
        make_config(tmp_path, output=f"out/{name},{tmp_path}/out/b", num_shards=0) for name in "ac"
    )
    true_plan = local._plan

    def plan(*args):
        with pytest.raises(UserError, match="out/b: another run is at work here"):
            run_local(second)
        return true_plan(*args)

    monkeypatch.setattr(local, "_plan", plan)
    run_local(first)


@pytest.mark.parametrize(("output", "num_shards"), [("a,{text}", 0), ("{text}", 2)])
def test_text_that_is_named_as_a_shard_is_refused_before_the_work(
    tmp_path, monkeypatch, output, num_shards
):
    text = write_corpus(tmp_path)
    if num_shards:
        text = text.rename(f"{text}-00001-of-00002")
    monkeypatch.setattr(local, "_corpus", None)
    output = output.format(text=str(text).removesuffix("-00001-of-00002"))
    config = make_config(tmp_path, output, input_file=str(text), num_shards=num_shards)
    _refused(config, "corpus.txt.*: is input, but the output would take its place")
