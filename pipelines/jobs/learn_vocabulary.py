"""The job behind `learn_vocabulary`: documents in, a WordPiece vocabulary out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.corpora.readers import expand_patterns, open_text


@dataclass(frozen=True)
class LearnVocabularyConfig:
    """What to learn from and how large the vocabulary gets."""

    input_files: list[str]
    vocab_file: str
    vocab_size: int
    do_lower_case: bool = True
    strip_accents: bool | None = None
    limit_alphabet: int = 1000
    min_frequency: int = 2


def learn_vocabulary(config: LearnVocabularyConfig) -> Vocabulary:
    """Learns a vocabulary, writes it and gives it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    make_folder(Path(config.vocab_file).parent)
    counts: Counter[str] = Counter()
    progress = Progress("count words", None, "lines")
    for path in expand_patterns(config.input_files):
        with open_text(path) as file:
            for line in file:
                counts.update(
                    reference.split_words(line, config.do_lower_case, config.strip_accents)
                )
                progress.advance()
    progress.close()
    learner = Tokenizer(models.BPE(continuing_subword_prefix="##"))
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        limit_alphabet=config.limit_alphabet,
        special_tokens=list(SPECIAL_TOKENS),
        continuing_subword_prefix="##",
        show_progress=False,
    )
    learner.train_from_iterator(_repeated(counts), trainer)
    ids = learner.get_vocab()
    vocabulary = Vocabulary(sorted(ids, key=lambda piece: ids[piece]))
    if len(vocabulary) != config.vocab_size:
        raise UserError(
            f"vocab_size={config.vocab_size} cannot be reached: the text gives {len(vocabulary)} "
            "pieces; ask for fewer or give more text."
        )
    vocabulary.write(config.vocab_file)
    return vocabulary


def _repeated(counts: Counter[str]) -> Iterator[str]:
    for word in sorted(counts):
        yield f"{word} " * counts[word]
