import pytest

from keras_bert_impl.checkpoints.convert import ConvertConfig
from keras_bert_impl.checkpoints.grow import GrowConfig
from keras_bert_impl.options import options_of
from pipelines.vectors.options import FeaturesConfig


@pytest.mark.parametrize("job", [ConvertConfig, GrowConfig, FeaturesConfig])
def test_every_job_on_checkpoints_can_be_told_what_they_do_not_say(job):
    defaults = {one.name: one.default for one in options_of(job)}
    assert [defaults[name] for name in ("bert_config_file", "vocab_file", "do_lower_case")] == [
        None,
        None,
        None,  # not False: only what is given is compared with the checkpoint
    ]
