"""Roofline model of a run: its counted bytes and floating-point operations against the peaks of a GPU.

A kernel with ``I`` operations per byte takes at least ``max(bytes / bandwidth, operations / peak)``, so it reaches at
most ``min(I * bandwidth, peak)``.  Source of the peaks: NVIDIA's data sheet of the H200 SXM (2024), dense.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from typing import TYPE_CHECKING

from cute_dialect.explore.runs import Run
from cute_dialect.explore.tabs import Picture, Row, Tab, Table, Words, number, words
from cute_dialect.viz.drawing import Drawing, text

if TYPE_CHECKING:
    from xdsl.ir import Operation

__all__ = ["Roofline", "draw_roofline", "roofline_tab"]

GPU = "H200 SXM"
BANDWIDTH = 4800.0
"""Bandwidth of its HBM3e in GB/s."""

PEAKS: Mapping[str, float] = {
    "f32 units": 66.9e3,
    "tensor cores, 64-bit": 66.9e3,
    "tensor cores, tf32": 494.7e3,
    "tensor cores, 16-bit": 989.5e3,
    "tensor cores, 8-bit": 1979e3,
}
"""Maps a unit to its peak in GFLOP/s. An addition or multiplication is one operation."""

_OPERAND = re.compile(r"(?<![a-z0-9])(?:(f64)|(tf32)|(e4m3|e5m2|[sui]{1,2}8))(?![a-z0-9])")
SECTOR = 32
"""Bytes per transaction of global memory."""


def unit_of(product: str) -> str:
    """Return the unit in :data:`PEAKS` that executes a tensor core op, from the text of the op.

    >>> unit_of("nvvm.wgmma.mma_async … <e4m3>"), unit_of("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    ('tensor cores, 8-bit', 'tensor cores, 16-bit')
    """
    found = _OPERAND.search(product)
    names = ("64-bit", "tf32", "8-bit")
    return f"tensor cores, {names[(found.lastindex or 1) - 1] if found is not None else '16-bit'}"


@dataclass(frozen=True)
class Roofline:
    """Counts of a run: operations per unit, and bytes of global memory moved by loads and stores and by TMA copies."""

    operations: Mapping[str, float]
    sectors: int
    copied: int
    times: Mapping[str, float] = field(init=False)
    """Minimum time of memory and of each unit, in nanoseconds."""

    def __post_init__(self) -> None:
        units = {unit: n / PEAKS[unit] for unit, n in self.operations.items()}
        object.__setattr__(self, "times", {"memory": self.nbytes / BANDWIDTH, **units})

    @property
    def nbytes(self) -> int:
        """Bytes of global memory moved in total."""
        return self.sectors + self.copied

    @property
    def intensity(self) -> float:
        """Operations per byte; 0 if no bytes were moved."""
        return sum(self.operations.values()) / self.nbytes if self.nbytes else 0.0

    @property
    def bound(self) -> str:
        """The resource with the longest minimum time."""
        return max(self.times, key=lambda name: self.times[name])

    @property
    def reached(self) -> float:
        """Upper bound in GFLOP/s."""
        longest = max(self.times.values())
        return sum(self.operations.values()) / longest if longest else 0.0


def counted(run: Run) -> Roofline | None:
    """Return the counts of a run, None if it did not count."""
    report = run.report
    if report is None or report.flops is None or report.profile is None:
        return None
    timeline = run.timeline.timeline if run.timeline is not None else None
    copied = sum(c.nbytes for c in timeline.copies) if timeline is not None else 0
    sectors = sum(x.transactions for x in report.profile.lines if x.space == "global")
    operations = {"f32 units": sum(report.flops.scalar.values()), **_by_unit(report.flops.tensor)}
    return Roofline(operations, SECTOR * sectors, copied * report.blocks)


def _by_unit(products: Mapping[Operation, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for op, n in products.items():
        unit = unit_of(str(op))
        found[unit] = found.get(unit, 0.0) + n
    return found


def roofline_tab(run: Run) -> Tab:
    """Return the tab with a run's roofline and its counts."""
    tab = Tab("roofline", "Roofline")
    found = counted(run)
    if found is None or run.report is None:
        tab.says = run.why_not or run.not_counted
        return tab
    blocks = run.report.blocks
    tab.says = (
        f"Counted in this run ({run.arguments}; {blocks} block{'s' * (blocks != 1)}), including padding of tiles. At "
        f"the peaks of an {GPU}, this kernel is bound by: {found.bound}. Bytes are those that the kernel requests, "
        "including those served by caches."
    )
    rows = [
        *(_row(f"floating-point operations, {unit}", n, found.times[unit]) for unit, n in found.operations.items()),
        _row("bytes of global memory by loads and stores, in 32-byte sectors", found.sectors),
        _row("bytes of global memory by TMA (first block times number of blocks)", found.copied),
        _row("bytes of global memory, total", found.nbytes, found.times["memory"]),
        Row(("operations per byte", f"{found.intensity:.2f}" if found.nbytes else "–", "")),
    ]
    tab.parts += [
        Picture(draw_roofline(found).fragment),
        Table((words(""), number("counted"), number("at least")), rows),
    ]
    profile = run.report.profile
    if profile is not None and profile.threads:
        o = profile.occupancy
        tab.parts.append(
            Words(
                f"occupancy: {o.blocks} block{'s' * (o.blocks != 1)}, {o.warps} of 64 warps per SM, limited by "
                f"{o.limit}"
            )
        )
    return tab


def _row(what: str, n: float, time: float | None = None) -> Row:
    return Row((what, f"{n:,.0f}", "" if time is None else f"{time:,.1f} ns"))


# -------------------------------------------------------------------------------------------------------------- picture

WIDE, HIGH, LEFT, TOP = 400, 170, 90, 44
"""Size of the plot and its left and top margins, in pixels."""


def draw_roofline(found: Roofline) -> Drawing:
    """Draw the roofs and the bound of a kernel of this intensity, with logarithmic axes."""
    units = [u for u, n in found.operations.items() if n] or ["f32 units"]
    at = found.intensity
    low, high = min(-1, _floor(at)), max(4, _floor(at) + 1)
    bottom, top = _floor(10**low * BANDWIDTH), _floor(max(PEAKS[u] for u in units)) + 1

    def x(intensity: float) -> float:
        return round(LEFT + WIDE * (log10(intensity) - low) / (high - low), 1)

    def y(rate: float) -> float:
        return round(TOP + HIGH * (top - log10(rate)) / (top - bottom), 1)

    body = [text(16, 24, f"roofline of an {GPU}", 14, "h"), *_axes(x, range(low, high + 1), y, range(bottom, top + 1))]
    highest = max(PEAKS[u] for u in units)
    body.append(
        f'<path class="l2" d="M{x(10**low):g} {y(10**low * BANDWIDTH):g}L{x(highest / BANDWIDTH):g} {y(highest):g}"/>'
    )
    body.append(text(x(10**low) + 14, y(10**low * BANDWIDTH) - 18, "memory, 4.8 TB/s", 11))
    for unit in units:
        peak = PEAKS[unit]
        body.append(f'<path class="l2" d="M{x(peak / BANDWIDTH):g} {y(peak):g}H{LEFT + WIDE}"/>')
        body.append(text(LEFT + WIDE + 6, y(peak) + 4, f"{unit}, {_rate(peak)}", 11))
    if at and found.reached:
        px, py = x(at), y(found.reached)
        said = f"{at:.3g} operations per byte: at most {_rate(found.reached)}, by {found.bound}"
        body.append(f'<path class="l1" stroke-dasharray="4 3" d="M{px:g} {py:g}V{TOP + HIGH}"/>')
        body.append(
            f'<g class="cells"><path data-k="kernel" class="bad" d="M{px - 6:g} {py:g}l6 -6l6 6l-6 6z">'
            f"<title>{said}</title></path></g>"
        )
    else:
        said = "no floating-point operation" if not at else ""
    body.append(text(LEFT, TOP + HIGH + 52, said, 12))
    return Drawing(f"roofline of an {GPU}", LEFT + WIDE + 240, TOP + HIGH + 66, "\n".join(body))


def _floor(x: float) -> int:
    """Return the exponent of the largest power of ten not above a number; -1 for 0.

    >>> _floor(57.3), _floor(0.02), _floor(0)
    (1, -2, -1)
    """
    return int(log10(x) // 1) if x > 0 else -1


def _rate(rate: float) -> str:
    """Format GFLOP/s with a suitable unit.

    >>> _rate(66.9e3), _rate(12.5)
    ('66.9 TFLOP/s', '12.5 GFLOP/s')
    """
    return f"{rate / 1000:.4g} TFLOP/s" if rate >= 1000 else f"{rate:.3g} GFLOP/s"


def _axes(
    x: Callable[[float], float], intensities: Iterable[int], y: Callable[[float], float], rates: Iterable[int]
) -> Sequence[str]:
    """Return the grid lines and labels of both axes at these powers of ten."""
    out: list[str] = []
    for n in intensities:
        out.append(f'<path class="thin" d="M{x(10**n):g} {TOP}v{HIGH}"/>')
        out.append(text(x(10**n), TOP + HIGH + 16, f"{10**n:g}", 10, "n dim"))
    for n in rates:
        out.append(f'<path class="thin" d="M{LEFT} {y(10**n):g}h{WIDE}"/>')
        out.append(text(LEFT - 6, y(10**n) + 3.5, _rate(10**n), 10, "e dim"))
    out.append(text(LEFT + WIDE / 2, TOP + HIGH + 32, "floating-point operations per byte", 11, "n dim"))
    return out
