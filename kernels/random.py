"""Random bits as a function of a key and a counter: Philox2x32-10.

In:  a key (its low 32 bits count) and a 64-bit counter, as uint64.  Out: 64 random bits, as uint64.  No state: equal
operands give equal bits, and each counter gives bits of its own, so that any loop order and any number of threads
compute the same numbers.  Who calls: the table in __init__.py.
Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011; exact.
"""

import numpy as np

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
MULTIPLIER = np.uint64(0xD256D193)
WEYL = np.uint64(0x9E3779B9)


def philox_round(state, key):
    """One round on the words (low half, high half): (high part of the product ^ key ^ second word, low part)."""
    product = (state & LOW) * MULTIPLIER
    return ((product >> HALF) ^ key ^ (state >> HALF)) | ((product & LOW) << HALF)


def random_bits(key, counter):
    """Ten rounds, after each of which the key moves on by the golden ratio."""
    key = key & LOW
    state = counter
    for _ in range(10):
        state = philox_round(state, key)
        key = (key + WEYL) & LOW
    return state
