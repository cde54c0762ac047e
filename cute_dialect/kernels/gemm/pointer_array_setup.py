"""Device-side setup of a pointer-array GEMM: prefix sums of tile counts, and the problem table for groups.

Only the GPU knows the boundaries of groups. For these, the kernel also writes the table of problems
(:data:`cute_dialect.kernels.gemm.pointer_array.COLUMNS`).

    launch(problems, tiles)                       # form "list": the table exists
    launch(problems, tiles, ends, cut, extents, steps)            # other forms: the table is written
    launch(problems, tiles, ends, cut, extents, steps, begins)    # with explicit starts of groups

>>> ProblemsConfig("m", (64, 64)).name
'group-problems-m-64x64'
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.gemm.grouped_config import FORMS
from cute_dialect.kernels.gemm.pointer_array import COLUMNS, tables

__all__ = ["ProblemsConfig", "Steps", "launch", "problems_text"]

_THREADS = 256


class ProblemsConfig(NamedTuple):
    """Configuration of the setup kernel."""

    # "list", or the extent that is divided into groups (gemm/grouped_config.py, FORMS)
    form: str = "list"
    tile: tuple[int, int] = (64, 64)  # rows and columns of a tile
    begins: bool = False  # pass the start of each group; otherwise it starts where the previous one ends

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"group-problems-{self.form}-{self.tile[0]}x{self.tile[1]}{'-begins' * self.begins}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.form not in ("list", *FORMS):
            raise ValueError(f"form is {self.form!r}; use 'list' or one of {', '.join(FORMS)}")


class Steps(NamedTuple):
    """Strides of A, B and C, in elements."""

    cut: Any  # between rows of the divided extent; 0 for matrices that are not divided
    group: Any  # between groups
    line: Any  # leading dimension


_DEFAULT = ProblemsConfig()


@cute.kernel
def problems_of(
    problems: cute.Tensor, tiles: cute.Tensor, ends: Any, begins: Any, cut: Any, extents: Any, steps: Any,
    config: cute.Constexpr[Any],
):  # fmt: skip
    """Write the table and the prefix sums of tile counts, in one block. Each thread has consecutive problems."""
    thread, lane, warp = cute.arch.thread_idx().x, cute.arch.lane_idx(), cute.arch.warp_idx()
    number = problems.shape[0]
    sums = cute.smem_tensor(cute.Int32, cute.make_layout(_THREADS // 32))
    each = cute.ceil_div(number, _THREADS)
    total = cute.Int32(0)
    for i in range(each):
        group = thread * each + i
        if group < number:
            if config.form != "list":
                _write(config, problems, group, ends, begins, cut, extents, steps)
            total = total + _tiles(config, problems, group)
    own = total
    for step in (1, 2, 4, 8, 16):
        other = cute.arch.shuffle_sync_up(total, step)
        total = total + other if lane >= step else total
    if lane == 31:
        sums[warp] = total
    cute.arch.sync_threads()
    for i in cute.range_constexpr(_THREADS // 32 - 1):
        total = total + sums[i] if warp > i else total
    total = total - own
    for i in range(each):
        group = thread * each + i
        if group < number:
            total = total + _tiles(config, problems, group)
            tiles[group] = total


def _tiles(config: ProblemsConfig, problems: Any, group: Any) -> Any:
    """Return the number of tiles of a problem."""
    m, n = (cute.assume(problems[group, i].to(cute.Int32), range=(0, None)) for i in range(2))
    return cute.ceil_div(m, config.tile[0]) * cute.ceil_div(n, config.tile[1])


def _write(
    config: ProblemsConfig, problems: Any, group: Any, ends: Any, begins: Any, cut: Any, extents: Any, steps: Any
) -> None:  # fmt: skip
    """Write the problem of a group, clamped to the extent that is divided."""
    if config.form == "rows":
        first = cute.Int32(0)
    elif begins is not None:
        first = begins[group]
    else:
        before = ends[cute.max(group - 1, 0)]
        first = before if group > 0 else cute.Int32(0)
    begin, end = (cute.min(cute.max(x, 0), cut) for x in (first, ends[group]))
    length = cute.max(end - begin, 0)
    which = {"m": 0, "n": 1, "k": 2, "rows": 0}[config.form]
    sizes = [length if i == which else x for i, x in enumerate(extents)]
    row, column = (begin if config.form == x else cute.Int32(0) for x in ("m", "n"))
    at = begin.to(cute.Int64)
    number = group.to(cute.Int64)
    found = dict(zip(("m", "n", "k"), sizes)) | {"row": row, "column": column}
    for i, name in enumerate("abc"):
        found[name] = at * steps.cut[i] + number * steps.group[i]
        found[f"ld{name}"] = steps.line[i]
    for i, name in enumerate(COLUMNS):
        problems[group, i] = cute.Int64(found.get(name, 0))


@cute.jit
def launch(
    problems: cute.Tensor, tiles: cute.Tensor, ends: cute.Tensor | None = None, cut: Any = None, extents: Any = None,
    steps: Any = None, begins: cute.Tensor | None = None, config: cute.Constexpr[Any] = _DEFAULT,
):  # fmt: skip
    """Launch one block. ``cut`` is the extent that is divided; its entry in ``extents`` (M, N, K) is ignored."""
    assert cute.size(tiles) == problems.shape[0], "tiles must have one element per problem"
    if ends is not None:
        assert cute.size(ends) == problems.shape[0], "ends must have one element per problem"
    if begins is not None:
        assert cute.size(begins) == problems.shape[0], "begins must have one element per problem"
    problems_of(problems, tiles, ends, begins, cut, extents, steps, config).launch(grid=1, block=_THREADS)


@printed
def problems_text(config: ProblemsConfig) -> cute.Compiled:
    """Trace the kernel and its host function ``@launch``.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config.check()
    table, numbers = tables()[0], cute.Tensor[cute.Int32, "?:1"]
    behind: dict[str, Any] = {}
    if config.form != "list":
        three = (cute.Int64(0), cute.Int64(0), cute.Int64(0))
        behind = {"ends": numbers, "cut": cute.Int32(0), "extents": (cute.Int32(0),) * 3, "steps": Steps(*[three] * 3)}
        behind |= {"begins": numbers} if config.begins else {}
    return cute.trace(launch, table, numbers, **behind, config=config)
