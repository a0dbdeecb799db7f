"""A model asked from Python: texts in, answers out, or documents in the order of their scores."""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.engines.config import FLOAT32
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Answer, ask, asked_answerer, instances_of
from keras_bert_impl.serving.reranking import best_of, pair_scoring
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.opening import OpenAnsweringModel, open_answering_model


class Predictor(contextlib.AbstractContextManager["Predictor"]):
    """A model of any kind and the answers that it gives; several threads may ask it at once.

    Args:
        model: an open model.

    Attributes:
        model: the open model.
        kind: what it gives first: "label", "labels", "number", "answer", "entities", "choice",
            "masked_words", "next_sentence" or "vector".
        signatures: the names of the answers that it gives; the first one is the default.
        description: what is known of the model, as JSON values.
        close: releases the engine, as `with` does; nothing can be asked afterwards.
    """

    def __init__(self, model: OpenAnsweringModel) -> None:
        self.model, self.close = model, model.close
        self.signatures = tuple(model.answerers)
        self.kind = model.answerers[self.signatures[0]].kind
        self.description = dict(model.description)

    def __exit__(self, *error: object) -> None:
        self.close()

    @classmethod
    def from_pretrained(
        cls,
        path_or_name: str | os.PathLike[str],
        *,
        engine: str | None = None,
        precision: str = FLOAT32,
        deterministic: bool = False,
        max_seq_length: int | None = None,
        top_k: int = 10,
        vectors: bool = False,
        calibration_texts: Iterable[Any] = (),
        bert_config_file: str | None = None,
        vocab_file: str | None = None,
        do_lower_case: bool | None = None,
        adapter: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Opens a model.

        Args:
            path_or_name: a model directory, a TF1 checkpoint, a run's folder or checkpoint, a name
                on the Hugging Face hub, or an export for OpenVINO.
            engine: "tensorflow", or "openvino", which is faster on CPUs, has to be installed, and
                starts in a second from the second time on.
            precision: "float32", "bfloat16", or with OpenVINO "int8".
            deterministic: compute every text alone, so that it gets the same numbers whatever
                stands beside it.
            max_seq_length: the most tokens of a row; by default as in training.
            top_k: how many words are given for each [MASK].
            vectors: give the vector of each text, whatever the model was trained for.
            calibration_texts: texts like those to come; some hundred of them give the scales of
                int8, once, which are kept next to the model.
            bert_config_file: the configuration, if there is none beside the weights.
            vocab_file: the vocabulary, if there is none beside the weights.
            do_lower_case: the casing, if no file says it.
            adapter: the folder of an adapter (LoRA, in PEFT's form) that changes the model.

        Raises:
            UserError: there is no such model, it answers nothing, or its engine is not installed.
        """
        config = AnsweringConfig(
            model=str(path_or_name),
            engine=engine,
            precision=precision,
            deterministic=deterministic,
            max_seq_length=max_seq_length,
            top_k=top_k,
            vectors=vectors,
            bert_config_file=bert_config_file,
            vocab_file=vocab_file,
            do_lower_case=do_lower_case,
            adapter=None if adapter is None else os.fspath(adapter),
        )
        return cls(open_answering_model(config, lambda: calibration_texts))

    def __call__(self, texts: Any, *, signature: str | None = None) -> Any:
        """Answers texts.

        Args:
            texts: a text; a pair of texts, a question with its passage or a context with its
                endings as a tuple; an instance as a dict of the signature's inputs; or a list of
                any of them.
            signature: which of `signatures` is asked; by default the first one that takes as many
                texts.

        Returns:
            An answer (a dict of JSON values), or of a list the answers in its order.

        Raises:
            UserError: something is not what the model answers.
        """
        one = isinstance(texts, str | tuple | Mapping) or not isinstance(texts, Iterable)
        asked: Sequence[Any] = [texts] if one else list(texts)
        answerer = asked_answerer(self.model.answerers, asked, signature)
        answers: list[Answer] = ask(answerer, instances_of(answerer, asked))
        return answers[0] if one else answers


class Reranker(contextlib.AbstractContextManager["Reranker"]):
    """A cross-encoder: gives each document a score for a query, and puts them in order.

    Args:
        predictor: an open model of pairs.
        positive_label: the label whose probability is the score, where the model has labels; by
            default the second one of two. Of a model of one number the score is the number, behind
            the activation that sentence-transformers' `CrossEncoder` puts behind it.

    Raises:
        UserError: the model scores no pairs, its labels leave open which one is the positive one,
            or its files name an activation that is not known.
    """

    def __init__(self, predictor: Predictor, positive_label: str | None = None) -> None:
        self._predictor, self.close = predictor, predictor.close
        self._scoring = pair_scoring(predictor.model, positive_label)

    def __exit__(self, *error: object) -> None:
        self.close()

    @classmethod
    def from_pretrained(
        cls,
        path_or_name: str | os.PathLike[str],
        *,
        positive_label: str | None = None,
        **options: Any,
    ) -> Self:
        """Opens a model of pairs of a query and a document.

        Args:
            path_or_name: the model, in any form that `Predictor.from_pretrained` takes.
            positive_label: see the class.
            options: the engine and whatever else `Predictor.from_pretrained` takes.
        """
        return cls(Predictor.from_pretrained(path_or_name, **options), positive_label)

    def score(self, pairs: Iterable[Iterable[str]]) -> NDArray[np.float32]:
        """Scores pairs of a query and a document.

        Returns:
            A score each, in their order.
        """
        return np.array([*map(self._scoring.score, self._answers(pairs))], np.float32)

    def rank(
        self,
        query: str,
        documents: Iterable[str],
        top_k: int | None = None,
        return_documents: bool = False,
    ) -> list[dict[str, Any]]:
        """Puts documents in order, the best first; those of one score stay in their order.

        Args:
            query: what is asked.
            documents: candidates, such as the first hundred of a search.
            top_k: how many are given; all by default.
            return_documents: whether the texts are given.

        Returns:
            Of each document `corpus_id`, its number from 0, its `score`, and perhaps its `text`.
        """
        if isinstance(documents, str) or not isinstance(documents, Iterable):
            raise UserError("`documents` is no list of texts; give one.")
        if top_k is not None and (not isinstance(top_k, int | np.integer) or top_k < 1):
            raise UserError(f"`top_k={top_k}` must be a whole number from 1 on.")
        texts = list(documents)
        answers = self._answers((query, text) for text in texts)
        return [
            {"corpus_id": number, "score": self._scoring.score(answers[number])}
            | ({"text": texts[number]} if return_documents else {})
            for number in best_of(self._scoring, answers, top_k)
        ]

    def _answers(self, pairs: Iterable[Iterable[str]]) -> list[Answer]:
        asked = [tuple(pair) if isinstance(pair, list | np.ndarray) else pair for pair in pairs]
        return list(self._predictor(asked, signature=self._scoring.answerer.signature))
