"""Warpgroup MMA (wgmma) support: fence, commit, wait, and the shared memory layouts of operands."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.arch.descriptors import plain_atom, pointer_swizzle
from cute_dialect.lang.machine.instructions import as_attribute, in_kernel, tensor_operand
from cute_dialect.lang.tracing.errors import KernelTypeError, StaticError
from cute_dialect.lang.tracing.tracer import current, require_chip
from cute_dialect.lang.values.dynamic import is_dynamic

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.layouts import ComposedLayout, Layout
    from cute_dialect.lang.values.tensors import Tensor


class SmemLayoutAtomKind(StrEnum):
    """Shared memory layouts of ``wgmma`` operands: the contiguous mode, and the width of the swizzle in bytes."""

    MN_INTER = "mn_0"
    MN_SW32 = "mn_32"
    MN_SW64 = "mn_64"
    MN_SW128 = "mn_128"
    K_INTER = "k_0"
    K_SW32 = "k_32"
    K_SW64 = "k_64"
    K_SW128 = "k_128"


def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: type[Numeric]) -> Layout | ComposedLayout:
    """Return a layout atom of shared memory: a swizzle over the smallest tile that it maps to itself.

    The swizzle acts on bytes, as for pointers: ``K_SW128`` of Float16 is ``S<3,4,3> o 0 o (8,64):(64,1)``.  Create a
    tensor from it with the swizzle on the pointer and the outer part as the layout.  Without a swizzle (``K_INTER``)
    the result is a plain layout, whose ``inner`` is None.
    """
    from cute_dialect.lang.values.layouts import as_layout  # late: start-up

    major, _, width = SmemLayoutAtomKind(kind).value.partition("_")
    if element_type.width not in (4, 8, 16, 32):
        raise KernelTypeError(
            "F250", f"make_smem_layout_atom: the elements must have 4, 8, 16 or 32 bits, got {element_type!r}"
        )
    plain = plain_atom(major, int(width), element_type.width)
    return as_layout(ComposedLayout(pointer_swizzle(int(width)), 0, plain) if int(width) else plain)


def _emit(name: str, operands: tuple[Any, ...], what: str, **properties: Any) -> None:
    tracer = in_kernel(what)
    require_chip(what, "sm_90a")
    tensors = [tensor_operand(x, what, "accumulators").ssa for x in operands]
    tracer.op(f"cute_nvgpu.arch.{name}", tensors, (), {k: as_attribute(v) for k, v in properties.items()})


def fence(*acc: Tensor) -> None:
    """Order earlier register accesses before wgmma instructions that read or accumulate into the registers.

    It is needed before the first wgmma, and after other instructions have written the accumulators.
    """
    _emit("wgmma_fence", acc, "cute.nvgpu.warpgroup.fence")


def commit_group() -> None:
    """Commit the preceding wgmma instructions as a group."""
    _emit("wgmma_commit_group", (), "cute.nvgpu.warpgroup.commit_group")
    _groups(current()).append({})


def _groups(tracer: Any) -> list[dict[Any, Any]]:
    """Return the accumulators of each wgmma group of this function, the open group last."""
    return tracer.state.setdefault("wgmma groups", [{}])


def note_product(tracer: Any, accumulators: Any) -> None:
    """Record that a wgmma of the open group writes a tensor."""
    _groups(tracer)[-1][_allocated(accumulators.ssa)] = None


def _allocated(value: Any) -> Any:
    """Return the register tensor underlying a view."""
    from xdsl.ir import Block

    from cute_dialect.dialect.memory_types import MemRefType, PtrType  # late: start-up

    at = whole = value
    while not isinstance(at.owner, Block) and not at.owner.name.startswith(("cute.make_fragment", "cute.memref.")):
        at = next((v for v in at.owner.operands[:1] if isinstance(v.type, MemRefType | PtrType)), None)
        if at is None:
            break
        whole = at if isinstance(at.type, MemRefType) else whole
    return whole


def _written(tracer: Any, n: int) -> list[Any]:
    """Return the accumulators of the groups that a wait for ``n`` groups completes, excluding those of later groups.

    Groups are those of the trace.  Groups that a loop leaves pending in its last iteration count at the end of the
    loop.
    """
    groups = _groups(tracer)
    committed, open_group = groups[:-1], groups[-1]
    later = {**open_group, **{v: None for group in committed[len(committed) - n :] if n for v in group}}
    done: dict[Any, None] = {}
    for group in committed[: len(committed) - n]:
        done |= {v: None for v in group if v not in later and _is_visible(v, tracer)}
    return list(done)


def _is_visible(value: Any, tracer: Any) -> bool:
    """Return True if a value is defined in the current block or one that encloses it."""
    from xdsl.ir import Block

    from cute_dialect.lang.control.branches import regions  # late: start-up

    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    if home is None:  # A loop discarded its first trace, with this value.
        return False
    opened = [tracer.entry, tracer.block]
    for region in regions(tracer):
        opened += [getattr(region, "saved", None), *getattr(region, "blocks", [])[-1:], getattr(region, "body", None)]
    return any(block is home for block in opened)


def wait_group(group: int, *acc: Tensor) -> None:
    """Wait until at most ``group`` of the most recent groups are pending.

    Reads of the accumulators of completed groups stay after the wait.  ``acc`` names further tensors to order likewise.
    """
    what = "cute.nvgpu.warpgroup.wait_group"
    if is_dynamic(group):
        raise StaticError("F144", f"the 'group' of {what} must be known at compile time")
    from cute_dialect.lang.values.tensors import Tensor  # late: start-up

    given = [x.ssa for x in acc if isinstance(x, Tensor)]
    more = [Tensor.of(v) for v in _written(in_kernel(what), int(group)) if v not in given]
    _emit("wgmma_wait_group", (*acc, *more), what, n=int(group))
