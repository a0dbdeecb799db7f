import shutil

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.runs.demo_report import DemoPaths, demo_report
from tests.support.pretraining_run import GOLDEN
from tests.support.tiny_bert import golden_config


def test_the_screen_shows_what_was_reached_beside_guessing_and_where_it_lies(tmp_path):
    run, shards = tmp_path / "run", tmp_path / "shards.tfrecord"
    text = TextSettings(Vocabulary.load(GOLDEN / "vocab.txt"))
    write_model_directory(run / "model", BertPretrainer(golden_config()), text)
    (run / "eval_results.txt").write_text(
        "global_step = 7\nmasked_lm_accuracy = 0.25\nmasked_lm_loss = 4.5\n"
        "next_sentence_accuracy = 0.75\n"
    )
    shutil.copy(GOLDEN / "train.tfrecord", shards)
    (tmp_path / "text.txt").write_text("x" * 1000)
    saved_model = tmp_path / "saved"
    saved_model.mkdir()
    (saved_model / "saved_model.pb").write_bytes(bytes(2000))
    screen = demo_report(
        DemoPaths(tmp_path / "text.txt", shards, shards, run, saved_model),
        {"learn_vocabulary": 2.0, "run_pretraining": 70.0},
        max_seq_length=64,
        max_predictions_per_seq=10,
    )
    examples = PretrainingEvaluation([str(shards)], 8, 64, 10).num_examples
    assert f"{examples:,} sentence pairs" in screen
    assert "masked word, accuracy             25.0 %" in screen
    assert "masked word, loss in nats          4.500" in screen
    assert "next sentence, accuracy           75.0 %" in screen
    assert "text 1.00kB" in screen
    assert "SavedModel 2.00kB" in screen
    assert "learn_vocabulary 2s · run_pretraining 1m10s" in screen
    assert "total   1m12s" in screen
