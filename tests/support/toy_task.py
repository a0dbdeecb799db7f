"""A task in under a hundred lines: is there a "value" anywhere in a text of any length?"""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.files import open_whole
from keras_bert_impl.serving.signatures import ServedModel, graph_function, text_specs
from keras_bert_impl.tokenization.graph_rows import pack_in_graph, window_contents, windows_in_graph
from keras_bert_impl.tokenization.long_texts import make_windows
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from pipelines.fine_tuning.heads import ClassificationHead
from pipelines.fine_tuning.task import TaskDefaults
from pipelines.fine_tuning.text_rows import Spans, pack
from pipelines.metrics.classification import accuracy
from pipelines.records.rows import Rows
from pipelines.tables.files import read_table

HEAD = ClassificationHead({"no": "no", "yes": "yes"})


@dataclass(frozen=True)
class ToyTask(TaskDefaults):
    """Windows of a text are rows; the text's answer is the one of its surest window."""

    data_dir: Path
    stride: int = 3
    name: str = "toy"
    train_split: str = "train"
    evaluation_splits: tuple = ("dev",)
    test_splits: tuple = ("dev",)

    @property
    def settings(self):
        return {"doc_stride": self.stride}

    def files(self, split):
        return [self.data_dir / f"{split}.tsv"]

    def examples(self, split):
        for line in read_table(self.files(split)[0], ["text", "label"]):
            yield SimpleNamespace(**line.values)

    def texts(self, example):
        return [example.text]

    def rows(self, examples, tokenizer, max_seq_length):
        texts = Spans.of(tokenizer.encode_lines([example.text for example in examples]))
        windows = make_windows(texts.length, max_seq_length - 2, self.stride)
        starts = texts.start[windows.document] + windows.start
        spans = Spans(texts.ids, starts, windows.lengths)
        lengths, tokens = pack(tokenizer.vocabulary, spans)
        found = tokens["input_ids"] == tokenizer.vocabulary.tokens.index("value")
        labels = np.maximum.reduceat(found, np.cumsum(lengths) - lengths).astype(np.int32)
        values = {"label_ids": labels, "window_start": windows.start}
        return Rows(windows.document, lengths, tokens, values)

    def configure(self, config):
        return HEAD.configure(config)

    def head(self, config, dtype=None):
        return HEAD.build(config, dtype)

    def answers(self, examples, rows, outputs):
        scores = outputs["logits"][:, 1] - outputs["logits"][:, 0]
        firsts = np.flatnonzero(np.diff(rows.examples, prepend=-1))
        return np.maximum.reduceat(scores, firsts).tolist()

    def score(self, answered):
        pairs = [(score > 0, example.label == "yes") for example, score in answered]
        return {"accuracy": accuracy(*zip(*pairs, strict=True))}

    def write(self, folder, split, answered):
        with open_whole(folder / "answers.txt") as file:
            file.writelines(f"{score}\n" for _, score in answered)
        return [folder / "answers.txt"]

    def served(self, opened, max_seq_length):
        settings = task_settings(opened.model.config)
        return ServedToy(opened, max_seq_length or settings["max_seq_length"], self.stride)


class ServedToy(ServedModel):
    def __init__(self, opened, length, stride):
        super().__init__(opened.model)
        model, text_settings = opened.model, opened.text
        tokenizer = graph_function(GraphTokenizer(text_settings), text_specs("texts"))

        def text(text):
            ids = tokenizer(text)
            windows = windows_in_graph(ids.row_lengths(), length - 2, stride)
            contents = window_contents(ids, windows)
            packed = pack_in_graph(contents, None, length, text_settings.vocabulary)
            logits = model(packed, training=False)["logits"]
            return {"score": tf.math.segment_max(logits[:, 1] - logits[:, 0], windows.document)}

        self.add_signature("text", text, text_specs("text"))
