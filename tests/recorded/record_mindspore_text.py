"""Cases of MindSpore's `dataset.text`: transforms and the texts that they get.

Run by a Python with MindSpore, `python -m tests.recorded.record_mindspore_text` writes its results to
mindspore_text.json. The same functions run in nbgrad in test_dataset_text.py. Recorded with MindSpore 2.10.0.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("mindspore_text.json")

WORDS = [
    "wel",
    "##come",
    "to",
    "Bei",
    "##jing",
    "北",
    "京",
    "[UNK]",
    "[CLS]",
    "un",
    "##want",
    "##ed",
    "wanted",
    "want",
    ".",
]
SENTENCES = [
    "Welcome to Beijing",
    "  deep\tblue \n sea ",
    "",
    " ",
    "北京欢迎你, BEIJING!",
    "Déjà-vu: (naïve) Ångström",
    "[CLS] unwanted [unused12][SEP] [mask] [MASK]x",
    "a\u200bb\x07c\u00a0d\u3000e",
    "$5+3=8 <tag> ^_^ ~`|",
    "Straße „Zitat“ …und 1,5 m² ﬁn",
    "𠮷野家 한국어 mixed混合text",
]
PAIRS = [(["a", "b", "c"], ["d", "e"]), (["a"], ["b", "c", "d"])]
CASES: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("WhitespaceTokenizer", {"with_offsets": True}, SENTENCES),
    ("UnicodeCharTokenizer", {"with_offsets": True}, SENTENCES),
    ("RegexTokenizer", {"delim_pattern": r"\s+|,", "keep_delim_pattern": ",", "with_offsets": True}, SENTENCES),
    ("RegexTokenizer", {"delim_pattern": r"[\p{P}\s]+"}, SENTENCES),
    ("BasicTokenizer", {}, SENTENCES),
    ("BasicTokenizer", {"lower_case": True}, SENTENCES),
    ("BasicTokenizer", {"keep_whitespace": True}, SENTENCES),
    ("BasicTokenizer", {"lower_case": True, "preserve_unused_token": False}, SENTENCES),
    ("BasicTokenizer", {"normalization_form": "NFKC"}, SENTENCES),
    ("WordpieceTokenizer", {"vocab": WORDS}, [["welcome", "to", "Beijing", "unwanted", "北京", "x"], ["."], [""]]),
    ("WordpieceTokenizer", {"vocab": WORDS, "unknown_token": ""}, [["welcome", "lake"]]),
    ("WordpieceTokenizer", {"vocab": WORDS, "max_bytes_per_token": 5}, [["welcome", "to", "北京"]]),
    ("BertTokenizer", {"vocab": WORDS}, SENTENCES),
    ("BertTokenizer", {"vocab": WORDS, "lower_case": True}, SENTENCES),
    ("BertTokenizer", {"vocab": WORDS, "lower_case": True, "keep_whitespace": True, "unknown_token": ""}, SENTENCES),
    ("BasicTokenizer", {"with_offsets": True}, SENTENCES),
    ("BasicTokenizer", {"lower_case": True, "preserve_unused_token": False, "with_offsets": True}, SENTENCES),
    ("BasicTokenizer", {"keep_whitespace": True, "with_offsets": True}, SENTENCES),
    ("WordpieceTokenizer", {"vocab": WORDS, "with_offsets": True}, [["welcome", "to", "unwanted"], ["."], [""]]),
    ("BertTokenizer", {"vocab": WORDS, "preserve_unused_token": False, "with_offsets": True}, SENTENCES),
    ("CaseFold", {}, SENTENCES),
    *(("NormalizeUTF8", {"normalize_form": form}, SENTENCES) for form in ("NONE", "NFC", "NFKC", "NFD", "NFKD")),
    ("RegexReplace", {"pattern": r"\s+", "replace": "_"}, SENTENCES),
    ("RegexReplace", {"pattern": r"(\w)(e)", "replace": "$2$1", "replace_all": False}, SENTENCES),
    ("RegexReplace", {"pattern": r"\p{P}", "replace": ""}, SENTENCES),
    ("Ngram", {"n": 2}, [["a", "b", "c"], ["a"]]),
    ("Ngram", {"n": [3, 1], "left_pad": ("_", 2), "right_pad": ("$", 5), "separator": "-"}, [["a", "b", "c"], ["a"]]),
    ("SlidingWindow", {"width": 3}, [["a", "b", "c", "d"], ["a", "b", "c"]]),
    ("Truncate", {"max_seq_len": 2}, [["a", "b", "c", "d"], ["a"]]),
    ("AddToken", {"token": "[CLS]"}, [["a", "b"]]),
    ("AddToken", {"token": "[SEP]", "begin": False}, [["a", "b"]]),
    ("ToNumber", {"data_type": "int8"}, [["1", "-7", "127"]]),
    ("ToNumber", {"data_type": "float32"}, [["1.5", "-7e2", "3"]]),
    ("Lookup", {"vocab": WORDS, "unknown_token": "[UNK]"}, [["to", "北", "lake"]]),
    *(("TruncateSequencePair", {"max_length": n}, PAIRS) for n in (1, 2, 3, 4, 9)),
]  # fmt: skip


def results(library: str) -> dict[str, Callable[[], Any]]:
    """The cases by name, in MindSpore or in nbgrad."""
    text = importlib.import_module(f"{library}.dataset.text")
    dtypes = importlib.import_module(library)
    found: dict[str, Callable[[], Any]] = {}
    for name, options, values in CASES:
        made = dict(options)
        if "vocab" in made:
            made["vocab"] = text.Vocab.from_list(made["vocab"])
        for key in ("normalize_form", "normalization_form"):
            if key in made:
                made[key] = text.NormalizeForm[made[key]]
        if "data_type" in made:
            made["data_type"] = getattr(dtypes, made["data_type"])
        shown = ", ".join(f"{key}={value!r}" for key, value in options.items() if key != "vocab")
        for value in values:

            def run(name: str = name, made: dict[str, Any] = made, value: Any = value) -> Any:
                arrays = value if isinstance(value, tuple) else (value,)
                return plain(getattr(text, name)(**made)(*[np.array(one) for one in arrays]))

            found[f"{name}({shown}): {value!r}"] = run
    return found


def plain(value: Any) -> Any:
    """Arrays as lists, with their dtypes' kinds."""
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    array = np.asarray(value)
    return [array.dtype.kind, array.tolist()]


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: run() for name, run in results("mindspore").items()}, ensure_ascii=False) + "\n")
