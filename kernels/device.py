"""The language of kernels for GPUs: the number of a thread, barriers, shuffles, shared memory, atomic additions.

In and out: integers, scalars, and pointers as kernels index them.  Who calls: the kernels in the files device_*.py, by
bare name.  The compiler replaces each function by a call that the target defines (intrinsics.py); as ordinary Python
they do nothing but raise, because one thread alone is no block.  Warps have 32 threads on every target; grids and
blocks have one axis.
"""

MESSAGE = "Kernels for GPUs run compiled only: many threads at once take part."


def thread():
    """The number of this thread in its block."""
    raise NotImplementedError(MESSAGE)


def block():
    """The number of this thread's block in the grid."""
    raise NotImplementedError(MESSAGE)


def threads():
    """How many threads a block has."""
    raise NotImplementedError(MESSAGE)


def blocks():
    """How many blocks the grid has."""
    raise NotImplementedError(MESSAGE)


def barrier():
    """Wait for all threads of the block; what they wrote to memory before is seen after it."""
    raise NotImplementedError(MESSAGE)


def fence():
    """Let all others see the writes of this thread so far before those that come."""
    raise NotImplementedError(MESSAGE)


def shuffle_down(value, distance):
    """The value of the lane `distance` further on, or this lane's own if there is none; all lanes take part."""
    raise NotImplementedError(MESSAGE)


def shuffle_xor(value, mask):
    """The value of the lane whose number differs in the bits of `mask`; all lanes take part."""
    raise NotImplementedError(MESSAGE)


def shuffle_from(value, lane):
    """The value of a lane, by its number; all lanes take part."""
    raise NotImplementedError(MESSAGE)


def ballot(condition):
    """A bit for each lane of the warp: whether its condition holds; all lanes take part."""
    raise NotImplementedError(MESSAGE)


def same_byte(value):
    """A bit for each lane of the warp: whether its value has the same lowest eight bits; all lanes take part."""
    raise NotImplementedError(MESSAGE)


def bits_below(word, lane):
    """How many of the first `lane` bits of a word of 32 bits are set."""
    raise NotImplementedError(MESSAGE)


def first_bit(word):
    """The number of the lowest set bit of a word of 32 bits that is not 0."""
    raise NotImplementedError(MESSAGE)


def shared_like(pointer, offset):
    """The block's shared memory from a number of bytes on, with elements like those that a pointer points to."""
    raise NotImplementedError(MESSAGE)


def atomic_add(pointer, position, value):
    """Add to an element as one step, whatever other threads do; gives what it was before."""
    raise NotImplementedError(MESSAGE)


def atomic_max(pointer, position, value):
    """Raise an element of whole numbers to a value, if it is lower, as one step; gives what it was before."""
    raise NotImplementedError(MESSAGE)
