"""The configuration of a Hopper GEMM for few rows; see :mod:`cute_dialect.kernels.gemm.skinny`.

>>> config = SkinnyConfig(columns=128, stages_a=3, stages=9, parts=2)
>>> config.name, config.smem_bytes
('f16-f16-kk-128x128-y-p2-q3.9-h', 229568)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.gemm.config import BITS, GemmConfig
from cute_dialect.kernels.gemm.epilogue import Epilogue

__all__ = ["SkinnyConfig", "deepest"]

_SMEM = DEFAULT_TARGET.shared


class SkinnyConfig(NamedTuple):
    """``element``: of A and B; ``output``: of C; ``rows``, ``columns``: of a tile; ``stages_a``, ``stages``: of A and
    of B, 128 bytes of K each; ``share``: blocks that share A; ``parts``: blocks that share the K of a tile; ``hint``:
    B leaves the L2 first; ``direct``: results go from registers to memory, not through shared memory and TMA;
    ``live``: rows of A that are loaded, where there are no more (TMA is slow at filling what lies outside with zeros);
    ``l2``: bytes of B that the L2 fetches at once, 64, 128 or 256; ``epilogue``: what becomes of the sums.
    ``major_a``: ``k`` or ``m``, ``major_b``: ``k`` or ``n``, the contiguous modes of A and B (of elements that are not
    of 16 bits ``k``); ``major_c``: ``n``, or ``m``, which also serves few columns, the swapped problem
    ``C^T = B A^T``.  ``dependent``: as of :class:`GemmConfig`.
    """

    element: str = "f16"
    output: str = "f16"
    rows: int = 128
    columns: int = 64
    stages_a: int = 9
    stages: int = 9
    share: int = 1
    parts: int = 1
    hint: bool = True
    direct: bool = False
    live: int = 0
    l2: int = 128
    epilogue: Epilogue = Epilogue()
    major_a: str = "k"
    major_b: str = "k"
    major_c: str = "n"
    dependent: bool = False

    @property
    def depth(self) -> int:
        """K of a stage: 128 bytes."""
        return 1024 // BITS[self.element]

    @property
    def base(self) -> GemmConfig:
        """Return what tools of every GEMM look at."""
        return GemmConfig(
            element=self.element,
            output=self.output,
            tile=(self.rows, self.columns, self.depth),
            stages=self.stages,
            cluster_m=1,
            cluster_n=self.share,
            deferred=False,
            major_a=self.major_a,
            major_b=self.major_b,
            major_c=self.major_c,
            epilogue=self.epilogue,
        )

    @property
    def cluster(self) -> int:
        """Blocks of a cluster: those that share K side by side, then those that share A."""
        return self.share * self.parts

    @property
    def consumers(self) -> int:
        """Warp groups that multiply."""
        return self.rows // 64

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers', and the two warps that load."""
        return 128 * self.consumers + 64

    @property
    def rows_a(self) -> int:
        """Rows of A that are loaded."""
        return self.live or self.rows

    @property
    def part_a(self) -> int:
        """Rows of A that this block loads."""
        return self.rows_a // self.share

    @property
    def chunk(self) -> int:
        """Columns of C that are stored at once: 128 or 64 bytes of rows; 64 elements of 64, 32 or 16 columns."""
        piece = self.columns // self.pieces
        if self.major_c == "m":
            return next((width for width in (64, 32) if piece % width == 0), 16)
        whole = 1024 // BITS[self.output]
        return whole if piece % whole == 0 else whole // 2

    @property
    def pieces(self) -> int:
        """Pieces of the columns of a consumer that are finished by different blocks."""
        return max(1, self.parts // self.consumers)

    @property
    def inbox(self) -> tuple[int, int]:
        """Sums that a block receives: f32 values from each sender, senders."""
        return 64 * self.columns // self.pieces * max(1, self.consumers // self.parts), self.parts - 1

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block, bytes: the rings, the sums of others, the barriers."""
        values, senders = self.inbox
        rings = 128 * (self.stages_a * self.rows + self.stages * self.columns)
        return rings + 4 * values * senders + 16 * (self.stages_a + self.stages)

    @property
    def name(self) -> str:
        """Names the kernel: types, majors (of the problem), tile, what is shared; ``w``: few columns."""
        majors = self.major_a + self.major_b
        if self.major_c == "m":
            majors = ("k" if self.major_b == "k" else "m") + ("k" if self.major_a == "k" else "n")
        options = f"-a{self.share}" * (self.share > 1) + f"-p{self.parts}" * (self.parts > 1)
        more = f"-q{self.stages_a}.{self.stages}{'-h' * self.hint}{'-e' * self.direct}"
        more += f"-l{self.live}" if self.live else ""
        more += f"-f{self.l2}" if self.l2 != 128 else ""
        of_problem = self.epilogue.transposed() if self.major_c == "m" else self.epilogue
        more += f"-{of_problem.name}" if self.epilogue.active else ""
        way = "yw" if self.major_c == "m" else "y"
        return f"{self.element}-{self.output}-{majors}-{self.rows}x{self.columns}-{way}{options}{more}"

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        self.epilogue.check()
        if self.epilogue.paired or self.epilogue.whole_tiles:
            raise ValueError("expected no few rows where an epilogue takes pairs of columns, or whole rows")
        if self.element not in ("f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2") or self.output not in (
            "f16",
            "bf16",
            "f32",
        ):
            raise ValueError(
                "expected elements of f16, bf16, tf32 or 8-bit floats, f16, bf16 or f32 out, got "
                f"{self.element} to {self.output}"
            )
        if self.rows not in (64, 128, 192) or self.columns % 8 or not 8 <= self.columns <= 256:
            raise ValueError(f"expected 64, 128 or 192 rows and 8 to 256 columns, got {self.rows} x {self.columns}")
        if min(self.stages_a, self.stages) < 2:
            raise ValueError(f"expected two stages or more, got {self.stages_a} and {self.stages}")
        if self.l2 not in (64, 128, 256):
            raise ValueError(f"expected 64, 128 or 256 bytes that the L2 fetches at once, got {self.l2}")
        if self.major_a not in ("k", "m") or self.major_b not in ("k", "n") or self.major_c not in ("n", "m"):
            majors = f"{self.major_a}, {self.major_b}, {self.major_c}"
            raise ValueError(f"expected A along k or m, B along k or n, C along n or m, got {majors}")
        if (self.major_a, self.major_b) != ("k", "k") and BITS[self.element] != 16:
            raise ValueError(f"expected A and B along K of {self.element}: only 16-bit elements can be transposed")
        if self.major_a == "m" and (self.live or self.share > 1):
            raise ValueError(
                "expected whole tiles of A, of one block each, where it is not along K, got "
                f"{self.live or self.rows} of {self.rows} rows, shared by {self.share}"
            )
        if self.major_b == "n" and self.columns % 16:
            raise ValueError(f"expected columns in multiples of 16 where B is not along K, got {self.columns}")
        if self.live % 8 or not 0 <= self.live <= self.rows or (self.live and self.share > 1):
            raise ValueError(
                "expected live rows in groups of 8 of a tile that is not shared, got "
                f"{self.live} of {self.rows}, shared by {self.share}"
            )
        if self.share < 1 or self.rows % (8 * self.share) or self.cluster > 8:
            raise ValueError(
                "expected clusters of up to 8 blocks that share A in rows of 8, got "
                f"{self.cluster} blocks, {self.share} of which share {self.rows} rows"
            )
        units = self.consumers * self.pieces
        if self.parts < 1 or units % self.parts or self.columns % (8 * self.pieces):
            raise ValueError(
                f"expected parts that divide {self.consumers} warp groups, or the reverse, got {self.parts} of "
                f"{self.columns} columns"
            )
        piece = self.columns // self.pieces
        if not self.direct and (piece % self.chunk or self.output == "f32"):
            chunks = "16 columns" if self.major_c == "m" else "64 bytes"
            raise ValueError(
                f"expected chunks of {chunks} of 16-bit output for TMA stores, got {piece} columns of {self.output}"
            )
        if self.smem_bytes > _SMEM:
            raise ValueError(f"expected at most {_SMEM} bytes of shared memory, got {self.smem_bytes}: fewer stages")


def deepest(config: SkinnyConfig) -> SkinnyConfig:
    """Return the same with as many stages of A and B as fit, equally many or one more of B.

    >>> deepest(SkinnyConfig(columns=224))[4:6], deepest(SkinnyConfig(rows=64))[4:6]
    ((5, 5), (14, 14))
    """
    room = _SMEM - 2048 - config._replace(stages_a=0, stages=0).smem_bytes  # 2048: what alignment may take
    of_a, of_b = 128 * config.rows + 16, 128 * config.columns + 16
    stages = min(32, room // (of_a + of_b))
    if stages < 1:
        raise ValueError(f"expected a tile of which two stages fit, got {config.rows} x {config.columns}")
    return config._replace(stages_a=stages, stages=stages + (stages * (of_a + of_b) + of_b <= room))
