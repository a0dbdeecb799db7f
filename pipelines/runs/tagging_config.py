"""What a run that tags words or characters is told."""

from dataclasses import dataclass

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import nested
from pipelines.runs.fine_tuning_config import FineTuningConfig
from pipelines.tasks.tagging.tagging_config import TaggingConfig


@dataclass(frozen=True, kw_only=True)
class RunNerConfig(FineTuningConfig):
    """What a run for named entities is told.

    Raises:
        UserError: a value out of range, or no file is named.
    """

    files: TaggingConfig = nested(TaggingConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.files.names_files:
            raise UserError(
                "nothing says what to tag; give `data_dir`, the folder of train.txt, dev.txt and "
                "test.txt, or `train_file`, `dev_file` and `test_file`."
            )
