"""Compiles one kernel with Numba: the only file of this folder that imports Numba.

In:  a plain kernel function.  Out: `jit_kernel` gives its Numba dispatcher, in which every plain function that the
kernel names is compiled too, and the stand-ins of bits.py have become LLVM intrinsics.
Who calls: the compiler (and tests), the first time that a kernel is needed.  Never imported by another kernel file.
"""

import dis
import functools
import types as python_types

from llvmlite import ir
from llvmlite.binding import add_symbol
from llvmlite.ir.values import FunctionAttributes
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from . import approximate, bits, convolution, device, linalg, sort


def _bit_cast(source, target):
    """A Numba intrinsic that reinterprets a scalar of one type as another of the same width."""

    def cast(typing_context, value):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return (target(source), generate) if isinstance(value, types.Number) else None

    return intrinsic(cast)


def _common_float(*operands):
    """float32 if all operands are, otherwise float64."""
    return types.float32 if all(operand == types.float32 for operand in operands) else types.float64


def _llvm_function(name, arity):
    """A Numba intrinsic for the LLVM intrinsic `name`, overloaded on the (one) float type of its operands."""

    def lower(kind):
        def generate(context, builder, signature, arguments):
            value_type = context.get_value_type(kind)
            declared = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(value_type, [value_type] * arity),
                f"llvm.{name}.f{kind.bitwidth}",
            )
            return builder.call(declared, arguments)

        return kind(*[kind] * arity), generate

    def _common_float(*operands):
        return types.float32 if all(operand == types.float32 for operand in operands) else types.float64

    if arity == 1:
        return intrinsic(lambda typing_context, x: lower(_common_float(x)))
    if arity == 2:
        return intrinsic(lambda typing_context, x, y: lower(_common_float(x, y)))
    return intrinsic(lambda typing_context, x, y, z: lower(_common_float(x, y, z)))


class _RareAttributes(FunctionAttributes):
    """Attributes of a pure library function that a vectorised loop may call for single elements behind a branch.

    LLVM vectorises a loop with a conditional call only if the callee names a masked vector variant, even if it then
    decides for scalar calls, each behind its own test (LoopVectorizationLegality::blockCanBePredicated).  So we name
    one for a width that does not exist.  `nobuiltin` keeps LLVM from calling the function ahead of the test.
    """

    _known = FunctionAttributes._known | {"willreturn", "nosync", "memory(none)"}

    def __init__(self, name, arity):
        super().__init__(("nounwind", "nobuiltin", "cold", "willreturn", "nosync", "memory(none)"))
        variant = f'"vector-function-abi-variant"="_ZGV_LLVM_M1024{"v" * arity}_{name}({name})"'
        self._known = self._known | {variant}
        self.add(variant)


def _rare_call(name, arity):
    """A Numba intrinsic that calls a function of the C library (float32: its f variant) behind a branch."""

    def lower(kind):
        symbol = f"{name}f" if kind == types.float32 else name

        def generate(context, builder, signature, arguments):
            value_type = context.get_value_type(kind)
            declared = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(value_type, [value_type] * arity), symbol
            )
            declared.attributes = _RareAttributes(symbol, arity)
            return builder.call(declared, arguments)

        return kind(*[kind] * arity), generate

    if arity == 1:
        return intrinsic(lambda typing_context, x: lower(_common_float(x)))
    return intrinsic(lambda typing_context, x, y: lower(_common_float(x, y)))


@intrinsic
def _rank_bits(typing_context, value):
    """A number as an int64 of the same order: `sort.rank_bits`."""

    def of_float(context, builder, signature, arguments):
        word, double = ir.IntType(64), ir.DoubleType()
        (x,) = arguments
        x = x if x.type == double else builder.fpext(x, double)
        pattern = builder.bitcast(builder.fadd(x, ir.Constant(double, 0.0)), word)
        sign = builder.ashr(pattern, ir.Constant(word, 63))
        ordered = builder.xor(pattern, builder.and_(sign, ir.Constant(word, 2**63 - 1)))
        return builder.select(builder.fcmp_unordered("uno", x, x), ir.Constant(word, 2**63 - 1), ordered)

    def of_integer(context, builder, signature, arguments):
        word = ir.IntType(64)
        if signature.args[0] == types.uint64:
            return builder.xor(arguments[0], ir.Constant(word, -(2**63)))
        return context.cast(builder, arguments[0], signature.args[0], types.int64)

    return types.int64(value), of_float if isinstance(value, types.Float) else of_integer


@intrinsic
def _rank_byte(typing_context, value, shift):
    """Eight bits of a number's rank: `sort.rank_byte`."""
    width = max(value.bitwidth, 8)
    word = ir.IntType(width)
    top = ir.Constant(word, 1 << (width - 1))

    def of_float(builder, x):
        pattern = builder.bitcast(builder.fadd(x, ir.Constant(x.type, 0.0)), word)
        sign = builder.ashr(pattern, ir.Constant(word, width - 1))
        ordered = builder.xor(pattern, builder.or_(sign, top))
        return builder.select(builder.fcmp_unordered("uno", x, x), ir.Constant(word, -1), ordered)

    def generate(context, builder, signature, arguments):
        x, places = arguments
        if isinstance(value, types.Float):
            ordered = of_float(builder, x)
        else:
            ordered = builder.xor(x, top) if value.signed else x
        places = builder.trunc(places, word) if width < 64 else places
        byte = builder.and_(builder.lshr(ordered, places), ir.Constant(word, 255))
        return builder.zext(byte, ir.IntType(64)) if width < 64 else byte

    return (types.int64(value, types.int64), generate) if isinstance(value, types.Number) else None


@intrinsic
def _pointer_to(typing_context, pointer, position):
    """The address of an element."""

    def generate(context, builder, signature, arguments):
        return builder.gep(*arguments[:1], [arguments[1]])

    return pointer(pointer, types.int64), generate


@intrinsic
def _word_at(typing_context, pointer, position):
    """The 32-bit integer where an element begins."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(32)
        place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), word.as_pointer())
        return builder.sext(builder.load(place), ir.IntType(64))

    return types.int64(pointer, types.int64), generate


@intrinsic
def _call_address(typing_context, address, pointers):
    """A call of the routine at an address, with pointers of any kinds and without a result."""

    def generate(context, builder, signature, arguments):
        byte = ir.IntType(8).as_pointer()
        values = [builder.bitcast(builder.extract_value(arguments[1], k), byte) for k in range(len(pointers))]
        routine = ir.FunctionType(ir.VoidType(), [byte] * len(values)).as_pointer()
        builder.call(builder.inttoptr(arguments[0], routine), values)
        return context.get_dummy_value()

    return types.void(types.int64, pointers), generate


# ----- Functions that the target defines -----


class _Together(FunctionAttributes):
    """Attributes of a function that threads call together: no optimisation may make one of them skip the call."""

    _known = FunctionAttributes._known | {"convergent", "willreturn"}

    def __init__(self):
        super().__init__(("nounwind", "convergent"))


def _target_function(builder, name, result, arguments, values, together=False):
    """A call of a function that the target defines."""
    kind = ir.FunctionType(result, arguments)
    # Numba links what it compiles, though only the IR is used: LLVM ends the process if a name has no address.
    add_symbol(f"nbgrad.{name}", 1)
    declared = cgutils.get_or_insert_function(builder.module, kind, f"nbgrad.{name}")
    if together:
        declared.attributes = _Together()
    return builder.call(declared, values)


def _register_tile(name):
    """A Numba intrinsic for a function on tiles of vector registers, which is named by what its first pointer has."""

    def generate(context, builder, signature, arguments):
        called = f"{name}.{signature.args[0].dtype.name}"
        _target_function(builder, called, ir.VoidType(), [value.type for value in arguments], arguments)
        return context.get_dummy_value()

    def typed(*kinds):
        wanted = [kind if isinstance(kind, types.CPointer) else types.int64 for kind in kinds]
        return types.void(*wanted), generate

    if name == "tile":
        return intrinsic(lambda typing_context, a, b, c, d, e, f, g, h, i, j: typed(a, b, c, d, e, f, g, h, i, j))
    if name == "dots":
        return intrinsic(lambda typing_context, a, b, c, d, e, f: typed(a, b, c, d, e, f))
    if name == "copy":
        return intrinsic(lambda typing_context, a, b, c: typed(a, b, c))
    return intrinsic(lambda typing_context, a, b: typed(a, b))


# ----- What GPUs do (device.py) -----


def _position(name):
    """A Numba intrinsic for the number of a thread, or of what there are, as int64."""

    def generate(context, builder, signature, arguments):
        found = _target_function(builder, name, ir.IntType(32), [], [])
        return builder.zext(found, ir.IntType(64))

    return intrinsic(lambda typing_context: (types.int64(), generate))


def _order(name, together):
    """A Numba intrinsic without arguments or result."""

    def generate(context, builder, signature, arguments):
        _target_function(builder, name, ir.VoidType(), [], [], together)
        return context.get_dummy_value()

    return intrinsic(lambda typing_context: (types.void(), generate))


def _shuffle(kind):
    """A Numba intrinsic that gives a scalar of 32 or 64 bits of another lane."""

    def shuffle(typing_context, value, lane):
        width = getattr(value, "bitwidth", 0)
        if not isinstance(value, types.Number) or width not in (32, 64):
            return None

        def generate(context, builder, signature, arguments):
            whole = ir.IntType(width)
            given = context.get_value_type(value)
            bits_ = builder.bitcast(arguments[0], whole) if given != whole else arguments[0]
            lane_ = context.cast(builder, arguments[1], lane, types.int32)
            name = f"shuffle.{kind}.i{width}"
            found = _target_function(builder, name, whole, [whole, ir.IntType(32)], [bits_, lane_], True)
            return builder.bitcast(found, given) if given != whole else found

        return value(value, lane), generate

    return intrinsic(shuffle)


@intrinsic
def _ballot(typing_context, condition):
    """The lanes whose condition holds."""

    def generate(context, builder, signature, arguments):
        truth = context.cast(builder, arguments[0], condition, types.boolean)
        word = ir.IntType(32)
        return _target_function(builder, "ballot", word, [word], [builder.zext(truth, word)], True)

    return types.uint32(condition), generate


@intrinsic
def _same_byte(typing_context, value):
    """The lanes whose lowest eight bits are the same."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(32)
        return _target_function(builder, "match", word, [word], [builder.trunc(arguments[0], word)], True)

    return types.uint32(types.int64), generate


@intrinsic
def _bits_below(typing_context, word, lane):
    """The number of set bits among the first ones."""

    def generate(context, builder, signature, arguments):
        kind, wide = ir.IntType(32), ir.IntType(64)
        ones = builder.sub(builder.shl(ir.Constant(wide, 1), arguments[1]), ir.Constant(wide, 1))
        mask = builder.trunc(ones, kind)
        declared = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), "llvm.ctpop.i32")
        return builder.zext(builder.call(declared, [builder.and_(arguments[0], mask)]), ir.IntType(64))

    return types.int64(types.uint32, types.int64), generate


@intrinsic
def _first_bit(typing_context, word):
    """The number of the lowest set bit."""

    def generate(context, builder, signature, arguments):
        found = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.zext(found, ir.IntType(64))

    return types.int64(types.uint32), generate


@intrinsic
def _shared_like(typing_context, pointer, offset):
    """The block's shared memory from a byte on."""

    def generate(context, builder, signature, arguments):
        byte = ir.IntType(8)
        start = _target_function(builder, "shared", byte.as_pointer(), [], [])
        place = builder.gep(start, [arguments[1]], source_etype=byte)
        return builder.bitcast(place, context.get_value_type(pointer))

    return pointer(pointer, types.int64), generate


def _atomic(operation):
    """A Numba intrinsic for an atomic operation on an element of 32 or 64 bits."""

    def atomic(typing_context, pointer, position, value):
        element = pointer.dtype
        letter = "f" if isinstance(element, types.Float) else "i" if element.signed else "u"
        if element.bitwidth not in (32, 64) or (letter == "f" and operation == "max"):
            return None

        def generate(context, builder, signature, arguments):
            place = builder.gep(arguments[0], [arguments[1]])
            kind = context.get_value_type(element)
            name = f"atomic.{operation}.{letter}{element.bitwidth}"
            return _target_function(builder, name, kind, [kind.as_pointer(), kind], [place, arguments[2]])

        return element(pointer, types.int64, element), generate

    return intrinsic(atomic)


class _Pure(FunctionAttributes):
    """Attributes of a function of its operands alone."""

    _known = FunctionAttributes._known | {"willreturn", "memory(none)"}

    def __init__(self):
        super().__init__(("nounwind", "willreturn", "memory(none)"))


def _instruction(name, arity):
    """A Numba intrinsic for an instruction of GPUs on float32."""

    def generate(context, builder, signature, arguments):
        single = ir.FloatType()
        called = _target_function(builder, f"approximate.{name}.f32", single, [single] * arity, arguments)
        called.callee.attributes = _Pure()
        return called

    kinds = types.float32(*[types.float32] * arity)
    if arity == 1:
        return intrinsic(lambda typing_context, x: (kinds, generate))
    return intrinsic(lambda typing_context, x, y, z: (kinds, generate))


def _float_part(name, arity):
    """A Numba intrinsic for a function on floats that the compiler defines (compiler/texts/float_parts.py)."""

    def lower(kind):
        def generate(context, builder, signature, arguments):
            value_type = context.get_value_type(kind)
            called = _target_function(builder, f"{name}.f{kind.bitwidth}", value_type, [value_type] * arity, arguments)
            called.callee.attributes = _Pure()
            return called

        return kind(*[kind] * arity), generate

    if arity == 1:
        return intrinsic(lambda typing_context, x: lower(_common_float(x)))
    return intrinsic(lambda typing_context, x, y: lower(_common_float(x, y)))


@intrinsic
def _wide_registers(typing_context):
    """A constant of the target (compiler/texts/wide_registers.py)."""

    def generate(context, builder, signature, arguments):
        called = _target_function(builder, "registers.wide", ir.IntType(1), [], [])
        called.callee.attributes = _Pure()
        return called

    return types.boolean(), generate


INTRINSICS = {
    bits.float64_to_int64: _bit_cast(types.float64, types.int64),
    bits.int64_to_float64: _bit_cast(types.int64, types.float64),
    bits.float32_to_int32: _bit_cast(types.float32, types.int32),
    bits.int32_to_float32: _bit_cast(types.int32, types.float32),
    bits.fma: _llvm_function("fma", 3),
    bits.muladd: _llvm_function("fmuladd", 3),
    bits.round_down: _llvm_function("floor", 1),
    bits.round_up: _llvm_function("ceil", 1),
    bits.round_to_zero: _llvm_function("trunc", 1),
    bits.round_to_even: _llvm_function("rint", 1),
    bits.square_root: _llvm_function("sqrt", 1),
    bits.exponent_of: _float_part("exponent", 1),
    bits.fraction_of: _float_part("fraction", 1),
    bits.times_two_to: _float_part("scaled", 2),
    bits.wide_registers: _wide_registers,
    bits.rare_sin: _rare_call("sin", 1),
    bits.rare_cos: _rare_call("cos", 1),
    bits.rare_tan: _rare_call("tan", 1),
    bits.rare_fmod: _rare_call("fmod", 2),
    bits.with_sign: _llvm_function("copysign", 2),
    approximate.approximate_exp2: _instruction("exp2", 1),
    approximate.approximate_log2: _instruction("log2", 1),
    approximate.approximate_reciprocal: _instruction("reciprocal", 1),
    approximate.approximate_rsqrt: _instruction("rsqrt", 1),
    approximate.normal_rsqrt: _instruction("normal_rsqrt", 1),
    approximate.saturated_muladd: _instruction("muladd", 3),
    sort.rank_bits: _rank_bits,
    sort.rank_byte: _rank_byte,
    linalg.at: _pointer_to,
    linalg.call: _call_address,
    linalg.word: _word_at,
    convolution.tile: _register_tile("tile"),
    convolution.dots: _register_tile("dots"),
    convolution.copy: _register_tile("copy"),
    convolution.clear: _register_tile("clear"),
    device.thread: _position("thread"),
    device.block: _position("block"),
    device.threads: _position("threads"),
    device.blocks: _position("blocks"),
    device.barrier: _order("barrier", True),
    device.fence: _order("fence", False),
    device.shuffle_down: _shuffle("down"),
    device.shuffle_xor: _shuffle("xor"),
    device.shuffle_from: _shuffle("from"),
    device.ballot: _ballot,
    device.same_byte: _same_byte,
    device.bits_below: _bits_below,
    device.first_bit: _first_bit,
    device.shared_like: _shared_like,
    device.atomic_add: _atomic("add"),
    device.atomic_max: _atomic("max"),
}


@functools.cache
def jit_kernel(function):
    """The Numba dispatcher of a kernel, with the functions that it names compiled in turn."""
    names = {step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL"}
    rebound = {
        name: _compiled(function.__globals__[name])
        for name in names
        if isinstance(function.__globals__.get(name), python_types.FunctionType)
    }
    clone = python_types.FunctionType(
        function.__code__,
        {**function.__globals__, **rebound},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    clone.__module__ = function.__module__
    return njit(error_model="numpy", forceinline=True)(clone)


def _compiled(function):
    """The form of a plain function that compiled code calls."""
    return INTRINSICS.get(function) or jit_kernel(function)
