"""The options of fine-tuning: of one run, of many of one command, and of a file for each split."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from keras_bert_impl.checkpoints.model_source import CheckpointOptions
from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.config import ENGINES, FLOAT32, INT8, TENSORFLOW, EngineConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models import head_settings
from keras_bert_impl.models.adapters import AdapterConfig
from keras_bert_impl.options import FREE, REQUIRED, Options, nested, option, options_of
from keras_bert_impl.tokenization.unknown_words import UnknownWords
from keras_bert_impl.training.config import MOST_EXAMPLES, TrainingConfig
from pipelines.corpora.encodings import UTF_8, TextEncoding

# BERT's paper, appendix A.3: what was searched for every task of GLUE, the best chosen on dev.
SEARCHES = {"paper": ((16, 32), (5e-5, 3e-5, 2e-5), (2.0, 3.0, 4.0))}


class Setting(NamedTuple):
    """The values that a search varies."""

    train_batch_size: int
    learning_rate: float
    num_train_epochs: float

    @property
    def folder(self) -> str:
        rate = f"{self.learning_rate:g}".replace("e-0", "e-")
        return f"batch-{self.train_batch_size}_rate-{rate}_epochs-{self.num_train_epochs:g}"


@dataclass(frozen=True, kw_only=True)
class ManyRunsConfig(Options):
    """Which runs one command stands for; the defaults are one run."""

    num_seeds: int = option(
        1,
        "Train this many models, each with another seed, the given one first, in its folder "
        "seed-NUMBER of the run's folder, and write mean, deviation, median, minimum, the best on "
        "the dev set and how many failed.",
        at_least=1,
        at_most=10_000,
        resume=FREE,
    )
    search: str | None = option(
        None,
        "Try settings and choose the best on the dev set: paper tries what BERT's paper did "
        "(batches of 16 and 32, learning rates 5e-5, 3e-5 and 2e-5, 2 to 4 epochs), 18 runs for "
        "each seed.",
        choices=tuple(SEARCHES),
        resume=FREE,
    )

    @property
    def are_many(self) -> bool:
        return self.num_seeds > 1 or self.search is not None

    def seeds(self, first: int) -> Iterator[int]:
        """`first` and the numbers after it (after the largest comes 0)."""
        return ((first + number) % 2**32 for number in range(self.num_seeds))

    def settings(self) -> list[Setting]:
        """The settings to try; none where the command's own is the only one."""
        return [Setting(*one) for one in product(*SEARCHES[self.search])] if self.search else []


class SplitFiles(Options):
    """Base of the options that name a file for each split: in a folder, or one by one."""

    FILE_NAMES: ClassVar[Mapping[str, str]] = {}
    data_dir: Path | None = None
    train_file: Any
    dev_file: Any
    test_file: Any

    @property
    def names_files(self) -> bool:
        return bool(self.data_dir or self.train_file or self.dev_file or self.test_file)

    def check_names_files(self, purpose: str) -> None:
        """Refuses options that name no file at all to learn from, say, or to tag."""
        if not self.names_files:
            train, dev, test = self.FILE_NAMES.values()
            raise UserError(
                f"nothing says what to {purpose}; give `data_dir`, the folder of {train}, {dev} "
                f"and {test}, or `train_file`, `dev_file` and `test_file`."
            )

    def file(self, split: str) -> Any:
        """The file of a split ("train", "dev" or "test"); None where there is none."""
        named = getattr(self, f"{split}_file")
        if named is not None or self.data_dir is None:
            return named
        if not self.data_dir.is_dir():
            train = self.FILE_NAMES["train"]
            raise UserError(f"{self.data_dir}: there is no such folder; name that of {train}.")
        path = self.data_dir / self.FILE_NAMES[split]
        return path if path.exists() else None


@dataclass(frozen=True, kw_only=True)
class FineTuningConfig(CheckpointOptions):
    """The options of a fine-tuning run; a task's own tool adds the task's in a class of its own.

    `flags` is the command as a flag file; `given` are the names of the options that the user set,
    None counts those that differ from their defaults. Without `reads_labels` a test file has none,
    whatever stands in it.
    """

    PART_OF_THE_MODEL: ClassVar[tuple[str, ...]] = ("encoder_bilstm", "dev_share", "dev_seed")
    """Options of which a trained model allows its own value only; of a dev set cut off the training
    file any other one holds training rows."""
    OF_FILES: ClassVar[tuple[str, ...]] = ()
    """Options that say where a file has what: other files, other values, the same answers."""
    LOOKED_UP: ClassVar[tuple[str, ...]] = ()
    """Options whose kept value the task looks up itself, because files may lack what they name."""
    IN_A_MODEL: ClassVar[Mapping[str, Any]] = {}
    """Types of what a model directory keeps in another form than the option, or without one."""

    output_dir: Path = option(REQUIRED, "The run's folder.", resume=FREE)
    do_train: bool = option(False, "Fine-tune on the training split.", resume=FREE)
    do_eval: bool = option(
        False,
        "Evaluate the dev file (of run_squad predict_file), after training where both are given.",
        resume=FREE,
    )
    do_predict: bool = option(
        False,
        "Write the predictions of the test file and, of files of your own, of the dev file.",
        resume=FREE,
    )
    # Of what stands for a file or a model, the content is compared when a run is resumed.
    init_checkpoint: str | None = option(
        None,
        "Weights to start from: a model directory, a TF1 checkpoint (prefix or folder), a run's "
        "folder or checkpoint, or a name on the Hugging Face hub. Without training the "
        "model/ of the run's folder is taken where there is one.",
        resume=FREE,
    )
    max_seq_length: int = option(
        128,
        "Tokens of a row; longer texts are truncated, or cut into windows by tasks that do so. "
        "Without training the default means the length that the model was trained with; a model "
        "of vectors says its own.",
        at_least=5,
    )
    eval_batch_size: int = option(
        8, "Rows computed at once when evaluating.", at_least=1, at_most=MOST_EXAMPLES, resume=FREE
    )
    predict_batch_size: int = option(
        8, "Rows computed at once when predicting.", at_least=1, at_most=MOST_EXAMPLES, resume=FREE
    )
    trim_padding: bool = option(
        True,
        "Pad each batch to its longest row only, rounded up to one of at most eight lengths: the "
        "same figures sooner (but for rounding and dropout's draws). Each length is compiled when "
        "it first comes, so a short run has few. On a TPU, and in training where several steps "
        "are one compiled call, all batches have the maximum.",
        resume=FREE,
    )
    engine: str = option(
        TENSORFLOW,
        "What evaluates and predicts where nothing is trained: tensorflow, or openvino, which "
        "is faster on CPUs and needs the extra openvino.",
        choices=ENGINES,
        resume=FREE,
    )
    num_train_epochs: float = option(
        3.0, "Training epochs.", at_least=0, at_most=1e6, resume=FREE, makes="num_train_steps"
    )
    warmup_proportion: float = option(
        0.1,
        "Share of the steps over which the learning rate rises.",
        at_least=0,
        at_most=1,
        resume=FREE,
        makes="num_warmup_steps",
    )
    encoder_bilstm: bool = option(
        False,
        "Put a BiLSTM of the encoder's width, with fresh weights, between encoder and head, as in "
        "the paper's left-to-right ablation.",
    )
    training: TrainingConfig = nested(
        TrainingConfig,
        without=("num_train_steps", "num_warmup_steps", "warmup_proportion", "batch_ramp"),
    )
    adapters: AdapterConfig = nested(AdapterConfig)
    unknown: UnknownWords = nested(UnknownWords)
    many: ManyRunsConfig = nested(ManyRunsConfig)
    engine_precision: str = FLOAT32
    flags: str = ""
    given: frozenset[str] | None = None
    reads_labels: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_engine()
        if self.many.search and self.training.train_hours:
            raise UserError(
                f"`search={self.many.search}` tries numbers of epochs, which `train_hours` has "
                "none of; leave one of them out."
            )
        if self.do_train:
            if self.training.train_hours:  # it allows less than epochs do
                replace(self.training, warmup_proportion=self.warmup_proportion)
            self.training.check_evaluates(self.do_eval)
            self.check_together()

    def check_together(self) -> None:
        """Holds options against each other that a trained model may bring some of."""

    @classmethod
    def known(cls, model: BertConfig, needed: Collection[str] = ()) -> dict[str, Any]:
        """The settings of the task that trained a model, each as its option has it."""
        options = {one.name: one.json_type for one in options_of(cls)}
        return task_settings(model, {**options, **cls.IN_A_MODEL}, needed)

    def kept(self, model: BertConfig) -> dict[str, Any]:
        """The options that the configuration of a trained model says, by their names."""
        known = {"dev_share": 0.0, "dev_seed": 0} | self.known(model)
        options = options_of(type(self))
        settings = {one.name: known[one.name] for one in options if one.name in known}
        return {**settings, "encoder_bilstm": head_settings.has_bilstm(model)}

    def kept_in_model(self, task: Any) -> Mapping[str, Any]:
        """Settings for the model directory besides those of the task, which make its rows."""
        del task
        return {}

    def _check_engine(self) -> None:
        """Gives `precision` to the engine where it is not TensorFlow, which trains nothing then."""
        other, precision = self.engine != TENSORFLOW, self.training.precision
        if other and self.do_train:
            raise UserError(
                f"`engine={self.engine}` evaluates and predicts, but trains nothing; leave it out "
                "of the command that trains."
            )
        if precision == INT8 or (other and precision != FLOAT32):
            EngineConfig(engine=self.engine, precision=precision)
            object.__setattr__(self, "engine_precision", precision)
            object.__setattr__(self, "training", replace(self.training, precision=FLOAT32))

    @property
    def file_encoding(self) -> TextEncoding:
        """How the text of the task's files is encoded, as these options or nested ones say."""
        paths = (one.path[:-1] for one in options_of(type(self)) if one.name == "encoding")
        found: Any = next((reduce(getattr, path, self) for path in paths), UTF_8)
        return found

    def configure(self, config: BertConfig) -> BertConfig:
        """The model's configuration with what the options change of it."""
        return head_settings.with_bilstm(self._with_pooling(config), self.encoder_bilstm)

    def _with_pooling(self, config: BertConfig) -> BertConfig:
        """The pooling that suits the model's attention, where a head is trained."""
        pooling = head_settings.trained_pooling(config) if self.do_train else None
        return head_settings.with_pooling(config, pooling)


@dataclass(frozen=True, kw_only=True)
class PooledConfig(FineTuningConfig):
    """The options of a run whose head reads one vector of the whole input."""

    pooling: str | None = option(
        None,
        "The vector that labels are read from: pooler, BERT's own; cls, the first token's in the "
        "last layer; mean, the mean of all tokens' there, for encoders trained for it such as "
        "MiniLM; last, as pooler at the last token. By default what the model that training starts "
        "from says, else pooler, or last where attention is from left to right.",
        choices=head_settings.HEAD_POOLINGS,
    )

    def kept(self, model: BertConfig) -> dict[str, Any]:
        kept, pooling = super().kept(model), head_settings.pooling_of(model)
        if self.pooling is not None or pooling != head_settings.POOLER:
            kept["pooling"] = pooling
        return kept

    def _with_pooling(self, config: BertConfig) -> BertConfig:
        if self.pooling is None:
            return super()._with_pooling(config)
        return head_settings.with_pooling(config, self.pooling)
