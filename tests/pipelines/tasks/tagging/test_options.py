"""What a run for named entities may be told; the tool's tests hold the sentences."""

from pathlib import Path

import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.config import BertConfig
from pipelines.tasks.tagging.options import AUTO, RunNerConfig, TaggingConfig

TRAINED = with_task_settings(BertConfig(vocab_size=9), {"task": "ner", "tagging_scheme": "bioes"})


@pytest.mark.parametrize(
    ("scheme", "given", "is_compared"),
    [(AUTO, (), True), (AUTO, ("tagging_scheme",), False), ("iob2", ("tagging_scheme",), True)],
)
def test_auto_that_is_given_contradicts_no_scheme_of_the_model(scheme, given, is_compared):
    files = TaggingConfig(data_dir=Path("conll"), tagging_scheme=scheme)
    config = RunNerConfig(output_dir=Path("run"), files=files, do_eval=True, given=given)
    assert (config.kept(TRAINED).get("tagging_scheme") == "bioes") == is_compared
