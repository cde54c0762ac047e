"""``cute-to-base`` for shared memory: the buffers of a kernel share one segment.

The ``alloc_smem`` ops of a kernel are laid out in program order, each at its alignment.  Up to 48 KiB, the segment is a
static global.  A larger one is the external dynamic segment, and the kernel gets ``cute.dynamic_smem``, the bytes that
the launcher must request.  ``cute.smem_base`` points to further dynamic shared memory that the launch requests.

``cute.smem`` on the kernel describes the buffers for diagnostics: name of the value, segment, offset and size in bytes,
and type of the tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i8, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.shared_memory import MAX_SMEM, SMEM_BASE_ALIGN, storage_bytes
from cute_dialect.ir.editing import all_ops
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.types import lowered, pointer
from cute_dialect.runtime.abi import MERGED_SMEM
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm

if TYPE_CHECKING:
    from cute_dialect.passes.lowering.walk import Handler, Lowering

MAX_STATIC = DEFAULT_TARGET.static_shared
"""Largest static shared memory that ptxas accepts, in bytes (CUDA C++ Programming Guide, "Compute Capabilities")."""

DYNAMIC_SMEM = "cute.dynamic_smem"
"""Attribute of a lowered kernel: bytes of dynamic shared memory that every launch needs."""

SMEM_BUFFERS = "cute.smem"
"""Attribute of a lowered kernel: its buffers in shared memory."""


class Buffer(NamedTuple):
    """Position of one ``alloc_smem`` in the segment, in bytes."""

    op: Operation
    offset: int
    size: int
    align: int


class SmemLayout(NamedTuple):
    """Shared memory of one kernel."""

    kernel: str
    buffers: tuple[Buffer, ...]
    size: int
    align: int
    has_base: bool

    @property
    def dynamic(self) -> bool:
        """True if the buffers are in the dynamic segment."""
        return self.size > MAX_STATIC

    @property
    def static_name(self) -> str:
        """Symbol of the static segment."""
        return f"{self.kernel}__smem"

    @property
    def dynamic_name(self) -> str:
        """Symbol of the dynamic segment."""
        return f"{self.kernel}__dynamic_smem"

    @property
    def base_offset(self) -> int:
        """Offset of ``cute.smem_base`` in the dynamic segment."""
        return _round_up(self.size, SMEM_BASE_ALIGN) if self.dynamic else 0


def smem_layout(function: Operation) -> SmemLayout:
    """Lay out the buffers of a kernel.  Raises PassError if they exceed the limit of a block."""
    name = {**function.attributes, **function.properties}["sym_name"]
    assert isinstance(name, StringAttr)
    buffers: list[Buffer] = []
    merges = MERGED_SMEM in function.attributes
    at = _lay_out(function.regions, 0, buffers, merges=merges)
    has_base = any(op.name == "cute.smem_base" for op in all_ops(function))
    align = max([1, *[b.align for b in buffers]])
    layout = SmemLayout(name.data, tuple(buffers), at, align, has_base)
    if at > MAX_SMEM:
        listed = ", ".join(f"%{_name(b.op, i)} {b.size} bytes" for i, b in enumerate(buffers))
        raise PassError(
            f"kernel @{name.data} uses {at} bytes of shared memory, at most {MAX_SMEM} are available: {listed}",
            function,
        )
    return layout


def _lay_out(regions: Sequence[Region], at: int, buffers: list[Buffer], *, merges: bool) -> int:
    """Append the buffers of regions from an offset on, and return the offset of the end.

    With ``merges``, the regions of an ``scf.if`` begin at the same offset, because a block runs one of them.
    """
    start = end = at
    is_branch = merges and len(regions) == 2 and _is_branch(regions[0])
    for region in regions:
        at = start if is_branch else end
        for block in region.blocks:
            for op in block.ops:
                if op.name == "cute.memref.alloc_smem":
                    t = op.results[0].type
                    assert isinstance(t, MemRefType)
                    buffers.append(Buffer(op, _round_up(at, t.alignment), storage_bytes(t), t.alignment))
                    at = buffers[-1].offset + buffers[-1].size
                at = _lay_out(op.regions, at, buffers, merges=merges) if op.regions else at
        end = max(end, at)
    return end


def _is_branch(region: Region) -> bool:
    parent = region.parent_op()
    return parent is not None and parent.name == "scf.if"


def _name(op: Operation, number: int) -> str:
    return op.results[0].name_hint or f"#{number}"


def _round_up(n: int, to: int) -> int:
    return -(-n // to) * to


def _layout_of(low: Lowering, op: Operation) -> SmemLayout:
    if low.smem is None:
        function: Operation | None = op
        while function is not None and function.name not in ("gpu.func", "func.func", "llvm.func"):
            function = function.parent_op()
        kernel = function is not None and any(
            key in function.attributes or key in function.properties for key in ("gpu.kernel", "kernel")
        )
        if function is None or not kernel:
            raise PassError(f"expected '{op.name}' in a kernel (gpu.func … kernel)", op)
        low.smem = smem_layout(function)
    assert isinstance(low.smem, SmemLayout)
    return low.smem


def _address(low: Lowering, name: str, offset: int) -> SSAValue:
    space = pointer(AddressSpace.smem)
    base = low.build.once(("addressof", name), lambda: llvm.AddressOfOp(name, space))
    # A tensor at offset 0 has its own pointer, too, so that pointers derived from it stay within that tensor.
    return low.build.once(("smem", name, offset), lambda: llvm.GEPOp(base, [offset], i8))


def _alloc_smem(low: Lowering, op: Operation) -> None:
    layout = _layout_of(low, op)
    buffer = next(b for b in layout.buffers if b.op is op)
    name = layout.dynamic_name if layout.dynamic else layout.static_name
    t = lowered(op.results[0].type)
    tensor = low.build.insert(_address(low, name, buffer.offset), low.build.poison(t), (0,))
    low.values[op.results[0]] = tensor


def segment_alignment(low: Lowering, symbol: str) -> int:
    """Return the alignment in bytes of the segment ``symbol`` (``@name``) of ``llvm.mlir.addressof``.

    Return 1 for any other symbol.
    """
    layout = low.smem
    if not isinstance(layout, SmemLayout):
        return 1
    if symbol == f"@{layout.static_name}":
        return layout.align
    return max(layout.align, SMEM_BASE_ALIGN) if symbol == f"@{layout.dynamic_name}" else 1


def _smem_base(low: Lowering, op: Operation) -> None:
    layout = _layout_of(low, op)
    low.values[op.results[0]] = _address(low, layout.dynamic_name, layout.base_offset)


def _described(layout: SmemLayout) -> Attribute:
    segment = layout.dynamic_name if layout.dynamic else layout.static_name
    return ArrayAttr(
        [
            DictionaryAttr(
                {
                    "name": StringAttr(name),
                    "segment": StringAttr(segment),
                    "offset": IntegerAttr(offset, i64),
                    "bytes": IntegerAttr(size, i64),
                    "type": StringAttr(t),
                }
            )
            for name, offset, size, t in _apart(layout.buffers)
        ]
    )


def _apart(buffers: Sequence[Buffer]) -> list[tuple[str, int, int, str]]:
    """Return name, offset, size and type of each buffer.  Those that share bytes are one entry without a type."""
    found: list[tuple[str, int, int, str]] = []
    for i, b in sorted(enumerate(buffers), key=lambda x: x[1].offset):
        name = b.op.results[0].name_hint or ""
        if found and b.offset < found[-1][1] + found[-1][2]:
            before, start, size, _ = found.pop()
            names = " or ".join(dict.fromkeys([*before.split(" or "), name or f"#{i}"]))
            found.append((names, start, max(size, b.offset + b.size - start), ""))
        else:
            found.append((name, b.offset, b.size, str(b.op.results[0].type)))
    return found


def finish(low: Lowering, function: Operation) -> list[Operation]:
    """Return the globals that a lowered function needs; sets ``cute.dynamic_smem`` if it uses the dynamic segment."""
    layout = low.smem
    if layout is None:
        return []
    assert isinstance(layout, SmemLayout)
    space = AddressSpace.smem.llvm
    made: list[Operation] = []
    if layout.buffers:
        function.attributes[SMEM_BUFFERS] = _described(layout)
    if layout.dynamic:
        n_bytes = layout.base_offset if layout.has_base else layout.size
        function.attributes[DYNAMIC_SMEM] = IntegerAttr(n_bytes, i64)
    elif layout.size:
        block = Block()
        t = llvm.LLVMArrayType(layout.size, i8)
        undef = llvm.UndefOp(t)
        block.add_ops([undef, llvm.ReturnOp(undef)])
        made.append(llvm.GlobalOp(layout.static_name, t, addr_space=space, alignment=layout.align, body=Region(block)))
    if layout.dynamic or layout.has_base:
        align = max(layout.align, SMEM_BASE_ALIGN)
        t = llvm.LLVMArrayType(0, i8)
        made.append(llvm.GlobalOp(layout.dynamic_name, t, linkage="external", addr_space=space, alignment=align))
    for op in made:
        op.location = function.location
    return made


TO_BASE: Mapping[str, Handler] = {"cute.memref.alloc_smem": _alloc_smem, "cute.smem_base": _smem_base}
