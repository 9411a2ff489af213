"""MindSpore's `dataset.text` vocabularies: words and their numbers.

In: lists, dicts, files or datasets of words. Out: `Vocab`, and `Lookup`, which puts numbers in place of words in the
rows of a dataset. Called by users, and by tokenizers.py for pieces of words.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..nn.layer_arguments import flag, positive
from ..record.axes_and_dtypes import real_dtype
from .array_transforms import Transform
from .row_values import name_list

__all__ = ["Lookup", "Vocab"]


def _words(values: Any, name: str) -> list[str]:
    """Different words.

    Raises
    ------
    DtypeError, ArgumentError
        For others, or if one is there twice.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        message = f"{name} must be a list of words, but got {values!r:.80}."
        raise DtypeError(message)
    found = list(values)
    strange = [word for word in found if not isinstance(word, str)]
    if strange:
        message = f"{name} must be a list of words, but one is {strange[0]!r:.80}."
        raise DtypeError(message)
    twice = [word for word, count in Counter(found).items() if count > 1]
    if twice:
        message = f"{name} has the word {twice[0]!r} more than once."
        raise ArgumentError(message)
    return found


class Vocab:
    """Words and their numbers; made by `from_list`, `from_dict`, `from_file` or `from_dataset`.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> vocab = text.Vocab.from_list(["deep", "sea"], special_tokens=["<unk>"])
    >>> vocab.vocab()
    {'<unk>': 0, 'deep': 1, 'sea': 2}
    >>> vocab.tokens_to_ids(["sea", "land"]), vocab.ids_to_tokens(1)
    ([2, -1], 'deep')
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @classmethod
    def _of(cls, words: Sequence[str], special_tokens: Any, special_first: bool) -> Vocab:
        special = [] if special_tokens is None else _words(special_tokens, "special_tokens")
        both = {*special} & {*words}
        if both:
            message = f"special_tokens and the other words both have {min(both)!r}."
            raise ArgumentError(message)
        joined = [*special, *words] if flag(special_first, "special_first") else [*words, *special]
        made = cls()
        made._numbers = {word: number for number, word in enumerate(joined)}
        return made

    @classmethod
    def from_list(cls, word_list: Sequence[str], special_tokens: Any = None, special_first: bool = True) -> Vocab:
        """Number words in their order.

        Parameters
        ----------
        word_list : list of str
        special_tokens : list of str, optional
            Further words, such as "<pad>".
        special_first : bool
            Whether those come before the others.

        Raises
        ------
        DtypeError, ArgumentError
            If a word is none, or is there twice.
        """
        return cls._of(_words(word_list, "word_list"), special_tokens, special_first)

    @classmethod
    def from_dict(cls, word_dict: Mapping[str, int]) -> Vocab:
        """Take numbers from a dict.

        Raises
        ------
        DtypeError, ArgumentError
            If a word or a number is none, or a number is negative.
        """
        made = cls()
        for word, number in word_dict.items():
            if not isinstance(word, str) or not isinstance(number, int) or isinstance(number, bool):
                message = f"word_dict must have words and integers, but has {word!r}: {number!r}."
                raise DtypeError(message)
            if number < 0:
                message = f"Numbers of words must not be negative, but {word!r} has {number}."
                raise ArgumentError(message)
            made._numbers[word] = number
        return made

    @classmethod
    def from_file(
        cls,
        file_path: str | os.PathLike[str],
        delimiter: str = "",
        vocab_size: int | None = None,
        special_tokens: Any = None,
        special_first: bool = True,
    ) -> Vocab:
        """Number the words that begin the lines of a file.

        Parameters
        ----------
        file_path : str
        delimiter : str
            What ends a word; a word is a whole line by default.
        vocab_size : int, optional
            The most words to read.
        special_tokens, special_first
            As for `from_list`.
        """
        most = None if vocab_size is None else positive(vocab_size, "vocab_size")
        with open(file_path, encoding="utf-8") as file:
            lines = file.read().splitlines()[:most]
        words = [line.split(delimiter)[0] if delimiter else line for line in lines]
        return cls._of(_words(words, f"The file {os.fspath(file_path)!r}"), special_tokens, special_first)

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        columns: Any = None,
        freq_range: tuple[int | None, int | None] | None = None,
        top_k: int | None = None,
        special_tokens: Any = None,
        special_first: bool = True,
    ) -> Vocab:
        """Number the words of columns of a dataset, the most frequent ones first.

        Parameters
        ----------
        dataset : Dataset
        columns : str or list of str, optional
            All columns by default.
        freq_range : (int, int), optional
            The least and the greatest number of times that a word must be there; None for no bound.
        top_k : int, optional
            The most words to take.
        special_tokens, special_first
            As for `from_list`.

        Raises
        ------
        ArgumentError, DtypeError
            If a column does not exist, or holds no words.
        """
        names = dataset.get_col_names()
        chosen = names if columns is None else name_list(columns, "columns")
        missing = [name for name in chosen if name not in names]
        if missing:
            message = f"There is no column {missing[0]!r}; there are: {', '.join(names)}."
            raise ArgumentError(message)
        counts: Counter[str] = Counter()
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            for name in chosen:
                if row[name].dtype.kind != "U":
                    message = f"The column {name!r} holds {row[name].dtype}, but a Vocab needs words."
                    raise DtypeError(message)
                counts.update(row[name].ravel().tolist())
        low, high = freq_range or (None, None)
        words = [w for w, n in counts.items() if (low is None or n >= low) and (high is None or n <= high)]
        words.sort(key=lambda word: (-counts[word], word))
        return cls._of(words[: None if top_k is None else positive(top_k, "top_k")], special_tokens, special_first)

    def vocab(self) -> dict[str, int]:
        """The words and their numbers."""
        return dict(self._numbers)

    def tokens_to_ids(self, tokens: Any) -> Any:
        """The number of a word, or those of a list of words; -1 for unknown ones."""
        if isinstance(tokens, str):
            return self._numbers.get(tokens, -1)
        return [self._numbers.get(str(token), -1) for token in tokens]

    def ids_to_tokens(self, ids: Any) -> Any:
        """The word of a number, or those of a list of numbers; "" for numbers that no word has."""
        words = {number: word for word, number in self._numbers.items()}
        if isinstance(ids, int | np.integer):
            return words.get(int(ids), "")
        return [words.get(int(one), "") for one in ids]


class Lookup(Transform):
    """Puts numbers in place of words.

    Parameters
    ----------
    vocab : Vocab
    unknown_token : str, optional
        Words that the vocabulary lacks count as this one; without it they are an error.
    data_type : dtype

    Raises
    ------
    DtypeError, ArgumentError
        If `vocab` is none, or lacks `unknown_token`.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> vocab = text.Vocab.from_list(["<unk>", "deep", "sea"])
    >>> text.Lookup(vocab, "<unk>")(["deep", "land"])
    array([1, 0], dtype=int32)
    """

    def __init__(self, vocab: Vocab, unknown_token: str | None = None, data_type: Any = np.int32) -> None:
        if not isinstance(vocab, Vocab):
            message = f"vocab must be a Vocab, but got {type(vocab).__name__}."
            raise DtypeError(message)
        self._numbers, self._dtype = vocab.vocab(), np.dtype(real_dtype(data_type))
        if unknown_token is not None and unknown_token not in self._numbers:
            message = f"unknown_token is {unknown_token!r}, which the vocabulary lacks."
            raise ArgumentError(message)
        self._unknown = None if unknown_token is None else self._numbers[unknown_token]

    def __call__(self, *values: Any) -> Any:
        """The numbers of an array of words."""
        words = np.asarray(values[0])
        found = [self._number(word) for word in words.ravel().tolist()]
        return np.array(found, self._dtype).reshape(words.shape)

    def _number(self, word: str) -> int:
        number = self._numbers.get(word, self._unknown)
        if number is None:
            message = f"The vocabulary lacks the word {word!r}. Give Lookup an unknown_token."
            raise ArgumentError(message)
        return number
