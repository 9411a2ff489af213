"""`dataset.text` beside MindSpore's results, vocabularies by hand, and texts in datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.dataset import text, transforms
from nbgrad.errors import ArgumentError, DtypeError, ShapeError

from .recorded.record_mindspore_text import FILE, results

pytestmark = pytest.mark.unoptimized

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
RESULTS = results("nbgrad")
DIFFERENT = {name for name in RECORDED if "[unused12]" in name and "lower_case=True" in name and "preserve" not in name}
"""Of texts with several reserved words MindSpore repeats what is before each of them when it folds the case."""
DIFFERENT |= {n for n, row in RECORDED.items() if "with_offsets" in n and len({len(one[1]) for one in row}) > 1}
"""Of words that are unknown after some of their pieces are known, MindSpore gives the places of these pieces, too."""


@pytest.mark.parametrize("name", sorted({*RECORDED} - DIFFERENT))
def test_results_are_those_of_mindspore(name: str) -> None:
    assert RESULTS[name]() == RECORDED[name]


def test_every_case_was_recorded() -> None:
    assert {*RECORDED} == {*RESULTS}
    assert len(RECORDED) > 200
    assert 3 < len(DIFFERENT) < 8


def test_places_of_unknown_words() -> None:
    """MindSpore gives unknown words the places of pieces that it has tried, or the length of the unknown token."""
    vocab = text.Vocab.from_list(["deep", "##er"])
    words, begins, ends = text.WordpieceTokenizer(vocab, max_bytes_per_token=6, with_offsets=True)(
        ["deeper", "Öl", "seaside"]
    )
    assert words.tolist() == ["deep", "##er", "[UNK]", "[UNK]"]
    assert (begins.tolist(), ends.tolist()) == ([0, 4, 0, 0], [4, 6, 3, 7])


def test_reserved_words_stay_whole_when_the_case_is_folded() -> None:
    words = text.BasicTokenizer(lower_case=True)("[CLS] UN-wanted [unused12][SEP] [mask] [MASK]X").tolist()
    assert " ".join(words) == "[CLS] un - wanted [unused12] [SEP] [ mask ] [MASK] x"


# ----- Vocabularies -----


def test_vocabularies_from_lists_dicts_and_files(tmp_path: Path) -> None:
    last = text.Vocab.from_list(["b", "a"], ["<pad>"], special_first=False)
    assert last.vocab() == {"b": 0, "a": 1, "<pad>": 2}
    assert last.tokens_to_ids("a") == 1
    assert last.ids_to_tokens([2, 7]) == ["<pad>", ""]
    assert text.Vocab.from_dict({"x": 5, "y": 3}).ids_to_tokens(np.array([3, 5])) == ["y", "x"]
    path = tmp_path / "words"
    path.write_text("see,12\nmeer,3\nöl,1\n", encoding="utf-8")
    found = text.Vocab.from_file(path, ",", 2, ["<unk>"])
    assert found.vocab() == {"<unk>": 0, "see": 1, "meer": 2}


def test_vocabularies_count_the_words_of_datasets() -> None:
    words = [["sea", "deep"], ["sea", "blue"], ["sea", "deep"], ["x", "y"]]
    data = nb.dataset.GeneratorDataset([(np.array(row), k) for k, row in enumerate(words)], ["words", "k"])
    # sea 3, deep 2, then one each, in the order of the alphabet.
    assert list(text.Vocab.from_dataset(data, "words").vocab()) == ["sea", "deep", "blue", "x", "y"]
    assert list(text.Vocab.from_dataset(data, ["words"], (2, None), special_tokens=["_"]).vocab()) == [
        "_",
        "sea",
        "deep",
    ]
    assert list(text.Vocab.from_dataset(data, "words", (None, 2), top_k=2).vocab()) == ["deep", "blue"]
    with pytest.raises(DtypeError, match="needs words"):
        text.Vocab.from_dataset(data)


# ----- In datasets -----


def test_texts_of_a_dataset_become_batches_of_numbers() -> None:
    lines = ["deep blue sea", "blue", "deep sea"]
    vocab = text.Vocab.from_list(["<pad>", "deep", "blue", "sea"])
    data = nb.dataset.NumpySlicesDataset({"line": lines}, shuffle=False)
    data = data.map([text.WhitespaceTokenizer(), text.Lookup(vocab), transforms.PadEnd([4], 0)], "line").batch(3)
    (found,) = next(data.create_tuple_iterator())
    assert found.tolist() == [[1, 2, 3, 0], [2, 0, 0, 0], [1, 3, 0, 0]]


def test_own_operations() -> None:
    class Backwards(transforms.transforms.PyTensorOperation):
        def execute_py(self, *values: Any) -> Any:
            return np.array([str(word)[::-1] for word in values[0]])

    assert Backwards()(np.array(["deep", "sea"])).tolist() == ["peed", "aes"]
    assert text.PythonTokenizer(lambda line: line.split("-"))("a-b").tolist() == ["a", "b"]
    assert text.to_str(text.to_bytes(np.array(["Öl"]))).tolist() == ["Öl"]
    assert text.transforms.Implementation.PY.name == "PY"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: text.Vocab.from_list(["a", "a"]), ArgumentError),
        (lambda: text.Vocab.from_list(["a"], ["a"]), ArgumentError),
        (lambda: text.Vocab.from_list("ab"), DtypeError),
        (lambda: text.Vocab.from_dict({"a": -1}), ArgumentError),
        (lambda: text.Lookup(text.Vocab.from_list(["a"]))(["b"]), ArgumentError),
        (lambda: text.Lookup(text.Vocab.from_list(["a"]), "b"), ArgumentError),
        (lambda: text.Lookup(["a"]), DtypeError),  # pyright: ignore[reportArgumentType]
        (lambda: text.WhitespaceTokenizer()(np.array(3)), DtypeError),
        (lambda: text.WhitespaceTokenizer()(["a", "b"]), ShapeError),
        (lambda: text.BasicTokenizer(with_offsets=1), DtypeError),  # pyright: ignore[reportArgumentType]
        (lambda: text.RegexReplace("(", ""), ArgumentError),
        (lambda: text.ToNumber(nb.int8)(["300"]), ArgumentError),
        (lambda: text.ToNumber(nb.int32)(["1.5"]), ArgumentError),
        (lambda: text.Ngram(0), ArgumentError),
        (lambda: text.SlidingWindow(2, 1), ArgumentError),
        (lambda: text.PythonTokenizer("split"), DtypeError),  # pyright: ignore[reportArgumentType]
    ],
)
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
