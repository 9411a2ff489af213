"""Special kernels that convolve images without copies of their windows: sums over taps, in tiles of registers.

In:  pointers to images and filters, some scratch memory, and `sizes`, which compiler/convolution_plan.py lays out.
Out: images, or cotangents of filters.  The pieces from `begin` to `end` are done.  Called by the compiler (special.py).

A few images, or a band of rows of one, are copied into planes with zeros around: one plane for each channel, and for
each remainder of positions by the stride.  Rows follow each other, so that a tap is one distance in memory for all
pixels of the piece, and a tile of pixels may begin in one row and end in the next.  The pixels computed between the
rows are left out at the end.  `tile` and `dots` are written in vector instructions (compiler/register_tiles.py).
"""

from .linalg import at

TABLES = 33
"""Where the tables of `sizes` begin."""


def tile(filters, taps, count, channels, plane, pixels, out, width, add, vectors):
    """Sums over channels and taps for a tile of outputs and pixels; compiled code only (intrinsics.py)."""
    raise NotImplementedError


def copy(source, onto, count):
    """Copy some numbers; compiled code only (intrinsics.py)."""
    raise NotImplementedError


def clear(onto, count):
    """Make some numbers zero; compiled code only (intrinsics.py)."""
    raise NotImplementedError


def dots(cotangents, width, pixels, taps, count, out):
    """Sums over pixels for a tile of outputs and taps; compiled code only (intrinsics.py)."""
    raise NotImplementedError


def below(limit, remainder, step):
    """How many k >= 0 have k * step + remainder < limit."""
    return max(0, (limit - remainder + step - 1) // step)


def fill(images, source, work, onto, height, width, down, right, top, left, rows, pitch):
    """One plane, of zeros before: work[onto + a * pitch + b] = the pixel at row a * down + top and column b * right +
    left, where there is one."""
    low = min(below(0, left, right), pitch)
    high = max(low, min(below(width, left, right), pitch))
    for a in range(below(0, top, down), min(rows, below(height, top, down))):
        start = source + (a * down + top) * width + left
        to = onto + a * pitch
        if right == 1:
            copy(at(images, start + low), at(work, to + low), high - low)
        else:
            for b in range(low, high):
                work[to + b] = images[start + b * right]


def planes(images, work, sizes, group, first, many, channel, channels, row, rows):
    """The planes of some channels of one group: of all rows of `many` images from `first` on, or of a band of one."""
    height, width, down, right = sizes[4], sizes[5], sizes[8], sizes[9]
    pitch, spacing, plane = sizes[18], sizes[19], sizes[23]
    onto = 0
    clear(work, channels * sizes[14] * sizes[15] * plane)
    for c in range(channel, channel + channels):
        for i in range(sizes[14]):
            for j in range(sizes[15]):
                for n in range(many):
                    source = (((first + n) * sizes[1] + group) * sizes[2] + c) * height * width
                    top = row * down + i - sizes[10]
                    to = onto + n * spacing * pitch
                    fill(images, source, work, to, height, width, down, right, top, j - sizes[11], rows, pitch)
                onto += plane


def convolve(images, filters, work, out, sizes, begin, end):
    """out[n, m, y * so, x * so] = the sum over c and taps of filters[m, c, tap] * planes[n, c, y + tap, x + tap].

    The outputs have phases: those positions that are equal modulo `so`, the stride of a transposed convolution, have
    the same taps.
    """
    count, groups, depth, outputs = sizes[0], sizes[1], sizes[2], sizes[3]
    all_rows, columns, pitch, spacing = sizes[16], sizes[17], sizes[18], sizes[19]
    most, band, block, plane, share = sizes[20], sizes[21], sizes[22], sizes[23], sizes[24]
    tall, lanes, vectors, length, phases = sizes[25], sizes[26], sizes[27], sizes[28], sizes[32]
    bands = (all_rows + band - 1) // band
    parts = (count + most - 1) // most * bands
    shares = (outputs + share - 1) // share
    padded = (share + tall - 1) // tall * tall
    deep = sizes[14] * sizes[15] * plane
    sums = block * deep
    packed = sums + phases * padded * length
    for piece in range(begin, end):
        group = piece // (parts * shares)
        part = piece // shares % parts
        output = piece % shares * share
        produced = min(share, outputs - output)
        first = part // bands * most
        many = min(most, count - first)
        row = part % bands * band
        rows = min(band, all_rows - row)
        halo = spacing if bands == 1 else rows + spacing - band
        used = ((many - 1) * spacing + rows - 1) * pitch + columns
        for channel in range(0, depth, block):
            channels = min(block, depth - channel)
            planes(images, work, sizes, group, first, many, channel, channels, row, halo)
            table = TABLES
            for phase in range(phases):
                taps = sizes[table + 6]
                offsets = table + 7
                start = sums + phase * padded * length
                table = offsets + 2 * taps
                if taps == 0:
                    clear(at(work, start), padded * length)
                    continue
                for m in range(0, produced, tall):
                    for k in range(tall):
                        source = group * sizes[31] + (output + m + k) * sizes[29] + channel * sizes[30]
                        place = packed + k
                        for _c in range(channels):
                            for t in range(taps):
                                value = filters[source + sizes[offsets + taps + t]] if m + k < produced else 0
                                work[place] = value
                                place += tall
                            source += sizes[30]
                    for q in range(0, used, vectors * lanes):
                        tile(
                            at(work, packed),
                            at(sizes, offsets),
                            taps,
                            channels,
                            deep,
                            at(work, q),
                            at(work, start + m * length + q),
                            length,
                            channel,
                            min(vectors, (used - q + lanes - 1) // lanes),
                        )
        table = TABLES
        for phase in range(phases):
            down, right = sizes[table], sizes[table + 1]
            top, bottom, low, high = sizes[table + 2], sizes[table + 3], sizes[table + 4], sizes[table + 5]
            table += 7 + 2 * sizes[table + 6]
            for m in range(produced):
                for n in range(many):
                    source = sums + (phase * padded + m) * length + n * spacing * pitch
                    onto = (((first + n) * groups + group) * outputs + output + m) * sizes[6]
                    for y in range(max(top, row), min(bottom, row + rows)):
                        to = (onto + y * sizes[12] + down) * sizes[7] + right
                        start = source + (y - row) * pitch
                        if sizes[13] == 1:
                            copy(at(work, start + low), at(out, to + low), high - low)
                        else:
                            for x in range(low, high):
                                out[to + x * sizes[13]] = work[start + x]
    return 0


def correlate(images, cotangents, work, out, sizes, begin, end):
    """out[m, c, tap] = the sum over n, y and x of cotangents[n, m, y, x] * planes[n, c, y + tap, x + tap]."""
    count, groups, depth, outputs = sizes[0], sizes[1], sizes[2], sizes[3]
    all_rows, pitch, spacing, most, band = sizes[16], sizes[18], sizes[19], sizes[20], sizes[21]
    block, plane, share = sizes[22], sizes[23], sizes[24]
    tall, lanes, few, length, taps = sizes[25], sizes[26], sizes[27], sizes[28], sizes[29]
    bands = (all_rows + band - 1) // band
    parts = (count + most - 1) // most * bands
    shares = (outputs + share - 1) // share
    blocks = (depth + block - 1) // block
    padded = (share + tall - 1) // tall * tall
    others = block * sizes[14] * sizes[15] * plane
    sums = others + padded * length
    one = (tall * few + lanes - 1) // lanes * lanes
    area = sizes[6] * sizes[7]
    for piece in range(begin, end):
        group = piece // (blocks * shares)
        output = piece // blocks % shares * share
        produced = min(share, outputs - output)
        channel = piece % blocks * block
        channels = min(block, depth - channel)
        total = channels * taps
        tiles = (total + few - 1) // few
        clear(at(work, sums), padded // tall * tiles * one)
        for part in range(parts):
            first = part // bands * most
            many = min(most, count - first)
            row = part % bands * band
            rows = min(band, all_rows - row)
            halo = spacing if bands == 1 else rows + spacing - band
            planes(images, work, sizes, group, first, many, channel, channels, row, halo)
            used = ((many - 1) * spacing + rows) * pitch
            steps = (used + lanes - 1) // lanes
            clear(at(work, others), sums - others)
            for m in range(produced):
                for n in range(many):
                    source = (((first + n) * groups + group) * outputs + output + m) * area
                    to = others + m * length + n * spacing * pitch
                    fill(cotangents, source, work, to, sizes[6], sizes[7], 1, 1, row, 0, rows, pitch)
            for m in range(0, produced, tall):
                for t in range(tiles):
                    dots(
                        at(work, others + m * length),
                        length,
                        at(work, 0),
                        at(sizes, TABLES + t * few),
                        steps,
                        at(work, sums + (m // tall * tiles + t) * one),
                    )
        for m in range(produced):
            for k in range(total):
                place = sums + (m // tall * tiles + k // few) * one + m % tall * few + k % few
                out[((group * outputs + output + m) * depth + channel) * taps + k] = work[place]
    return 0
