"""What a list of products needs and only the GPU knows: how many tiles there are up to each; of groups that matrices
are cut into also the table of products (:data:`cute_dialect.kernels.pointer_array_gemm.COLUMNS`), made of where groups
end.

    launch(problems, tiles)                       # form "list": the table is there
    launch(problems, tiles, ends, cut, extents, steps)            # others: it is written
    launch(problems, tiles, ends, cut, extents, steps, begins)    # of groups that begin where they like

>>> ProblemsConfig("m", (64, 64)).name
'group-problems-m-64x64'
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.grouped_config import FORMS
from cute_dialect.kernels.pointer_array_gemm import COLUMNS, tables
from cute_dialect.kernels.traced_text import printed

__all__ = ["ProblemsConfig", "Steps", "launch", "problems_text"]

_THREADS = 256


class ProblemsConfig(NamedTuple):
    """``form``: ``list``, or what is cut into groups (:data:`~cute_dialect.kernels.gemm.grouped_config.FORMS`);
    ``tile``: rows and columns of a tile; ``begins``: where groups begin is told, else each begins where the one before
    ends.
    """

    form: str = "list"
    tile: tuple[int, int] = (64, 64)
    begins: bool = False

    @property
    def name(self) -> str:
        """Names the kernel."""
        return f"group-problems-{self.form}-{self.tile[0]}x{self.tile[1]}{'-begins' * self.begins}"

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        if self.form not in ("list", *FORMS):
            raise ValueError(f"expected a list, or groups along {', '.join(FORMS)}, got {self.form!r}")


class Steps(NamedTuple):
    """Elements between two rows of what is cut, of A, B and C, 0 where it is not; between two groups; between two lines
    of a matrix.
    """

    cut: Any
    group: Any
    line: Any


_DEFAULT = ProblemsConfig()


@cute.kernel
def problems_of(
    problems: cute.Tensor, tiles: cute.Tensor, ends: Any, begins: Any, cut: Any, extents: Any, steps: Any,
    config: cute.Constexpr[Any],
):  # fmt: skip
    """Write the table, and add up the tiles, by one block: each thread has some products one behind the other."""
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
    """Return how many tiles a product has."""
    m, n = (cute.assume(problems[group, i].to(cute.Int32), range=(0, None)) for i in range(2))
    return cute.ceil_div(m, config.tile[0]) * cute.ceil_div(n, config.tile[1])


def _write(
    config: ProblemsConfig, problems: Any, group: Any, ends: Any, begins: Any, cut: Any, extents: Any, steps: Any
) -> None:  # fmt: skip
    """Write the product of a group, inside of what is cut, whatever the arrays say."""
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
    """Launch it; ``cut``: the extent that is, ``extents``: M, N and K, of which that one does not matter."""
    assert cute.size(tiles) == problems.shape[0], "there must be a sum for each product"
    if ends is not None:
        assert cute.size(ends) == problems.shape[0], "there must be an end for each product"
    if begins is not None:
        assert cute.size(begins) == problems.shape[0], "there must be a beginning for each product"
    problems_of(problems, tiles, ends, begins, cut, extents, steps, config).launch(grid=1, block=_THREADS)


@printed
def problems_text(config: ProblemsConfig) -> cute.Compiled:
    """Return the kernel and its host function ``@launch`` as text.  Raises ValueError for a bad configuration."""
    config.check()
    table, numbers = tables()[0], cute.Tensor[cute.Int32, "?:1"]
    behind: dict[str, Any] = {}
    if config.form != "list":
        three = (cute.Int64(0), cute.Int64(0), cute.Int64(0))
        behind = {"ends": numbers, "cut": cute.Int32(0), "extents": (cute.Int32(0),) * 3, "steps": Steps(*[three] * 3)}
        behind |= {"begins": numbers} if config.begins else {}
    return cute.trace(launch, table, numbers, **behind, config=config)
