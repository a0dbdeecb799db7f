"""The original's recorded features and predictions of some paragraphs of SQuAD."""

import lzma

import numpy as np

from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.questions.files import read_questions
from pipelines.tasks.questions.rows import WindowSettings, question_rows
from tests.support.official_answers import golden_folder, read_json

SETS = ("v11", "v20")


class SquadGolden:
    """What the original made of one set of paragraphs, and our rows of them."""

    def __init__(self, data_folder, name):
        self.folder, self.name = golden_folder(data_folder, "squad"), name
        vocabulary = Vocabulary.load(data_folder / "vocab" / "bert-base-uncased-vocab.txt")
        self.text = TextSettings(vocabulary)
        self.tokenizer = Tokenizer(self.text)
        self.summary = read_json(self.folder / "summary.json")
        names = ("max_seq_length", "doc_stride", "max_query_length")
        self.windows = WindowSettings(*(self.summary[name] for name in names))
        chosen = {
            identifier
            for paragraph in read_json(self.folder / f"{name}_paragraphs.json")
            for identifier in paragraph["qas_ids"]
        }
        path = data_folder / "squad" / f"dev-v{name[1]}.{name[2]}.json.xz"
        every = read_questions(path, version_2_with_negative=name == "v20")
        self.questions = [question for question in every if question.identifier in chosen]

    def recorded(self, split):
        return read_json(self.folder / f"{self.name}_{split}_features.json.xz")

    def rows(self, *, training):
        return question_rows(self.questions, self.tokenizer, self.windows, training=training)

    def logits(self, kind="plain"):
        """Recorded start and end logits [rows, length], changed as they were for the original.

        "rounded" ones are full of ties; "nullboost" ones make no answer likely.
        """
        file = np.load(self.folder / f"{self.name}_logits.npz")
        both = [file["start_logits"], file["end_logits"]]
        if kind == "rounded":
            both = [np.round(logits) for logits in both]
        elif kind == "nullboost":
            for logits in both:
                logits[:, 0] += 7
        return both

    def prediction_files(self, kind, negative):
        """The recorded files by their names, as bytes."""
        kind = "" if kind == "plain" else f"{kind}_"
        folder = self.folder / f"{self.name}_{kind}negative_{str(negative).lower()}"
        files = {path.name: path.read_bytes() for path in folder.glob("*.json")}
        del files["original_fails_on.json"]
        for path in folder.glob("*.json.xz"):
            files[path.stem] = lzma.decompress(path.read_bytes())
        return files
