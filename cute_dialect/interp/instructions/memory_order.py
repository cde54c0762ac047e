"""Memory order and scope of loads, stores, atomics and fences in LLVM and PTX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cute_dialect.interp.errors import InterpError, attr_of, op_name
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.race.flags import ACQ_REL, ACQUIRE, CLUSTER, CTA, GPU, RELAXED, RELEASE, WEAK, Fence, Sync

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.memory.accesses import Site

_LLVM = {4: ACQUIRE, 5: RELEASE, 6: ACQ_REL, 7: ACQ_REL}  # LLVM's AtomicOrdering: 1 unordered, 2 monotonic, 7 seq_cst
_SCOPES = {"block": CTA, "cta": CTA, "cluster": CLUSTER}
_WORDS = {"acquire": ACQUIRE, "release": RELEASE, "acq_rel": ACQ_REL, "sc": ACQ_REL, "": ACQ_REL}
_ALL = ("shared::cta", "shared::cluster", "global")
# The block's own memory can also be accessed as shared::cluster, so a fence for the window includes it.
_SPACES = {"": _ALL, ".global": ("global",), ".shared::cta": ("shared::cta",), ".shared::cluster": _ALL[:2]}
_NOT_MODELLED = (
    " is not supported; supported fences: fence.{sc,acq_rel,acquire,release}.SCOPE, membar.LEVEL, "
    "fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}, "
    "fence.proxy.tensormap::generic, fence.mbarrier_init.release.cluster"
)


def _ordering(op: Operation) -> int:
    """Return LLVM's number for the memory order of an op, 0 if it is not atomic."""
    number = 0
    for name in ("ordering", "success_ordering"):
        data = getattr(getattr(attr_of(op, name), "value", None), "data", 0)
        number = max(number, data if isinstance(data, int) else 0)
    return number


def order_of_op(op: Operation, site: Site) -> None:
    """Set a site's order and scope from an llvm op."""
    number = _ordering(op)
    strong = number > 0 or attr_of(op, "volatile_") is not None or site.atomic
    site.order = _LLVM.get(number, RELAXED if strong else WEAK)
    site.scope = scope_of_op(op)


def scope_of_op(op: Operation) -> int:
    """Return the scope of an llvm or nvvm op, with GPU for system scope and by default."""
    data = getattr(attr_of(op, "syncscope"), "data", "")
    return _SCOPES.get(str(data) or enum_word(attr_of(op, "scope")), GPU)


def order_of_ptx(opcode: str, site: Site) -> None:
    """Set a site's order and scope from the opcode of a PTX instruction."""
    strong = site.atomic or re.search(r"\.(volatile|relaxed|mmio)\b", opcode) is not None
    found = re.search(r"\.(acquire|release|acq_rel)\b", opcode)
    site.order = _WORDS[found[1]] if found is not None else RELAXED if strong else WEAK
    site.scope = scope_of_ptx(opcode)


def scope_of_ptx(opcode: str) -> int:
    """Return the scope of `.cta`, `.cluster`, `.gpu`, `.sys` or `membar.gl`, ignoring `.shared::cluster`."""
    found = re.search(r"(?<!:)\.(cta|cluster)\b(?!::)", opcode)
    return _SCOPES[found[1]] if found is not None else GPU


def sync_of_op(op: Operation) -> Sync:
    """Return the memory order of an nvvm op that arrives or waits at an mbarrier.

    The op has scope `cta` by default, so only the scope of a relaxed op is meaningful.
    """
    relaxed = bool(getattr(getattr(attr_of(op, "relaxed"), "value", None), "data", 0))
    scope = scope_of_op(op)
    return Sync(relaxed, scope if scope != GPU else CTA) if relaxed else Sync()


def sync_of_ptx(opcode: str) -> Sync:
    """Return the memory order of a PTX instruction that arrives or waits at an mbarrier.

    Source: PTX ISA 9.0, 9.7.13.15.13 "mbarrier.arrive", 9.7.13.15.16 "mbarrier.test_wait / mbarrier.try_wait": "the
    .relaxed qualifier does not provide any memory ordering semantics and visibility guarantees".
    """
    return Sync(".relaxed" in opcode, scope_of_ptx(opcode))


def fence_of_op(op: Operation) -> Fence:
    """Return the effect of an llvm or nvvm fence. Raises InterpError if it is not supported."""
    name = op_name(op)
    if name == "llvm.fence":
        return Fence(_LLVM.get(_ordering(op), ACQ_REL), scope_of_op(op))
    if name in ("nvvm.memory.barrier", "nvvm.fence.sc.cluster"):
        return Fence(ACQ_REL, CLUSTER if name.endswith(".cluster") else scope_of_op(op))
    if name == "nvvm.fence.mbarrier.init":
        return Fence(init=True)
    kind = enum_word(attr_of(op, "kind"))
    if name == "nvvm.fence.proxy" and kind:
        space = enum_word(attr_of(op, "space"))
        return fence_of_ptx(f"fence.proxy.{kind}" + (f"::{space}" if space else ""))
    if name in ("nvvm.fence.proxy.acquire", "nvvm.fence.proxy.release"):
        return Fence(scope=scope_of_op(op), maps=_WORDS[name.rsplit(".", 1)[1]])
    raise InterpError("unsupported", f"{name}{_NOT_MODELLED}")


def fence_of_ptx(opcode: str) -> Fence:
    """Return the effect of a PTX fence or membar. Raises InterpError if it is not supported.

    Source: PTX ISA 9.0, 9.7.13.4 "membar / fence". `fence.proxy.async` applies to the space that it names, or to all
    memory. `fence.proxy.alias` has no effect here, since no memory has two addresses.
    """
    if re.fullmatch(r"membar\.(cta|gl|sys)|fence(\.(sc|acq_rel|acquire|release))?\.(cta|cluster|gpu|sys)", opcode):
        words = opcode.split(".")
        return Fence(_WORDS[words[1] if len(words) == 3 else ""], scope_of_ptx(opcode))
    found = re.fullmatch(r"(?:fence|membar)\.proxy\.async(\.global|\.shared::cta|\.shared::cluster)?", opcode)
    if found is not None:
        return Fence(proxy=_SPACES[found[1] or ""])
    if opcode == "fence.mbarrier_init.release.cluster":
        return Fence(init=True)
    found = re.fullmatch(r"fence\.proxy\.tensormap::generic\.(acquire|release)\.(cta|cluster|gpu|sys)", opcode)
    if found is not None:
        return Fence(scope=scope_of_ptx(opcode), maps=_WORDS[found[1]])
    if re.fullmatch(r"(fence|membar)\.proxy\.alias", opcode):
        return Fence()
    raise InterpError("unsupported", f"{opcode}{_NOT_MODELLED}")
