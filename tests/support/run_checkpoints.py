"""Checkpoints as runs write them, of any model, made in code."""

import json
from functools import partial

import tensorflow as tf

from keras_bert_impl.checkpoints.model_directory import describe_checkpoint
from keras_bert_impl.checkpoints.run_folder import step_folder
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.training.checkpoints import write_checkpoint
from tests.support.model_folders import WORD_VOCABULARY, tiny_config

TEXT = TextSettings(WORD_VOCABULARY, do_lower_case=False)


def write_step(checkpoints, model, step=1200, names=None, sentence=None, **groups):
    """One checkpoint of a run that trains a model; gives its folder.

    Args:
        checkpoints: the folder of checkpoints.
        model: any model of this project.
        step: the step.
        names: of the weights; by default those of the model.
        sentence: how a text becomes a vector.
        **groups: further groups of variables, or another one of `weights`.
    """
    weights = [tf.Variable(weight.value) for weight in model.weights]
    moments = [tf.Variable(tf.zeros_like(weight)) for weight in weights]
    folder = step_folder(checkpoints, step)
    write_checkpoint(
        folder,
        {"weights": weights, "adam_m": moments, "loss_scale": [tf.Variable(1.0)], **groups},
        {"step": step, "settings": {}},
        partial(
            describe_checkpoint,
            model=model,
            text=TEXT,
            names=names or [weight.path for weight in model.weights],
            sentence=sentence,
        ),
    )
    return folder


def labels_config(*labels, **changes):
    """A tiny configuration with named labels and a task's settings."""
    names = {str(number): label for number, label in enumerate(labels)}
    settings = {"keras_bert_impl": {"task": "toy", "max_seq_length": 9}}
    extra = {"id2label": names, "label2id": {name: int(n) for n, name in names.items()}}
    return tiny_config(extra={**extra, "task_specific_params": settings}, **changes)


def change_json(path, **values):
    """Gives some keys of a file of JSON other values; None leaves one out."""
    changed = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({name: v for name, v in changed.items() if v is not None}))
