"""Rules of tensor memory and block pairs that concern a whole kernel, checked by ``cute-to-base``.

* All ``tcgen05`` instructions of a kernel, and its TMA loads for a pair, have the same ``cta_group``.
* A kernel with ``cta_group`` 2 is launched in clusters with an even number of blocks.
* The allocations of a kernel that are live at the same time have at most 512 columns. Those of an ``scf.if`` count on
  the side that has more; those of a loop count once.

Sources: PTX ISA 9.1, "tcgen05" (CTA pair, tensor memory allocation); ptxas, which refuses functions with both groups.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, StringAttr, SymbolRefAttr
from xdsl.ir import Operation, Region

from cute_dialect.arch.tmem import ALLOCATIONS
from cute_dialect.ir.editing import all_ops
from cute_dialect.upstream.gpu import LaunchFuncOp

Report = Callable[[str, Operation], None]
"""Reports an error at an op."""

_ARCH = "cute_nvgpu.arch."
_MMAS = tuple(f"{_ARCH}tcgen05_{n}" for n in ("mma", "mma_ws", "scaled_mma", "mma_sp"))
_GROUPED = tuple(f"{_ARCH}{n}" for n in ("tmem_alloc", "tmem_relinquish", "tmem_dealloc", "tcgen05_commit"))
_COLUMNS = ALLOCATIONS[-1]


def check_pairs(module: Operation, report: Report) -> None:
    """Report violations of the rules by the kernels of a module and by their launches."""
    launches: list[Operation] = []
    groups: dict[Operation, list[tuple[Operation, int]]] = {}
    function = module
    for op in all_ops(module):
        if op.name == "gpu.launch_func":
            launches.append(op)
        elif op.name == "gpu.func":
            function = op
        elif op.name.startswith(_ARCH) and (group := _group(op)):
            groups.setdefault(function, []).append((op, group))
    pairs = {_symbol(f) for f, found in groups.items() if _needs_launch(f, found, report)}
    if pairs:
        for launch in launches:
            _check_launch(launch, pairs, report)


def _group(op: Operation) -> int:
    """Return the ``cta_group`` of an op, or 0 if it has none. TMA loads of one block have none."""
    if op.name in _GROUPED:
        return _number(op, "cta_group", 1)
    if op.name in _MMAS:
        return int(op.properties["atom"].data.cta_group)  # type: ignore[attr-defined]
    return 2 if op.name.startswith(f"{_ARCH}tma_load") and getattr(op.operand_types[0], "cta_group", 1) == 2 else 0


def _number(op: Operation, name: str, default: int) -> int:
    value = op.properties.get(name)
    return cast("IntegerAttr[IntegerType]", value).value.data if isinstance(value, IntegerAttr) else default


def _needs_launch(function: Operation, groups: list[tuple[Operation, int]], report: Report) -> bool:
    """Check a function. Return True if the clusters of its launches have to be checked, too."""
    first, group = groups[0]
    for op, other in groups:
        if other != group:
            report(
                f"'{op.name}' has cta_group {other}, but '{first.name}' of the same kernel has {group}; use the same "
                "cta_group for all tcgen05 instructions of a kernel, and for its TMA loads for a pair",
                op,
            )
            return False
    _check_columns(function.regions[0], 0, report)
    if group == 1:
        return False
    size = function.properties.get("known_cluster_size", function.attributes.get("known_cluster_size"))
    if not isinstance(size, DenseArrayBase):
        return True
    blocks = [int(n) for n in size.get_values()]
    if prod(blocks) % 2:
        report(
            f"'{first.name}' is executed by a pair of blocks (cta_group 2), but the clusters of the kernel have "
            f"{_shown(blocks)} blocks; use clusters with an even number of blocks, such as 2 x 1 x 1",
            first,
        )
    return False


def _symbol(op: Operation) -> str:
    name = op.properties.get("sym_name", op.attributes.get("sym_name"))
    return name.data if isinstance(name, StringAttr) else ""


def _shown(blocks: list[int]) -> str:
    return " x ".join(map(str, blocks))


def _check_columns(region: Region, held: int, report: Report) -> int:
    """Return the allocated columns after a region, given those before it, and report the first excess."""
    for block in region.blocks:
        for op in block.ops:
            if op.name == f"{_ARCH}tmem_alloc":
                held += _number(op, "columns", 0)
                if held > _COLUMNS:
                    report(
                        f"the kernel allocates {held} columns of tensor memory up to here; a block has {_COLUMNS}; "
                        "allocate fewer columns, or free columns first",
                        op,
                    )
                    return -_COLUMNS * len(ALLOCATIONS)  # later allocations are not reported, too
            elif op.name == f"{_ARCH}tmem_dealloc":
                held = max(0, held - _number(op, "columns", 0))
            elif op.regions:
                held = max(_check_columns(r, held, report) for r in op.regions)
    return held


def _check_launch(launch: Operation, pairs: set[str], report: Report) -> None:
    kernel = launch.properties.get("kernel")
    if not isinstance(kernel, SymbolRefAttr):
        return
    path = kernel.nested_references.data
    name = (path[-1] if path else kernel.root_reference).data
    if name not in pairs:
        return
    blocks = _cluster(launch)
    if blocks is not None and prod(blocks) % 2:
        report(
            f"the kernel @{name} has instructions of a pair of blocks (cta_group 2), but this launch has clusters of "
            f"{_shown(blocks)} blocks; use clusters with an even number of blocks, such as 2 x 1 x 1",
            launch,
        )


def _cluster(launch: Operation) -> list[int] | None:
    """Return the numbers of blocks of a launch's clusters, or None if they are computed."""
    names = [o.name for o in LaunchFuncOp.spec().operands]
    sizes = cast("DenseArrayBase[IntegerType]", launch.properties["operandSegmentSizes"]).get_values()
    found: list[int] = []
    for axis in "XYZ":
        at = names.index(f"clusterSize{axis}")
        if not sizes[at]:
            found.append(1)
            continue
        source = launch.operands[sum(sizes[:at])].owner
        value = source.properties.get("value") if isinstance(source, Operation) else None
        if not isinstance(value, IntegerAttr):
            return None
        found.append(cast("IntegerAttr[IntegerType]", value).value.data)
    return found
