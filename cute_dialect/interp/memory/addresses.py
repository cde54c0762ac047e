"""The 64-bit address space: address ranges, and errors for accesses that are not allowed.

| memory | pointer type | address |
|---|---|---|
| global argument, constant | `ptr<1>`, `ptr` | from `GLOBAL_BASE` on; bases are multiples of 256, guards have 16 GiB |
| shared, own block | `ptr<3>` | `SMEM_ORIGIN` + offset, the same in each block, as on the device |
| shared, cluster | `ptr<7>` | own block: as `ptr<3>`; rank r of the cluster: (r + 1) · 2^24 + that |
| shared, generic | `ptr` | `SHARED_WINDOW` + block · 2^24 + that |
| local (alloca) | `ptr`, `ptr<5>` | `LOCAL_WINDOW` + offset, the same in each thread, as on the device |

The first kilobyte of shared memory is reserved, as on sm_90, so address 0 is never valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from cute_dialect.interp.errors import Fault
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.memory.accesses import Site
    from cute_dialect.interp.memory.allocations import Allocation, Allocations
    from cute_dialect.interp.memory.buffers import Buffer

GENERIC, GLOBAL = AddressSpace.generic.llvm, AddressSpace.gmem.llvm
SHARED, SHARED_CLUSTER = AddressSpace.smem.llvm, AddressSpace.dsmem.llvm
CONSTANT, LOCAL = 4, 5
"""LLVM address spaces of pointers. The dialect has no pointers to constant and local memory."""

GLOBAL_SPACES = (GENERIC, GLOBAL, CONSTANT)
SHARED_SPACES = (SHARED, SHARED_CLUSTER)
LOCAL_SPACES = (GENERIC, LOCAL)
"""Address spaces whose pointers reach each memory."""

GLOBAL_BASE = 0x7F00_0000_0000
SHARED_WINDOW = 0x7E00_0000_0000
LOCAL_WINDOW = 0x7D00_0000_0000
WINDOW_BITS = 24
SMEM_ORIGIN = 1024


def misaligned(site: Site, g: Group, addr: int, lane: int) -> NoReturn:
    """Raise Fault: the address of an access is not a multiple of its alignment."""
    raise Fault(
        "misaligned",
        f"misaligned {site.verb} of {site.nbytes} bytes at {addr:#x}, which is {addr % site.align} bytes past a "
        f"multiple of {site.align}",
        lane,
        addr,
        (place(g, site, addr),),
    )


def place(g: Group, site: Site, addr: int) -> str:
    """Describe an address."""
    if site.space == SHARED or (site.space == SHARED_CLUSTER and addr < 1 << WINDOW_BITS):
        at = addr - SMEM_ORIGIN
        return f"shared memory ({g.smem_size} bytes) at byte offset {at}{g.machine.shared_names.place(at)}"
    if LOCAL_WINDOW <= addr < SHARED_WINDOW:
        at = addr - LOCAL_WINDOW
        return f"local memory of the thread ({g.local_size} bytes) at byte offset {at}{g.machine.local_names.place(at)}"
    if SHARED_WINDOW <= addr < GLOBAL_BASE:
        at = (addr & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN
        return f"shared memory at byte offset {at}{g.machine.shared_names.place(at)}"
    return g.memory.describe(addr, site.nbytes)


def oob_shared(site: Site, g: Group, addr: int, lane: int) -> None:
    """Raise Fault: an access leaves shared memory, or the allocation that its pointer was derived from."""
    off = (addr & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN
    if site.owner is not None and 0 <= off <= g.smem_size - site.nbytes:
        outside(f"{site.verb} of {site.nbytes} bytes", site.owner, off, g.machine.shared_names, lane, addr)
    raise Fault(
        "oob",
        f"out-of-bounds {site.verb} of {site.nbytes} bytes in shared memory ({g.smem_size} bytes) at byte offset "
        f"{off}{g.machine.shared_names.place(off)}",
        lane,
        addr,
    )


def outside(verb: str, owner: Allocation, off: int, names: Allocations, lane: int, addr: int) -> NoReturn:
    """Raise Fault: an access leaves the allocation of shared memory that its pointer was derived from."""
    raise Fault(
        "oob",
        f"out-of-bounds {verb} through a pointer into {owner.name} (bytes {owner.start} to "
        f"{owner.start + owner.size} of shared memory) at byte offset {off}{names.place(off)}",
        lane,
        addr,
    )


def oob_local(site: Site, g: Group, addr: int, lane: int) -> NoReturn:
    """Raise Fault: an access leaves the thread's local memory."""
    raise Fault(
        "oob",
        f"out-of-bounds {site.verb} of {site.nbytes} bytes in local memory ({g.local_size} bytes) at byte offset "
        f"{addr - LOCAL_WINDOW}{g.machine.local_names.place(addr - LOCAL_WINDOW)}",
        lane,
        addr,
    )


def oob_global(site: Site, g: Group, addr: int, lane: int) -> NoReturn:
    """Raise Fault: an access is outside all arrays in global memory."""
    raise Fault(
        "oob",
        f"out-of-bounds {site.verb} of {site.nbytes} bytes: {g.memory.describe(addr, site.nbytes)}",
        lane,
        addr,
    )


def readonly(site: Site, buf: Buffer, addr: int, lane: int) -> NoReturn:
    """Raise Fault: a write to a read-only array."""
    raise Fault("readonly", f"{site.verb} to {buf.place(addr - buf.base)}, which is read-only", lane, addr)


def padding(site: Site, buf: Buffer, addr: int, lane: int) -> NoReturn:
    """Raise Fault: an access between the elements of a strided tensor."""
    raise Fault(
        "oob",
        f"out-of-bounds {site.verb} of {site.nbytes} bytes: {buf.name} at byte offset {addr - buf.base} "
        f"is padding between the elements of the tensor",
        lane,
        addr,
    )
