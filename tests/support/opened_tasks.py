"""Tasks of files, without a run."""

from dataclasses import replace

from pipelines.tasks.labels import task as labels
from pipelines.tasks.tagging import task as tagging


def open_labelled_texts(config, long_texts=None, trained=None):
    task = labels._Builder(config, trained).task()
    return task if long_texts is None else replace(task, long_texts=long_texts)


def open_tagging(config, trained=None):
    return tagging._Builder(config, trained).task()
