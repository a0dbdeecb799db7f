from keras_bert_impl.training.guesses import Guess, line_of, read_guesses, write_guesses
from keras_bert_impl.training.run_directory import RunDirectory


def test_a_run_without_the_file_has_no_guesses(tmp_path):
    assert read_guesses(RunDirectory.open(tmp_path)) == {}


def test_guesses_survive_the_file_to_the_bit(tmp_path):
    run = RunDirectory.open(tmp_path)
    guesses = {"f1": Guess("언제나 같은 답", 1 / 3), "loss": Guess("always the mean", 1e-30)}
    write_guesses(run, guesses)
    assert read_guesses(run) == guesses


def test_a_figure_that_has_a_guess_is_printed_with_it():
    guesses = {"eval_accuracy": Guess("always the most frequent class", 0.550459)}
    line = "eval_accuracy = 0.84  (always the most frequent class: 0.550459)"
    assert line_of("eval_accuracy", 0.84, guesses) == line
    assert line_of("eval_loss", 0.5, guesses) == "eval_loss = 0.5"
