"""GEMMs of different sizes in one launch: ``C_g = A_g B_g^T``, with M, N, K, strides and addresses of its own for each.

A table in global memory holds the extents of each problem and the offsets of its matrices, in elements from one base
address for all A, one for all B and one for all C. There are no tensor maps, so the tiles are those of the kernels with
``cp.async``: :mod:`~cute_dialect.kernels.gemm.ampere` (16 bits), :mod:`~cute_dialect.kernels.gemm.mma_sync` (f64, tf32,
8 bits) and :mod:`~cute_dialect.kernels.gemm.simt` (f32). A block computes one tile, which it finds in one of two ways:

    host      turns (T, 2) holds the problem and the tile of each block, those with the largest K first
    device    ends (G,) holds the number of tiles up to each problem, in which the block searches its own

A setup kernel of one block computes ``ends``. Only the GPU knows the boundaries of groups of one matrix; for these, the
setup kernel also writes the table.

    launch(a, b, c, problems, turns, blocks)                     # then source, bias, alpha, beta, or a graph's operands
    launch_setup(problems, ends)                                 # form "list": the table exists
    launch_setup(problems, ends, of_groups, cut, extents, steps, begins)     # other forms: the table is written

>>> ListedConfig(WarpConfig("f64")).name, ProblemsConfig("m", (64, 64)).name
('f64-f64-kk-warps-list16', 'group-problems-m-64x64')
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import BITS, factors, number
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.gemm import ampere, mma_sync, simt
from cute_dialect.kernels.gemm.ampere import AmpereConfig
from cute_dialect.kernels.gemm.config import FORMS
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.simt import ExactConfig
from cute_dialect.lang import utils

Base: TypeAlias = AmpereConfig | WarpConfig | ExactConfig

COLUMNS = ("m", "n", "k", "a", "lda", "b", "ldb", "c", "ldc", "source", "ldsource", "bias", "row", "column")
"""Columns of the problem table.

They are the extents; the offsets of A, B and C with their leading dimensions; the same for the epilogue's source; the
offset of the bias; and the row and column in the whole result of the problem's first element, for graph operands."""

_OUTSIDE = 1 << 30
"""A row that is out of bounds in any matrix, so that nothing is stored."""


class ListedConfig(NamedTuple):
    """Configuration of a pointer-array GEMM."""

    base: Base  # kernel of one problem, without batch and array
    # Bytes per copy, 1 for single elements. Addresses and strides of A and B (and of a 16-bit C) are multiples of it.
    size: int = 16
    host: bool = False  # the host assigns tiles to blocks; otherwise blocks search for them

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"{self.base.name}-list{self.size}{differing(self, {'host': '-host'})}"

    @property
    def elements(self) -> tuple[str, str, str]:
        """Element types of A, B and C in memory."""
        match self.base:
            case AmpereConfig() as c:
                return c.element, c.element, c.result
            case WarpConfig() as c:
                a, b = ("f32" if x == "tf32" else x for x in factors(c.element))
                return a, b, c.output
            case ExactConfig():
                return "f32", "f32", "f32"

    @property
    def by_k(self) -> tuple[bool, bool]:
        """(A, B): True if the operand is K-major."""
        if isinstance(self.base, ExactConfig):
            return self.base.major_a == "k", self.base.major_b == "k"
        return self.base.majors[0] == "k", self.base.majors[1] == "k"

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a block's tile."""
        tile = simt.TILE if isinstance(self.base, ExactConfig) else self.base.tile
        return tile[0], tile[1]

    @property
    def threads(self) -> int:
        return simt.THREADS if isinstance(self.base, ExactConfig) else self.base.threads

    @property
    def vector(self) -> int:
        """Elements per copy of A and of B."""
        return max(1, self.size * 8 // BITS[self.elements[0]])

    @property
    def stores_vectors(self) -> bool:
        """Return True if C is stored in vectors, as 16-bit results are."""
        return isinstance(self.base, AmpereConfig) and self.base.result == self.base.element

    def takes(self, size: int) -> bool:
        """Return True if there is a kernel with copies of ``size`` bytes."""
        if isinstance(self.base, ExactConfig):
            return size == 1 or (size == 16 and self.by_k == (True, False))
        return size in (1, 4, 8, 16)

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        c = self.base
        if c.batch or c.array or (isinstance(c, WarpConfig) and (c.interleaved or c.parts > 1)):
            raise ValueError(f"a pointer-array GEMM cannot use batch, array, interleaved or split-K, got {c.name}")
        if not self.takes(self.size):
            raise ValueError(
                f"size is {self.size}; copies must have 16, 8 or 4 bytes, or 1 for single elements (SIMT f32: 16 or 1)"
            )
        graph = c.epilogue.graph
        if graph is not None and not c.epilogue.by_element:
            raise ValueError("the epilogue must be elementwise, without pairs() and reductions")
        if isinstance(c, WarpConfig):
            c.check()
        else:
            c.epilogue.check()


class Problem(NamedTuple):
    """One problem of the table."""

    number: Any  # index
    extents: tuple[Any, Any, Any]  # M, N, K
    A: Any
    B: Any
    C: Any
    addends: Addends
    first: tuple[Any, Any]  # row and column in the whole result of its first element


class _Seen:
    """Mapping from coordinates in a problem to those in the whole result. Elements outside of the problem are out of
    bounds.
    """

    def __init__(self, ids: Any, problem: Problem):
        self.ids, self.problem = ids, problem

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        (row, column), (m, n, _), first = self.ids[i], self.problem.extents, self.problem.first
        inside = (row < m) & (column < n)
        return cute.where(inside, cute.Int32(row + first[0]), cute.Int32(_OUTSIDE)), column + first[1]


def _matrix(
    flat: Any, problems: Any, group: Any, name: str, rows: Any, columns: Any, contiguous: int, vector: int
) -> Any:
    """Return a matrix of a problem. Its address, strides and contiguous extent are multiples of ``vector`` elements."""
    at, line = problems[group, COLUMNS.index(name)], problems[group, COLUMNS.index(f"ld{name}")]
    kind = flat.element_type
    line = cute.assume(line.to(cute.Int32), divby=vector)
    shape = [rows, columns]
    shape[contiguous] = cute.assume(shape[contiguous], divby=vector)
    start = (flat.iterator + at).align(vector * kind.width // 8)
    stride = (line, 1) if contiguous == 1 else (1, line)
    return cute.make_tensor(start, cute.make_layout(tuple(shape), stride=stride))


def _problem(config: ListedConfig, A: Any, B: Any, C: Any, problems: Any, group: Any, addends: Addends) -> Problem:
    """Return a problem of the table."""
    c, vector = config.base, config.vector
    m, n, k = (problems[group, i].to(cute.Int32) for i in range(3))
    by_a, by_b = config.by_k
    a = _matrix(A, problems, group, "a", m, k, int(by_a), vector)
    b = _matrix(B, problems, group, "b", n, k, int(by_b), vector)
    d = _matrix(C, problems, group, "c", m, n, 1, vector if config.stores_vectors else 1)
    source, bias, alpha, beta = addends.source, addends.bias, addends.alpha, addends.beta
    if source is not None:
        source = _matrix(source, problems, group, "source", m, n, 1, 1)
    if bias is not None:
        start = bias.iterator + problems[group, COLUMNS.index("bias")]
        bias = cute.make_tensor(start, cute.make_layout(n if c.epilogue.bias == "n" else m))
    alpha, beta = (None if x is None else x[group] for x in (alpha, beta))
    first = tuple([problems[group, COLUMNS.index(x)].to(cute.Int32) for x in ("row", "column")])
    return Problem(group, (m, n, k), a, b, d, Addends(source, bias, alpha, beta, addends.operands), first)


def _search(ends: Any, at: Any) -> Any:
    """Return the first problem for which the number of tiles up to it exceeds ``at``."""
    low, high = cute.Int32(0), cute.Int32(cute.size(ends))
    while low < high:
        middle = (low + high) // 2
        behind = ends[middle] <= at
        low = middle + 1 if behind else low
        high = high if behind else middle
    return low


def _compute(config: ListedConfig, A: Any, B: Any, C: Any, problems: Any, turns: Any, addends: Addends) -> None:
    """Compute this block's tile, if it has one."""
    block = cute.arch.block_idx().x
    if config.host:
        _tile(config, A, B, C, problems, turns[block, 0], turns[block, 1], addends)
    else:
        if block < turns[cute.size(turns) - 1]:
            group = _search(turns, block)
            before = turns[cute.max(group - 1, 0)]
            _tile(config, A, B, C, problems, group, block - (before if group > 0 else cute.Int32(0)), addends)


def _tile(config: ListedConfig, A: Any, B: Any, C: Any, problems: Any, group: Any, tile: Any, addends: Addends) -> None:
    """Compute a tile of a problem."""
    c = config.base
    p = _problem(config, A, B, C, problems, group, addends)
    extents = [cute.assume(x, range=(1, None)) for x in p.extents[:2]]  # a problem without elements has no tile
    raster = utils.GroupedRaster(tuple([cute.ceil_div(x, y) for x, y in zip(extents, config.tile)]))
    where = raster.place(tile)

    def seen(ids: Any) -> Any:
        return _Seen(ids, p)

    operands = (p.A, p.B, p.C, p.addends, where)
    graph = c.epilogue.graph is not None
    if isinstance(c, ExactConfig):
        simt.compute_tile(c, *operands, group, seen if graph else None, vectors=config.size == 16)
    elif isinstance(c, AmpereConfig):
        ampere.compute_tile(c, *operands, config.vector, group, seen if graph else None)
    else:
        mma_sync.compute_tile(c, *operands, config.size, group, seen if graph else None)


@cute.kernel
def listed(A: Any, B: Any, C: Any, problems: Any, turns: Any, addends: Addends, config: cute.Constexpr[ListedConfig]):
    """Compute this block's tile with mma.sync."""
    _compute(config, A, B, C, problems, turns, addends)


@cute.kernel(name="listed", min_blocks=2)
def listed_exact(
    A: Any, B: Any, C: Any, problems: Any, turns: Any, addends: Addends, config: cute.Constexpr[ListedConfig]
):
    """Compute this block's tile on plain FMAs."""
    _compute(config, A, B, C, problems, turns, addends)


@cute.jit
def launch(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, problems: cute.Tensor, turns: cute.Tensor, blocks: cute.Int32,
    source: cute.Tensor | None = None, bias: cute.Tensor | None = None, alpha: cute.Tensor | None = None,
    beta: cute.Tensor | None = None, operands: Any = None, config: cute.Constexpr[Any] = None,
):  # fmt: skip
    """Launch ``blocks`` blocks. The matrices are flat tensors that start at the base addresses of the table."""
    addends = Addends(source, bias, alpha, beta, operands)
    for x, kind in zip((A, B, C), config.elements):
        if x.element_type is not number(kind):
            raise TypeError(f"launch: A, B and C must be of {', '.join(config.elements)}, got {A}, {B}, {C}")
    if config.host:
        assert turns.shape[0] >= blocks, "turns must have one row per block"
    else:
        assert cute.size(turns) == problems.shape[0], "turns must have one end per problem"
    kernel = listed_exact if isinstance(config.base, ExactConfig) else listed
    kernel(A, B, C, problems, turns, addends, config).launch(
        grid=cute.assume(blocks, range=(0, None)), block=config.threads
    )


def arguments_of(epilogue: Epilogue, output: str) -> dict[str, Any]:
    """Return the launch arguments after ``blocks`` and their annotations. There is one alpha and beta per problem."""
    found = epilogue.arguments(output, vectors=False)
    for name, kind in (("source", number(output)), ("bias", number(epilogue.bias_type))):
        if name in found:
            found[name] = cute.Tensor[kind, "?:1"]
    kind = cute.Float64 if output == "f64" else cute.Float32
    return found | {name: cute.Tensor[kind, "?:1"] for name in ("alpha", "beta") if name in found}


def tables() -> Sequence[Any]:
    """Return the annotations of ``problems``, and of ``turns`` assigned by the host and searched by blocks."""
    return (
        cute.Tensor[cute.Int64, f"(?,{len(COLUMNS)}):({len(COLUMNS)},1)"],
        cute.Tensor[cute.Int32, "(?,2):(2,1)"],
        (cute.Tensor[cute.Int32, "?:1"]),
    )


@printed
def listed_text(config: ListedConfig) -> cute.Compiled:
    """Trace the kernel and its host function ``@launch``.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config.check()
    problems, told, searched = tables()
    flat = [cute.Tensor[number(e), "?:1"] for e in config.elements]
    behind = arguments_of(config.base.epilogue, config.elements[2])
    return cute.trace(
        launch, *flat, problems, told if config.host else searched, cute.Int32(0), **behind, config=config
    )


_THREADS = 256


class ProblemsConfig(NamedTuple):
    """Configuration of the setup kernel."""

    # "list", or the extent that is divided into groups (one of ``config.FORMS``)
    form: str = "list"
    tile: tuple[int, int] = (64, 64)  # rows and columns of a tile
    begins: bool = False  # pass the start of each group; otherwise it starts where the previous one ends

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"group-problems-{self.form}-{by(self.tile)}{differing(self, {'begins': '-begins'})}"

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
) -> None:
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


@cute.jit(name="launch")
def launch_setup(
    problems: cute.Tensor, tiles: cute.Tensor, ends: cute.Tensor | None = None, cut: Any = None, extents: Any = None,
    steps: Any = None, begins: cute.Tensor | None = None, config: cute.Constexpr[Any] = _DEFAULT,
):  # fmt: skip
    """Launch one block, which writes the prefix sums to ``tiles``.

    ``cut`` is the extent that is divided. Its entry in ``extents`` (M, N, K) is ignored.
    """
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
    return cute.trace(launch_setup, table, numbers, **behind, config=config)
