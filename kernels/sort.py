"""Special kernels that sort.

In:  a pointer to rows in C order, a workspace of one int64 per element, and `sizes` = (rows, length).  Out: per row,
the positions that sort it: stable, NaN last.  Called by the compiler (special.py).
"""


def argsort(x, workspace, out, sizes, begin, end):
    """Bottom-up merge sort of positions (Knuth, The Art of Computer Programming 3, 5.2.4)."""
    length = sizes[1]
    for row in range(begin, end):
        base = row * length
        for k in range(length):
            out[base + k] = k
        width = 1
        while width < length:
            for low in range(0, length, 2 * width):
                middle = min(low + width, length)
                high = min(low + 2 * width, length)
                left = low
                right = middle
                for k in range(low, high):
                    take_left = right >= high
                    if not take_left and left < middle:
                        p = x[base + out[base + left]]
                        q = x[base + out[base + right]]
                        # Not (q before p): q < p, or p is NaN and q is not.
                        take_left = not (q < p or (p != p and q == q))
                    if take_left:
                        workspace[base + k] = out[base + left]
                        left += 1
                    else:
                        workspace[base + k] = out[base + right]
                        right += 1
            for k in range(length):
                out[base + k] = workspace[base + k]
            width *= 2
    return 0
