from keras_bert_impl.training.guesses import Guess, write_guesses
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.demo_report import DemoPaths, demo_report


def test_the_screen_shows_what_was_reached_beside_guessing_and_where_it_lies(tmp_path):
    run = tmp_path / "run"
    (run / "model").mkdir(parents=True)
    (run / "eval_results.txt").write_text(
        "global_step = 7\nmasked_lm_accuracy = 0.25\nmasked_lm_loss = 4.5\n"
        "next_sentence_accuracy = 0.75\n"
    )
    guessed = {"masked_lm_accuracy": 0.05, "masked_lm_loss": 6.0, "next_sentence_accuracy": 0.5}
    guesses = {name: Guess("guessing", value) for name, value in guessed.items()}
    write_guesses(RunDirectory(run), guesses)
    (tmp_path / "text.txt").write_text("x" * 1000)
    (tmp_path / "shards.tfrecord-00000-of-00001").write_bytes(bytes(2000))
    screen = demo_report(
        DemoPaths(tmp_path / "text.txt", tmp_path / "shards.tfrecord", run),
        {"learn_vocabulary": 2.0, "run_pretraining": 70.0},
    )
    assert "masked word, accuracy             25.0 %      5.0 %" in screen
    assert "masked word, loss in nats          4.500      6.000" in screen
    assert "next sentence, accuracy           75.0 %     50.0 %" in screen
    assert "text 1.00kB · training shards 2.00kB" in screen
    assert "learn_vocabulary 2s · run_pretraining 1m10s" in screen
    assert "total   1m12s" in screen
