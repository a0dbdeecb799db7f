"""run_ner over frozen layers as a user runs it: killed in the middle, and repeated."""

import pytest

from tests.programs.test_classifier_program import run_until_checkpoint_then_kill
from tests.support import compiling, programs
from tests.support.model_folders import write_encoder
from tests.support.tagged_files import write_tagged


def command(inputs, output, *flags):
    return [
        "tools",
        "run_ner",
        f"--data_dir={inputs}",
        f"--init_checkpoint={inputs}/encoder",
        f"--output_dir={output}",
        f"--work_dir={output}-work",
        "--features=weighted_all",
        "--lstm_size=8",
        "--max_seq_length=16",
        "--train_batch_size=16",
        "--notrim_padding",
        "--num_train_epochs=8",
        "--save_checkpoints_steps=20",
        "--do_train",
        "--do_predict",
        *flags,
    ]


@pytest.mark.long
@pytest.mark.slow
def test_the_same_command_continues_a_killed_run_to_the_same_bits(tmp_path):
    write_encoder(tmp_path / "encoder", max_position_embeddings=16)
    for seed, (split, count) in enumerate({"train": 400, "dev": 40, "test": 20}.items()):
        write_tagged(tmp_path / f"{split}.txt", count, seed)
    killed, whole = tmp_path / "killed", tmp_path / "whole"

    run_until_checkpoint_then_kill(command(tmp_path, killed), killed / "checkpoints")
    assert not (killed / "model").exists()
    again = programs.run(command(tmp_path, killed), compiling.anew())
    assert again.returncode == 0, again.stderr
    # The vectors of the run that was killed are still there: nothing of the encoder is computed.
    assert "train: vectors of 2 layers, 0 computed now" in again.stderr

    programs.run(command(tmp_path, whole), compiling.anew(), check=True)
    for name in ("model/model.safetensors", "dev_predictions.txt", "test_predictions.txt"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
