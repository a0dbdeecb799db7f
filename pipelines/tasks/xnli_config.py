"""Which of XNLI's languages a run reads."""

from dataclasses import dataclass

from keras_bert_impl.options import FREE, check_options, option

LANGUAGES = (
    "ar",
    "bg",
    "de",
    "el",
    "en",
    "es",
    "fr",
    "hi",
    "ru",
    "sw",
    "th",
    "tr",
    "ur",
    "vi",
    "zh",
)


@dataclass(frozen=True, kw_only=True)
class XnliConfig:
    """The languages of a run for XNLI.

    Example:
        >>> XnliConfig(xnli_language="zh").scored
        ('zh',)
        >>> len(XnliConfig(xnli_eval_languages=("all",)).scored)
        15
    """

    xnli_language: str = option(
        "en",
        "With task_name XNLI: the language to train on; another one than en is MNLI's training set "
        "translated by a machine (translate-train).",
        choices=LANGUAGES,
        resume=FREE,  # the training data is compared
    )
    xnli_eval_languages: tuple[str, ...] = option(
        (),
        "With task_name XNLI: the languages to score and to answer, or all; by default the one "
        "that is trained on.",
        resume=FREE,
    )

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def scored(self) -> tuple[str, ...]:
        """The languages to score, the one of training first where it is among them."""
        if not self.xnli_eval_languages:
            return (self.xnli_language,)
        every = self.xnli_eval_languages == ("all",)
        languages = LANGUAGES if every else dict.fromkeys(self.xnli_eval_languages)
        return tuple(sorted(languages, key=lambda one: one != self.xnli_language))
