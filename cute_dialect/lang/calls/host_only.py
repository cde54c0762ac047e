"""Host functions without launches, which the interpreter runs like one thread on arrays in CPU memory.

The traced body becomes a kernel of one thread.  The numbers that it returns are written to arrays of one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import CompileError
from cute_dialect.lang.tracing.tracer import Tracer, device_block, function_op, op_class, parse_type
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.forms import form_of
from cute_dialect.runtime.arrays import numpy_dtype

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.runtime.launch import Kernel

__all__ = ["Outputs", "as_kernel", "launch_it"]


class Outputs:
    """The return value of such a function, with placeholders for the numbers that it computes."""

    def __init__(self, tree: Any, numbers: Sequence[Any], *, empty: bool):
        self.tree = tree
        self.numbers = tuple(numbers)
        self.empty = empty

    def run(self, kernel: Kernel | None, leaves: Sequence[Any], options: dict[str, Any]) -> Any:
        """Run the function and return its value."""
        if self.empty or kernel is None:
            return self.tree
        import numpy as np

        found = [np.zeros(1, numpy_dtype(kind.mlir_type)) for kind in self.numbers]
        own = {k: v for k, v in options.items() if k != "stream"}
        kernel(*leaves, *found, device="cpu", **own)
        return _filled(self.tree, [kind.exactly(x[0].item()).value for kind, x in zip(self.numbers, found)])


class _At:
    """Placeholder of a computed number."""

    def __init__(self, index: int):
        self.index = index


def _filled(tree: Any, numbers: Sequence[Any]) -> Any:
    if isinstance(tree, _At):
        return numbers[tree.index]
    if isinstance(tree, tuple):
        parts = [_filled(x, numbers) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, list):
        return [_filled(x, numbers) for x in tree]
    if isinstance(tree, dict):
        return {k: _filled(x, numbers) for k, x in tree.items()}
    return tree


def as_kernel(tracer: Tracer, result: Any) -> Outputs:
    """Write the numbers of a result to additional parameters, at the end of the traced function."""
    from xdsl.traits import is_side_effect_free

    numbers: list[Any] = []

    def walk(value: Any) -> Any:
        if isinstance(value, Numeric) and not value.is_static:
            _write(tracer, value)
            numbers.append(type(value))
            return _At(len(numbers) - 1)
        if isinstance(value, tuple):
            parts = [walk(x) for x in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, list):
            return [walk(x) for x in value]
        if isinstance(value, dict):
            return {k: walk(x) for k, x in value.items()}
        if form_of(value).types:
            raise CompileError(
                "F117", f"a host function can return numbers and compile-time values, not {type(value).__name__}"
            )
        return value

    tree = walk(result)
    # Without results, pure computations need not run: their arrays may be on a GPU or have no memory.
    empty = not numbers and all(is_side_effect_free(op) for op in tracer.entry.ops)
    return Outputs(tree, numbers, empty=empty)


def _write(tracer: Tracer, value: Any) -> None:
    kind = type(value)
    place = tracer.entry.insert_arg(parse_type(f'!cute.memref<{kind.mlir_type}, gmem, "1:1">'), len(tracer.entry.args))
    place.name_hint = f"result_{len(tracer.entry.args)}"
    zero = tracer.static('!cute.coord<"0">')
    tracer.op("cute.memref.store", [place, zero, value.ssa])


def launch_it(module: ModuleOp, name: str, outputs: Outputs) -> None:
    """Turn the traced host function into a kernel of one thread, and add a host function that launches it."""
    from xdsl.dialects.builtin import (
        DenseArrayBase,
        IntegerAttr,
        SymbolRefAttr,
        UnitAttr,
        i32,
    )
    from xdsl.ir import Block, Region

    function = next(op for op in module.body.block.ops if op.name == "func.func")
    body = function.regions[0]
    types = [a.type for a in body.blocks[0].args]
    end = body.blocks[0].last_op
    assert end is not None
    end.detach()
    end.erase()
    function.detach()
    region = Region()
    body.move_blocks(region)
    attributes = {"gpu.kernel": UnitAttr(), "known_block_size": DenseArrayBase.from_list(i32, [1, 1, 1])}
    kernel = function_op("gpu.func", name, types, attributes, region)
    region.blocks[0].add_op(op_class("gpu.return").create())
    device_block(module).add_op(kernel)
    block = Block(arg_types=types)
    for mine, old in zip(block.args, region.blocks[0].args):
        mine.name_hint = old.name_hint
    one = op_class("arith.constant").create(result_types=[i32], properties={"value": IntegerAttr(1, i32)})
    launch = op_class("gpu.launch_func").create(
        operands=[*[one.results[0]] * 6, *block.args],
        properties={
            "kernel": SymbolRefAttr("kernels", [name]),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, len(types), 0]),
        },
    )  # fmt: skip
    block.add_ops([one, launch, op_class("func.return").create()])
    module.body.block.add_op(function_op("func.func", name, types, {}, Region(block)))
