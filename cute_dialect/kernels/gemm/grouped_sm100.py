"""Grouped GEMM for sm_100, ``C_g = A_g B_g^T``: the persistent GEMM of :mod:`.sm100` over the tiles of all groups.

The boundaries of the groups are in global memory, and a block finds its tiles as on Hopper
(:class:`~cute_dialect.kernels.gemm.grouped.GroupTiles`). Rows of a tile past the end of its group belong to another
group: they are multiplied, but not stored. A warp whose 16 rows all belong to the group stores them by TMA, otherwise
by elements. A pair of blocks may compute a tile of 256 rows.

    form   A (rows, K)       B (columns, K)    C
    m      (T, K)            (N, K, G)         (T, N)         group: rows begin .. end of A and C
    n      (M, K, G)         (T, K)            (M, T)         group: rows of B, columns of C
    rows   (M, K, G)         (N, K, G)         (M, N, G)      group: the first rows of each matrix

Groups of steps of K are not supported: a warp would have to zero the elements of a stage past the end of a group.
The kernel has been assembled and interpreted, but never run on the chip.

>>> GroupedSm100Config(Sm100Config(tile=(128, 128))).name
'f16-f16-kk-128x128x64-4-sm100-grouped-m'
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.arch.targets import TARGETS
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.config import GroupedConfig
from cute_dialect.kernels.gemm.grouped import (
    GroupOperand,
    Groups,
    GroupStaging,
    GroupTiles,
    Place,
    arguments_of,
    check_arguments,
    layouts_of,
)
from cute_dialect.kernels.gemm.host import as_read, elements_of, load_map, ring_of, store_map
from cute_dialect.kernels.gemm.sm100 import (
    CHIP,
    THREADS,
    Held,
    Mmas,
    Outputs,
    Sizes,
    Sm100Config,
    TmemResult,
    Work,
    take_roles,
    tiled_mma,
)
from cute_dialect.lang import pipeline
from cute_dialect.lang.nvgpu import cpasync, tcgen05

ENTRIES = 128
"""Entries of the tile table, at most the threads of a block."""
_TABLE_BYTES = (ENTRIES + 1 + ENTRIES // 32) * 4
FORMS = ("m", "n", "rows")
"""The extents that may vary between groups; see :data:`cute_dialect.kernels.gemm.config.FORMS`."""


class GroupedSm100Config(NamedTuple):
    """Configuration of a grouped GEMM for sm_100."""

    base: Sm100Config = Sm100Config()
    form: str = "m"  # one of FORMS
    begins: bool = False  # pass the start of each group as an argument; otherwise it starts where the previous one ends

    @property
    def groups(self) -> GroupedConfig:
        """The equivalent :class:`GroupedConfig`, for functions that serve all grouped GEMMs."""
        return GroupedConfig(self.base.base._replace(group=self.base.group), self.form, self.begins)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return self.base.shared_bytes + _TABLE_BYTES

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"{self.base.name}-grouped-{self.form}{'-begins' * self.begins}"

    def deepest(self) -> "GroupedSm100Config":
        """Return the configuration with as many stages as fit in shared memory.

        Stages and buffers are multiples of 4 KiB, and the barriers need less than 1 KiB, so the table always fits, too.
        """
        return self._replace(base=self.base._replace(stages=self.base.most_stages))

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        c, target = self.base, TARGETS[self.base.chip]
        c.check()
        if self.form not in FORMS:
            raise ValueError(f"form is {self.form!r}; use one of {', '.join(FORMS)} on sm_{target.number}")
        if c.batch or c.direct or c.scaling:
            raise ValueError(f"grouped GEMMs do not support batch, direct or scaling, got {c.name}")
        cut = {"m": ("A", c.major_a, "m"), "n": ("B", c.major_b, "n")}.get(self.form)
        if cut is not None and cut[1] == cut[2]:
            raise ValueError(f"form {self.form!r} needs {cut[0]} contiguous along K, because TMA reads 16-byte units")
        assert self.shared_bytes <= target.shared


DEFAULT = GroupedSm100Config()


class GroupTmemResult(GroupStaging, TmemResult):
    """Epilogue of accumulators in tensor memory that stores only the rows or columns of the group."""

    def __init__(self, config: GroupedSm100Config, outputs: Outputs, memory: cute.Pointer, fused: Fused):
        super().__init__(config.base, outputs, memory, fused)
        assert outputs.target is not None
        self.groups, self.C = config.groups, outputs.target

    def row(self, place: Place, atom: int) -> cute.Int32:
        """Return the first row of the 16 rows that warp 0 loads at once."""
        return place.row + atom * 16


@cute.jit(options=f"--gpu-arch {CHIP}")
def launch(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    ends: cute.Tensor,
    begins: cute.Tensor | None = None,
    addends: Mapping[str, object] | None = None,
    config: cute.Constexpr[GroupedSm100Config] = DEFAULT,
):
    """Launch persistent blocks, at most one per multiprocessor.

    Args:
        A, B, C: Matrices, or batches with a third mode of groups, as the form requires.
        ends, begins: Boundaries of the groups, (G,).
        addends: Arguments of the epilogue by name: ``source``, ``bias``, ``alpha``, ``beta`` and ``operands``.
        config: The configuration.
    """
    config.check()
    groups, base = config.groups, config.base
    c = groups.base
    given = Addends(**(addends or {}))
    check_arguments(groups, A, B, C, ends, begins)
    c.epilogue.check_shapes(C, given, groups=cute.size(ends))
    A, B, C = as_read(c, A, B, C)
    (m, n), k = base.loaded, base.line
    rings = ring_of(A, (m, k), c), ring_of(B, (n, k), c)
    group = tcgen05.CtaGroup(base.blocks)
    a, b, d = (c._replace(batch=batch) for batch in groups.batched)
    loads = load_map(a, A, (m, k), 1, group), load_map(b, B, (n, k), 1, group)
    stores = {width: store_map(d, C, width) for width in dict.fromkeys(base.widths)}
    limit = C.shape[1 if config.form == "n" else 0]
    bounds = Groups(ends, begins, limit)
    extents = C.shape[0], B.shape[0]
    across, along = (cute.ceil_div(x, y) for x, y in zip(extents, base.tile))
    count = cute.size(ends)
    most = {"m": (across + count) * along, "n": across * (along + count), "rows": across * along * count}[config.form]
    at_once = base.processors // base.blocks
    grid = cute.max(cute.min(cute.assume(most, range=(0, None)), at_once), 1) * base.blocks
    outputs, steps = Outputs(stores, {}, C), cute.ceil_div(A.shape[1], k)
    grouped_gemm(loads, outputs, tiled_mma(base, A, B), rings, bounds, extents, steps, given, config).launch(
        grid=grid, block=THREADS, cluster=(base.blocks, 1, 1)
    )


@cute.kernel(min_blocks=1)
def grouped_gemm(
    loads: Sequence[tuple[cute.CopyAtom, cute.Tensor]],
    outputs: Outputs,
    mma: cute.TiledMma,
    rings: Sequence[cute.ComposedLayout],
    bounds: Groups,
    extents: tuple[cute.Int32, cute.Int32],
    steps: cute.Int32,
    addends: Addends,
    config: cute.Constexpr[GroupedSm100Config],
):
    """Compute every n-th tile of all groups, n being the number of blocks, or of pairs."""
    base, groups = config.base, config.groups
    c, (m, n), k = groups.base, base.loaded, base.line

    def tiles() -> GroupTiles:
        found = GroupTiles(groups, bounds, extents, ENTRIES)
        found.prepare()
        return found

    def fetches(
        tiles: GroupTiles, sA: cute.Tensor, sB: cute.Tensor
    ) -> Callable[[pipeline.Slot, Place, cute.Int32 | int], None]:
        a = GroupOperand(loads[0], sA, (m, k), 1, 0, k_major=c.major_a == "k")
        b = GroupOperand(loads[1], sB, (n, k), 1, 0, k_major=c.major_b == "k")

        def fetch(stage: pipeline.Slot, place: Place, i: cute.Int32 | int) -> None:
            a.fetch(stage.index, stage.barrier, place.row, i * k, place.matrix)
            b.fetch(stage.index, stage.barrier, place.column + tiles.rank * n, i * k, place.matrix)

        return fetch

    def result(staging: cute.Pointer) -> GroupTmemResult:
        if cute.arch.thread_idx().x == 0:
            for tma in outputs.tmas.values():
                cpasync.prefetch_descriptor(tma[0])
        fused = Fused(c.epilogue, addends, pairs=True, batch=groups.batched[2])
        return GroupTmemResult(config, outputs, staging, fused)

    work = Work(tiles, fetches, result, lambda: Held((), lambda operands, memory: Mmas(mma, operands, base.tile)))
    take_roles(base, loads, rings, steps, work, Sizes(base.stage_bytes, base.columns, k))


@printed
def grouped_sm100_text(config: GroupedSm100Config) -> cute.Compiled:
    """Trace the kernel and its host function ``@launch``, which takes A, B, C and the arguments of the groups.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config.check()
    kinds = zip(elements_of(config.groups.base), layouts_of(config.groups))
    matrices = [cute.Tensor[number(e), layout, "align<16>"] for e, layout in kinds]
    given = arguments_of(config.groups)
    bounds = {n: given.pop(n) for n in ("ends", "begins") if n in given}
    return cute.trace(launch, *matrices, **bounds, addends=given, config=config)
