import lzma

import pytest

from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.planning import training_flops
from pipelines.ablations.planning import model_of, needs_of, training_tokens
from pipelines.ablations.study import Study
from tests.support.model_folders import tiny_config, write_any
from tests.support.toy_study import PretendingTools, toy_recipe

CONFIG_OF = PretendingTools().config_of


def cells(folder, **changes):
    made = Study(toy_recipe(folder, **changes), CONFIG_OF)
    return {cell.name: cell for cell in made.cells}


def test_pre_training_is_planned_as_plan_run_does(tmp_path):
    made = cells(tmp_path)
    bert = made["pretrain-bert-seed-1"]
    needs = needs_of(bert, CONFIG_OF)
    assert needs.operations == 40 * 32 * training_flops(model_of(bert), 32, 20)
    assert needs.parameters > 0
    assert needs.memory > 0.6e9
    left_to_right = needs_of(made["pretrain-left-to-right-seed-1"], CONFIG_OF)
    assert left_to_right.operations > needs.operations  # it predicts every token
    assert needs_of(made["text"], CONFIG_OF) is None


def test_fine_tuning_is_estimated_from_the_files_of_the_task(tmp_path):
    (tmp_path / "MRPC").mkdir()
    (tmp_path / "MRPC" / "train.tsv").write_bytes(b"x" * 4000)
    made = cells(tmp_path)
    cell = made["MRPC-bert-seed-1-1"]
    needs = needs_of(cell, CONFIG_OF)
    a_row = training_flops(model_of(cell), 32, 0)
    assert needs.operations == pytest.approx(1000 / 32 * a_row * 3)
    assert needs_of(made["NER-bert-seed-1-1"], CONFIG_OF).operations is None  # no file yet


def test_another_model_is_planned_by_its_own_size(tmp_path):
    (tmp_path / "MRPC").mkdir()
    (tmp_path / "MRPC" / "train.tsv").write_bytes(b"x" * 4000)
    encoder = BertEncoder(tiny_config(max_position_embeddings=32))
    write_any(tmp_path / "theirs", encoder)
    made = cells(tmp_path, tables=("models",), other_model=("theirs {data}/theirs",))
    needs = needs_of(made["MRPC-other-theirs-seed-1"], CONFIG_OF)
    assert needs.operations == pytest.approx(1000 / 32 * training_flops(encoder.config, 32, 0) * 3)


def test_tokens_of_every_kind_of_task(tmp_path):
    (tmp_path / "train.txt").write_bytes(b"x" * 400)
    (tmp_path / "train.csv").write_bytes(b"x" * 800)
    questions = tmp_path / "squad.json.xz"
    questions.write_bytes(lzma.compress(b'[{"question": "a"}, {"question": "b"}]'))
    out = "--output_dir=x"
    tagging = CONFIG_OF("run_ner", [out, f"--data_dir={tmp_path}"])
    swag = CONFIG_OF("run_swag", [out, f"--data_dir={tmp_path}"])
    squad = CONFIG_OF("run_squad", [out, f"--train_file={questions}", "--max_seq_length=100"])
    assert [training_tokens(one) for one in (tagging, swag, squad)] == [100, 200, 200]
