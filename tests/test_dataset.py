"""Datasets: sources, samplers, stages, worker threads, images in files."""

from __future__ import annotations

import gzip
import struct
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import dataset
from nbgrad.dataset import transforms, vision
from nbgrad.errors import NbgradError


def slices(count: int = 7, **options: Any) -> Any:
    return dataset.NumpySlicesDataset(np.arange(count), ["a"], **{"shuffle": False, **options})


def listed(data: Any) -> list[Any]:
    return [[np.asarray(part).tolist() for part in row] for row in data.create_tuple_iterator(output_numpy=True)]


def firsts(data: Any) -> list[Any]:
    return [row[0] for row in listed(data)]


STAGES: list[tuple[Any, list[Any]]] = [
    (lambda d: d.take(2), [0, 1]),
    (lambda d: d.skip(5), [5, 6]),
    (lambda d: d.take(4).skip(2), [2, 3]),
    (lambda d: d.repeat(2).skip(6), [6, 0, 1, 2, 3, 4, 5, 6]),
    (lambda d: d.filter(lambda a: a % 3 == 0), [0, 3, 6]),
    (lambda d: d.map(lambda a: a * 2).take(3), [0, 2, 4]),
    (lambda d: d.map([lambda a: a + 1, lambda a: a * 10], num_parallel_workers=1).take(2), [10, 20]),
    (lambda d: d.batch(3), [[0, 1, 2], [3, 4, 5], [6]]),
    (lambda d: d.batch(3, drop_remainder=True), [[0, 1, 2], [3, 4, 5]]),
    (lambda d: d.take(4).batch(2, per_batch_map=lambda a, b: [x * b.get_batch_num() for x in a]), [[0, 0], [2, 3]]),
    (lambda d: d.take(2).concat(d.skip(6)), [0, 1, 6]),
    (lambda d: d.take(1) + d.take(1), [0, 0]),
    (lambda d: d.split([5, 2], randomize=False)[1], [5, 6]),
    (lambda d: d.apply(lambda d: d.take(1)), [0]),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "expected"), STAGES)
def test_stages(stage: Any, expected: list[Any]) -> None:
    data = stage(slices())
    assert firsts(data) == expected
    assert firsts(data) == expected, "a second epoch is the same"
    assert data.get_dataset_size() == len(data) == len(expected)


def test_columns() -> None:
    data = dataset.NumpySlicesDataset({"a": np.arange(2), "b": np.arange(2) * 10.0}, shuffle=False)
    assert data.get_col_names() == ["a", "b"]
    assert listed(data.project(["b", "a"])) == [[0.0, 0], [10.0, 1]]
    assert data.rename("a", "c").get_col_names() == ["c", "b"]
    both = data.map(lambda a, b: (a + b, a - b, a * b), ["a", "b"], ["s", "d", "p"])
    assert (both.get_col_names(), listed(both)[1]) == (["s", "d", "p"], [11.0, -9.0, 10.0])
    swapped = data.map(lambda b: b + 1, "b", column_order=["b", "a"])
    assert listed(swapped) == [[1.0, 0], [11.0, 1]]
    side = dataset.zip((data, slices(3).rename("a", "z")))
    assert (side.get_col_names(), len(side)) == (["a", "b", "z"], 2)
    row = next(iter(data.create_dict_iterator()))
    assert isinstance(row["b"], nb.Tensor)
    assert data.batch(2).output_shapes() == [[2], [2]]
    assert data.output_types() == [np.int64, np.float64]
    assert len(list(data.batch(2).repeat(3).create_tuple_iterator(num_epochs=1))) == 3
    assert (data.batch(2).get_batch_size(), data.repeat(3).get_repeat_count()) == (2, 3)


SAMPLERS: list[tuple[Any, list[int]]] = [
    (dataset.SequentialSampler(2, 3), [2, 3, 4]),
    (dataset.SubsetSampler([5, 0, 5]), [5, 0, 5]),
    ([3, 1], [3, 1]),
    (dataset.DistributedSampler(3, 1, shuffle=False), [1, 4, 0]),
    (dataset.DistributedSampler(3, 0, shuffle=False, offset=1), [2, 5, 1]),
]


@pytest.mark.parametrize(("sampler", "expected"), SAMPLERS)
def test_samplers(sampler: Any, expected: list[int]) -> None:
    data = slices(7, sampler=sampler, shuffle=None)
    assert firsts(data) == expected
    assert len(data) == len(expected)


def test_random_orders_are_permutations_and_follow_the_seed() -> None:
    def orders() -> list[Any]:
        dataset.config.set_seed(5)
        made = [
            slices(20, shuffle=True),
            slices(20).shuffle(4),
            slices(20, sampler=dataset.DistributedSampler(1, 0), shuffle=None),
        ]
        return [firsts(data) for data in made for _ in range(2)]  # fmt: skip

    found = orders()
    assert found == orders()
    assert all(sorted(one) == list(range(20)) for one in found)
    assert len({tuple(one) for one in found}) == 6, "each epoch has another order"
    # A buffer of 4: the k-th row given is one of the first k + 4.
    assert all(value < place + 5 for place, value in enumerate(found[2]))
    weighted = slices(4, sampler=dataset.WeightedRandomSampler([0, 1, 0, 0], 5), shuffle=None)
    assert firsts(weighted) == [1] * 5
    drawn = firsts(slices(4, sampler=dataset.RandomSampler(replacement=True, num_samples=50), shuffle=None))
    assert len(drawn) == 50 and {*drawn} == {0, 1, 2, 3}


def test_random_transforms_follow_the_seed_in_threads() -> None:
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)

    def pictures(workers: int) -> list[Any]:
        dataset.config.set_seed(1)
        data = dataset.GeneratorDataset([image] * 12, "image", shuffle=False)
        change = [
            vision.RandomCrop(3, padding=1),
            vision.RandomHorizontalFlip(),
            vision.RandomColorAdjust(0.2, 0.2, 0.2, 0.1),
        ]
        return firsts(data.map(change, num_parallel_workers=workers))  # fmt: skip

    one = pictures(1)
    assert one == pictures(3)
    assert len({str(picture) for picture in one}) > 3


def test_threads_keep_the_order_and_give_their_own_errors() -> None:
    names: set[str] = set()

    def slow(a: np.ndarray) -> np.ndarray:
        names.add(threading.current_thread().name)
        if a == 5:
            raise OSError("row 5 is gone")
        return a * 2

    data = slices(20).map(slow, num_parallel_workers=3)
    found: list[int] = []
    with pytest.raises(OSError, match="row 5 is gone"):
        for row in data.create_tuple_iterator(output_numpy=True):
            found.append(int(row[0]))
    assert found == [0, 2, 4, 6, 8]
    assert all(name.startswith("nbgrad-dataset") for name in names)


def test_generators() -> None:
    class Rows:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return np.float32(index), nb.Tensor([index]), "text"

    data = dataset.GeneratorDataset(Rows(), ["x", "t", "s"], shuffle=False, num_parallel_workers=2)
    assert listed(data)[2] == [2.0, [2], "text"]
    assert len(data) == 3
    assert sorted(firsts(dataset.GeneratorDataset(Rows(), ["x", "t", "s"]))) == [0.0, 1.0, 2.0]
    once = dataset.GeneratorDataset(lambda: iter([(1,), (2,)]), "x", num_samples=1)
    assert (firsts(once), firsts(once), len(once)) == ([1], [1], 1)
    batches = dataset.GeneratorDataset(Rows(), ["x", "t", "s"], batch_sampler=[[0, 2], [1]])
    assert [row[0] for row in listed(batches)] == [[0.0, 2.0], [1.0]]
    padded = dataset.GeneratorDataset([np.ones(2), np.ones(3)], "x", shuffle=False).padded_batch(
        2, pad_info={"x": ([4], -1)}
    )
    assert firsts(padded) == [[[1, 1, -1, -1], [1, 1, 1, -1]]]  # fmt: skip


def test_images_in_folders(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, colour in (("cat", 10), ("dog", 200)):
        (tmp_path / name).mkdir()
        image.fromarray(np.full((4, 6, 3), colour, np.uint8)).save(tmp_path / name / "1.png")
        (tmp_path / name / "notes.txt").write_text("no image")
    data = dataset.ImageFolderDataset(str(tmp_path), shuffle=False)
    assert (data.num_classes(), data.get_class_indexing()) == (2, {"cat": 0, "dog": 1})
    read = data.map([vision.Decode(), vision.Resize(2), vision.ToTensor()], "image").batch(2)
    (pictures, labels) = next(iter(read.create_tuple_iterator(output_numpy=True)))
    assert pictures.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(pictures[:, 0, 0, 0], [10 / 255, 200 / 255], rtol=1e-6)
    assert (labels.tolist(), labels.dtype) == ([0, 1], np.int32)
    whole = next(
        iter(
            dataset.ImageFolderDataset(tmp_path, decode=True, class_indexing={"dog": 7}).create_tuple_iterator(
                output_numpy=True
            )
        )
    )
    assert (whole[0].shape, int(whole[1])) == ((4, 6, 3), 7)  # fmt: skip
    crop = data.map(vision.RandomCropDecodeResize((3, 3)), "image")
    assert crop.output_shapes()[0] == [3, 3, 3]
    pil = vision.ToPIL()(np.zeros((2, 2, 3), np.uint8))
    assert isinstance(vision.HorizontalFlip()(pil), image.Image)


def test_mnist_and_cifar(tmp_path: Path) -> None:
    pictures = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 2, 28, 28) + pictures.tobytes())
    labels = struct.pack(">4BI", 0, 0, 8, 1, 2) + bytes([7, 3])
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    first, second = dataset.MnistDataset(str(tmp_path), "train", shuffle=False).create_tuple_iterator(output_numpy=True)
    np.testing.assert_array_equal(first[0][:, :, 0], pictures[0])
    assert (int(second[1]), second[1].dtype) == (3, np.uint32)
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels[:-1]))
    with pytest.raises(NbgradError, match="damaged"):
        dataset.MnistDataset(str(tmp_path))
    row = np.arange(3073, dtype=np.uint8)
    (tmp_path / "test_batch.bin").write_bytes(row.tobytes())
    (image, label) = next(iter(dataset.Cifar10Dataset(tmp_path, "test").create_tuple_iterator(output_numpy=True)))
    assert int(label) == 0
    np.testing.assert_array_equal(image, row[1:].reshape(3, 32, 32).transpose(1, 2, 0))


def test_more_transforms() -> None:
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert vision.Grayscale()(np.array([[[100, 50, 0]]], np.uint8)).tolist() == [[59]]  # 29.9 + 29.35
    assert vision.Crop((1, 0), (1, 2))(image).tolist() == image[1:].tolist()
    assert vision.CutOut(4)(np.ones((2, 2, 3))).sum() == 0
    assert vision.RandomResizedCrop((3, 5))(image).shape == (3, 5, 3)
    grey = vision.RandomColorAdjust(saturation=(0, 0))(np.array([[[100, 50, 0]]], np.uint8))
    assert grey.tolist() == [[[59, 59, 59]]]
    # A turn of hues by a third exchanges the channels.
    third = vision.RandomColorAdjust(hue=(1 / 3, 1 / 3))(np.array([[[200, 50, 10]]], np.uint8))
    assert third.tolist() == [[[10, 200, 50]]]
    assert vision.Normalize([1.0], [2.0])(np.full((1, 2, 2), 5.0)).tolist() == [[[2.0, 2.0], [2.0, 2.0]]]
    # MindSpore 2.10 gives one row for a label of shape (1,).
    labels = [np.array(1), np.array([1]), np.array([1, 0])]
    assert [transforms.OneHot(2)(x).tolist() for x in labels] == [[0, 1], [0, 1], [[0, 1], [1, 0]]]
    assert transforms.PadEnd([3], -1)(np.array([1, 2])).tolist() == [1, 2, -1]
    assert transforms.Fill(7)(np.array([1, 2])).tolist() == [7, 7]
    chosen = transforms.RandomChoice([lambda x: x + 1, lambda x: x + 2])(1)
    assert chosen in (2, 3)
    assert transforms.RandomApply([lambda x: x + 1], 1.0)(1) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: slices(sampler=[9], shuffle=None).output_shapes(),
        lambda: slices(sampler=[0]),
        lambda: slices(num_shards=2),
        lambda: dataset.DistributedSampler(2, 2),
        lambda: dataset.WeightedRandomSampler([0, 0]),
        lambda: slices().batch(0),
        lambda: slices().shuffle(1),
        lambda: slices().map(3),
        lambda: slices().map(lambda a: a, "b"),
        lambda: listed(slices().map(lambda a: (a, a))),
        lambda: slices().split([3, 3]),
        lambda: slices().concat(slices().rename("a", "b")),
        lambda: slices().zip(slices()),
        lambda: dataset.NumpySlicesDataset((np.ones(2), np.ones(3))),
        lambda: dataset.NumpySlicesDataset(np.ones(2), ["a", "b"]),
        lambda: listed(dataset.GeneratorDataset([(1, 2)], ["a"])),
        lambda: listed(dataset.GeneratorDataset([1.5], ["a"], column_types=[np.int32])),
        lambda: dataset.GeneratorDataset(3, "a"),
        lambda: dataset.GeneratorDataset([1]),
        lambda: dataset.GeneratorDataset(lambda: iter([1]), "a", shuffle=True),
        lambda: listed(dataset.GeneratorDataset([np.ones(2), np.ones(3)], "a").batch(2)),
        lambda: dataset.ImageFolderDataset("/nothing/here"),
        lambda: dataset.config.set_seed(-1),
        lambda: vision.RandomCrop(9)(np.ones((2, 2, 3), np.uint8)),
        lambda: vision.Normalize([0.0, 0.0], [1.0, 1.0])(np.ones((4, 3, 3))),
        lambda: vision.Normalize([0.0], [0.0]),
        lambda: vision.Resize((2, 2))(np.ones(3)),
        lambda: vision.Decode()(np.zeros(5, np.uint8)),
        lambda: vision.RandomColorAdjust(0.1)(np.ones((2, 2, 3))),
        lambda: transforms.OneHot(2)(np.array(2)),
        lambda: dataset.NumpySlicesDataset([[1], [1, 2]]),
        lambda: slices().skip(-1),
        lambda: vision.Crop((-1, 0), 2),
        lambda: vision.Resize((2, 2))(np.ones((0, 4, 3), np.uint8)),
    ],
)
def test_bad_input(call: Any) -> None:
    with pytest.raises(NbgradError):
        call()


# ----- Files of rows -----


def test_rows_in_files(tmp_path: Path) -> None:
    from nbgrad.dataset.record_files import FileReader, FileWriter

    assert import_module("nbgrad.mindrecord").FileWriter is FileWriter

    name = str(tmp_path / "rows")
    writer = FileWriter(name, shard_num=3)
    writer.add_schema(
        {
            "x": {"type": "float32", "shape": [2, -1]},
            "n": {"type": "int32"},
            "s": {"type": "string"},
            "b": {"type": "bytes"},
        }
    )
    writer.add_index(["n"])
    rows = [{"x": np.full((2, k + 1), k, np.float64), "n": k, "s": "ä" * k, "b": bytes([k, 255])} for k in range(7)]
    assert writer.write_raw_data(rows[:4]) and writer.write_raw_data(rows[4:])
    assert not (tmp_path / "rows0").exists(), "a file has its name when it is complete"
    assert writer.commit()
    data = dataset.MindDataset(f"{name}0", shuffle=False, num_parallel_workers=2)
    assert (data.get_col_names(), len(data)) == (["x", "n", "s", "b"], 7)
    found = sorted(listed(data), key=lambda row: row[1])
    assert found == [[row["x"].tolist(), row["n"], row["s"], list(row["b"])] for row in rows]
    assert data.output_types()[:2] == [np.float32, np.int32]
    assert sorted(firsts(dataset.MindDataset(name, "n"))) == list(range(7))
    assert firsts(dataset.MindDataset([f"{name}1"], "n", shuffle=False)) == [1, 4]
    reader = FileReader(name, columns=["n"])
    assert sorted(row["n"].item() for row in reader.get_next()) == list(range(7))
    reader.close()
    with pytest.raises(NbgradError, match="exists"):
        FileWriter(name, 3)
    for wrong in ({"n": 1}, *[{**rows[0], **one} for one in ({"n": "1"}, {"n": 1.5}, {"x": np.ones(3)}, {"s": b"s"})]):
        other = FileWriter(tmp_path / "other")
        other.add_schema({"x": {"type": "float32", "shape": [2, -1]}, "n": {"type": "int32"}, "s": {"type": "string"}})
        with pytest.raises(NbgradError):
            other.write_raw_data([wrong])
    with pytest.raises(NbgradError, match="schema"):
        FileWriter(tmp_path / "other").write_raw_data(rows)
    with pytest.raises(NbgradError, match='"type"'):
        FileWriter(tmp_path / "other").add_schema({"x": {"type": "float16"}})
    (tmp_path / "rows1").write_bytes(b"MindRecord of another program, which is long enough to be one")
    for names, column in ((name, None), (f"{name}9", None), ([f"{name}2"], "y")):
        with pytest.raises(NbgradError):
            dataset.MindDataset(names, column)
