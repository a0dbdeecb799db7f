import json
import unicodedata

import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS
from pipelines.corpora.documents import Reading
from pipelines.corpora.encodings import TextEncoding
from pipelines.studies.adapt import adapt, commands_of, start_folder
from pipelines.studies.commands import Command
from tests.fuzz import seeds
from tests.support.adaptation import PretendingTrainers, language, toy_adaptation, write_model


def kept_files(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and "cells" not in path.parts)
    return {path.relative_to(folder): path.read_bytes() for path in found}


def write_rows(folder):
    """A task for classes; gives it as `task` names it."""
    (folder / "rows.tsv").write_text("text\tlabel\na\tx\nb\ty\n")
    files = f"--train_file={folder}/rows.tsv --dev_file={folder}/rows.tsv"
    return f"run_classifier {files} --max_seq_length=32"


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    """A finished adaptation with a task: its config, what was started, and its results."""
    folder = tmp_path_factory.mktemp("whole")
    config = toy_adaptation(folder, task=write_rows(folder))
    tools = PretendingTrainers()
    return config, tools, adapt(config, tools)


def test_the_model_has_the_words_of_the_text_and_stands_where_the_user_looks(adapted):
    config, _, results = adapted
    own, grown = (
        {*find_model(folder).text.vocabulary.tokens}
        for folder in (config.init_checkpoint, config.output_dir / "model")
    )
    assert len({*language()} & (grown - own)) > 18  # of 24; some only occur in held-out documents
    assert {path.name for path in results[1]} == {
        "model", "report.md", "adaptation.json", "learning_curve.png",
    }  # fmt: skip
    assert all(path.exists() for path in results[1])


def test_the_report_compares_before_and_after_on_text_and_task(adapted):
    config, tools, (lines, _) = adapted
    values = json.loads((config.output_dir / "adaptation.json").read_text())
    assert [values[which]["masked_lm_loss"] for which in ("guessing", "original", "adapted")] == [
        4.0, 3.0, 2.0,
    ]  # fmt: skip
    before, after = values["original"], values["adapted"]
    assert after["tokens_per_word"] < before["tokens_per_word"] / 2
    nats = values["nats_per_character"]
    assert nats["adapted"] == pytest.approx(nats["guessing"] / 2)  # of the same tokens
    assert "-50.0% against guessing by frequency" in lines[0]
    (task,) = values["task"]
    assert (task["name"], task["original"]) == ("eval_accuracy", pytest.approx([0.6, 0.61, 0.62]))
    assert values["steps"] == {"taken": 20, "best": 15}
    assert values["missing_heads"] == []
    assert tools.started[-1] == "task-adapted"


def test_a_model_of_no_best_step_is_that_of_the_last(tmp_path):
    lines, _ = adapt(
        toy_adaptation(tmp_path, pretraining_flags="--nosave_best"), PretendingTrainers()
    )
    assert "after 20 steps (the model is that of step 20)" in lines[0]


def test_a_second_call_starts_nothing_and_says_so(adapted):
    config, _, results = adapted
    before, again = kept_files(config.output_dir), PretendingTrainers()
    repeated = adapt(config, again)
    assert again.started == []
    assert repeated == results
    assert kept_files(config.output_dir) == before


@pytest.mark.parametrize("tool", ["split_sentences", "run_pretraining"])
def test_after_a_stop_the_same_call_goes_on_to_the_same_model(tmp_path, tool):
    config, stopped, rest = toy_adaptation(tmp_path), PretendingTrainers(tool), PretendingTrainers()
    with pytest.raises(KeyboardInterrupt):
        adapt(config, stopped)
    assert not (config.output_dir / "model").exists()
    adapt(config, rest)
    assert rest.started[0] == stopped.started[-1]
    assert (config.output_dir / "model" / "model.safetensors").exists()


def test_a_dry_run_lists_the_commands_and_writes_nothing(tmp_path):
    config = toy_adaptation(tmp_path, dry_run=True)
    tools = PretendingTrainers()
    lines, _ = adapt(config, tools)
    assert (tools.started, config.output_dir.exists()) == ([], False)
    assert [line.split()[0] for line in lines] == [
        "text", "data-original-held-out", "evaluated-original", "data-grown-held-out",
        "data-grown-train", "trained",
    ]  # fmt: skip
    assert all("\n    keras-bert " in line for line in lines)


HANGUL = ["한", "국", "어", "##한", "##국", "##어", "##는", "."]
KOREAN = "한국어는 한국어. 국어는 한국어.\n\n" * 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "run_classifier --train_file=none.tsv --dev_file=b.tsv"}, "none.tsv"),
        ({"input_file": "few"}, "has 19 documents, of which one of 20 is held out"),
        ({"input_file": "nfd"}, "are in pieces .* give `unicode_form=nfc`"),
        ({"output_dir": "model_parent"}, "would be replaced"),
        ({"pretraining_flags": "--train_hours=1"}, "leave `train_hours` out; `num_train_steps`"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would(tmp_path, changes, message):
    write_model(tmp_path / "model", tokens=[*SPECIAL_TOKENS, *HANGUL], do_lower_case=False)
    texts = {
        "few": KOREAN[: KOREAN.index("\n") + 2] * 19,
        "nfd": unicodedata.normalize("NFD", KOREAN),
        "nfc": KOREAN,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    changes = {"input_file": "nfc", **changes}
    changes["input_file"] = (str(tmp_path / changes["input_file"]),)
    if "output_dir" in changes:
        changes["output_dir"] = tmp_path
    for dry_run in (True, False):
        tools = PretendingTrainers()
        with pytest.raises(UserError, match=message):
            adapt(toy_adaptation(tmp_path, dry_run=dry_run, **changes), tools)
        assert tools.started == []


def test_an_adapter_is_not_adapted_as_its_base(tmp_path):
    seeds.adapter(tmp_path / "peft")
    config = tmp_path / "peft" / "adapter" / "adapter_config.json"
    config.write_text(config.read_text().replace('"base"', json.dumps(f"{tmp_path}/peft/base")))
    with pytest.raises(UserError, match="adapter is an adapter; merge it with convert_checkpoint"):
        adapt(toy_adaptation(tmp_path, init_checkpoint=str(config.parent)), PretendingTrainers())


def test_decomposed_text_is_taken_once_it_is_composed(tmp_path):
    write_model(tmp_path / "model", tokens=[*SPECIAL_TOKENS, *HANGUL], do_lower_case=False)
    (tmp_path / "text.txt").write_text(unicodedata.normalize("NFD", KOREAN))
    reading = Reading(text_encoding=TextEncoding(unicode_form="nfc"))
    lines, _ = adapt(toy_adaptation(tmp_path, dry_run=True, reading=reading), TOOLS)
    assert "--unicode_form=nfc" in lines[0]


TOOLS = PretendingTrainers()
CONFIG_OF = TOOLS.config_of


def commands(folder, lacks_words=False, **changes):
    config = toy_adaptation(folder, **changes)
    source = find_model(config.init_checkpoint)
    made = commands_of(config, source, config.num_new_tokens > 0, lacks_words)
    return made, {name: CONFIG_OF(one.tool, one.arguments) for name, one in made.items()}


def test_every_command_is_one_that_its_tool_understands(tmp_path):
    made, configs = commands(tmp_path, task="run_classifier --train_file=a.tsv --num_seeds=9")
    asked = configs["trained"]
    assert asked.training.early_stopping_evals == 3
    assert asked.training.save_best
    assert configs["task-adapted"].many.num_seeds == 3
    assert [*made] == [
        "text", "data-original-held-out", "evaluated-original", "task-original",
        "data-grown-held-out", "data-grown-train", "trained", "task-adapted",
    ]  # fmt: skip


def test_by_default_there_is_a_worker_for_each_core_that_may_be_used(tmp_path, monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)  # not on every system
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    made, _ = commands(tmp_path, num_workers=None)
    assert made["text"].free == ("--num_workers=7",)


def test_how_the_text_is_read_is_passed_on(tmp_path):
    encoding = TextEncoding(encoding="cp949", unicode_form="nfc")
    reading = Reading(text_field="body", text_encoding=encoding)
    _, configs = commands(tmp_path, reading=reading)
    assert configs["text"].reading == reading
    data = configs["data-grown-train"]
    assert data.text_encoding == TextEncoding(unicode_form="nfc")


def test_another_casing_has_another_start_model(tmp_path):
    def folders(**changes):
        config = toy_adaptation(tmp_path, **changes)
        source, text = find_model(config.init_checkpoint), Command("text", "none", (), tmp_path)
        return start_folder(config, source, text)

    assert folders() == folders() != folders(do_lower_case=False)


def test_held_out_words_are_masked_whole_and_once_whatever_the_flags_of_the_data(tmp_path):
    _, configs = commands(tmp_path, data_flags="--dupe_factor=9 --masked_lm_prob=0.2")
    train, held_out = (configs[f"data-grown-{part}"].recipe for part in ("train", "held-out"))
    assert (train.dupe_factor, train.masking) == (9, "dynamic")
    assert (held_out.dupe_factor, held_out.masking) == (1, "static")
    assert train.do_whole_word_mask
    assert train.masked_lm_prob == held_out.masked_lm_prob == 0.2


def test_new_heads_learn_alone_before_the_encoder_that_has_learned(tmp_path):
    made, configs = commands(tmp_path, lacks_words=True)
    names = [*made]
    assert names.index("heads") + 1 == names.index("trained")
    assert "evaluated-original" not in names
    heads, trained = configs["heads"], configs["trained"]
    assert (heads.train_encoder, trained.train_encoder) == (False, True)
    assert heads.training.num_train_steps == 2  # a tenth of all
    assert "/cells/start-" in heads.init_checkpoint
    assert trained.init_checkpoint == str(made["heads"].folder / "model")
    assert heads.training.bias_correction
    assert trained.training.bias_correction
