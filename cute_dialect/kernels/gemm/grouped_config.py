"""Configuration of a grouped GEMM: the extent that varies between groups, and the Hopper GEMM that computes each group.

>>> GroupedConfig(GemmConfig(early=False, serpentine=False, deferred=False), "k").batched
(False, False, True)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.gemm.config import GemmConfig

__all__ = ["FORMS", "TABLE", "GroupedConfig"]

FORMS = ("m", "n", "k", "rows")
"""The extent that varies between groups. Groups are ranges of rows of A and C (``m``), of columns of B and C (``n``) or
of K (``k``). With ``rows``, group g uses the first rows of matrix g of a batch."""

TABLE = 256
"""Entries of the tile table. With more groups than entries, several groups share an entry."""

_TABLE_BYTES = (TABLE + 1 + 8) * 4


class GroupedConfig(NamedTuple):
    """Configuration of a grouped GEMM, ``C_g = A_g B_g^T``.

    A matrix that is not divided into groups has a third mode, of extent G.
    """

    base: GemmConfig = GemmConfig(early=False, serpentine=False)
    form: str = "m"  # one of FORMS
    begins: bool = False  # pass the start of each group as an argument; otherwise it starts where the previous one ends

    @property
    def batched(self) -> tuple[bool, bool, bool]:
        """True for those of A, B and C that have a third mode."""
        return self.form in ("n", "rows"), self.form in ("m", "rows"), self.form in ("k", "rows")

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes."""
        return self.base.smem_bytes + (0 if self.form == "k" else _TABLE_BYTES)

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        c = self.base
        c.check()
        if self.form not in FORMS:
            raise ValueError(f"form is {self.form!r}; use one of {', '.join(FORMS)}")
        if c.batch or c.stream_k or c.fallback or c.early or c.serpentine:
            raise ValueError(f"grouped GEMMs do not support batch, stream_k, fallback, early or serpentine, got {c}")
        if c.through_registers or c.direct or c.array or c.dependent:
            raise ValueError(
                f"grouped GEMMs do not support direct, array, dependent or M-major A that is not 16-bit, got {c}"
            )
        cut = {"m": [c.major_a == "m"], "n": [c.major_b == "n"], "k": [c.major_a == "k", c.major_b == "k"]}
        if any(cut.get(self.form, ())):  # group boundaries would violate TMA's 16-byte alignment
            raise ValueError(
                f"form {self.form!r} needs operands contiguous along the extent that is not divided into "
                f"groups, got A along {c.major_a}, B along {c.major_b}"
            )
        if c.scaled and (self.form not in ("m", "rows") or c.scaled_columns):
            what = "columns" if c.scaled_columns else repr(self.form)
            raise ValueError(f"block scales need form 'm' or 'rows' and scales per 128 columns, got {what}")
        if self.form == "k" and c.deferred:
            raise ValueError("form 'k' needs deferred=False, because a group may have no K steps")
        graph = c.epilogue.graph
        if graph is not None and (graph.reduces or c.epilogue.whole_tiles):
            raise ValueError("the epilogue of a grouped GEMM cannot reduce rows or columns or use whole rows or blocks")
        if graph is not None and len(graph.outputs) > 1 and self.form == "n":
            raise ValueError("form 'n' supports one epilogue output; others would overwrite the next group")
        if self.begins and self.form == "rows":
            raise ValueError("form 'rows' needs begins=False, because every group starts at row 0")
        if self.smem_bytes > DEFAULT_TARGET.shared:
            raise ValueError(
                f"the kernel needs {self.smem_bytes} bytes of shared memory; at most "
                f"{DEFAULT_TARGET.shared} are available, use fewer stages"
            )
