"""Special kernels that slide windows over images: columns for convolutions, their transpose, and window maxima.

In:  a pointer to images, (N, C, height, width) in C order, or to columns, (C, kh, kw, N, oh, ow), and `sizes` = (N, C,
height, width, kh, kw, vertical stride, horizontal stride, the two dilations, padding above, padding to the left, oh,
ow).  Element (i, j) of window (y, x) lies at row `y * stride + i * dilation - padding` and likewise for columns;
outside of the image there are zeros.  Out: columns, images, or positions.  The planes from `begin` to `end` are done,
counted with N innermost, so that planes can be shared among threads.  Called by the compiler (special.py).
"""


def unfold(images, columns, sizes, begin, end):
    """columns[c, i, j, n, y, x] = element (i, j) of window (y, x) of images[n, c]."""
    count, channels, height, width = sizes[0], sizes[1], sizes[2], sizes[3]
    kh, kw, down, right = sizes[4], sizes[5], sizes[6], sizes[7]
    spread_down, spread_right, above, left = sizes[8], sizes[9], sizes[10], sizes[11]
    oh, ow = sizes[12], sizes[13]
    for plane in range(begin, end):
        c = plane // count
        n = plane - c * count
        source = (n * channels + c) * height * width
        for i in range(kh):
            for j in range(kw):
                target = (((c * kh + i) * kw + j) * count + n) * oh * ow
                shift = j * spread_right - left
                # The columns x for which 0 <= x * right + shift < width.
                low = min(max(0, -(shift // right)), ow)
                high = max(min(-((shift - width) // right), ow), low)
                if down == 1 and right == 1 and ow == width and low < high:
                    # Windows side by side on images of the same width: all rows are one run, which wraps around.
                    offset = i * spread_down - above
                    top, bottom = min(max(0, -offset), oh), max(min(oh, height - offset), 0)
                    for k in range(top * ow):
                        columns[target + k] = 0
                    first = source + offset * width + shift
                    for k in range(top * ow + low, (bottom - 1) * ow + high):
                        columns[target + k] = images[first + k]
                    for k in range(max(top, bottom) * ow, oh * ow):
                        columns[target + k] = 0
                    for y in range(top, bottom):
                        for x in range(low):
                            columns[target + y * ow + x] = 0
                        for x in range(high, ow):
                            columns[target + y * ow + x] = 0
                    continue
                for y in range(oh):
                    row = y * down + i * spread_down - above
                    at = target + y * ow
                    if row < 0 or row >= height:
                        for x in range(ow):
                            columns[at + x] = 0
                        continue
                    first = source + row * width + shift
                    for x in range(low):
                        columns[at + x] = 0
                    if right == 1:
                        for x in range(low, high):
                            columns[at + x] = images[first + x]
                    else:
                        for x in range(low, high):
                            columns[at + x] = images[first + x * right]
                    for x in range(high, ow):
                        columns[at + x] = 0
    return 0


def fold(columns, images, sizes, begin, end):
    """The transpose of `unfold`: zeros with every column added where it was read."""
    count, channels, height, width = sizes[0], sizes[1], sizes[2], sizes[3]
    kh, kw, down, right = sizes[4], sizes[5], sizes[6], sizes[7]
    spread_down, spread_right, above, left = sizes[8], sizes[9], sizes[10], sizes[11]
    oh, ow = sizes[12], sizes[13]
    for plane in range(begin, end):
        c = plane // count
        n = plane - c * count
        target = (n * channels + c) * height * width
        for k in range(height * width):
            images[target + k] = 0
        for i in range(kh):
            for j in range(kw):
                source = (((c * kh + i) * kw + j) * count + n) * oh * ow
                shift = j * spread_right - left
                low = min(max(0, -(shift // right)), ow)
                high = max(min(-((shift - width) // right), ow), low)
                for y in range(oh):
                    row = y * down + i * spread_down - above
                    if row < 0 or row >= height:
                        continue
                    at = source + y * ow
                    first = target + row * width + shift
                    if right == 1:
                        for x in range(low, high):
                            images[first + x] += columns[at + x]
                    else:
                        for x in range(low, high):
                            images[first + x * right] += columns[at + x]
    return 0


def window_argmax(images, out, sizes, begin, end):
    """Per window, the position in its plane (row * width + column) of its first maximum; the last NaN wins.

    Padding is never chosen. If kh is 0 the windows are those of adaptive pooling: window y of oh reaches from
    floor(y * height / oh) to ceil((y + 1) * height / oh).
    """
    height, width = sizes[2], sizes[3]
    kh, kw, down, right = sizes[4], sizes[5], sizes[6], sizes[7]
    spread_down, spread_right, above, left = sizes[8], sizes[9], sizes[10], sizes[11]
    oh, ow = sizes[12], sizes[13]
    for plane in range(begin, end):
        source = plane * height * width
        for y in range(oh):
            # Rows `first` to `last` of the window lie in the image.
            top, first, last = y * down - above, 0, kh
            if kh == 0:
                top = y * height // oh
                last = -(-(y + 1) * height // oh) - top
            while top + first * spread_down < 0:
                first += 1
            while top + (last - 1) * spread_down >= height:
                last -= 1
            for x in range(ow):
                start, low, high = x * right - left, 0, kw
                if kh == 0:
                    start = x * width // ow
                    high = -(-(x + 1) * width // ow) - start
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
                        better = (value > best) | (value != value)
                        best = value if better else best
                        where = at if better else where
                        at += spread_right
                    row += spread_down * width
                out[(plane * oh + y) * ow + x] = where
    return 0
