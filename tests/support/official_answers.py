"""Recorded figures of the original's and the official scripts' code, and the files they are of."""

import json
import lzma

import pytest


def golden_folder(data_folder, name):
    """A folder of recorded numbers beside the data; the test skips where it is missing."""
    folder = data_folder.parent / "golden" / name
    if not folder.is_dir():
        pytest.skip(f"no recorded numbers at {folder}")
    return folder


def read_json(path):
    if path.suffix == ".xz":
        return json.loads(lzma.decompress(path.read_bytes()))
    return json.loads(path.read_bytes())


def answers_of(path, titles):
    """Identifier to answers of the articles of a SQuAD file with one of some titles."""
    return {
        question["id"]: [answer["text"] for answer in question["answers"]]
        for article in read_json(path)["data"]
        if article["title"] in titles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    }
