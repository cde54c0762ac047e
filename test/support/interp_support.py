"""Helpers for the interpreter's tests, which parse hand-written base-level IR without running our passes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.cf import Cf
from xdsl.dialects.func import Func
from xdsl.dialects.gpu import GPU
from xdsl.dialects.llvm import LLVM
from xdsl.dialects.math import Math
from xdsl.dialects.scf import Scf
from xdsl.dialects.ub import UB
from xdsl.dialects.vector import Vector
from xdsl.ir import Operation
from xdsl.parser import Parser

from cute_dialect.interp import RunOptions, RunReport
from cute_dialect.interp import run_kernel as run_with_options
from cute_dialect.interp.memory.arguments import Argument
from cute_dialect.ir.context import make_context
from cute_dialect.runtime.host_program import Dim3, LaunchShape


def run_kernel(
    module: Operation,
    kernel: str,
    args: Sequence[Argument],
    grid: Sequence[int] | int = 1,
    block: Sequence[int] | int = 1,
    *,
    dynamic_smem: int = 0,
    cluster: Sequence[int] | int | None = None,
    **options: object,
) -> RunReport:
    """Call the interpreter's `run_kernel`, with shape and options as keyword arguments; omitted sizes default to 1."""

    def three(given: Sequence[int] | int) -> Dim3:
        x, y, z = (*([given] if isinstance(given, int) else given), 1, 1)[:3]
        return x, y, z

    shape = LaunchShape(three(grid), three(block), dynamic_smem, None if cluster is None else three(cluster))
    return run_with_options(module, kernel, args, shape, RunOptions(**options))  # type: ignore[arg-type]


def parse(text: str, *, own: bool = True) -> ModuleOp:
    """Parse a module with our upstream dialects, or with xDSL's own, in which nvvm ops are unregistered."""
    if own:
        ctx = make_context("base", allow_unregistered=True)
    else:
        ctx = Context(allow_unregistered=True)
        for dialect in (Builtin, Arith, Scf, Cf, Func, GPU, LLVM, Math, UB, Vector):
            ctx.load_dialect(dialect)
    return Parser(ctx, text, "test.mlir").parse_module()


def kernel(body: str, params: str = "", globals_: str = "", attrs: str = "", *, own: bool = True) -> ModuleOp:
    """Return a module with one kernel @k, which defines `%tid`, `%cta` and `%ntid`. `body` includes its terminator."""
    return parse(
        f"""
        "gpu.module"() <{{sym_name = "m"}}> ({{
          {globals_}
          llvm.func @k({params}) attributes {{gpu.kernel, nvvm.kernel{attrs}}} {{
            %tid = "nvvm.read.ptx.sreg.tid.x"() : () -> i32
            %cta = "nvvm.read.ptx.sreg.ctaid.x"() : () -> i32
            %ntid = "nvvm.read.ptx.sreg.ntid.x"() : () -> i32
            {body}
          }}
        }}) : () -> ()
        """,
        own=own,
    )


DSMEM = (
    '"llvm.mlir.global"() <{addr_space = 3 : i32, alignment = 1024 : i64, global_type = !llvm.array<0 x i8>, '
    'linkage = #llvm.linkage<"external">, sym_name = "dsmem"}> ({}) : () -> ()'
)
