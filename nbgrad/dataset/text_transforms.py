"""MindSpore's `dataset.text`: texts and lists of words changed, cut, joined, and read as numbers.

In: texts, or arrays of words. Out: the same, or arrays of numbers. Called by users and, for every row, by
`Dataset.map`.
"""

from __future__ import annotations

import enum
import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..nn.layer_arguments import flag, positive, whole
from ..record.axes_and_dtypes import real_dtype
from .array_transforms import Implementation as Implementation
from .array_transforms import PyTensorOperation, Transform

__all__ = [
    "AddToken",
    "CaseFold",
    "Ngram",
    "NormalizeForm",
    "NormalizeUTF8",
    "PythonTokenizer",
    "RegexReplace",
    "SlidingWindow",
    "ToNumber",
    "Truncate",
    "TruncateSequencePair",
    "to_bytes",
    "to_str",
]
TextTensorOperation = PyTensorOperation


class NormalizeForm(enum.IntEnum):
    """Unicode's normal forms of texts: NONE leaves them as they are."""

    NONE, NFC, NFKC, NFD, NFKD = range(5)


def to_str(array: Any, encoding: str = "utf8") -> np.ndarray:
    """An array of bytes as one of texts."""
    return np.char.decode(np.asarray(array), encoding)


def to_bytes(array: Any, encoding: str = "utf8") -> np.ndarray:
    """An array of texts as one of bytes."""
    return np.char.encode(np.asarray(array), encoding)


def texts_of(value: Any, name: str) -> np.ndarray:
    """An array of texts.

    Raises
    ------
    DtypeError
        For other arrays.
    """
    array = np.asarray(value)
    array = array.astype("U1") if array.dtype.kind == "f" and not array.size else array
    if array.dtype.kind != "U":
        message = f"{name} takes texts, but got an array of {array.dtype}."
        raise DtypeError(message)
    return array


def words_of(value: Any, name: str) -> list[str]:
    """The words of an array of one axis.

    Raises
    ------
    ShapeError
        For other arrays.
    """
    array = texts_of(value, name)
    if array.ndim != 1:
        message = f"{name} takes a list of words, but got an array of shape {array.shape}."
        raise ShapeError(message)
    return array.tolist()


# ----- Each text by itself -----


class _OfText(Transform):
    """A transform of every text of an array."""

    def __call__(self, *values: Any) -> Any:
        """The texts, changed."""
        array = texts_of(values[0], type(self).__name__)
        changed = np.array([self._changed(text) for text in array.ravel().tolist()] or [""])
        return changed[: array.size].reshape(array.shape)

    def _changed(self, text: str) -> str:
        raise NotImplementedError


class CaseFold(_OfText):
    """Texts in small letters: Unicode's NFKC_Casefold, which also writes signs by simpler ones.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.CaseFold()("Große SEE").item()
    'grosse see'
    """

    def _changed(self, text: str) -> str:
        return folded(text)


_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that Unicode calls ignorable by default."""


def folded(text: str) -> str:
    """A text in Unicode's NFKC_Casefold."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", _IGNORABLE.sub("", text).casefold())


class NormalizeUTF8(_OfText):
    """Texts in one of Unicode's normal forms.

    Parameters
    ----------
    normalize_form : NormalizeForm

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.NormalizeUTF8(text.NormalizeForm.NFKC)("ﬁve²").item()
    'five2'
    """

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        if not isinstance(normalize_form, NormalizeForm):
            message = f"normalize_form must be a NormalizeForm, but got {normalize_form!r}."
            raise DtypeError(message)
        self._form = normalize_form

    def _changed(self, text: str) -> str:
        return normalized(text, self._form)


def normalized(text: str, form: NormalizeForm) -> str:
    """A text in a normal form."""
    return text if form is NormalizeForm.NONE else unicodedata.normalize(form.name, text)  # pyright: ignore[reportArgumentType]


class RegexReplace(_OfText):
    """Replaces what a regular expression finds.

    Parameters
    ----------
    pattern : str
        Python's regular expressions, and ICU's `\\p{Mn}` and `\\x{4E00}`.
    replace : str
        With `$1` for the first group.
    replace_all : bool
        Whether to replace all places, or only the first.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.RegexReplace(r"(\\d+) *m", "$1 metres")("5m, 7 m").item()
    '5 metres, 7 metres'
    """

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        self._pattern = compiled_pattern(pattern)
        self._replacement = re.sub(r"\$(\d)", r"\\g<\1>", replace.replace("\\", "\\\\"))
        self._count = 0 if flag(replace_all, "replace_all") else 1

    def _changed(self, text: str) -> str:
        return self._pattern.sub(self._replacement, text, count=self._count)


@functools.cache
def _characters(category: str) -> str:
    """The characters of a category of Unicode, as a part of a class of a regular expression."""
    parts: list[str] = []
    first: int | None = None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(category)
        if inside and first is None:
            first = code
        elif not inside and first is not None:
            parts.append(f"\\U{first:08x}-\\U{code - 1:08x}")
            first = None
    return "".join(parts)


def compiled_pattern(pattern: str) -> re.Pattern[str]:
    """A regular expression, in which ICU's classes of characters are written out.

    Raises
    ------
    ArgumentError
        If it is none.
    """
    written = re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda found: f"\\U{int(found[1], 16):08x}", pattern)

    def spelled(found: re.Match[str]) -> str:
        inside = written[: found.start()].count("[") > written[: found.start()].count("]")
        characters = _characters(found[2])
        if inside and found[1] == "P":
            message = f"The pattern {pattern!r} has \\P in a class, which is not known here."
            raise ArgumentError(message)
        return characters if inside else f"[{'^' if found[1] == 'P' else ''}{characters}]"

    try:
        return re.compile(re.sub(r"\\([pP])\{([A-Z][a-z]?)\}", spelled, written))
    except re.error as error:
        message = f"{pattern!r} is no regular expression: {error}."
        raise ArgumentError(message) from None


class ToNumber(Transform):
    """Reads texts as numbers.

    Parameters
    ----------
    data_type : dtype

    Raises
    ------
    ArgumentError
        If a text is no number of that dtype.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.dataset import text
    >>> text.ToNumber(nb.int8)(["1", "-7"])
    array([ 1, -7], dtype=int8)
    """

    def __init__(self, data_type: Any) -> None:
        self._dtype = np.dtype(real_dtype(data_type))
        if self._dtype.kind not in "iuf":
            message = f"data_type must be a dtype of numbers, but got {self._dtype}."
            raise DtypeError(message)

    def __call__(self, *values: Any) -> Any:
        """The numbers."""
        array = texts_of(values[0], "ToNumber")
        read: Callable[[str], Any] = float if self._dtype.kind == "f" else int
        try:
            return np.array([read(text) for text in array.ravel().tolist()], self._dtype).reshape(array.shape)
        except (ValueError, OverflowError) as error:
            message = f"ToNumber reads no {self._dtype}: {error}."
            raise ArgumentError(message) from None


# ----- Lists of words -----


class PythonTokenizer(Transform):
    """Splits texts by a function of the user's.

    Parameters
    ----------
    tokenizer : callable
        From a text to a list of words.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.PythonTokenizer(str.split)("deep sea").tolist()
    ['deep', 'sea']
    """

    def __init__(self, tokenizer: Callable[[str], Sequence[str]]) -> None:
        if not callable(tokenizer):
            message = f"tokenizer must be a function, but got {type(tokenizer).__name__}."
            raise DtypeError(message)
        self._tokenizer = tokenizer

    def __call__(self, *values: Any) -> Any:
        """The words of a text."""
        return np.array(list(self._tokenizer(one_text(values[0], "PythonTokenizer"))))


def one_text(value: Any, name: str) -> str:
    """A single text.

    Raises
    ------
    ShapeError
        For several.
    """
    array = texts_of(value, name)
    if array.size != 1:
        message = f"{name} takes one text, but got an array of shape {array.shape}."
        raise ShapeError(message)
    return str(array.reshape(-1)[0])


class Truncate(Transform):
    """The first elements of an array, or of the rows of a matrix.

    Parameters
    ----------
    max_seq_len : int
        The most elements.
    """

    def __init__(self, max_seq_len: int) -> None:
        self._most = whole(max_seq_len, "max_seq_len")

    def __call__(self, *values: Any) -> Any:
        """The elements."""
        return np.asarray(values[0])[..., : self._most]


class AddToken(Transform):
    """A word put before, or after, the others.

    Parameters
    ----------
    token : str
    begin : bool
        Whether before.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.AddToken("[CLS]")(["deep", "sea"]).tolist()
    ['[CLS]', 'deep', 'sea']
    """

    def __init__(self, token: str, begin: bool = True) -> None:
        self._token, self._begin = str(token), flag(begin, "begin")

    def __call__(self, *values: Any) -> Any:
        """The words, with one more."""
        array = texts_of(values[0], "AddToken")
        more = np.full((*array.shape[:-1], 1), self._token)
        return np.concatenate([more, array] if self._begin else [array, more], axis=-1)


class TruncateSequencePair(Transform):
    """Two lists cut from their ends until they have some number of elements together: the longer one first.

    Parameters
    ----------
    max_length : int

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> [found.tolist() for found in text.TruncateSequencePair(4)([1, 2, 3], [4, 5, 6])]
    [[1, 2], [4, 5]]
    """

    def __init__(self, max_length: int) -> None:
        self._most = positive(max_length, "max_length")

    def __call__(self, *values: Any) -> Any:
        """Both lists."""
        first, second = (np.asarray(value) for value in values)
        one, other = len(first), len(second)
        while one + other > self._most:
            one, other = (one - 1, other) if one > other else (one, other - 1)
        return first[:one], second[:other]


class SlidingWindow(Transform):
    """All windows of neighbouring elements along the one axis of an array.

    Parameters
    ----------
    width : int
    axis : int
        0, or -1.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.SlidingWindow(2)([1, 2, 3]).tolist()
    [[1, 2], [2, 3]]
    """

    def __init__(self, width: int, axis: int = 0) -> None:
        self._width = positive(width, "width")
        if axis not in (0, -1):
            message = f"axis must be 0 or -1, but got {axis!r}."
            raise ArgumentError(message)

    def __call__(self, *values: Any) -> Any:
        """The windows."""
        array = np.asarray(values[0])
        if array.ndim != 1:
            message = f"SlidingWindow takes arrays of one axis, but got shape {array.shape}."
            raise ShapeError(message)
        if len(array) < self._width:
            return np.zeros((0, self._width), array.dtype)
        return np.lib.stride_tricks.sliding_window_view(array, self._width).copy()


class Ngram(Transform):
    """Neighbouring words, joined.

    Parameters
    ----------
    n : int or list of int
        How many words are joined; of several numbers, the results follow one another.
    left_pad, right_pad : (str, int)
        A word that is put before and after, and how often; at most n - 1 times.
    separator : str

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.Ngram(2, ("_", 1))(["deep", "blue", "sea"]).tolist()
    ['_ deep', 'deep blue', 'blue sea']
    """

    def __init__(
        self,
        n: int | Sequence[int],
        left_pad: tuple[str, int] = ("", 0),
        right_pad: tuple[str, int] = ("", 0),
        separator: str = " ",
    ) -> None:
        self._counts = [positive(one, "n") for one in (n if isinstance(n, list | tuple) else [n])]
        self._pads = tuple([(str(word), whole(count, "a padding")) for word, count in (left_pad, right_pad)])
        self._separator = separator

    def __call__(self, *values: Any) -> Any:
        """The joined words; an empty text where there are less than n."""
        words = words_of(values[0], "Ngram")
        found: list[str] = []
        for n in self._counts:
            before, after = ([word] * min(count, n - 1) for word, count in self._pads)
            line = [*before, *words, *after]
            joined = [self._separator.join(line[k : k + n]) for k in range(len(line) - n + 1)]
            found += joined or [""]
        return np.array(found)
