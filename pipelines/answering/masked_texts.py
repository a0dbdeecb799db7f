"""The words that may stand at [MASK] in texts, as a job: in TensorFlow's graph, or by an engine."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from keras_bert_impl.errors import SeveralUserError
from keras_bert_impl.serving.answerer import Answer, ask
from keras_bert_impl.serving.config import FillMaskConfig
from keras_bert_impl.serving.fill_mask import (
    SIGNATURE,
    Candidate,
    FilledText,
    FillMask,
    no_head,
    read_texts,
    shortened,
)
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import check_words
from keras_bert_impl.tokenization.vocabulary import MASK
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.opening import is_asked_in_graph, no_texts, open_answering_model


@dataclass(frozen=True)
class FilledTexts:
    """What became of the texts.

    Attributes:
        filled: those with [MASK], in their order.
        refused: a sentence for each text without [MASK].
    """

    filled: list[FilledText]
    refused: list[str]


def fill_mask(config: FillMaskConfig) -> FilledTexts:
    """Fills in the texts that a configuration gives; those without [MASK] are told by their place.

    Raises:
        UserError: there is no text, none of them has [MASK], or the model is not what it should be.
    """
    given = read_texts(config)
    refused = [
        f"{one.where}: '{shortened(one.text)}' has no {MASK}; write {MASK} for the word to find."
        for one in given
        if MASK not in one.text
    ]
    texts = [one.text for one in given if MASK in one.text]
    if not texts:
        raise SeveralUserError(refused)
    fill = _in_graph if is_asked_in_graph(config.model, config) else _by_engine
    return FilledTexts(fill(config, texts), refused)


def _in_graph(config: FillMaskConfig, texts: Sequence[str]) -> list[FilledText]:
    answers = FillMask.load(
        config.model,
        config.top_k,
        trust_saved_model=config.trust_saved_model,
        **config.description(),
    )
    _check_words(texts, answers.text)
    return answers.fill(texts, config.top_k)


def _by_engine(config: FillMaskConfig, texts: Sequence[str]) -> list[FilledText]:
    options = AnsweringConfig.of(config, top_k=config.top_k)
    with contextlib.closing(open_answering_model(options, no_texts)) as model:
        answerer = model.answerers.get(SIGNATURE)
        if answerer is None:
            raise no_head(config.model)
        _check_words(texts, model.text)
        answers = ask(answerer, [{"text": text} for text in texts])
    return [_filled(*pair) for pair in zip(texts, answers, strict=True)]


def _filled(text: str, answer: Answer) -> FilledText:
    pairs = zip(answer["tokens"], answer["probabilities"], strict=True)
    masks = [[Candidate(*one) for one in zip(*pair, strict=True)] for pair in pairs]
    return FilledText(text, masks, answer["num_truncated"])


def _check_words(texts: Sequence[str], text: TextSettings | None) -> None:
    if text is not None:
        without_masks = (one.replace(MASK, " ") for one in texts)
        check_words(without_masks, text, "the texts", may_refuse=False)
