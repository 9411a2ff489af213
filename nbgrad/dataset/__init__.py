"""MindSpore's `dataset`: rows of arrays, read, transformed, shuffled and batched by worker threads.

In: generators, arrays, folders of images, files of rows. Out: batches, for `train.Model` or a loop. Called by users.
`NAMES` lists every name by the module that holds it; a module is imported when one of its names is first used. Files of
MindSpore's MindRecord are not read.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..mindspore_paths import submodule

NAMES: dict[str, str] = {
    "pipeline": "Dataset BatchDataset MapDataset RepeatDataset ShuffleDataset ZipDataset",
    "sources": "GeneratorDataset NumpySlicesDataset",
    "image_files": (
        "VisionBaseDataset ImageFolderDataset MnistDataset FashionMnistDataset Cifar10Dataset Cifar100Dataset"
    ),
    "record_files": "MindDataset",
    "tfrecord_dataset": "TFRecordDataset Schema",
    "row_cache": "DatasetCache",
    "samplers": (
        "Sampler SequentialSampler RandomSampler DistributedSampler SubsetSampler SubsetRandomSampler "
        "WeightedRandomSampler"
    ),
    "dataset_config": "Shuffle",
}
_module_of = {name: module for module, names in NAMES.items() for name in names.split()}
_PATHS = ("config", "text", "transforms", "vision")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name == "zip":
        return __getattr__("ZipDataset")
    module = _module_of.get(name)
    if module is None:
        if (path := submodule("dataset", name)) is not None:
            return path
        message = f"nbgrad.dataset has no {name!r}"
        raise AttributeError(message)
    found = globals()[name] = getattr(import_module(f".{module}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted([*_module_of, *_PATHS, "zip"])
