"""Sums of products in tiles of vector registers: the innermost loops of kernels/convolution.py as LLVM IR.

In: a dtype, and the features of the CPU. Out: IR of the functions that the kernels call `tile` and `dots`, and how many
numbers they work on. Called by special.py and convolution_plan.py. A tile of sums stays in registers while its terms go
by: for each channel and tap one vector load for each column of the tile, one number for each row, and a multiply-add
for each pair. LLVM does not make such loops of scalar ones. The sums begin at zero and are added to what was there at
the end, so that long sums are made of short ones.
"""

from __future__ import annotations

from typing import NamedTuple

KINDS = {"float32": ("float", 4), "float64": ("double", 8)}
"""LLVM's type, and bytes."""


class Registers(NamedTuple):
    """A tile: rows, vectors in a row, and numbers in a vector."""

    rows: int
    vectors: int
    lanes: int

    def pairs(self) -> list[tuple[int, int]]:
        """The vectors of a tile."""
        return [(row, vector) for row in range(self.rows) for vector in range(self.vectors)]


def registers(dtype: str, features: str) -> Registers:
    """The tile of a CPU: as many sums as leave registers for a row of vectors and one number."""
    bits = 512 if "+avx512f" in features else 256 if "+avx," in f"{features}," else 128
    many = "+avx512f" in features or "+neon" in features
    return Registers(8 if many else 4, 3, bits // 8 // KINDS[dtype][1])


def tiles_ir(dtype: str, tile: Registers) -> str:
    """The IR of both functions."""
    narrower = [_tile(dtype, tile._replace(vectors=many), f"nbgrad.tile.{many}") for many in range(1, tile.vectors + 1)]
    return "".join([*narrower, _tile_of_width(dtype, tile), _dots(dtype, tile), _copy(dtype, tile), _clear(dtype)])


def _multiply_add(vector: str, name: str, one: str, other: str, total: str) -> list[str]:
    return [
        f"  {name}.product = fmul contract {vector} {one}, {other}",
        f"  {name} = fadd contract {vector} {total}, {name}.product",
    ]


_TILE = "ptr %filters, ptr %taps, i64 %count, i64 %channels, i64 %plane, ptr %pixels, ptr %out, i64 %width, i64 %add"


def _tile_of_width(dtype: str, tile: Registers) -> str:
    """A call of the function for so many vectors."""
    widths = range(1, tile.vectors + 1)
    lines = [f"define internal void @nbgrad.tile.{dtype}({_TILE}, i64 %vectors) {{", "entry:"]
    cases = " ".join(f"i64 {many}, label %width{many}" for many in widths[:-1])
    lines.append(f"  switch i64 %vectors, label %width{tile.vectors} [ {cases} ]")
    for many in widths:
        lines += [f"width{many}:", f"  call void @nbgrad.tile.{many}({_TILE})", "  ret void"]
    return "\n".join([*lines, "}", ""])


def _tile(dtype: str, tile: Registers, name: str) -> str:
    """out[row, :] += the sum over channels c and taps t of filters[c, t, row] * pixels[c * plane + taps[t] + :]."""
    kind, size = KINDS[dtype]
    vector = f"<{tile.lanes} x {kind}>"
    pairs = tile.pairs()
    lines = [
        f"define internal void @{name}({_TILE}) noinline {{",
        "entry:",
        "  br label %channel",
        "channel:",
        "  %c = phi i64 [ 0, %entry ], [ %c.next, %channel.end ]",
        "  %weights = phi ptr [ %filters, %entry ], [ %weights.next, %channel.end ]",
        "  %from = phi ptr [ %pixels, %entry ], [ %from.next, %channel.end ]",
        *[f"  %s{r}.{v} = phi {vector} [ zeroinitializer, %entry ], [ %n{r}.{v}, %channel.end ]" for r, v in pairs],
        "  br label %tap",
        "tap:",
        "  %t = phi i64 [ 0, %channel ], [ %t.next, %tap ]",
        "  %w = phi ptr [ %weights, %channel ], [ %weights.next, %tap ]",
        *[f"  %a{r}.{v} = phi {vector} [ %s{r}.{v}, %channel ], [ %n{r}.{v}, %tap ]" for r, v in pairs],
        "  %tap.at = getelementptr i64, ptr %taps, i64 %t",
        "  %tap.offset = load i64, ptr %tap.at",
        f"  %source = getelementptr {kind}, ptr %from, i64 %tap.offset",
    ]
    for v in range(tile.vectors):
        lines.append(f"  %x{v}.at = getelementptr {kind}, ptr %source, i64 {v * tile.lanes}")
        lines.append(f"  %x{v} = load {vector}, ptr %x{v}.at, align {size}")
    for r in range(tile.rows):
        lines.append(f"  %w{r}.at = getelementptr {kind}, ptr %w, i64 {r}")
        lines.append(f"  %w{r} = load {kind}, ptr %w{r}.at")
        lines.append(f"  %w{r}.one = insertelement {vector} poison, {kind} %w{r}, i64 0")
        lines.append(
            f"  %w{r}.all = shufflevector {vector} %w{r}.one, {vector} poison, <{tile.lanes} x i32> zeroinitializer"
        )
        for v in range(tile.vectors):
            lines += _multiply_add(vector, f"%n{r}.{v}", f"%w{r}.all", f"%x{v}", f"%a{r}.{v}")
    lines += [
        f"  %weights.next = getelementptr {kind}, ptr %w, i64 {tile.rows}",
        "  %t.next = add i64 %t, 1",
        "  %t.more = icmp slt i64 %t.next, %count",
        "  br i1 %t.more, label %tap, label %channel.end",
        "channel.end:",
        f"  %from.next = getelementptr {kind}, ptr %from, i64 %plane",
        "  %c.next = add i64 %c, 1",
        "  %c.more = icmp slt i64 %c.next, %channels",
        "  br i1 %c.more, label %channel, label %last",
        "last:",
    ]
    for r, v in pairs:
        lines.append(f"  %o{r}.{v}.row = mul i64 %width, {r}")
        lines.append(f"  %o{r}.{v}.in = add i64 %o{r}.{v}.row, {v * tile.lanes}")
        lines.append(f"  %o{r}.{v} = getelementptr {kind}, ptr %out, i64 %o{r}.{v}.in")
    lines += ["  %again = icmp ne i64 %add, 0", "  br i1 %again, label %more, label %store", "more:"]
    for r, v in pairs:
        lines.append(f"  %h{r}.{v} = load {vector}, ptr %o{r}.{v}, align {size}")
        lines.append(f"  %m{r}.{v} = fadd {vector} %n{r}.{v}, %h{r}.{v}")
    lines += ["  br label %store", "store:"]
    lines += [f"  %f{r}.{v} = phi {vector} [ %n{r}.{v}, %last ], [ %m{r}.{v}, %more ]" for r, v in pairs]
    lines += [f"  store {vector} %f{r}.{v}, ptr %o{r}.{v}, align {size}" for r, v in pairs]
    return "\n".join([*lines, "  ret void", "}", ""])


def _dots(dtype: str, tile: Registers) -> str:
    """out[row, t] += the sum over steps s and lanes of cotangents[row, s, lane] * pixels[taps[t] + s, lane]."""
    kind, size = KINDS[dtype]
    vector = f"<{tile.lanes} x {kind}>"
    pairs = tile.pairs()
    arguments = "ptr %cotangents, i64 %width, ptr %pixels, ptr %taps, i64 %count, ptr %out"
    lines = [
        f"define internal void @nbgrad.dots.{dtype}({arguments}) noinline {{",
        "entry:",
    ]
    for t in range(tile.vectors):
        lines.append(f"  %tap{t}.at = getelementptr i64, ptr %taps, i64 {t}")
        lines.append(f"  %tap{t} = load i64, ptr %tap{t}.at")
        lines.append(f"  %from{t} = getelementptr {kind}, ptr %pixels, i64 %tap{t}")
    for r in range(tile.rows):
        lines.append(f"  %row{r}.in = mul i64 %width, {r}")
        lines.append(f"  %row{r} = getelementptr {kind}, ptr %cotangents, i64 %row{r}.in")
    lines += [
        "  br label %step",
        "step:",
        "  %s = phi i64 [ 0, %entry ], [ %s.next, %step ]",
        *[f"  %a{r}.{t} = phi {vector} [ zeroinitializer, %entry ], [ %n{r}.{t}, %step ]" for r, t in pairs],
        f"  %k = mul i64 %s, {tile.lanes}",
    ]
    for t in range(tile.vectors):
        lines.append(f"  %x{t}.at = getelementptr {kind}, ptr %from{t}, i64 %k")
        lines.append(f"  %x{t} = load {vector}, ptr %x{t}.at, align {size}")
    for r in range(tile.rows):
        lines.append(f"  %g{r}.at = getelementptr {kind}, ptr %row{r}, i64 %k")
        lines.append(f"  %g{r} = load {vector}, ptr %g{r}.at, align {size}")
        for t in range(tile.vectors):
            lines += _multiply_add(vector, f"%n{r}.{t}", f"%g{r}", f"%x{t}", f"%a{r}.{t}")
    lines += [
        "  %s.next = add i64 %s, 1",
        "  %more = icmp slt i64 %s.next, %count",
        "  br i1 %more, label %step, label %last",
        "last:",
    ]
    names = [f"%n{r}.{t}" for r, t in pairs]
    for k, start in enumerate(range(0, len(names), tile.lanes)):
        total = _lane_sums(lines, names[start : start + tile.lanes], tile.lanes, vector, f"%sum{k}")
        lines.append(f"  %o{k} = getelementptr {kind}, ptr %out, i64 {start}")
        lines.append(f"  %h{k} = load {vector}, ptr %o{k}, align {size}")
        lines.append(f"  %m{k} = fadd {vector} {total}, %h{k}")
        lines.append(f"  store {vector} %m{k}, ptr %o{k}, align {size}")
    return "\n".join([*lines, "  ret void", "}", ""])


def _lane_sums(lines: list[str], names: list[str], lanes: int, vector: str, stem: str) -> str:
    """The sums over the lanes of so many vectors, as the lanes of one: halves of pairs are added, then quarters."""
    names = names + ["zeroinitializer"] * (lanes - len(names))
    half = lanes // 2
    while half:
        found = []
        for k in range(half):
            # Each result has parts of both: where bit `half` of a lane's number is set, those of the second.
            one, other = names[k], names[k + half]
            first = [lane if not lane & half else lane - half + lanes for lane in range(lanes)]
            second = [lane + half if not lane & half else lane + lanes for lane in range(lanes)]
            name = f"{stem}.{half}.{k}"
            for part, mask in (("low", first), ("high", second)):
                picked = ", ".join(f"i32 {place}" for place in mask)
                lines.append(
                    f"  {name}.{part} = shufflevector {vector} {one}, {vector} {other}, <{lanes} x i32> <{picked}>"
                )
            lines.append(f"  {name} = fadd {vector} {name}.low, {name}.high")
            found.append(name)
        names, half = found, half // 2
    return names[0]


def _copy(dtype: str, tile: Registers) -> str:
    """target[:count] = source[:count] of arrays that do not overlap; most rows are short.

    By vectors, of which the last is cut by a mask where registers of masks make that cheap (texts/wide_registers.py),
    and elsewhere overlaps the one before.
    """
    kind, size = KINDS[dtype]
    wide = size * tile.lanes == 64
    return (_masked_copy if wide else _overlapping_copy)(kind, size, tile.lanes, f"nbgrad.copy.{dtype}")


def _overlapping_copy(kind: str, size: int, lanes: int, name: str) -> str:
    vector = f"<{lanes} x {kind}>"
    return f"""define internal void @{name}(ptr %source, ptr %target, i64 %count) {{
entry:
  %long = icmp sge i64 %count, {lanes}
  br i1 %long, label %vectors, label %few
vectors:
  %last = sub i64 %count, {lanes}
  br label %vector
vector:
  %k = phi i64 [ 0, %vectors ], [ %next, %vector ]
  %from = getelementptr {kind}, ptr %source, i64 %k
  %to = getelementptr {kind}, ptr %target, i64 %k
  %read = load {vector}, ptr %from, align {size}
  store {vector} %read, ptr %to, align {size}
  %beyond = add i64 %k, {lanes}
  %next = call i64 @llvm.smin.i64(i64 %beyond, i64 %last)
  %more = icmp slt i64 %k, %last
  br i1 %more, label %vector, label %done
few:
  %n = phi i64 [ 0, %entry ], [ %n.next, %one ]
  %left = icmp slt i64 %n, %count
  br i1 %left, label %one, label %done
one:
  %one.from = getelementptr {kind}, ptr %source, i64 %n
  %one.to = getelementptr {kind}, ptr %target, i64 %n
  %number = load {kind}, ptr %one.from, align {size}
  store {kind} %number, ptr %one.to, align {size}
  %n.next = add i64 %n, 1
  br label %few
done:
  ret void
}}
declare i64 @llvm.smin.i64(i64, i64)
"""


def _masked_copy(kind: str, size: int, lanes: int, called: str) -> str:
    vector, mask = f"<{lanes} x {kind}>", f"<{lanes} x i1>"
    numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
    name = f"v{lanes}f{8 * size}"
    return f"""declare {vector} @llvm.masked.load.{name}.p0(ptr, i32, {mask}, {vector})
declare void @llvm.masked.store.{name}.p0({vector}, ptr, i32, {mask})
define internal void @{called}(ptr %source, ptr %target, i64 %count) {{
entry:
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %left = sub i64 %count, %k
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %body, label %done
body:
  %one = insertelement <{lanes} x i64> poison, i64 %left, i64 0
  %all = shufflevector <{lanes} x i64> %one, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer
  %mask = icmp slt <{lanes} x i64> <{numbers}>, %all
  %from = getelementptr {kind}, ptr %source, i64 %k
  %to = getelementptr {kind}, ptr %target, i64 %k
  %read = call {vector} @llvm.masked.load.{name}.p0(ptr %from, i32 {size}, {mask} %mask, {vector} zeroinitializer)
  call void @llvm.masked.store.{name}.p0({vector} %read, ptr %to, i32 {size}, {mask} %mask)
  %next = add i64 %k, {lanes}
  br label %test
done:
  ret void
}}
"""


def _clear(dtype: str) -> str:
    """target[:count] = 0."""
    return f"""declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @nbgrad.clear.{dtype}(ptr %target, i64 %count) {{
  %bytes = mul i64 %count, {KINDS[dtype][1]}
  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %bytes, i1 false)
  ret void
}}
"""
