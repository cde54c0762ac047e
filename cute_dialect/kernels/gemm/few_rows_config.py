"""Configuration of a Hopper GEMM for few rows (:mod:`cute_dialect.kernels.gemm.few_rows`).

>>> config = SkinnyConfig(columns=128, stages_a=3, stages=9, parts=2)
>>> config.name, config.smem_bytes
('f16-f16-kk-128x128-y-p2-q3.9-h', 229568)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS, GemmConfig

__all__ = ["SkinnyConfig", "deepest"]

_SMEM = DEFAULT_TARGET.shared


class SkinnyConfig(NamedTuple):
    """Configuration of a Hopper GEMM for few rows (``major_c`` = "m": for few columns)."""

    element: str = "f16"  # of A and B
    output: str = "f16"  # type of C
    rows: int = 128  # of a tile
    columns: int = 64  # of a tile
    stages_a: int = 9  # stages of A, 128 bytes of K each
    stages: int = 9  # stages of B
    share: int = 1  # blocks of a cluster that share A by multicast
    parts: int = 1  # split-K slices of a tile, one block of the cluster each
    hint: bool = True  # mark B as evict-first in the L2
    direct: bool = False  # store C from registers instead of through shared memory and TMA
    live: int = 0  # rows of A to load if M is smaller than a tile, since TMA fills out-of-bounds rows slowly; 0 for all
    l2: int = 128  # bytes of B that the L2 fetches at once: 64, 128 or 256
    epilogue: Epilogue = Epilogue()
    # The contiguous modes: A "k" or "m", B "k" or "n" (elements other than 16-bit: "k" only), C "n" or "m". C along "m"
    # also serves problems with few columns, as the transposed problem ``C^T = B A^T``.
    major_a: str = "k"
    major_b: str = "k"
    major_c: str = "n"
    dependent: bool = False  # programmatic dependent launch, as in GemmConfig

    @property
    def depth(self) -> int:
        """Elements of K in a stage: 128 bytes."""
        return 1024 // BITS[self.element]

    @property
    def base(self) -> GemmConfig:
        """The equivalent :class:`GemmConfig`, for functions that serve all GEMMs."""
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
        """Blocks of a cluster: the split-K slices of a tile are adjacent, then the tiles that share A."""
        return self.share * self.parts

    @property
    def consumers(self) -> int:
        """Number of consumer warpgroups."""
        return self.rows // 64

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers, and two producer warps."""
        return 128 * self.consumers + 64

    @property
    def rows_a(self) -> int:
        """Rows of A that are loaded."""
        return self.live or self.rows

    @property
    def part_a(self) -> int:
        """Rows of A that one block loads."""
        return self.rows_a // self.share

    @property
    def chunk(self) -> int:
        """Columns of C stored at once: rows of 128 or 64 bytes, or 64 elements of each of 64, 32 or 16 columns."""
        piece = self.columns // self.pieces
        if self.major_c == "m":
            return next((width for width in (64, 32) if piece % width == 0), 16)
        whole = 1024 // BITS[self.output]
        return whole if piece % whole == 0 else whole // 2

    @property
    def pieces(self) -> int:
        """Pieces of a consumer's columns that different blocks finish."""
        return max(1, self.parts // self.consumers)

    @property
    def inbox(self) -> tuple[int, int]:
        """Size of the inbox: f32 values from each sender, and the number of senders."""
        return 64 * self.columns // self.pieces * max(1, self.consumers // self.parts), self.parts - 1

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes: the rings, the inbox and the barriers."""
        values, senders = self.inbox
        rings = 128 * (self.stages_a * self.rows + self.stages * self.columns)
        return rings + 4 * values * senders + 16 * (self.stages_a + self.stages)

    @property
    def name(self) -> str:
        """Name of the kernel: types, majors of the problem, tile and cluster; ``w`` stands for few columns."""
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
        """Raise ValueError if no kernel supports this configuration."""
        self.epilogue.check()
        if self.epilogue.paired or self.epilogue.whole_tiles:
            raise ValueError(
                "the kernel for few rows does not support an epilogue over pairs of columns, blocks or whole rows"
            )
        if self.element not in ("f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2") or self.output not in (
            "f16",
            "bf16",
            "f32",
        ):
            raise ValueError(
                f"{self.element} operands with {self.output} results are not supported; use f16, bf16, tf32 or 8-bit "
                "float operands and f16, bf16 or f32 results"
            )
        if self.rows not in (64, 128, 192) or self.columns % 8 or not 8 <= self.columns <= 256:
            raise ValueError(
                f"a tile of {self.rows} x {self.columns} is not supported; rows must be 64, 128 or 192 and columns a "
                "multiple of 8 up to 256"
            )
        if min(self.stages_a, self.stages) < 2:
            raise ValueError(f"stages_a and stages must be at least 2, got {self.stages_a} and {self.stages}")
        if self.l2 not in (64, 128, 256):
            raise ValueError(f"l2 is {self.l2}; it must be 64, 128 or 256 bytes")
        if self.major_a not in ("k", "m") or self.major_b not in ("k", "n") or self.major_c not in ("n", "m"):
            majors = f"{self.major_a}, {self.major_b}, {self.major_c}"
            raise ValueError(f"majors of A, B, C are {majors}; A must be along k or m, B along k or n, C along n or m")
        if (self.major_a, self.major_b) != ("k", "k") and BITS[self.element] != 16:
            raise ValueError(f"A and B of {self.element} must be K-major; wgmma transposes 16-bit elements only")
        if self.major_a == "m" and (self.live or self.share > 1):
            raise ValueError(
                "M-major A needs whole tiles (live=0) and share=1, got "
                f"{self.live or self.rows} of {self.rows} rows, share={self.share}"
            )
        if self.major_b == "n" and self.columns % 16:
            raise ValueError(f"columns is {self.columns}; N-major B needs a multiple of 16")
        if self.live % 8 or not 0 <= self.live <= self.rows or (self.live and self.share > 1):
            raise ValueError(
                f"live is {self.live}; it must be a multiple of 8 up to the {self.rows} rows of a tile, with share=1 "
                f"(got share={self.share})"
            )
        if self.share < 1 or self.rows % (8 * self.share) or self.cluster > 8:
            raise ValueError(
                "a cluster has at most 8 blocks, and each block that shares A must load a multiple of 8 rows; got "
                f"{self.cluster} blocks, of which {self.share} share {self.rows} rows"
            )
        units = self.consumers * self.pieces
        if self.parts < 1 or units % self.parts or self.columns % (8 * self.pieces):
            raise ValueError(
                f"parts is {self.parts}; it must divide the {self.consumers} warpgroups of a tile or be a multiple of "
                f"them, with pieces of a multiple of 8 of {self.columns} columns"
            )
        piece = self.columns // self.pieces
        if not self.direct and (piece % self.chunk or self.output == "f32"):
            chunks = "16 columns" if self.major_c == "m" else "64 bytes"
            raise ValueError(
                f"TMA stores need a 16-bit output and chunks of {chunks}, got {piece} columns of {self.output}; "
                "use direct=True"
            )
        if self.smem_bytes > _SMEM:
            raise ValueError(
                f"the kernel needs {self.smem_bytes} bytes of shared memory; at most {_SMEM} are available, use fewer "
                "stages"
            )


def deepest(config: SkinnyConfig) -> SkinnyConfig:
    """Return the configuration with as many stages as fit in shared memory. B may have one stage more than A.

    >>> deepest(SkinnyConfig(columns=224))[4:6], deepest(SkinnyConfig(rows=64))[4:6]
    ((5, 5), (14, 14))
    """
    room = _SMEM - 2048 - config._replace(stages_a=0, stages=0).smem_bytes  # 2048: upper bound of the alignment padding
    of_a, of_b = 128 * config.rows + 16, 128 * config.columns + 16
    stages = min(32, room // (of_a + of_b))
    if stages < 1:
        raise ValueError(
            f"no stage of a tile of {config.rows} x {config.columns} fits in shared memory; use a smaller tile"
        )
    return config._replace(stages_a=stages, stages=stages + (stages * (of_a + of_b) + of_b <= room))
