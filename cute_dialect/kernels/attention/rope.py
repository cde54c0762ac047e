"""Rotary position embedding, and append of keys and values to a cache.

A pair of elements (a, b) of a head at position p becomes (a c - b s, a s + b c), with c and s from row p of two tables.
Pairs are (d, d + R / 2), or (2 d, 2 d + 1) if they are interleaved; elements from R on are copied. A thread computes
16 elements of the rotated part, or copies 8 others, so that the result may be in place.

    launch(x, out, y, out_y, cos, sin, positions, begins, offsets, table, sign)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.signature_types import Int

_THREADS = 256


class RopeConfig(NamedTuple):
    """Configuration of the kernel.

    >>> RopeConfig(second="copy", begins=True, page=16).name
    'rope-bf16-f32-copy-begins-page16'
    """

    element: str = "bf16"  # of the arrays
    table: str = "f32"  # of cos and sin; "" to copy without rotation
    second: str = ""  # a second array with the same rows: "rotate", "copy", or "" for none
    interleaved: bool = False  # pairs are adjacent elements
    positions: bool = False  # the position of each row is an array
    begins: bool = False  # the first position of each sequence is an array; rows are written there in the result
    offsets: bool = False  # the first position of each sequence is an array; rows keep their place
    page: int = 0  # rows of a page of the result; 0: the rows of a sequence are contiguous

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        flags = [word for word in ("interleaved", "positions", "begins", "offsets") if getattr(self, word)]
        words = ["rope", self.element, self.table, self.second, *flags, f"page{self.page}" if self.page else ""]
        return "-".join([word for word in words if word])


DEFAULT = RopeConfig()


class Angles(NamedTuple):
    """Tables of angles; None if the kernel copies without rotation."""

    cos: cute.Tensor | None
    sin: cute.Tensor | None
    sign: cute.Float32 | None  # factor of sin


class Rows(NamedTuple):
    """Positions of rows. Those that the configuration does not use are None."""

    positions: cute.Tensor | None  # of each row, (S, B)
    begins: cute.Tensor | None  # place of the first row of each sequence in the result, and its position by default
    offsets: cute.Tensor | None  # position of the first row of each sequence
    table: cute.Tensor | None  # pages of each sequence, (pages, B)


@cute.jit
def launch(
    x: cute.Tensor, out: cute.Tensor, y: cute.Tensor | None, out_y: cute.Tensor | None, cos: cute.Tensor | None,
    sin: cute.Tensor | None, positions: cute.Tensor | None, begins: cute.Tensor | None, offsets: cute.Tensor | None,
    table: cute.Tensor | None, sign: cute.Float32 | None, config: cute.Constexpr[RopeConfig] = DEFAULT,
):  # fmt: skip
    """Launch the kernel of a configuration.

    Args:
        x, y: (S, D, H, B) tensors; ``y`` may have other D and H.
        out, out_y: results; (page, D, H, pages) tensors with pages.
        cos, sin: (positions, R / 2) tensors.
        positions: (S, B) tensor of i32.
        begins, offsets, table: See :class:`Rows`.
        sign: Factor of ``sin``: 1, or -1 for the inverse rotation.
    """
    rotated = 0 if cos is None else 2 * cos.shape[1]
    first = _units(x, rotated) * cute.size(x, mode=[0]) * x.shape[2] * x.shape[3]
    second = (
        0
        if y is None
        else _units(y, rotated if config.second == "rotate" else 0) * x.shape[0] * y.shape[2] * x.shape[3]
    )
    rope(x, out, y, out_y, Angles(cos, sin, sign), Rows(positions, begins, offsets, table), first, config).launch(
        grid=cute.ceil_div(first + second, _THREADS), block=_THREADS, pdl=True
    )


def _units(x: cute.Tensor, rotated: Int) -> Int:
    """Return the threads of a head: 16 rotated elements each, or 8 others."""
    return (x.shape[1] - rotated) // 8 + rotated // 16


@cute.kernel
def rope(
    x: cute.Tensor,
    out: cute.Tensor,
    y: cute.Tensor | None,
    out_y: cute.Tensor | None,
    angles: Angles,
    rows: Rows,
    first: cute.Int32,
    config: cute.Constexpr[RopeConfig],
):
    c = config
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    at = cute.arch.block_idx().x * _THREADS + cute.arch.thread_idx().x
    if at < first:
        _head_part(c, x, out, angles if c.table else None, rows, at)
    elif y is not None and out_y is not None:
        _head_part(c, y, out_y, angles if c.second == "rotate" else None, rows, at - first)


def _head_part(c: RopeConfig, x: cute.Tensor, out: cute.Tensor, angles: Angles | None, rows: Rows, at: Int) -> None:
    """Compute the elements of one thread."""
    positions, begins, offsets, table = rows
    half = 0 if angles is None else angles.cos.shape[1]
    line, unit = divmod(cute.assume(at, range=(0, None)), _units(x, 2 * half))
    line, head = divmod(line, x.shape[2])
    batch, row = divmod(line, x.shape[0])
    if batch < x.shape[3]:
        place, target, matrix = row, row, batch
        if c.begins or c.offsets:
            place = row + (offsets if c.offsets else begins)[batch]
        if c.positions:
            place = positions[row, batch]
        if c.begins:
            target = row + begins[batch]
            if c.page:
                matrix, target = table[target // c.page, batch], target % c.page
        source, result = x[row, None, head, batch], out[target, None, head, matrix]
        if angles is None:
            _store(_load(source, unit), result, unit)
        else:
            _rotate(c, source, result, angles, place, unit, half)


def _rotate(
    c: RopeConfig, source: cute.Tensor, result: cute.Tensor, angles: Angles, place: Int, unit: Int, half: Int
) -> None:
    """Rotate 16 elements, or copy 8 of those that are not rotated."""
    cos, sin, sign = angles
    if unit < half // 8:
        low, high = (2 * unit, 2 * unit + 1) if c.interleaved else (unit, unit + half // 8)
        a, b = _load(source, low), _load(source, high)
        cosines, sines = _load(cos[place, None], unit), _load(sin[place, None], unit)
        a, b = ([x[i].to(cute.Float32) for i in range(8)] for x in (a, b))
        both = a + b
        if c.interleaved:
            a, b = both[::2], both[1::2]
        first, second = [], []
        for i in range(8):
            cosine, sine = cosines[i].to(cute.Float32), sines[i].to(cute.Float32) * sign
            first.append(a[i] * cosine - b[i] * sine)
            second.append(a[i] * sine + b[i] * cosine)
        if c.interleaved:
            both = [x for pair in zip(first, second) for x in pair]
            first, second = both[:8], both[8:]
        for values, piece in ((first, low), (second, high)):
            held = cute.make_rmem_tensor(8, source.element_type)
            for i in range(8):
                held[i] = values[i].to(source.element_type)
            _store(held, result, piece)
    else:
        piece = unit + half // 8
        _store(_load(source, piece), result, piece)


def _load(line: cute.Tensor, piece: Int) -> cute.Tensor:
    """Return eight elements."""
    held = cute.make_rmem_tensor(8, line.element_type)
    cute.autovec_copy(cute.local_tile(line, (8,), (piece,)), held)
    return held


def _store(held: cute.Tensor, line: cute.Tensor, piece: Int) -> None:
    cute.autovec_copy(held, cute.local_tile(line, (8,), (piece,)))


@printed
def rope_text(config: RopeConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@rope`` and its host function ``@launch``."""
    c = config or DEFAULT
    matrix = cute.Tensor[number(c.element), "(?,?,?,?):(?{div=8},1,?{div=8},?{div=8})", "align<16>"]
    second = matrix if c.second else None
    angles = cute.Tensor[number(c.table), "(?,?):(?{div=8},1)", "align<16>"] if c.table else None
    positions = cute.Tensor[cute.Int32, "(?,?):(?,?)"] if c.positions else None
    begins, offsets = (cute.Tensor[cute.Int32, "?:1"] if is_there else None for is_there in (c.begins, c.offsets))
    table = cute.Tensor[cute.Int32, "(?,?):(?,?)"] if c.page else None
    sign = cute.Float32 if c.table else None
    return cute.trace(
        launch, matrix, matrix, second, second, angles, angles, positions, begins, offsets, table, sign, config=c
    )
