"""Makes the two small files with which TensorFlow Datasets opens a folder of shards.

`tfds.builder_from_directory(folder)` reads `features.json` and `dataset_info.json`. Each set of
shards in the folder is a split, named like the set without its endings.
"""

import re
from collections.abc import Mapping, Sequence

from keras_bert_impl.json_files import json_text
from pipelines.records.description import Description, ShardEntry
from pipelines.records.features import Feature, pair_features
from pipelines.records.names import DESCRIPTION_SUFFIX

_MODULE = "tensorflow_datasets.core.features"


def split_name(output_name: str) -> str:
    """The split that a set is: its name up to the first full stop, letters and digits only.

    Example:
        >>> split_name("wiki-128.tfrecord")
        'wiki_128'
    """
    return re.sub(r"\W", "_", output_name.split(".", 1)[0]) or "train"


def metadata_files(sets: Mapping[str, Description], latest: str) -> dict[str, str]:
    """Makes the metadata of a folder."""
    named = {
        name.removesuffix(DESCRIPTION_SUFFIX): description for name, description in sets.items()
    }
    features = _features(named[latest.removesuffix(DESCRIPTION_SUFFIX)])
    alike = {name: each for name, each in sorted(named.items()) if _features(each) == features}
    info = {
        "description": named[latest.removesuffix(DESCRIPTION_SUFFIX)].summary(),
        "fileFormat": "tfrecord",
        "name": "pretraining_examples",
        "splits": [split for each in alike.items() for split in _splits(*each)],
        "version": "1.0.0",
    }
    spec = {
        "featuresDict": {"features": {feature.name: _tensor(feature) for feature in features}},
        "pythonClassName": f"{_MODULE}.features_dict.FeaturesDict",
    }
    return {
        "features.json": json_text(spec, indent=1) + "\n",
        "dataset_info.json": json_text(info, indent=1) + "\n",
    }


def _features(description: Description) -> tuple[Feature, ...]:
    recipe = description.recipe
    return pair_features(recipe.max_seq_length, recipe.stored_predictions)


def _splits(name: str, description: Description) -> list[dict]:
    """The split that a set is; where its shards have names of their own, each is a split."""
    shards = description.shards
    if shards and not shards[0].file.startswith(f"{name}-"):
        return [_split(shard.file, shard.file, [shard]) for shard in shards]
    return [_split(name, f"{name}-{{SHARD_X_OF_Y}}", shards)]


def _split(name: str, template: str, shards: Sequence[ShardEntry]) -> dict:
    return {
        "name": split_name(name),
        "filepathTemplate": template,
        "numBytes": str(sum(shard.bytes for shard in shards)),
        "shardLengths": [str(shard.counts.get("examples", 0)) for shard in shards],
    }


def _tensor(feature: Feature) -> dict:
    return {
        "pythonClassName": f"{_MODULE}.tensor_feature.Tensor",
        "tensor": {
            "dtype": "float32" if feature.is_float else "int64",
            "encoding": "none",
            "shape": {"dimensions": [str(feature.size)]},
        },
    }
