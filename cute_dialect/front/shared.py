"""Shared memory: buffers of a block, made in the order of the trace, plain or typed by structures."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cute_dialect.front.errors import KernelTypeError, LayoutError, LimitError
from cute_dialect.front.pointers import Pointer, recast_ptr

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from cute_dialect.front.dtypes import Numeric
    from cute_dialect.front.tensors import Tensor

__all__ = ["SmemAllocator", "UnionSmem", "alloc_smem", "dynamic_smem_size", "get_dyn_smem", "smem_tensor", "union_smem"]


def smem_tensor(
    element_type: type[Numeric], layout: Any, byte_alignment: int | None = None, swizzle: Any = None
) -> Tensor:
    """Return a new buffer of shared memory with a static layout, plain or swizzled.

    ``swizzle``: one of the byte address, at whose period the buffer is aligned.  ``byte_alignment``: 16 if not given.
    """
    from cute_dialect.front.tensors import Tensor
    from cute_dialect.memory_types import MemRef, MemRefType, ptr
    from cute_dialect.ops.shared_memory import storage_bytes, swizzle_period

    payload = _static_layout(layout)
    least = max(16, -(-element_type.width // 8)) if byte_alignment is None else byte_alignment
    align = max(_power(least), 1 if swizzle is None else swizzle_period(swizzle), -(-element_type.width // 8))
    type = MemRefType(MemRef(ptr(element_type.attribute, "smem", align, swizzle), payload))
    n = storage_bytes(type)
    union = _open_union()
    if union is not None:
        from cute_dialect.front.tensors import make_tensor

        start = recast_ptr(union.take(n, align), dtype=element_type)
        start = start if swizzle is None else recast_ptr(start, swizzle)
        return make_tensor(start, layout)
    return Tensor.of(_alloc(type, n), element_type)


def _static_layout(layout: Any) -> Any:
    from cute_dialect.front.layouts import as_layout

    made = as_layout(layout)
    if not made.is_static:
        raise LayoutError("F240", f"a buffer of shared memory has a static layout, got {made}")
    return made.payload


def _power(align: int) -> int:
    if align < 1 or align & (align - 1):
        raise KernelTypeError("F262", f"an alignment is a power of two in bytes, got {align}")
    return align


def _bytes(n: int, align: int) -> Pointer:
    """Return a pointer to ``n`` new bytes of shared memory."""
    from cute_dialect.front.dtypes import Uint8
    from cute_dialect.front.trace import current

    union = _open_union()
    if union is not None:
        return union.take(n, align)
    return Pointer.of(current().value("cute.get_iter", [_alloc(_byte_buffer(n, align), n)]), Uint8)


def _byte_buffer(n: int, align: int) -> Attribute:
    from cute_dialect.front.trace import parse_type

    return parse_type(f'!cute.memref<i8, smem, align<{_power(align)}>, "{n}:1">')


def _alloc(type: Any, n: int) -> Any:
    """Append the buffer.  Raises F261 with all buffers so far where the chip has not as much shared memory."""
    from cute_dialect.front.trace import current

    t = current()
    if t.kind != "kernel":
        raise KernelTypeError("F260", "shared memory is a block's: it can be allocated in a kernel only")
    _check_room(type, n)
    return t.value("cute.memref.alloc_smem", (), [type])


def _check_room(type: Any, n: int) -> None:
    from cute_dialect.arch.targets import find_target
    from cute_dialect.front.trace import current
    from cute_dialect.ops.shared_memory import storage_bytes

    t = current()
    room = find_target(t.chip).shared
    found = [op.results[0] for op in t.function.walk() if op.name == "cute.memref.alloc_smem"]
    sizes = [storage_bytes(v.type) for v in found] + [n]  # pyright: ignore
    if sum(sizes) <= room:
        return
    rows = [f"  {size:8} bytes  {v.name_hint or '_':12} {v.type}" for v, size in zip(found, sizes)]
    rows.append(f"  {n:8} bytes  {'this one':12} {type}")
    raise LimitError(
        "F261", f"a block has {room} bytes of shared memory on {t.chip}, the buffers of the kernel take {sum(sizes)}:\n"
        + "\n".join(rows), hint="fewer stages, smaller tiles; cute.union_smem() lets buffers of two phases share bytes",
    )  # fmt: skip


def alloc_smem(element_type: type[Numeric], size: int, alignment: int | None = None) -> Pointer:
    """Return a pointer to ``size`` new elements of shared memory."""
    natural = max(1, element_type.width // 8)
    bits = size * (8 if element_type.width == 1 else element_type.width)
    start = _bytes(max(1, -(-bits // 8)), max(natural, 1 if alignment is None else alignment))
    return recast_ptr(start, dtype=element_type)


def get_dyn_smem(element_type: type[Numeric], alignment: int | None = None) -> Pointer:
    """Return a pointer to the shared memory that the launch asks for beside the kernel's own buffers (``smem=``).

    It is aligned to 1024 bytes; more is F262.
    """
    from cute_dialect.front.dtypes import Uint8
    from cute_dialect.front.trace import current

    start = Pointer.of(current().value("cute.smem_base"), Uint8)
    if alignment is not None and _power(alignment) > start.alignment:
        raise KernelTypeError(
            "F262", f"dynamic shared memory is aligned to {start.alignment} bytes, not to {alignment}"
        )
    return recast_ptr(start, dtype=element_type)


def dynamic_smem_size() -> Any:
    """Return the bytes of dynamic shared memory of the block: what the launch asks for with ``smem=``.

    The kernel's own buffers count where they are dynamic, too: where they have more than 48 KiB.
    """
    from cute_dialect.front.dtypes import Int32
    from cute_dialect.front.integer_ranges import Facts
    from cute_dialect.front.trace import current

    read = current().value("nvvm.read.ptx.sreg.dynamic.smem.size", (), [Int32.attribute])
    return Int32.of(read, Facts(0, 1 << 20))


class SmemAllocator:
    """Makes buffers of shared memory, one behind the other in the order of the calls."""

    def allocate(self, size_or_type: Any, byte_alignment: int = 1) -> Any:
        """Return new shared memory: of so many bytes, for a number, or for a structure (``cute.struct``)."""
        from cute_dialect.front.structs import Struct

        if isinstance(size_or_type, Struct):
            n = size_or_type.size_in_bytes()
            return size_or_type.at(_bytes(n, max(byte_alignment, size_or_type.alignment)))
        if isinstance(size_or_type, type):
            return alloc_smem(size_or_type, 1, byte_alignment)
        if not isinstance(size_or_type, int) or size_or_type < 1:
            raise KernelTypeError(
                "F263", f"shared memory is allocated by bytes, a type or a structure, got {size_or_type!r}"
            )
        # As in CuTe DSL, where the first bytes are aligned to 1024: what of a swizzled layout fits in is whole there.
        return _bytes(size_or_type, max(byte_alignment, min(1024, 1 << size_or_type.bit_length() - 1)))

    def allocate_array(self, element_type: type[Numeric], num_elems: int = 1, byte_alignment: int = 1) -> Pointer:
        """Return a pointer to so many new elements."""
        return alloc_smem(element_type, num_elems, byte_alignment)

    def allocate_tensor(
        self, element_type: type[Numeric], layout: Any, byte_alignment: int = 16, swizzle: Any = None
    ) -> Tensor:
        """Return a new tensor in shared memory (:func:`smem_tensor`)."""
        return smem_tensor(element_type, layout, byte_alignment, swizzle)

    @staticmethod
    def capacity(chip: str) -> int:
        """Return the bytes of shared memory that a block may have on a chip.

        >>> SmemAllocator.capacity("sm_90a")
        232448
        """
        from cute_dialect.arch.targets import find_target

        return find_target(chip).shared


# --------------------------------------------------------------------------------------------------------------- unions


class UnionSmem:
    """Shared memory that buffers of several phases share; see :func:`union_smem`."""

    def __init__(self) -> None:
        from cute_dialect.front.dtypes import Uint8
        from cute_dialect.front.trace import current

        self._buffer = _alloc(_byte_buffer(1, 1024), 1)
        self._start = Pointer.of(current().value("cute.get_iter", [self._buffer]), Uint8)
        self._at = 0
        self._size = 1

    def next(self) -> None:
        """Begin the next phase: its buffers start at the first byte again."""
        self._at = 0

    def take(self, n: int, align: int) -> Pointer:
        """Return a pointer to the next bytes of the phase."""
        if align > 1024:
            raise KernelTypeError("F262", f"buffers that share bytes are aligned to at most 1024 bytes, got {align}")
        at = -(-self._at // align) * align
        self._at = at + n
        self._size = max(self._size, self._at)
        _check_room(_byte_buffer(self._size, 1024), self._size - 1)
        return self._start + at

    def close(self) -> None:
        """Give the buffer its size."""
        from xdsl.rewriter import Rewriter

        self._buffer = Rewriter.replace_value_with_new_type(self._buffer, _byte_buffer(self._size, 1024))


@contextmanager
def union_smem() -> Generator[UnionSmem]:
    """Let the buffers that are allocated inside share bytes: those before and those behind ``.next()``.

    ::

        with cute.union_smem() as phases:
            sA = cute.smem_tensor(cute.Float16, (64, 64))
            phases.next()
            sC = cute.smem_tensor(cute.Float32, (64, 32))

    A barrier must stand between the last use of one phase and the first of the next; the interpreter's race check
    tells where none does.
    """
    from cute_dialect.front.trace import current

    unions: list[UnionSmem] = current().state.setdefault("smem_unions", [])
    if unions:
        raise KernelTypeError("F263", "one union_smem() cannot stand inside another")
    union = UnionSmem()
    unions.append(union)
    try:
        yield union
    finally:
        unions.pop()
        union.close()


def _open_union() -> UnionSmem | None:
    from cute_dialect.front.trace import current

    unions: Sequence[UnionSmem] = current().state.get("smem_unions", ())
    return unions[-1] if unions else None
