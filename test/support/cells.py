"""Arrays for traced kernels without tensors of the language, for tests of the layers below them."""

from __future__ import annotations

from typing import Any

from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dtypes import type_of_mlir
from cute_dialect.lang.values.numeric import as_number


class Cells:
    """An array of numbers, read and written by a single index. ``at(i)`` returns the SSA value of a pointer."""

    def __init__(self, ssa: Any):
        self.view = ssa
        self.kind = type_of_mlir(str(ssa.type.data.ptr.element))

    def _where(self, i: Any) -> Any:
        return current().value("cute.make_coord", [as_number(i).ssa], [parse_type('!cute.coord<"?">')])

    def __getitem__(self, i: Any) -> Any:
        return self.kind.of(current().value("cute.memref.load", [self.view, self._where(i)]))

    def __setitem__(self, i: Any, x: Any) -> None:
        current().op("cute.memref.store", [self.view, self._where(i), self.kind(x).ssa])

    def at(self, i: Any = 0) -> Any:
        """Return a pointer to an element."""
        t = current()
        offset = t.value("cute.make_int_tuple", [as_number(i).ssa], [parse_type('!cute.int_tuple<"?">')])
        return t.value("cute.add_offset", [t.value("cute.get_iter", [self.view]), offset])


def shared(element: str, count: int) -> Cells:
    """Allocate an array in shared memory."""
    return Cells(
        current().value(
            "cute.memref.alloc_smem", (), [parse_type(f'!cute.memref<{element}, smem, align<16>, "{count}:1">')]
        )
    )
