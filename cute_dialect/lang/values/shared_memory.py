"""Shared memory: buffers of a block, allocated in the order of the trace, untyped or typed by structures."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cute_dialect.arch.targets import find_target
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError, LimitError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dtypes import Int32, Uint8
from cute_dialect.lang.values.integer_ranges import Facts
from cute_dialect.lang.values.pointers import Pointer, recast_ptr
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from cute_dialect.algebra.values import Swizzle
    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.signature_types import LayoutLike
    from cute_dialect.lang.values.structs import Struct, StructView
    from cute_dialect.lang.values.tensors import Tensor

__all__ = ["SmemAllocator", "UnionSmem", "alloc_smem", "dynamic_smem_size", "get_dyn_smem", "smem_tensor", "union_smem"]


def smem_tensor(
    element_type: type[Numeric], layout: LayoutLike, byte_alignment: int | None = None, swizzle: Swizzle | None = None
) -> Tensor:
    """Allocate a shared memory buffer with a static layout, plain or swizzled.

    Args:
        element_type: the element type.
        layout: a static layout.
        byte_alignment: the alignment in bytes; 16 by default.
        swizzle: a swizzle of the byte address; the buffer is aligned to its period.
    """
    from cute_dialect.dialect.memory_types import MemRef, MemRefType, ptr  # late: start-up
    from cute_dialect.dialect.shared_memory import storage_bytes, swizzle_period  # late: start-up
    from cute_dialect.lang.values.tensors import Tensor  # late: start-up

    payload = _static_layout(layout)
    least = max(16, -(-element_type.width // 8)) if byte_alignment is None else byte_alignment
    align = max(_power(least), 1 if swizzle is None else swizzle_period(swizzle), -(-element_type.width // 8))
    type = MemRefType(MemRef(ptr(element_type.attribute, AddressSpace.smem, align, swizzle), payload))
    n = storage_bytes(type)
    union = _open_union()
    if union is not None:
        from cute_dialect.lang.values.tensors import make_tensor  # late: start-up

        start = recast_ptr(union.take(n, align), dtype=element_type)
        start = start if swizzle is None else recast_ptr(start, swizzle)
        return make_tensor(start, layout)
    return Tensor.of(_alloc(type, n), element_type)


def _static_layout(layout: Any) -> Any:
    from cute_dialect.lang.values.layout_makers import as_layout  # late: start-up

    made = as_layout(layout)
    if not made.is_static:
        raise LayoutError("F240", f"a shared memory buffer needs a static layout, got {made}")
    return made.payload


def _power(align: int) -> int:
    if align < 1 or align & (align - 1):
        raise KernelTypeError("F262", f"the alignment must be a power of two, got {align}")
    return align


def _bytes(n: int, align: int) -> Pointer:
    """Return a pointer to ``n`` new bytes of shared memory."""
    union = _open_union()
    if union is not None:
        return union.take(n, align)
    return Pointer.of(current().value("cute.get_iter", [_alloc(_byte_buffer(n, align), n)]), Uint8)


def _byte_buffer(n: int, align: int) -> Attribute:
    return parse_type(f'!cute.memref<i8, smem, align<{_power(align)}>, "{n}:1">')


def _alloc(type: Any, n: int) -> Any:
    """Emit the allocation.  Raises F261 with a list of all buffers if the target lacks the space."""
    t = current()
    if t.kind != "kernel":
        raise KernelTypeError("F260", "shared memory can only be allocated in a kernel")
    _check_room(type, n)
    return t.value("cute.memref.alloc_smem", (), [type])


def _check_room(type: Any, n: int) -> None:
    from cute_dialect.dialect.shared_memory import storage_bytes  # late: start-up

    t = current()
    room = find_target(t.chip).shared
    found = [op.results[0] for op in t.function.walk() if op.name == "cute.memref.alloc_smem"]
    sizes = [storage_bytes(v.type) for v in found] + [n]  # pyright: ignore
    if sum(sizes) <= room:
        return
    rows = [f"  {size:8} bytes  {v.name_hint or '_':12} {v.type}" for v, size in zip(found, sizes)]
    rows.append(f"  {n:8} bytes  {'this one':12} {type}")
    raise LimitError(
        "F261", f"the kernel's shared memory buffers need {sum(sizes)} bytes, but a block has {room} on {t.chip}:\n"
        + "\n".join(rows), hint="use fewer stages or smaller tiles, or reuse bytes with cute.union_smem()",
    )  # fmt: skip


def alloc_smem(element_type: type[Numeric], size: int, alignment: int | None = None) -> Pointer:
    """Allocate ``size`` elements of shared memory and return a pointer."""
    natural = max(1, element_type.width // 8)
    bits = size * (8 if element_type.width == 1 else element_type.width)
    start = _bytes(max(1, -(-bits // 8)), max(natural, 1 if alignment is None else alignment))
    return recast_ptr(start, dtype=element_type)


def get_dyn_smem(element_type: type[Numeric], alignment: int | None = None) -> Pointer:
    """Return a pointer to the dynamic shared memory that the launch requests with ``smem=``.

    It is separate from the kernel's own buffers.  The memory is aligned to 1024 bytes.  Raises F262 for a larger
    ``alignment``.
    """
    start = Pointer.of(current().value("cute.smem_base"), Uint8)
    if alignment is not None and _power(alignment) > start.alignment:
        raise KernelTypeError(
            "F262", f"get_dyn_smem: the alignment can be at most {start.alignment} bytes, got {alignment}"
        )
    return recast_ptr(start, dtype=element_type)


def dynamic_smem_size() -> Int32:
    """Return the size of the block's dynamic shared memory in bytes.

    It includes the kernel's own buffers if they exceed 48 KiB, because they are then dynamic too.
    """
    read = current().value("nvvm.read.ptx.sreg.dynamic.smem.size", (), [Int32.attribute])
    return Int32.of(read, Facts(0, 1 << 20))


class SmemAllocator:
    """Allocator of shared memory buffers, placed one after another in the order of the calls."""

    def allocate(self, size_or_type: int | type[Numeric] | Struct, byte_alignment: int = 1) -> Pointer | StructView:
        """Allocate shared memory: a number of bytes, one number of a type, or a structure (``cute.struct``)."""
        from cute_dialect.lang.values.structs import Struct  # late: start-up

        if isinstance(size_or_type, Struct):
            n = size_or_type.size_in_bytes()
            return size_or_type.at(_bytes(n, max(byte_alignment, size_or_type.alignment)))
        if isinstance(size_or_type, type):
            return alloc_smem(size_or_type, 1, byte_alignment)
        if not isinstance(size_or_type, int) or size_or_type < 1:
            raise KernelTypeError(
                "F263", f"allocate needs a number of bytes, a number type or a structure, got {size_or_type!r}"
            )
        # CuTe DSL aligns the first bytes to 1024. A swizzled layout that fits is complete at this alignment.
        return _bytes(size_or_type, max(byte_alignment, min(1024, 1 << size_or_type.bit_length() - 1)))

    def allocate_array(self, element_type: type[Numeric], num_elems: int = 1, byte_alignment: int = 1) -> Pointer:
        """Allocate ``num_elems`` elements and return a pointer."""
        return alloc_smem(element_type, num_elems, byte_alignment)

    def allocate_tensor(
        self, element_type: type[Numeric], layout: LayoutLike, byte_alignment: int = 16, swizzle: Swizzle | None = None
    ) -> Tensor:
        """Allocate a tensor in shared memory; see :func:`smem_tensor`."""
        return smem_tensor(element_type, layout, byte_alignment, swizzle)

    @staticmethod
    def capacity(chip: str) -> int:
        """Return the shared memory available to a block on an architecture, in bytes.

        >>> SmemAllocator.capacity("sm_90a")
        232448
        """
        return find_target(chip).shared


# --------------------------------------------------------------------------------------------------------------- unions


class UnionSmem:
    """Shared memory reused by the buffers of several phases; see :func:`union_smem`."""

    def __init__(self) -> None:
        self._buffer = _alloc(_byte_buffer(1, 1024), 1)
        self._start = Pointer.of(current().value("cute.get_iter", [self._buffer]), Uint8)
        self._at = 0
        self._size = 1

    def next(self) -> None:
        """Begin the next phase, whose buffers start at the first byte again."""
        self._at = 0

    def take(self, n: int, align: int) -> Pointer:
        """Return a pointer to the next bytes of the phase."""
        if align > 1024:
            raise KernelTypeError("F262", f"union_smem: the alignment can be at most 1024 bytes, got {align}")
        at = -(-self._at // align) * align
        self._at = at + n
        self._size = max(self._size, self._at)
        _check_room(_byte_buffer(self._size, 1024), self._size - 1)
        return self._start + at

    def close(self) -> None:
        """Set the size of the buffer."""
        from xdsl.rewriter import Rewriter

        self._buffer = Rewriter.replace_value_with_new_type(self._buffer, _byte_buffer(self._size, 1024))


@contextmanager
def union_smem() -> Generator[UnionSmem]:
    """Let buffers allocated in different phases share bytes. ``.next()`` begins the next phase.

    ::

        with cute.union_smem() as phases:
            sA = cute.smem_tensor(cute.Float16, (64, 64))
            phases.next()
            sC = cute.smem_tensor(cute.Float32, (64, 32))

    A barrier must separate the last use in one phase from the first use in the next.  The interpreter's race detector
    reports a missing one.
    """
    unions: list[UnionSmem] = current().state.setdefault("smem_unions", [])
    if unions:
        raise KernelTypeError("F263", "union_smem() cannot be nested")
    union = UnionSmem()
    unions.append(union)
    try:
        yield union
    finally:
        unions.pop()
        union.close()


def _open_union() -> UnionSmem | None:
    unions: Sequence[UnionSmem] = current().state.get("smem_unions", ())
    return unions[-1] if unions else None
