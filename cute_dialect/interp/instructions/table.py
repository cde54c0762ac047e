"""Table of the builders that compile ops, by op name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.interp.compiler.control import (
    compile_execute_region,
    compile_for,
    compile_if,
    compile_index_switch,
    compile_while,
)
from cute_dialect.interp.instructions import (
    async_copies,
    bulk_copies,
    calls,
    conversions,
    float_ops,
    gpu,
    integer_ops,
    matrix,
    memory,
    moves,
    printf,
    ptx,
    sparse,
    vectors,
    warp,
    wgmma,
)

if TYPE_CHECKING:
    from cute_dialect.interp.compiler.function_compiler import Builder

OPS: dict[str, Builder] = {
    "scf.if": compile_if,
    "scf.for": compile_for,
    "scf.while": compile_while,
    "scf.execute_region": compile_execute_region,
    "scf.index_switch": compile_index_switch,
    **integer_ops.OPS,
    **float_ops.OPS,
    **moves.OPS,
    **vectors.OPS,
    **memory.OPS,
    **gpu.OPS,
    **warp.OPS,
    **conversions.OPS,
    **matrix.OPS,
    **sparse.OPS,
    **async_copies.OPS,
    **bulk_copies.OPS,
    **wgmma.OPS,
    **printf.OPS,
    **ptx.OPS,
    **calls.OPS,
}

# Op families that one builder compiles, by prefix of the name.
PREFIXES: tuple[tuple[str, Builder], ...] = gpu.PREFIXES
