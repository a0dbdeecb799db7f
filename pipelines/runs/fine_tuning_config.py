"""The options of a fine-tuning run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.config import ENGINES, FLOAT32, PRECISIONS, TENSORFLOW
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.pooling import (
    HEAD_POOLINGS,
    POOLER,
    has_bilstm,
    pooling_of,
    trained_pooling,
    with_bilstm,
    with_pooling,
)
from keras_bert_impl.options import (
    FREE,
    REQUIRED,
    check_options,
    nested,
    option,
    options_of,
)
from keras_bert_impl.serving.task_settings import task_settings
from keras_bert_impl.tokenization.long_texts import TRUNCATE, LongTexts
from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.many_runs_config import ManyRunsConfig
from pipelines.tasks.glue import plain_name
from pipelines.tasks.labelled_texts_config import LabelledTextsConfig
from pipelines.tasks.xnli_config import XnliConfig


@dataclass(frozen=True, kw_only=True)
class FineTuningConfig:
    """The options of a fine-tuning run, whatever its task; the defaults are the original's.

    A task's own tool adds the task's options in a class that inherits this one.

    Attributes:
        flags: the command as a flag file, kept in the run directory.
        given: the names of the options that the user set, whatever their values; None counts
            those that differ from their defaults.

    Raises:
        UserError: a value out of range.
    """

    PART_OF_THE_MODEL: ClassVar[tuple[str, ...]] = ("encoder_bilstm",)
    """Options of which a trained model allows its own value only."""
    OF_FILES: ClassVar[tuple[str, ...]] = ()
    """Options that say where a file has what: other files, other values, the same answers."""
    LOOKED_UP: ClassVar[tuple[str, ...]] = ()
    """Options whose kept value the task looks up itself, because files may lack what they name."""

    output_dir: Path = option(REQUIRED, "The run's folder.", resume=FREE)
    do_train: bool = option(False, "Fine-tune on the training split.", resume=FREE)
    do_eval: bool = option(
        False, "Score the labelled split, after training where both are given.", resume=FREE
    )
    do_predict: bool = option(False, "Answer the test split.", resume=FREE)
    # Of what stands for a file or a model, the content is compared when a run is resumed.
    init_checkpoint: str | None = option(
        None,
        "Weights to start from: a model directory, a TF1 checkpoint (prefix or folder), or a name "
        "on the Hugging Face hub. Without training the model/ of the run's folder is taken where "
        "there is one.",
        resume=FREE,
    )
    bert_config_file: str | None = option(
        None,
        "The model's configuration (google's JSON form); not needed where training starts from a "
        "model that has its own.",
        resume=FREE,
    )
    vocab_file: str | None = option(
        None,
        "The vocabulary; not needed where training starts from a model that has its own.",
        resume=FREE,
    )
    do_lower_case: bool | None = option(
        None,
        "Lower-case the text; by default what the model that training starts from says, else yes.",
        resume=FREE,
    )
    max_seq_length: int = option(
        128,
        "Tokens of a row; longer texts are truncated, or cut into windows by tasks that do so. "
        "Without training the default means the length that the model was trained with.",
        at_least=5,
    )
    eval_batch_size: int = option(8, "Rows computed at once when scoring.", at_least=1, resume=FREE)
    predict_batch_size: int = option(
        8, "Rows computed at once when answering.", at_least=1, resume=FREE
    )
    trim_padding: bool = option(
        True,
        "Pad each batch to its longest row only, rounded up to one of at most eight lengths that "
        "suit the data: the same figures sooner (but for rounding and dropout's draws). XLA "
        "compiles each length when it first comes. On a TPU, and in training where several steps "
        "are one compiled call, all batches have the maximum.",
        resume=FREE,
    )
    group_by_length: bool = option(
        True,
        "Put rows of like lengths into a batch of training, so that hardly any padding is "
        "computed; every epoch still has each row once. Without it batches are drawn from all "
        "rows, as google's script draws them.",
    )
    engine: str = option(
        TENSORFLOW,
        "What computes scores and answers where nothing is trained: tensorflow, or openvino, which "
        "is faster on CPUs and needs the extra openvino.",
        choices=ENGINES,
        resume=FREE,
    )
    engine_precision: str = option(
        FLOAT32,
        "The number format that openvino computes in; the scales of int8 are found once on rows "
        "of the split, and kept beside the model.",
        choices=PRECISIONS,
        resume=FREE,
    )
    num_train_epochs: float = option(
        3.0,
        "Passes over the training split.",
        at_least=0,
        resume=FREE,
        makes="num_train_steps",
    )
    warmup_proportion: float = option(
        0.1,
        "Share of the steps over which the learning rate rises.",
        at_least=0,
        at_most=1,
        resume=FREE,
        makes="num_warmup_steps",
    )
    reinit_layers: int = option(
        0,
        "Start so many of the encoder's layers, counted from the top, from fresh weights instead "
        "of the checkpoint's; on small data more runs succeed (Zhang et al. 2021).",
        at_least=0,
    )
    reinit_pooler: bool = option(
        False, "Start the pooler from fresh weights instead of the checkpoint's."
    )
    encoder_bilstm: bool = option(
        False,
        "Put a BiLSTM of the encoder's width, with fresh weights, between encoder and head, as in "
        "the paper's left-to-right ablation.",
    )
    work_dir: Path | None = option(
        None,
        "Where tokenized rows are kept and found again, to be shared by several runs; by default "
        "work/ in the run's folder.",
        resume=FREE,
    )
    training: TrainingConfig = nested(
        TrainingConfig, without=("num_train_steps", "num_warmup_steps")
    )
    many: ManyRunsConfig = nested(ManyRunsConfig)
    flags: str = ""
    given: frozenset[str] | None = None

    def __post_init__(self) -> None:
        check_options(self)
        self._check_engine()
        if self.do_train:
            self.check_together()

    def check_together(self) -> None:
        """Holds options against each other that a trained model may bring some of.

        Raises:
            UserError: they exclude each other.
        """

    def kept(self, model: BertConfig) -> dict[str, Any]:
        """The options that the configuration of a trained model says, by their names.

        Args:
            model: the configuration of the model that is evaluated.
        """
        known, names = task_settings(model), {one.name for one in options_of(type(self))}
        settings = {name: value for name, value in known.items() if name in names}
        return {**settings, "encoder_bilstm": has_bilstm(model)}

    def kept_in_model(self, task: Any) -> Mapping[str, Any]:
        """What the model directory keeps besides the settings of the task, which make its rows."""
        del task
        return {}

    def _check_engine(self) -> None:
        if self.engine == TENSORFLOW:
            if self.engine_precision != FLOAT32:
                raise UserError(
                    f"`engine_precision={self.engine_precision}` needs `engine=openvino`; for "
                    "tensorflow give `precision`."
                )
        elif self.do_train:
            raise UserError(
                f"`engine={self.engine}` scores and answers, but trains nothing; leave it out of "
                "the command that trains."
            )
        elif self.training.precision != FLOAT32:
            raise UserError(
                f"`precision={self.training.precision}` is for tensorflow; give "
                f"`engine_precision` for `engine={self.engine}`."
            )

    @property
    def members(self) -> Sequence[str]:
        """The models that answer together; none where one answers."""
        return ()

    def configure(self, config: BertConfig) -> BertConfig:
        """The model's configuration with what the options change of it."""
        return with_bilstm(self._with_pooling(config), self.encoder_bilstm)

    def _with_pooling(self, config: BertConfig) -> BertConfig:
        """The pooling that suits the model's attention, where a head is trained."""
        return with_pooling(config, trained_pooling(config)) if self.do_train else config


@dataclass(frozen=True, kw_only=True)
class RunClassifierConfig(FineTuningConfig):
    """The options of a run for a task of GLUE or XNLI, or on files of one's own.

    Raises:
        UserError: a value out of range, or not exactly one of the two.
    """

    task_name: str | None = option(
        None,
        "CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE, WNLI, AX or XNLI; upper or lower case.",
        resume=FREE,  # what it stands for is compared
    )
    data_dir: Path | None = option(
        None,
        "The folder with the task's train.tsv, dev.tsv and test.tsv in GLUE's own layout, with "
        "AX's diagnostic.tsv, or the one in which XNLI's archives were unpacked.",
        resume=FREE,
    )
    own: LabelledTextsConfig = nested(LabelledTextsConfig)
    long_texts: LongTexts = nested(LongTexts)
    pooling: str | None = option(
        None,
        "The vector that labels are read from: pooler, BERT's own; cls, the first token's in the "
        "last layer; mean, the mean of all tokens' there, for encoders trained for it such as "
        "MiniLM; last, as pooler at the last token. By default what the model that training starts "
        "from says, else pooler, or last where attention is from left to right.",
        choices=HEAD_POOLINGS,
    )
    scale_labels: bool | None = option(
        None,
        "Learn numbers in units of the training labels' mean and deviation; answers, figures and "
        "the model that is written are in the labels' own units all the same. By default so for "
        "numbers of one's own, and not for STS-B, which the original learns as it is.",
        resume=FREE,
        makes="label_units",
    )
    xnli: XnliConfig = nested(XnliConfig)

    PART_OF_THE_MODEL: ClassVar = (*FineTuningConfig.PART_OF_THE_MODEL, "regression")
    OF_FILES: ClassVar = (
        *("text_column", "text_pair_column", "label_column", "header", "quotation"),
        *("ignored_labels", "dev_share", "dev_seed"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task_name is not None and self.own.is_given:
            raise UserError(
                f"`task_name={self.task_name}` and files of one's own (`train_file`, `dev_file`, "
                "`test_file`) exclude each other; give one of them."
            )
        if self.task_name is None and not self.own.is_given:
            raise UserError(
                "nothing says what to learn; give `task_name` and `data_dir` for a task of GLUE, "
                "or `train_file` for labelled texts of your own."
            )
        if self.task_name is not None and self.data_dir is None:
            raise UserError(
                f"`task_name={self.task_name}` needs `data_dir`, the folder with its files."
            )
        self._check_nothing_is_left_aside()

    def _check_nothing_is_left_aside(self) -> None:
        """Refuses options of one's own files beside a task of GLUE, which would do nothing."""
        if self.task_name is None:
            return
        options = options_of(LabelledTextsConfig)
        given = [one.name for one in options if getattr(self.own, one.name) != one.default]
        if given:
            raise UserError(
                f"`{given[0]}` is for files of one's own and would do nothing with "
                f"`task_name={self.task_name}`; leave it out, or name the files with `train_file`."
            )

    @property
    def is_xnli(self) -> bool:
        """Whether the task is XNLI."""
        return self.task_name is not None and plain_name(self.task_name) == "xnli"

    def kept(self, model: BertConfig) -> dict[str, Any]:
        """See `FineTuningConfig.kept`; a task of GLUE has no options of one's own files."""
        known = task_settings(model)
        kept, pooling = super().kept(model), pooling_of(model)
        if self.pooling is not None or pooling != POOLER:
            kept["pooling"] = pooling
        if "task" in known:  # where texts are truncated, the model directory does not say so
            kept |= LongTexts.from_settings(known).settings or {"long_text": TRUNCATE}
        if self.task_name is not None:
            own = {one.name for one in options_of(LabelledTextsConfig)}
            return {name: value for name, value in kept.items() if name not in own}
        if "problem_type" in model.extra:
            kept["regression"] = model.extra["problem_type"] == "regression"
        if self.own.names_columns:  # they may be those of a file of another layout
            kept.pop("header", None)
        if not self.own.train_file or self.own.dev_file:  # nothing to cut a dev set off
            kept.pop("dev_share", None)
            kept.pop("dev_seed", None)
        # The weights themselves, not how they were asked for: the task reads them.
        kept.pop("class_weights", None)
        return kept

    def kept_in_model(self, task: Any) -> Mapping[str, Any]:
        """How many texts an example has, and the language of XNLI's training."""
        language = {"xnli_language": self.xnli.xnli_language} if self.is_xnli else {}
        return {"num_texts": task.num_texts, **language}

    def _with_pooling(self, config: BertConfig) -> BertConfig:
        given = self.pooling is not None
        return with_pooling(config, self.pooling) if given else super()._with_pooling(config)
