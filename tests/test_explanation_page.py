"""The page of `nb.explain`: lines, operations and bytes as counted by hand; HTML that a parser accepts."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.__main__ import main
from nbgrad.compiled.explain import MOST_NODES
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.graph.loops.origins import walked

pytestmark = pytest.mark.unoptimized

FILE = Path(__file__).name
X = np.linspace(0.1, 0.9, 1000)
VOID = frozenset(["meta", "br"])


class Page(HTMLParser):
    """A page, read: its tables as rows of cells, its summaries and texts. An end tag that does not fit is an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.titles: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
        elif tag == "title":
            self.titles.append("")
        elif tag == "span" and "td" in self.open and (title := dict(attrs).get("title")):
            self.rows[-1][-1] = f"{title}; "

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data
        if "td" in self.open:
            self.rows[-1][-1] += data
        if "title" in self.open:
            self.titles[-1] += data

    def lines(self) -> dict[str, tuple[int, int, int]]:
        """Operations, kernels and bytes of each line of the table."""
        found: dict[str, tuple[int, int, int]] = {}
        for row in self.rows:
            if len(row) == 7:
                given = re.match(r"([\d,]+) bytes", row[4])
                assert given is not None
                found[row[0]] = tuple([int(n.replace(",", "")) for n in (row[2], row[3], given[1])])  # type: ignore
        return found


def page(fn: Callable[..., Any], *args: Any) -> Page:
    return Page(nb.explain(fn, *args).html)


def line(fn: Callable[..., Any], number: int) -> str:
    """The place of a line of a function, whose `def` is line 0."""
    first = inspect.getsourcelines(fn)[1]
    return f"{FILE}:{first + number}"


# ----- Lines -----


def two_lines(x: Any) -> Any:
    y = np.sin(x)
    return np.sum(y * y)


def test_operations_and_bytes_are_those_counted_by_hand() -> None:
    # 1000 sines of 8000 bytes; 1000 products and 1000 sums into 8 bytes.
    assert page(two_lines, X).lines() == {line(two_lines, 1): (1000, 1, 8000), line(two_lines, 2): (2000, 1, 8)}


def product(a: Any, b: Any) -> Any:
    c = a @ b
    return np.exp(c)


def test_a_product_of_matrices_is_products_and_sums() -> None:
    found = page(product, np.ones((20, 30)), np.ones((30, 40))).lines()
    # 20 * 40 sums of 30 products; it reads both and writes 6400 bytes, which the other line reads, and writes as many.
    assert found[line(product, 1)] == (2 * 20 * 30 * 40, 1, 8 * (20 * 30 + 30 * 40 + 20 * 40))
    assert found[line(product, 2)] == (20 * 40, 1, 2 * 8 * 20 * 40)


def test_derivatives_belong_to_the_line_that_they_are_of() -> None:
    found = page(nb.grad(two_lines), X).lines()
    sine, total = line(two_lines, 1), line(two_lines, 2)
    assert set(found) == {sine, f"{sine} derivative", f"{total} derivative"}
    # The gradient 2 * y * cos(x): the cosine and a product, written to 8000 bytes.
    assert found[sine][0] == 1000
    assert found[f"{sine} derivative"][0] == 2000
    assert sum(count for _, _, count in found.values()) == 16000


def stepped(x: Any, rate: Any) -> Any:
    for _ in range(500):
        slope = np.cos(x)
        x = x + rate * slope
    return x


def test_turns_of_loops_are_counted() -> None:
    found = page(stepped, 0.5, 0.1).lines()
    # Turns at the ends of a loop may stay written out; all operations belong to their lines.
    assert found[line(stepped, 2)][0] == 500
    assert found[line(stepped, 3)][0] == 1000


def said(x: Any) -> Any:
    def turn(carry: Any, row: Any) -> Any:
        after = carry * row
        return after, np.sin(after)

    return np.sum(nb.scan(turn, 1.0, x)[1])


def test_loops_that_are_said_have_lines() -> None:
    found = page(said, X[:50]).lines()
    assert (found[line(said, 2)][0], found[line(said, 3)][0]) == (50, 50)


def everything(x: Any, m: Any) -> Any:
    z = np.fft.fft(x)
    a = np.abs(z) ** 3.0
    b = m.T[:, 0] + m[0]
    c = nb.vmap(lambda r: np.tanh(r) * 2.0)(m)
    d = np.where(x > 0.5, np.log(x), 0.0)
    e = np.concatenate([a, d])[::2] / np.sqrt(3.0)
    return np.sum(b) + np.sum(c) + np.sum(e)


def test_each_node_of_all_passes_has_a_line() -> None:
    m = np.asfortranarray(np.arange(9.0).reshape(3, 3))
    for fn in (everything, nb.grad(everything, (0, 1))):
        found = page(fn, X[:64], m).lines()
        assert found.get("no line", (0, 0, 0))[0] == 0
        first = inspect.getsourcelines(everything)[1]
        assert {int(where.split(":")[1].split()[0]) - first for where in found} <= {*range(1, 8)}


def inner(x: Any) -> Any:
    return np.exp(x) * x


def outer(x: Any) -> Any:
    value, slope = nb.value_and_grad(inner)(x)
    return value + slope


def test_a_gradient_inside_of_a_function_belongs_to_the_lines_that_it_differentiates() -> None:
    found = page(outer, 0.5).lines()
    assert set(found) == {line(inner, 1), f"{line(inner, 1)} derivative", line(outer, 2)}


@nb.custom_vjp
def clipped(x: Any) -> Any:
    return np.tanh(x)


def clipped_backward(residual: Any, g: Any) -> Any:
    return (np.clip(g, -1.0, 1.0) * np.exp(residual),)


clipped.defvjp(lambda x: (np.tanh(x), x), clipped_backward)


def test_a_rule_of_the_users_has_its_own_lines() -> None:
    found = page(nb.grad(lambda x: np.sum(clipped(x))), X).lines()
    assert any(where.startswith(line(clipped_backward, 1)) for where in found)


def test_layers_have_their_own_lines_where_no_function_calls_them() -> None:
    net, given = nb.nn.Dense(3, 2), nb.Tensor(np.ones((5, 3), np.float32))
    alone = page(net, given).lines()
    assert alone and not any(where.startswith((FILE, "no line")) for where in alone)
    (called,) = page(lambda x: net(x), given).lines()
    assert called.startswith(FILE)


# ----- The page -----


def test_pages_stand_alone() -> None:
    found = nb.explain(nb.value_and_grad(two_lines), X)
    read = Page(found.html)
    assert {"svg", "table", "details", "pre"} <= {tag for tag, _ in read.tags}
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in read.tags}
    assert not re.search(r"(src|href)=|url\((?!#)|@import", found.html)
    assert "prefers-color-scheme: dark" in found.html
    names = [given["id"] for _, given in read.tags if "id" in given]
    assert len(names) == len(set(names)) > 0
    assert set(re.findall(r"url\(#(.+?)\)", found.html)) <= set(names)
    assert "measured, each group of kernels alone" in read.words
    assert str(found).split("\n")[0] in read.words, "the text is in the page"
    assert "<" not in found._repr_html_().partition("<style>")[0], "a notebook gets an element"


def test_flow_and_memory_are_drawn() -> None:
    def chained(a: Any, b: Any) -> Any:
        c = a @ b
        d = c @ b
        return np.sum(d * d)

    read = page(chained, np.ones((30, 30)), np.ones((30, 30)))
    first = inspect.getsourcelines(chained)[1]
    assert f"line {first + 1} to line {first + 2}: 7.2 kB through memory, 0 B in registers" in read.titles
    # Both products, of 7200 bytes, are in the arena: the first in groups 0 and 1, the second until it is summed.
    arrays = [title for title in read.titles if "7,200 bytes, groups" in title]
    assert [re.findall(r"groups (\d+) to (\d+)", title)[0] for title in arrays] == [("0", "1"), ("1", "2")]


def test_times_are_those_of_the_lines_that_take_them() -> None:
    def uneven(a: Any, x: Any) -> Any:
        b = a @ a
        return b, x + 1.0

    read = page(uneven, np.ones((300, 300)), np.ones(10))
    first = next(row for row in read.rows if len(row) == 7)
    assert first[0] == f"{FILE}:{inspect.getsourcelines(uneven)[1] + 1}"
    assert int(first[6].strip(" %")) >= 90


def test_kernels_that_call_functions_of_the_host_have_modelled_times() -> None:
    def solved(a: Any) -> Any:
        return np.sum(np.linalg.eigvalsh(a @ a.T))

    given = np.diag(np.arange(1.0, 6.0))
    read = page(solved, given)
    assert "measured" in read.words or "a model of cost" in read.words
    np.testing.assert_array_equal(given, np.diag(np.arange(1.0, 6.0)))


def test_programs_of_devices_are_pages_of_text() -> None:
    with using(Simulator()):
        given = nb.Tensor(np.array([1.0, -4.0], np.float32), device="cuda")
        found = nb.explain(np.sqrt, given)
        assert "kernel 0" in Page(found.html).words
        with nb.profile() as programs:
            nb.jit(lambda x: x + 1)(given)
        nan = nb.find_nan(lambda x: np.sqrt(x) * 2, given)
    assert programs.programs[0].arguments.startswith("on ")
    assert nan is not None
    assert (nan.operation, nan.operands[0].value) == ("sqrt", -4.0)


def test_strings_that_html_would_read_are_shown() -> None:
    read = page(lambda x: np.where(x < 2, x, 1) if "<b>" < "<c>" else x, np.arange(5.0))
    assert '"<b>" < "<c>"' in read.words


def test_explanations_are_strings() -> None:
    found = nb.explain(two_lines, X)
    assert isinstance(found, str)
    assert found == found.full
    assert pickle.loads(pickle.dumps(found)) == copy.copy(found) == str(found)
    assert type(copy.deepcopy(found)) is str


def test_large_graphs_are_shortened() -> None:
    def written_out(x: Any) -> Any:
        for k in range(MOST_NODES):
            x = np.sin(x) + (k * k % 7) * np.cos(x * (k % 11))
        return x

    with nb.config.rolled(False):
        found = nb.explain(written_out, 0.5)
    whole, text = found.full.split("\n"), found.split("\n")
    assert len(text) < len(whole) / 2
    assert "lines, by their share of the time:" in text
    assert any("print(nb.explain(...).full) shows them" in line for line in text)
    assert text[0] == whole[0]
    assert "is not drawn" in Page(found.html).words


def test_pages_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.py"
    model.write_text("import numpy as np\n\ndef loss(x):\n    return np.sum(np.sin(x) * x)\n", encoding="utf-8")
    np.save(tmp_path / "x.npy", X)
    target = tmp_path / "page.html"
    arguments = ["explain", f"{model}:loss", str(tmp_path / "x.npy"), "--grad", "--html"]
    assert main([*arguments, str(target)]) == 0
    assert capsys.readouterr().out == f"The page is in {target}.\n"
    assert set(Page(target.read_text(encoding="utf-8")).lines()) == {"model.py:4", "model.py:4 derivative"}
    assert main([*arguments, str(tmp_path / "none" / "page.html")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_passes_walk_through_their_own_nodes_where_no_notes_are_taken() -> None:
    nodes: list[Any] = []
    assert walked(nodes) is nodes
