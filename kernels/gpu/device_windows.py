"""Kernels for GPUs that slide windows over images: columns for convolutions, their transpose, and window maxima.

In:  a pointer to images or to columns, and the numbers of windows.py in the same order.  Out: columns, images, or
positions.  A block has 2 ** shift_x threads along rows, 2 ** shift_y rows, and the rest for planes; planes are counted
with N innermost.  `pieces` blocks share the rows of a plane.  Who calls: nbgrad/device/kernels/window_recipes.py.
"""

from ..device import block, blocks, thread, threads


def unfold(
    images, columns, shift_x, shift_y, pieces, count, channels, height, width,
    kh, kw, down, right, spread_down, spread_right, above, left, oh, ow,
):  # fmt: skip
    """columns[c, i, j, n, y, x] = element (i, j) of window (y, x) of images[n, c]; a thread for each window."""
    t = thread()
    inside = t >> shift_x
    group = block() // pieces
    plane = group * (threads() >> (shift_x + shift_y)) + (inside >> shift_y)
    first_y = ((block() - group * pieces) << shift_y) + (inside & ((1 << shift_y) - 1))
    if plane < count * channels:
        c = plane // count
        n = plane - c * count
        source = (n * channels + c) * height * width
        target = (c * kh * kw * count + n) * oh * ow
        jump = count * oh * ow
        y = first_y
        while y < oh:
            x = t & (1 << shift_x) - 1
            while x < ow:
                at = target + y * ow + x
                # All elements of the window in one loop: two would be unrolled into more code than fits.
                row = y * down - above
                first = x * right - left
                column = first
                last = first + kw * spread_right
                end = row + kh * spread_down
                while row < end:
                    if row >= 0 and row < height and column >= 0 and column < width:
                        columns[at] = images[source + row * width + column]
                    else:
                        columns[at] = 0
                    at += jump
                    column += spread_right
                    if column == last:
                        column = first
                        row += spread_down
                x += 1 << shift_x
            y += pieces << shift_y
    return 0


def fold(
    columns, images, shift_x, shift_y, pieces, count, channels, height, width,
    kh, kw, down, right, spread_down, spread_right, above, left, oh, ow,
):  # fmt: skip
    """The transpose of `unfold`: each thread adds up, for an element, the windows that it lies in, in their order."""
    t = thread()
    inside = t >> shift_x
    group = block() // pieces
    plane = group * (threads() >> (shift_x + shift_y)) + (inside >> shift_y)
    first_row = ((block() - group * pieces) << shift_y) + (inside & ((1 << shift_y) - 1))
    if plane < count * channels:
        c = plane // count
        n = plane - c * count
        target = (n * channels + c) * height * width
        source = (c * kh * kw * count + n) * oh * ow
        jump = count * oh * ow
        row = first_row
        while row < height:
            column = t & (1 << shift_x) - 1
            while column < width:
                # The window of which this is element (i, j), and how far beyond its beginning; exact if by 0.
                y = (row + above) // down
                y_rest = row + above - y * down
                x_first = (column + left) // right
                x_first_rest = column + left - x_first * right
                images[target + row * width + column] = 0
                total = images[target + row * width + column]
                at = source
                for _i in range(kh):
                    if y_rest == 0 and y >= 0 and y < oh:
                        x, x_rest = x_first, x_first_rest
                        for j in range(kw):
                            if x_rest == 0 and x >= 0 and x < ow:
                                total += columns[at + j * jump + y * ow + x]
                            x_rest -= spread_right
                            while x_rest < 0:
                                x_rest += right
                                x -= 1
                    at += kw * jump
                    y_rest -= spread_down
                    while y_rest < 0:
                        y_rest += down
                        y -= 1
                images[target + row * width + column] = total
                column += 1 << shift_x
            row += pieces << shift_y
    return 0


def window_argmax(
    images, out, count, channels, height, width,
    kh, kw, down, right, spread_down, spread_right, above, left, oh, ow,
):  # fmt: skip
    """The kernel of windows.py with a thread for each window."""
    k = block() * threads() + thread()
    while k < count * channels * oh * ow:
        line = k // ow
        x = k - line * ow
        plane = line // oh
        y = line - plane * oh
        source = plane * height * width
        top, first, last = y * down - above, 0, kh
        start, low, high = x * right - left, 0, kw
        if kh == 0:
            top = y * height // oh
            last = -(-(y + 1) * height // oh) - top
            start = x * width // ow
            high = -(-(x + 1) * width // ow) - start
        while top + first * spread_down < 0:
            first += 1
        while top + (last - 1) * spread_down >= height:
            last -= 1
        while start + low * spread_right < 0:
            low += 1
        while start + (high - 1) * spread_right >= width:
            high -= 1
        row = (top + first * spread_down) * width + start + low * spread_right
        where = row
        best = images[source + where]
        for _i in range(first, last):
            at = row
            for _j in range(low, high):
                value = images[source + at]
                if value > best or value != value:
                    best = value
                    where = at
                at += spread_right
            row += spread_down * width
        out[k] = where
        k += blocks() * threads()
    return 0
