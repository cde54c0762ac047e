"""The configuration of a grouped GEMM: which extent the groups differ in, and a Hopper GEMM to compute each.

>>> GroupedConfig(GemmConfig(early=False, serpentine=False, deferred=False), "k").batched
(False, False, True)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.gemm.config import GemmConfig

__all__ = ["FORMS", "TABLE", "GroupedConfig"]

FORMS = ("m", "n", "k", "rows")
"""What groups differ in: stretches of the rows of A and C (``m``), of the columns of B and C (``n``), of K (``k``); or
how many of its rows each matrix of a batch uses (``rows``).
"""

TABLE = 256
"""Entries of the table of tiles: of more groups several share an entry."""

_TABLE_BYTES = (TABLE + 1 + 8) * 4


class GroupedConfig(NamedTuple):
    """A kernel for ``C_g = A_g B_g^T``.

    ``base``: tile, types, majors and schedule of a product.  ``form``: one of :data:`FORMS`; a matrix that is not cut
    into groups has a third mode, of groups.  ``begins``: where groups begin is an argument, too; else each begins where
    the one before ends.
    """

    base: GemmConfig = GemmConfig(early=False, serpentine=False)
    form: str = "m"
    begins: bool = False

    @property
    def batched(self) -> tuple[bool, bool, bool]:
        """Which of A, B and C have a third mode."""
        return self.form in ("n", "rows"), self.form in ("m", "rows"), self.form in ("k", "rows")

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block, bytes."""
        return self.base.smem_bytes + (0 if self.form == "k" else _TABLE_BYTES)

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        c = self.base
        c.check()
        if self.form not in FORMS:
            raise ValueError(f"expected groups along {', '.join(FORMS)}, got {self.form!r}")
        if c.batch or c.stream_k or c.fallback or c.early or c.serpentine:
            raise ValueError(f"expected no batch, shared wave, fallback, early loads, or way back of groups, got {c}")
        if c.through_registers or c.direct or c.array or c.dependent:
            raise ValueError(f"expected A that wgmma reads as it lies, C that TMA writes, a usual launch, got {c}")
        cut = {"m": [c.major_a == "m"], "n": [c.major_b == "n"], "k": [c.major_a == "k", c.major_b == "k"]}
        if any(cut.get(self.form, ())):  # TMA begins at multiples of 16 bytes of a line
            raise ValueError(
                f"expected factors whose lines no group cuts, got A along {c.major_a}, B along {c.major_b}"
            )
        if c.scaled and (self.form not in ("m", "rows") or c.scaled_columns):
            what = "columns" if c.scaled_columns else repr(self.form)
            raise ValueError(f"expected groups of rows with scales of blocks, of 128 columns, got {what}")
        if self.form == "k" and c.deferred:
            raise ValueError("expected no deferred store where groups share K: one of them may have no steps")
        graph = c.epilogue.graph
        if graph is not None and (graph.reduces or c.epilogue.whole_tiles):
            raise ValueError(
                "expected an epilogue of groups whose results are of elements, or pairs, of the sums alone"
            )
        if graph is not None and len(graph.outputs) > 1 and self.form == "n":
            raise ValueError("expected one result of an epilogue of columns: those behind a group's end are another's")
        if self.begins and self.form == "rows":
            raise ValueError("expected no beginnings of matrices of a batch")
        if self.smem_bytes > DEFAULT_TARGET.shared:
            raise ValueError(f"expected at most {DEFAULT_TARGET.shared} bytes of shared memory, got {self.smem_bytes}")
