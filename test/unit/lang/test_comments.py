"""Comments of a kernel's source code appear in its traced IR."""

# pyright: basic

import re
from typing import Any

import numpy as np

import cute_dialect.lang as cute
from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines import compile as compile_cute


def doubled(x: Any):
    """This is no kernel's docstring."""
    # Twice, in the helper.
    return x + x


@cute.kernel
def work(x: cute.Tensor, y: cute.Tensor):
    """Do a little of everything.

    In two paragraphs.
    """
    # Compute the position,
    # in two lines.
    i = cute.arch.thread_idx().x
    first = x[i]

    two = 2  # a Python number: it emits nothing, and is not here
    value = first * two  # the product
    # pyright: basic
    value = doubled(value)
    value = doubled(value)
    # About the branch itself.
    if value > 3:
        # In the branch.
        value = value - 1
    # About the last store.

    y[i] = value


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    """Launch it."""
    # One block.
    work(x, y).launch(grid=1, block=32)


ARRAYS = (np.zeros(32, np.float32), np.zeros(32, np.float32))


def after_each_comment() -> list[tuple[str, str]]:
    """Return each comment in the traced IR with the op below it."""
    lines = [line.strip() for line in cute.trace(launch, *ARRAYS).mlir(comments=True).splitlines()]
    found: list[tuple[str, str]] = []
    said: list[str] = []
    for line in lines:
        if line.startswith("//"):
            said.append(line.removeprefix("//").strip())
        elif said:
            found.append((" | ".join(said), re.search(r"\b\w+(\.\w+)+", line.partition("attributes")[0])[0]))
            said = []
    return found


def test_positions_of_comments() -> None:
    assert after_each_comment() == [
        ("Do a little of everything. |  | In two paragraphs.", "gpu.func"),
        ("Compute the position, | in two lines.", "nvvm.read.ptx.sreg.tid.x"),
        ("the product", "arith.mulf"),
        ("Twice, in the helper.", "arith.addf"),
        ("About the branch itself.", "arith.cmpf"),
        ("In the branch.", "arith.subf"),
        ("Launch it.", "func.func"),
        ("One block.", "gpu.launch_func"),
    ]


def test_comments_do_not_change_the_module() -> None:
    traced = cute.trace(launch, *ARRAYS)
    text = traced.mlir(comments=True, aliases=True)
    plain = traced.mlir(aliases=True)
    assert "//" not in plain and text != plain
    one, other = (ir_text(compile_cute(t, emit="base").lowered()) for t in (text, plain))
    assert one == other
    without = "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith("//"))
    assert without == plain


def test_functions_without_source_have_no_comments() -> None:
    space: dict[str, Any] = {"cute": cute}
    exec("def bare(x, y):\n    # not to be found\n    y[0] = x[0]\n", space)
    text = cute.trace(cute.kernel(space["bare"]), *ARRAYS, grid=1, block=1).mlir(comments=True)
    assert "cute.memref.store" in text and "//" not in text
