"""Memory order and scope of loads, stores, atomics and fences, as LLVM and PTX write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cute_dialect.interp.flags import ACQ_REL, ACQUIRE, CLUSTER, CTA, GPU, RELAXED, RELEASE, WEAK
from cute_dialect.interp.ops.data import enum_word
from cute_dialect.interp.program import attr_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.memory import Site

_LLVM = {4: ACQUIRE, 5: RELEASE, 6: ACQ_REL, 7: ACQ_REL}  # LLVM's AtomicOrdering: 1 unordered, 2 monotonic, 7 seq_cst
_SCOPES = {"block": CTA, "cta": CTA, "cluster": CLUSTER}


def order_of_op(op: Operation, site: Site) -> None:
    """Set a site's order and scope as an llvm op says."""
    number = 0
    for name in ("ordering", "success_ordering"):
        data = getattr(getattr(attr_of(op, name), "value", None), "data", 0)
        number = max(number, data if isinstance(data, int) else 0)
    strong = number > 0 or attr_of(op, "volatile_") is not None or site.atomic
    site.order = _LLVM.get(number, RELAXED if strong else WEAK)
    site.scope = scope_of_op(op)


def scope_of_op(op: Operation) -> int:
    """The scope of an llvm or nvvm op; the GPU where it says none, or the system."""
    data = getattr(attr_of(op, "syncscope"), "data", "")
    return _SCOPES.get(str(data) or enum_word(attr_of(op, "scope")), GPU)


def order_of_ptx(opcode: str, site: Site) -> None:
    """Set a site's order and scope as the opcode of a PTX instruction says."""
    strong = site.atomic or re.search(r"\.(volatile|relaxed|mmio)\b", opcode) is not None
    found = re.search(r"\.(acquire|release|acq_rel)\b", opcode)
    kinds = {"acquire": ACQUIRE, "release": RELEASE, "acq_rel": ACQ_REL}
    site.order = kinds[found[1]] if found is not None else RELAXED if strong else WEAK
    site.scope = scope_of_ptx(opcode)


def scope_of_ptx(opcode: str) -> int:
    """The scope of `.cta`, `.cluster`, `.gpu`, `.sys`, `membar.gl`; not of `.shared::cluster`."""
    found = re.search(r"(?<!:)\.(cta|cluster)\b(?!::)", opcode)
    return _SCOPES[found[1]] if found is not None else GPU


__all__ = ["order_of_op", "order_of_ptx", "scope_of_op", "scope_of_ptx"]
