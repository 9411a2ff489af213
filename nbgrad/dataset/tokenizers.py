"""MindSpore's `dataset.text` tokenizers: texts split into words, characters and pieces of words.

In: texts. Out: arrays of words; with offsets also where each begins and ends, in bytes of UTF-8. Called by users and,
for every row, by `Dataset.map`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..errors import DtypeError
from ..nn.layer_arguments import flag, positive
from .array_transforms import Transform
from .text_transforms import NormalizeForm, compiled_pattern, folded, normalized, one_text, texts_of
from .vocabulary import Vocab

__all__ = [
    "BasicTokenizer",
    "BertTokenizer",
    "RegexTokenizer",
    "UnicodeCharTokenizer",
    "WhitespaceTokenizer",
    "WordpieceTokenizer",
]

Span = tuple[int, int]


Placed = tuple[str, int, int]
"""A word, and where it begins and ends, in bytes."""


def _placed(text: str, spans: Iterable[Span]) -> Iterator[Placed]:
    """The parts of a text at spans of characters, which follow each other."""
    before, at = 0, 0
    for begin, end in spans:
        word = text[begin:end]
        at += len(text[before:begin].encode())
        stop = at + len(word.encode())
        yield word, at, stop
        before, at = end, stop


def _delivered(found: list[Placed], with_offsets: bool) -> Any:
    """The words, and their places if these are asked for; one empty word for none."""
    words, begins, ends = zip(*(found or [("", 0, 0)]), strict=True)
    if not with_offsets:
        return np.array(words)
    return np.array(words), np.array(begins, np.uint32), np.array(ends, np.uint32)


class _OfOneText(Transform):
    """Splits a text, and may say where the words were."""

    def __init__(self, with_offsets: bool = False) -> None:
        self._with_offsets = flag(with_offsets, "with_offsets")

    def __call__(self, *values: Any) -> Any:
        """The words of a text; with offsets the places where they begin and end, too."""
        text = one_text(values[0], type(self).__name__)
        return _delivered(list(_placed(text, self._spans(text))), self._with_offsets)

    def _spans(self, text: str) -> Iterator[Span]:
        raise NotImplementedError


class WhitespaceTokenizer(_OfOneText):
    """Splits texts at white space.

    Parameters
    ----------
    with_offsets : bool
        Whether to give the places of the words, too.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> words, begins, ends = text.WhitespaceTokenizer(with_offsets=True)("tief im See")
    >>> words.tolist(), begins.tolist(), ends.tolist()
    (['tief', 'im', 'See'], [0, 5, 8], [4, 7, 11])
    """

    def _spans(self, text: str) -> Iterator[Span]:
        return (found.span() for found in re.finditer(r"\S+", text))


class UnicodeCharTokenizer(_OfOneText):
    """Splits texts into characters.

    Parameters
    ----------
    with_offsets : bool
        Whether to give the places of the characters, too.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.UnicodeCharTokenizer()("Öl").tolist()
    ['Ö', 'l']
    """

    def _spans(self, text: str) -> Iterator[Span]:
        return ((k, k + 1) for k in range(len(text)))


class RegexTokenizer(_OfOneText):
    """Splits texts where a regular expression fits.

    Parameters
    ----------
    delim_pattern : str
        What lies between words: Python's regular expressions, and ICU's `\\p{Mn}` and `\\x{4E00}`.
    keep_delim_pattern : str
        What of it becomes a word itself; nothing if empty.
    with_offsets : bool
        Whether to give the places of the words, too.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.RegexTokenizer(r"\\s+|,", ",")("deep, blue").tolist()
    ['deep', ',', 'blue']
    """

    def __init__(self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False) -> None:
        super().__init__(with_offsets)
        self._delimiter = compiled_pattern(delim_pattern)
        self._kept = compiled_pattern(keep_delim_pattern) if keep_delim_pattern else None

    def _spans(self, text: str) -> Iterator[Span]:
        at = 0
        for found in self._delimiter.finditer(text):
            begin, end = found.span()
            if begin == end:
                continue
            if begin > at:
                yield at, begin
            if self._kept is not None and self._kept.fullmatch(found[0]):
                yield begin, end
            at = end
        if at < len(text):
            yield at, len(text)


# ----- BERT's -----

_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_RESERVED = re.compile(r"\[CLS\]|\[SEP\]|\[UNK\]|\[PAD\]|\[MASK\]|\[unused\d+\]")
"""Words of BERT's vocabularies that are no texts."""


def _stands_alone(character: str) -> bool:
    """Whether a character is a word: punctuation, signs of ASCII, ideographs."""
    code = ord(character)
    if code < 128:
        return 33 <= code <= 126 and not character.isalnum()
    return unicodedata.category(character)[0] == "P" or any(low <= code <= high for low, high in _IDEOGRAPHS)


class BasicTokenizer(Transform):
    """Splits texts at white space and punctuation, as for BERT.

    Parameters
    ----------
    lower_case : bool
        Whether to fold the case, and to remove accents.
    keep_whitespace : bool
        Whether white space becomes words.
    normalization_form : NormalizeForm
        For texts whose case stays.
    preserve_unused_token : bool
        Whether "[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]" and "[unused1]" are left whole.
    with_offsets : bool
        Whether to give the places of the words, too: those in the text after folding and normalising.

    Raises
    ------
    ArgumentError, DtypeError
        For arguments that cannot be.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> text.BasicTokenizer(lower_case=True)("Déjà-vu [SEP] 深海!").tolist()
    ['deja', '-', 'vu', '[SEP]', '深', '海', '!']
    """

    def __init__(
        self,
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        self._lower, self._keep = flag(lower_case, "lower_case"), flag(keep_whitespace, "keep_whitespace")
        self._reserve = flag(preserve_unused_token, "preserve_unused_token")
        if not isinstance(normalization_form, NormalizeForm):
            message = f"normalization_form must be a NormalizeForm, but got {normalization_form!r}."
            raise DtypeError(message)
        self._form = normalization_form
        self._with_offsets = flag(with_offsets, "with_offsets")

    def __call__(self, *values: Any) -> Any:
        """The words of a text; with offsets the places where they begin and end, too."""
        text = self._prepared(one_text(values[0], type(self).__name__))
        words = _placed(text, self._spans(text))
        return _delivered([piece for word in words for piece in self._pieces_of(word)], self._with_offsets)

    def _pieces_of(self, word: Placed) -> list[Placed]:
        return [word]

    def _prepared(self, text: str) -> str:
        """The text that is split."""
        if self._lower:
            parts = self._parts(text)
            lower = "".join([part if reserved else folded(part) for part, reserved in parts])
            text = "".join([c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c) != "Mn"])
        else:
            text = normalized(text, self._form)
        return "".join([" " if unicodedata.category(c) in ("Cc", "Cf") else c for c in text])

    def _spans(self, text: str) -> Iterator[Span]:
        at = 0
        for part, reserved in self._parts(text):
            if reserved:
                yield at, at + len(part)
            else:
                yield from self._split(part, at)
            at += len(part)

    def _parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """The parts of a text, and whether each is a reserved word."""
        at = 0
        for found in _RESERVED.finditer(text) if self._reserve else ():
            yield text[at : found.start()], False
            yield found[0], True
            at = found.end()
        yield text[at:], False

    def _split(self, text: str, start: int) -> Iterator[Span]:
        """The words of a part that begins at `start`."""
        for found in re.finditer(r"\s+|\S+", text):
            begin, end = found.span()
            if found[0].isspace():
                if self._keep:
                    yield start + begin, start + end
                continue
            for k in range(begin, end):
                if _stands_alone(text[k]):
                    if k > begin:
                        yield start + begin, start + k
                    yield start + k, start + k + 1
                    begin = k + 1
            if begin < end:
                yield start + begin, start + end


class WordpieceTokenizer(Transform):
    """Splits words into the longest pieces that a vocabulary has.

    Parameters
    ----------
    vocab : Vocab
    suffix_indicator : str
        What pieces within a word begin with in the vocabulary.
    max_bytes_per_token : int
        Longer words are unknown.
    unknown_token : str
        What stands for words that have no such pieces; the word itself if empty.
    with_offsets : bool
        Whether to give the places of the pieces in their words, too.

    Raises
    ------
    DtypeError, ArgumentError
        For arguments that cannot be.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> vocab = text.Vocab.from_list(["deep", "##er", "sea"])
    >>> text.WordpieceTokenizer(vocab)(["deeper", "lake"]).tolist()
    ['deep', '##er', '[UNK]']
    """

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        with_offsets: bool = False,
    ) -> None:
        if not isinstance(vocab, Vocab):
            message = f"vocab must be a Vocab, but got {type(vocab).__name__}."
            raise DtypeError(message)
        self._numbers, self._suffix, self._unknown = vocab.vocab(), suffix_indicator, unknown_token
        self._most = positive(max_bytes_per_token, "max_bytes_per_token")
        self._with_offsets = flag(with_offsets, "with_offsets")

    def __call__(self, *values: Any) -> Any:
        """The pieces of all words; with offsets the places where they begin and end, too."""
        words = texts_of(values[0], type(self).__name__).ravel().tolist()
        return _delivered([piece for word in words for piece in self.pieces(word)], self._with_offsets)

    def pieces(self, word: str, start: int = 0) -> list[Placed]:
        """The pieces of a word that begins at `start`."""
        size = len(word.encode())
        whole = [(self._unknown or word, start, start + size)]
        if size > self._most:
            return whole
        found: list[Placed] = []
        begin, at = 0, start
        while begin < len(word):
            lead = self._suffix if begin else ""
            ends = (end for end in range(len(word), begin, -1) if lead + word[begin:end] in self._numbers)
            end = next(ends, None)
            if end is None:
                return whole
            piece = word[begin:end]
            found.append((lead + piece, at, at + len(piece.encode())))
            begin, at = end, at + len(piece.encode())
        return found


class BertTokenizer(BasicTokenizer):
    """Splits texts into words, and words into pieces, as for BERT; parameters as for the two tokenizers.

    Examples
    --------
    >>> from nbgrad.dataset import text
    >>> vocab = text.Vocab.from_list(["deep", "##er", "sea", "[CLS]"])
    >>> text.BertTokenizer(vocab, lower_case=True)("[CLS] Deeper sea").tolist()
    ['[CLS]', 'deep', '##er', 'sea']
    """

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        super().__init__(lower_case, keep_whitespace, normalization_form, preserve_unused_token, with_offsets)
        self._pieces = WordpieceTokenizer(vocab, suffix_indicator, max_bytes_per_token, unknown_token)

    def _pieces_of(self, word: Placed) -> list[Placed]:
        return self._pieces.pieces(*word[:2])
