"""The configuration of a Hopper GEMM for few rows; see :mod:`cute_dialect.kernels.gemm.skinny`.

>>> config = SkinnyConfig(columns=128, stages_a=3, stages=9, parts=2)
>>> config.name, config.smem_bytes
('f16-f16-kk-128x128-y-p2-q3.9-h', 229568)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.algebra.values import Swizzle
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
    def swizzle(self) -> Swizzle:
        """The swizzle of a chunk in shared memory."""
        return Swizzle(3 if self.chunk * BITS[self.output] == 1024 else 2, 4, 3)

    @property
    def chunk(self) -> int:
        """Columns of C that are stored at once: 128 or 64 bytes."""
        whole = 1024 // BITS[self.output]
        return whole if self.columns // self.pieces % whole == 0 else whole // 2

    @property
    def pieces(self) -> int:
        """Pieces of the columns of a consumer that are finished by different blocks."""
        return max(1, self.parts // self.consumers)

    @property
    def inbox(self) -> tuple[int, int]:
        """Sums that a block receives: f32 values from each sender, senders."""
        return 64 * self.columns // self.pieces * max(1, self.consumers // self.parts), self.parts - 1

    @property
    def staging(self) -> int:
        """Buffers for chunks of C of their own, of a consumer: those of 128 bytes go into stages of A."""
        return 2 if not self.direct and self.chunk * BITS[self.output] < 1024 else 0

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block, bytes: the rings, staging, the sums of others, the barriers."""
        values, senders = self.inbox
        rings = 128 * (self.stages_a * self.rows + self.stages * self.columns) + 64 * self.rows * self.staging
        return rings + 4 * values * senders + 16 * (self.stages_a + self.stages)

    @property
    def name(self) -> str:
        """Names the kernel: types, tile, what is shared."""
        options = f"-a{self.share}" * (self.share > 1) + f"-p{self.parts}" * (self.parts > 1)
        more = f"-q{self.stages_a}.{self.stages}{'-h' * self.hint}{'-e' * self.direct}"
        more += f"-l{self.live}" if self.live else ""
        more += f"-f{self.l2}" if self.l2 != 128 else ""
        more += f"-{self.epilogue.name}" if self.epilogue.active else ""
        return f"{self.element}-{self.output}-kk-{self.rows}x{self.columns}-y{options}{more}"

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
            raise ValueError(f"expected elements of f16, bf16, tf32 or 8-bit floats, f16, bf16 or f32 out, got {self}")
        if self.rows not in (64, 128, 192) or self.columns % 8 or not 8 <= self.columns <= 256:
            raise ValueError(f"expected 64, 128 or 192 rows and 8 to 256 columns, got {self.rows} x {self.columns}")
        if min(self.stages_a, self.stages) < 2:
            raise ValueError(f"expected two stages or more, got {self.stages_a} and {self.stages}")
        if self.l2 not in (64, 128, 256):
            raise ValueError(f"expected 64, 128 or 256 bytes that the L2 fetches at once, got {self.l2}")
        if self.live % 8 or not 0 <= self.live <= self.rows or (self.live and self.share > 1):
            raise ValueError(f"expected live rows in groups of 8 of a tile that is not shared, got {self}")
        if self.share < 1 or self.rows % (8 * self.share) or self.cluster > 8:
            raise ValueError(f"expected clusters of up to 8 blocks that share A in rows of 8, got {self}")
        units = self.consumers * self.pieces
        if self.parts < 1 or units % self.parts or self.columns % (8 * self.pieces):
            raise ValueError(f"expected parts that divide {self.consumers} warp groups, or the reverse, got {self}")
        piece = self.columns // self.pieces
        if not self.direct and (piece % self.chunk or self.output == "f32"):
            raise ValueError(f"expected chunks of 64 bytes of 16-bit output for TMA stores, got {self}")
        if self.smem_bytes > _SMEM:
            raise ValueError(f"expected at most {_SMEM} bytes of shared memory, got {self.smem_bytes}: fewer stages")


def deepest(config: SkinnyConfig) -> SkinnyConfig:
    """Return the same with as many stages of A and B as fit, equally many or one more of B.

    >>> deepest(SkinnyConfig(columns=224))[4:6], deepest(SkinnyConfig(rows=64))[4:6]
    ((4, 5), (14, 14))
    """
    room = _SMEM - 2048 - config._replace(stages_a=0, stages=0).smem_bytes  # 2048: what alignment may take
    of_a, of_b = 128 * config.rows + 16, 128 * config.columns + 16
    stages = min(32, room // (of_a + of_b))
    if stages < 1:
        raise ValueError(f"expected a tile of which two stages fit, got {config}")
    return config._replace(stages_a=stages, stages=stages + (stages * (of_a + of_b) + of_b <= room))
