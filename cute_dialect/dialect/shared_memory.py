"""Shared memory: buffers of static size, and the dynamic shared memory of a launch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute
from xdsl.irdl import result_def, traits_def
from xdsl.traits import MemoryAllocEffect, Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.evaluation import cosize
from cute_dialect.algebra.leaf import AlgebraError, add
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import ComposedLayout, Layout, Swizzle
from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType, PtrType, element_bits, ptr
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.views import ResultFormOp, expect_operands
from cute_dialect.spaces import AddressSpace

MAX_SMEM = DEFAULT_TARGET.shared
"""Maximum shared memory per block in bytes on sm_90 (CUDA C++ Programming Guide, "Compute Capabilities")."""

SMEM_BASE_ALIGN = 1024
"""Alignment of dynamic shared memory in bytes: the period of the widest swizzle."""


def swizzle_period(swizzle: Swizzle) -> int:
    """Return the period of a swizzle, in units. Adding a multiple of the period commutes with the swizzle.

    >>> swizzle_period(Swizzle(3, 4, 3)), swizzle_period(Swizzle(1, 4, 3))
    (1024, 256)
    """
    return 1 << (swizzle.base + swizzle.bits + abs(swizzle.shift))


def storage_bytes(t: MemRefType) -> int:
    """Return the size in bytes of a tensor with a static layout.

    The size is ``cosize`` elements, rounded up to whole blocks within which the swizzle moves elements. Raises
    AlgebraError for a dynamic layout, and if the elements do not fill whole bytes.

    >>> from xdsl.dialects.builtin import f16
    >>> from cute_dialect.dialect.memory_types import MemRef
    >>> plain = MemRefType(MemRef(ptr(f16, "smem"), Layout((8, 24), (24, 1))))
    >>> swizzled = MemRefType(MemRef(ptr(f16, "smem", 1024, Swizzle(3, 4, 3)), Layout((8, 24), (24, 1))))
    >>> storage_bytes(plain), storage_bytes(swizzled)
    (384, 384)
    """
    layout = t.layout
    if not is_static(layout):
        raise AlgebraError(f"expected a static layout, got {payload_text(layout)}")
    n = _codomain(layout)
    bits = n * element_bits(t.element)
    if bits % 8:
        raise AlgebraError(f"expected whole bytes, got {n} elements of {t.element}")
    n_bytes = bits // 8
    swizzle = t.data.ptr.swizzle
    return n_bytes if swizzle is None else _round_up(n_bytes, _moved_within(swizzle))


def _codomain(layout: Layout | ComposedLayout) -> int:
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.inner, Layout):
            raise AlgebraError(f"expected a swizzled or plain layout, got {payload_text(layout)}")
        n = add(cosize(layout.outer), layout.offset)  # type: ignore[arg-type]
        assert isinstance(n, int)
        return _round_up(n, _moved_within(layout.inner))
    n = cosize(layout)
    assert isinstance(n, int)
    return n


def _moved_within(swizzle: Swizzle) -> int:
    _, changed = swizzle.masks()
    return 1 << changed.bit_length()


def _round_up(n: int, to: int) -> int:
    return -(-n // to) * to


def check_alloc(t: Attribute) -> None:
    """Raise AlgebraError unless a tensor of this type can be allocated in shared memory."""
    if not isinstance(t, MemRefType) or t.space != AddressSpace.smem:
        raise AlgebraError(f"expected an smem tensor, got {t}")
    n = storage_bytes(t)
    if n > MAX_SMEM:
        raise AlgebraError(f"expected at most {MAX_SMEM} bytes of shared memory, got {n} for {t}")
    swizzle = t.data.ptr.swizzle
    if swizzle is not None and t.alignment < swizzle_period(swizzle):
        raise AlgebraError(
            f"expected an alignment of at least {swizzle_period(swizzle)} bytes, the period of {swizzle}, "
            f"got {t.alignment}; write align<{swizzle_period(swizzle)}>"
        )


@cute_op
class AllocSmemOp(ResultFormOp):
    """Allocates a buffer in shared memory, one per block. The layout must be static.

    Syntax: ``%s = cute.memref.alloc_smem() : T``

    The buffers of a kernel are placed one after another in program order, each at the alignment of its type. Up to 48
    KiB in total they are static shared memory. Beyond that they are dynamic shared memory: the kernel gets the
    attribute ``cute.dynamic_smem`` (size in bytes), and the launcher requests it. An op in a loop allocates one buffer.
    A pointer with a swizzle must be aligned to the period of the swizzle. The contents are undefined initially.

    Example:
        %s = cute.memref.alloc_smem() : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,64):(64,1)">
    """

    name = "cute.memref.alloc_smem"
    result = result_def(MemRefType)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, result_type: MemRefType):
        super().__init__(result_types=[result_type])

    def verify_(self) -> None:
        try:
            check_alloc(self.result.type)
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None


@cute_op
class SmemBaseOp(ResultFormOp):
    """Returns a pointer to the dynamic shared memory that the launch requests in addition to the buffers of
    ``alloc_smem``.

    Syntax: ``%p = cute.smem_base() : !cute.ptr<i8, smem, align<1024>>``

    The launch sets its size in bytes (``dynamic_shared_memory_size`` of ``gpu.launch_func``).

    Example:
        %p = cute.smem_base() : !cute.ptr<i8, smem, align<1024>>
    """

    name = "cute.smem_base"
    result = result_def(PtrType)
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=self.infer_types([], {}))

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        from xdsl.dialects.builtin import i8

        expect_operands(operand_types, 0)
        return [PtrType(ptr(i8, AddressSpace.smem, SMEM_BASE_ALIGN))]


OPS = ops_of(__name__)
