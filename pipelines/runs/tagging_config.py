"""What a run that tags words or characters is told."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.frozen_features import (
    FEATURES,
    FrozenFeatures,
    frozen_features,
    with_frozen_features,
)
from keras_bert_impl.options import nested, option
from pipelines.runs.fine_tuning_config import FineTuningConfig
from pipelines.tasks.tagging.tagging_config import AUTO, TaggingConfig


@dataclass(frozen=True, kw_only=True)
class RunNerConfig(FineTuningConfig):
    """What a run for named entities is told.

    Raises:
        UserError: a value out of range, no file is named, or options exclude each other.
    """

    files: TaggingConfig = nested(TaggingConfig)
    features: str | None = option(
        None,
        "Leave the encoder as it is, and train a BiLSTM of two layers over these of its layers "
        "(BERT's paper, table 7): the embeddings, the second to last, the last, a learned weighted "
        "sum of the last four or of all, or the last four side by side. By default the whole "
        "model is fine-tuned.",
        choices=FEATURES,
    )
    lstm_size: int = option(
        768, "The width of each direction of the BiLSTM over features.", at_least=1
    )
    lstm_learning_rate: float = option(
        1e-3,
        "The peak learning rate with features, in place of learning_rate: only new weights learn.",
        more_than=0,
    )

    OF_FILES: ClassVar = ("word_column", "tag_column")
    LOOKED_UP: ClassVar = OF_FILES

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.files.names_files:
            raise UserError(
                "nothing says what to tag; give `data_dir`, the folder of train.txt, dev.txt and "
                "test.txt, or `train_file`, `dev_file` and `test_file`."
            )
        if self.features is not None:
            self._check_frozen()
            training = replace(self.training, learning_rate=self.lstm_learning_rate)
            object.__setattr__(self, "training", training)

    def kept(self, model: BertConfig) -> dict[str, Any]:
        """See `FineTuningConfig.kept`; what is given as auto is as the model was trained, too."""
        left_open = [name for name in self.given or () if getattr(self.files, name, None) == AUTO]
        kept = super().kept(model).items()
        return {name: value for name, value in kept if name not in left_open}

    def _check_frozen(self) -> None:
        """Refuses what changes an encoder or its vectors, or searches for their rates."""
        excluded = {
            "reinit_layers": self.reinit_layers,
            "reinit_pooler": self.reinit_pooler,
            "encoder_bilstm": self.encoder_bilstm,
            "search": self.many.search,
        }
        for name, value in excluded.items():
            if value:
                raise UserError(
                    f"`features={self.features}` leaves the encoder as it is; leave out `{name}`."
                )

    def configure(self, config: BertConfig) -> BertConfig:
        """The model's configuration with the features; a trained model keeps its own.

        Raises:
            UserError: a trained model reads other features than those that are asked for.
        """
        config = super().configure(config)
        if self.do_train:
            given = self.features and FrozenFeatures(self.features, self.lstm_size)
            return with_frozen_features(config, given or None)
        trained = frozen_features(config)
        if self.features is not None and (trained is None or trained.features != self.features):
            name = "the whole model was fine-tuned" if trained is None else trained.features
            raise UserError(
                f"`features={self.features}`: the model was trained otherwise ({name}); leave it "
                "out, or add `do_train=True`."
            )
        return config
