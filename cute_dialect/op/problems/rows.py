"""Row functions: their table, and the problem of a call.

>>> RowProblem("softmax", "bf16", 8192, 50257).family
'registers'
>>> RowProblem("rms_norm", "bf16", 100, 3, "w", flat=True).family, RowProblem("softmax", "f32", 1, 1 << 20).family
('packed', 'streamed')
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.rows.config import BITS, longest
from cute_dialect.kernels.rows.gradients import longest_gradient
from cute_dialect.kernels.rows.packed import MAPPED, is_packed_length
from cute_dialect.kernels.rows.packed_norm_gradients import is_packed_norm_length
from cute_dialect.kernels.rows.streamed import OPERATIONS
from cute_dialect.op.errors import UnsupportedError


class RowFunction(NamedTuple):
    """A row function with kernels of its own.

    The kind selects its arguments, the operands of its torch operator and of its gradient, and the check of shapes.
    """

    name: str  # of the function, of its torch operator and of its kernels
    kind: str
    """``map`` from a row to a row, whose gradient is computed from the result; ``number`` from a row to a number;
    ``norm`` with a weight, a bias and a residual; ``loss`` with a target per row."""
    has_gradient: bool = True  # a kernel computes the gradient, ``…_backward``; torch computes that of sums


ROW_FUNCTIONS = (
    RowFunction("softmax", "map"),
    RowFunction("log_softmax", "map"),
    RowFunction("rms_norm", "norm"),
    RowFunction("layer_norm", "norm"),
    RowFunction("sum", "number", has_gradient=False),
    RowFunction("mean", "number", has_gradient=False),
    RowFunction("max", "number"),
    RowFunction("logsumexp", "number"),
    RowFunction("cross_entropy", "loss"),
)
"""The row functions.  Operators, gradients, caches of calls and explanations are derived from this table."""

FUNCTIONS = tuple([f.name for f in ROW_FUNCTIONS])
MAPS, NORMS, NUMBERS = (tuple([f.name for f in ROW_FUNCTIONS if f.kind == kind]) for kind in ("map", "norm", "number"))
NUMBERS_BY_KERNEL = tuple([f.name for f in ROW_FUNCTIONS if f.kind == "number" and f.has_gradient])
"""Functions from a row to a number whose gradient has a kernel."""
LOSS = "cross_entropy"


class RowProblem(NamedTuple):
    """A call of a row function: types, extents and alignment, but no addresses."""

    call: str  # name of the function, or "…_backward" of its gradient
    element: str
    rows: int
    n: int  # length of a row
    takes: str = ""
    """Operands other than ``x``: the gradient of the result as rows (d) or as one number per row (g), a weight (w), a
    bias (b), a residual or the gradient of its sum (r)."""
    flat: bool = False  # the matrices are contiguous and aligned to 16 bytes

    @property
    def is_gradient(self) -> bool:
        return self.call.endswith("_backward")

    @property
    def is_norm_gradient(self) -> bool:
        return self.call.endswith("norm_backward")

    @property
    def op(self) -> str:
        """Name of the operation in :mod:`cute_dialect.kernels.rows.forward`."""
        return self.call.replace("_norm", "norm")

    @property
    def family(self) -> str:
        """The family of kernels.

        - "packed": short contiguous rows that are not whole vectors;
        - "streamed": rows that are too long for registers and shared memory;
        - "registers": all others.

        Raises UnsupportedError for rows that are too long, if the function has no kernel for streamed rows.
        """
        packs = is_packed_norm_length if self.is_norm_gradient else is_packed_length
        is_map = self.call not in NUMBERS and not self.call.startswith(LOSS)
        if self.flat and packs(self.element, self.n) and (not is_map or self.is_norm_gradient or self.op in MAPPED):
            return "packed"
        if not is_map:
            return "registers"
        most = longest_gradient(self.element) if self.is_norm_gradient else longest(self.op, self.element, self.takes)
        if self.n > most and self.op not in OPERATIONS:
            raise UnsupportedError(f"{self.call}: rows have {self.n} elements; {self.element} has at most {most}")
        return "streamed" if self.n > most else "registers"

    @property
    def bytes(self) -> int:
        """Bytes of the matrices that a call reads and writes, each once."""
        if self.call.startswith(LOSS) or self.call in NUMBERS:
            matrices = 1 + self.is_gradient
        else:
            matrices = 3 + ("r" in self.takes) if self.is_gradient else 2 + 2 * ("r" in self.takes)
        return matrices * self.rows * self.n * BITS[self.element] // 8
