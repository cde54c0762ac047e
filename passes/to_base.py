"""``cute-to-base``: lower cute types to LLVM structs, pointers and scalars, and all remaining cute ops.

The input holds the ten core ops left by ``cute-expand-ops`` and the memory ops left by ``convert-cute-algo-to-arch``.
The pass walks forward once with a value map.

* A value keeps only its dynamic leaves (:mod:`.lowering.types`).  Packing and unpacking become ``llvm.insertvalue`` and
  ``llvm.extractvalue``, which upstream's canonicalizer folds.
* A kernel (``gpu.func … kernel``) becomes an ``llvm.func`` with ``gpu.kernel``, ``nvvm.kernel``, ``nvvm.reqntid`` and
  ``cute.args`` (the original argument types, which the launcher checks).
* Offsets into memory are widened to 64 bits (:mod:`.lowering.folding`).
* Instructions become ``nvvm`` ops or inline PTX.  With ``arch-dialect=nvgpu``, instructions that upstream's ``nvgpu``
  represents correctly become its ops; a remark names the others (:mod:`cute_dialect.cute_nvgpu.to_nvgpu`).
* Register tensors become SSA values (:mod:`.lowering.fragments`); loops with static bounds that index them are
  unrolled.  ``cute.unroll = n : i32`` on ``scf.for`` puts ``n`` copies of the body in one iteration
  (:mod:`.lowering.control`).

Before::

    func.func @h(%s: !cute.shape<"(?,6)">, %n: i32) -> !cute.layout<"(?,6):(6,?)"> {
      %d = cute.make_stride(%n) : (i32) -> !cute.stride<"(6,?)">
      %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,6)">, !cute.stride<"(6,?)">) -> !cute.layout<"(?,6):(6,?)">
      return %l : !cute.layout<"(?,6):(6,?)">
    }

After::

    func.func @h(%s: i32, %n: i32) -> !llvm.struct<(i32, i32)> {
      %p = ub.poison : !llvm.struct<(i32, i32)>
      %0 = llvm.insertvalue %s, %p[0] : !llvm.struct<(i32, i32)>
      %1 = llvm.insertvalue %n, %0[1] : !llvm.struct<(i32, i32)>
      return %1 : !llvm.struct<(i32, i32)>
    }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region

from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.targets import Target, find_target
from cute_dialect.cute_nvgpu import TO_NVGPU
from cute_dialect.dialect.registry import lower_of_op
from cute_dialect.passes.base import Pass, PassContext, PassOptionError, PassOptions
from cute_dialect.passes.block_pairs import check_pairs
from cute_dialect.passes.lowering import control, core, functions, memory
from cute_dialect.passes.lowering.fragments import NeedsMemory
from cute_dialect.passes.lowering.printing import Formats
from cute_dialect.passes.lowering.types import is_cute
from cute_dialect.passes.lowering.walk import Handler, Lowering

_HELP = __doc__ or ""
"""Text of ``--help``: inside the class, ``__doc__`` would be the docstring of the class."""

_CORE: Mapping[str, Handler] = {**core.TO_BASE, **memory.TO_BASE, **control.TO_BASE, **functions.TO_BASE}
"""Lowering functions of the core ops, by op name."""


@cache
def handler_of(name: str) -> Handler | None:
    """Return the function that lowers an op; an op without one is kept, with lowered operands and types."""
    if name in _CORE:
        return _CORE[name]
    module = lower_of_op(name)
    return None if module is None else cast("Mapping[str, Handler]", import_module(module).TO_BASE).get(name)


ARCH_DIALECTS = ("nvvm", "nvgpu")
"""Values of ``arch-dialect``."""

HandlerOf = Callable[[str], Handler | None]
"""Returns the function that lowers an op, by op name."""

Carry = Callable[[HandlerOf, Callable[[Operation, str], None]], HandlerOf]
"""Extends the ``nvvm`` handlers by those for ``nvgpu``; ops without an ``nvgpu`` form are reported."""

Start = Callable[[], HandlerOf]
"""Returns the handlers for one function."""

Making = tuple[Start, Target | None]
"""The handlers and the target of a pass."""


@dataclass(frozen=True)
class ToBaseOptions(PassOptions):
    """Pass options.

    ``arch-dialect`` is ``nvvm``, or ``nvgpu`` for the instructions that it has. ``chip`` is the target; empty for any
    target. On a chip without clusters (sm_120), loads to shared memory have the ``.shared::cta`` form.
    """

    arch_dialect: str = "nvvm"
    chip: str = ""

    def __post_init__(self) -> None:
        if self.arch_dialect not in ARCH_DIALECTS:
            known = " or ".join(ARCH_DIALECTS)
            raise PassOptionError(
                f"option 'arch-dialect' of pass 'cute-to-base': expected {known}, got '{self.arch_dialect}'"
            )
        try:
            self.target()
        except ArchError as e:
            raise PassOptionError(f"option 'chip' of pass 'cute-to-base': {str(e).partition(': ')[2]}") from e

    def target(self) -> Target | None:
        """Return the target, or None without a chip.  Raises ArchError for an unknown chip."""
        return find_target(self.chip) if self.chip else None


class ToBasePass(Pass):
    """Lower the remaining ops of the dialect to base ops."""

    Options = ToBaseOptions

    name = "cute-to-base"
    summary = "lower cute types and the remaining cute ops to base ops"
    scope = "cute"
    description = _HELP

    def run(self, op: Operation, ctx: PassContext) -> None:
        module: Operation | None = op
        while module is not None and not isinstance(module, ModuleOp):
            module = module.parent_op()
        check_pairs(op, ctx.error)
        start, target = self._start(ctx), self.options_as(ToBaseOptions).target()
        for region in op.regions:
            formats = Formats(module) if module is not None else None
            _lower_region(region, formats, ctx, (start, target), device=op.name == "gpu.module")

    def _start(self, ctx: PassContext) -> Start:
        if self.options_as(ToBaseOptions).arch_dialect == "nvvm":
            return lambda: handler_of
        handlers = cast("Carry", import_module(TO_NVGPU).handlers)

        reported: set[tuple[str, str]] = set()

        def report(op: Operation, why: str) -> None:
            if (op.name, why) not in reported:
                reported.add((op.name, why))
                ctx.remark(f"'{op.name}' is not lowered to nvgpu: {why}", op)

        return lambda: handlers(handler_of, report)

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Yield ops that still belong to the dialect or use its types."""
        for o in op.walk():
            types = [*o.result_types, *o.operand_types]
            if o.name.startswith(("cute.", "cute_nvgpu.")) or any(is_cute(t) for t in types):
                yield o


def _lower_region(region: Region, formats: Formats | None, ctx: PassContext, made: Making, *, device: bool) -> None:
    """Lower the symbols of a module in place."""
    for block in region.blocks:
        for op in list(block.ops):
            if isinstance(op, ModuleOp) or op.name == "gpu.module":
                inner = Formats(op) if isinstance(op, ModuleOp) else formats
                for r in op.regions:
                    _lower_region(r, inner, ctx, made, device=device or op.name == "gpu.module")
                continue
            *added, new = _lower_symbol(op, formats, ctx, made, device=device)
            for o in (*added, new):
                block.insert_op_before(o, op)
            if not op.results:
                block.erase_op(op, safe_erase=False)
            else:  # an op at top level of a test module, whose users follow
                for old, fresh in zip(op.results, new.results):
                    old.replace_all_uses_with(fresh)
                block.erase_op(op)


def _lower_symbol(
    op: Operation, formats: Formats | None, ctx: PassContext, made: Making, *, device: bool
) -> list[Operation]:
    # A symbol is replaced by the globals it needs, followed by the lowered symbol.
    in_memory: dict[Operation, str] = {}
    start, target = made
    while True:
        try:
            low = Lowering(start(), formats, device, frozenset(in_memory), target)
            new = low.symbol(op)
        except NeedsMemory as e:
            assert e.op not in in_memory
            in_memory[e.op] = e.reason
            continue
        for alloca, reason in in_memory.items():
            ctx.remark(f"this register tensor is kept in local memory: {reason}", alloca)
        if low.smem is None:
            return [new]
        from cute_dialect.passes.lowering.smem import finish  # late: start-up

        return [*finish(low, new), new]
