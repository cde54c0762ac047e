"""Export of operations: as a Python package with a torch operator, or as a file for ``cute-run``.

::

    op.emit.pytorch(plan.construct(), name="my_gemm", sourcedir="out", jit=True).run(a, b)
    print(op.emit.mlir(plan.construct()))
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from string import ascii_lowercase
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cute_dialect.files import checked_path
from cute_dialect.kernels.epilogue.reductions import CombineConfig
from cute_dialect.op.errors import ArgumentError, UnsupportedError
from cute_dialect.op.execute.kernels import Variant, chip_here, share_of
from cute_dialect.op.execute.saved import write
from cute_dialect.op.plans.gemm import Gemm, MatrixPlan
from cute_dialect.op.problems.operands import Kinds, Operands, laid
from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.epilogue.graph import Graph
    from cute_dialect.op.epilogue.tracing import Traced

__all__ = ["mlir", "pytorch"]

_PACKAGE = '''"""{name}: {what}

    import {name}
    {calls}

The kernels are in the folder plan/.  cute_dialect launches them; no compiler is needed.
"""

from pathlib import Path

import torch

from cute_dialect import op

_PLAN = op.load(Path(__file__).parent / "plan")


def _shape(a, b):
    batch = max(a.shape[:-2], b.shape[:-2], key=lambda s: (len(s), s))
    return (*batch, a.shape[-2], b.shape[-1])
'''
_LINEAR = '''

def _empty(a, b):
    shape = _shape(a, b)
    if {columns!r}:
        return torch.empty((*shape[:-2], shape[-1], shape[-2]), dtype=torch.{dtype}, device=a.device).mT
    return torch.empty(shape, dtype=torch.{dtype}, device=a.device)


@torch.library.custom_op("{name}::run", mutates_args=())
def run(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None, alpha: float = {alpha!r}, beta: float = {beta!r}
) -> torch.Tensor:
    """{what}"""
    on_cpu = {{"device": "cpu"}} if a.device.type == "cpu" else {{}}
    return _PLAN.run(a, b, c, _empty(a, b), alpha, beta, sync=False, **on_cpu).D


@run.register_fake
def _(a, b, c=None, alpha={alpha!r}, beta={beta!r}):
    return _empty(a, b)
'''
_VISITED = '''

_RESULTS = {results!r}


def _empty(a, b):
    sums = _shape(a, b)
    shapes = {{name: _PLAN.epilogue_visitor.shape_of(sums, name) for name in _RESULTS}}
    return {{name: torch.empty(shapes[name], dtype=kind, device=a.device) for name, kind in _KINDS.items()}}


_KINDS = {{name: getattr(torch, kind) for name, kind in _RESULTS.items()}}


@torch.library.custom_op("{name}::run", mutates_args=())
def run(a: torch.Tensor, b: torch.Tensor{parameters}) -> {returns}:
    """{what}"""
    results = _empty(a, b)
    on_cpu = {{"device": "cpu"}} if a.device.type == "cpu" else {{}}
    _PLAN.run(a, b, visitor_args={{{pairs}**results}}, sync=False, **on_cpu)
    return {returned}


@run.register_fake
def _(a, b{names}):
    results = _empty(a, b)
    return {returned}
'''
_GRADIENTS = """

def _keep(ctx, inputs, output):
    a, b, c, alpha, beta = inputs
    ctx.save_for_backward(a, b)
    ctx.numbers, ctx.with_c = (alpha, beta), c is not None


def _backward(ctx, grad):
    a, b = ctx.saved_tensors
    alpha, beta = ctx.numbers
    grad = grad.to(a.dtype)
    of_a = alpha * (grad @ b.mT) if ctx.needs_input_grad[0] else None
    of_b = alpha * (a.mT @ grad) if ctx.needs_input_grad[1] else None
    sized = [None if g is None else g.sum_to_size(x.shape) for g, x in ((of_a, a), (of_b, b))]
    return (*sized, beta * grad if ctx.with_c and ctx.needs_input_grad[2] else None, None, None)


run.register_autograd(_backward, setup_context=_keep)
"""
_TORCH = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "ui8": "uint8",
    "i32": "int32", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
}  # fmt: skip


def pytorch(
    operation: GemmOperationUniversal, name: str, sourcedir: str | os.PathLike[str] = ".", jit: bool = False,
    alpha: float = 1.0, beta: float = 0.0,
) -> ModuleType | None:  # fmt: skip
    """Write a Python package ``name`` to ``sourcedir`` that registers ``torch.ops.name.run``.

    ``run(a, b, c=None, alpha, beta)`` works in ``torch.compile``.  It has gradients if the epilogue is the linear
    combination alone.  With a traced epilogue it is ``run(a, b, …)``: the epilogue's arguments follow in the order of
    its parameters, with the layouts of its examples.  The package needs torch and ``cute_dialect``, but no compiler.

    Args:
        name: an identifier.
        sourcedir: folder in which the package's folder is created.
        jit: import the package and return it.
        alpha, beta: defaults of the arguments of ``run``.

    Raises UnsupportedError if the package cannot be written.
    """
    if not name.isidentifier():
        raise UnsupportedError(f"emit.pytorch: {name!r} is not a Python identifier; choose another name")
    _check_plain("emit.pytorch", operation, "use plan.save(folder) and op.load(folder)")
    folder = Path(checked_path("emit.pytorch", "sourcedir", sourcedir, ArgumentError)) / name
    if folder.exists() and any(p.name not in ("__init__.py", "plan", "__pycache__") for p in folder.iterdir()):
        raise UnsupportedError(f"emit.pytorch: {folder} contains other files; choose another name or sourcedir")
    kinds = operation.kinds
    traced = operation.traced
    if traced is not None and kinds.d.layout == "column":
        raise UnsupportedError("emit.pytorch: a traced epilogue does not support a column-major D; use a row-major D")
    write(folder / "plan", "Gemm", Gemm.of_operation(operation, alpha, beta).settings(), _kernels(operation))
    functor = operation.epilogue_functor
    linear = not functor.activation and not functor.clamp and operation.visitor is None
    what = f"D = {functor.activation or ''}(alpha A B + beta C), A {kinds.a}, B {kinds.b}, D {kinds.d}"
    calls = f"d = {name}.run(a, b)  # also torch.ops.{name}.run\n    d = {name}.run(a, b, c, alpha=2.0, beta=0.5)"
    fields: dict[str, Any] = {"columns": kinds.d.layout == "column", "dtype": _TORCH[kinds.d.element]}
    if traced is not None:
        fields = _fields(traced, kinds)
        what = f"{', '.join(traced.returned)} = {traced.name}(A B, ...), A {kinds.a}, B {kinds.b}, D {kinds.d}"
        calls = f"{', '.join(traced.returned)} = {name}.run(a, b{fields['names']})  # also torch.ops.{name}.run"
    body = _LINEAR if traced is None else _VISITED
    text = (_PACKAGE + body).format(name=name, what=what, calls=calls, alpha=alpha, beta=beta, **fields)
    (folder / "__init__.py").write_text(text + _GRADIENTS * linear, encoding="utf-8")
    if not jit:
        return None
    sys.path.insert(0, str(Path(sourcedir).resolve()))
    try:
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def _fields(traced: Traced, kinds: Kinds) -> dict[str, Any]:
    """Return the fields of the package template for a traced epilogue."""
    read = {a.name: traced.graph.inputs[a.number] for a in traced.arguments}
    order = [n for n in traced.parameters if n in read]
    results = {n: "float32" if x.reduce else _TORCH[kinds.d.element]
               for n, x in zip(traced.results, traced.graph.outputs)}  # fmt: skip
    fixed = [f"{n!r}: {v!r}, " for n, v in traced.fixed.items()]
    one = len(traced.returned) == 1
    return {
        "results": results,
        "parameters": "".join(f", {n}: {'float' if read[n].number else 'torch.Tensor'}" for n in order),
        "names": "".join(f", {n}" for n in order),
        "pairs": "".join([*(f"{n!r}: {n}, " for n in order), *fixed]),
        "returns": "torch.Tensor" if one else f"tuple[{', '.join(['torch.Tensor'] * len(traced.returned))}]",
        "returned": ", ".join(f'results["{n}"]' for n in traced.returned),
    }


def _kernels(operation: GemmOperationUniversal) -> list[Variant]:
    """Return the operation's kernels for any alpha and beta.

    A traced epilogue has the kernel for its examples, and the kernels that combine reductions.
    """
    if operation.traced is None:
        found: list[Variant] = []
        for alpha, beta in [(1.0, 0.0), (0.5, 0.0), (0.5, 0.5)][: 3 if operation.kinds.c is not None else 2]:
            with suppress(UnsupportedError):  # kernels without an epilogue have one variant
                found.append(operation.variant(alpha, beta))
        return [*found, *operation.splitters()]
    found = operation.variants()
    graphs = [v.epilogue.graph for v in found if v.epilogue.graph is not None]
    kinds = {CombineConfig(x.reduce, across=n) for g in graphs for x in g.outputs if x.reduce for n in (32, 1)}
    return [*found, *[Variant(config, chip=chip_here()) for config in sorted(kinds)]]


def _check_plain(call: str, operation: object, instead: str) -> None:
    """Raise OpError for other objects, interleaved matrices and block scales; ``instead`` is a cure for the last."""
    of_blocks = isinstance(operation, MatrixPlan) and operation.asked().sums not in ("", "two")
    if isinstance(operation, GemmOperationUniversal):
        i, choice = operation.tile_description.math_instruction, operation.choice
        of_blocks = bool(i is not None and i.scaling) or (choice is not None and choice.config.scaled)
    if of_blocks:
        raise UnsupportedError(f"{call}: kernels with block scales are not exported; {instead}")
    if not isinstance(operation, GemmOperationUniversal):
        what = "plan.construct()" if isinstance(operation, MatrixPlan) else "op.Gemm(…).construct()"
        raise ArgumentError(f"{call}: operation is of type {type(operation).__name__}; pass {what}")
    if operation.interleaved:
        raise UnsupportedError(f"emit: A has the interleaved layout {operation.A.layout}; use a row or column layout")


_LENGTHS = {"column": 0, "row": 1}
"""Kind of a vector that an epilogue reads -> the mode of D along which it has a value each."""


def _of_epilogue(graph: Graph, product: str, shape: tuple[int, int], *, turned: bool) -> tuple[list[str], str]:
    """Return the inputs of a traced epilogue for ``cute-run``, and a check of the result.

    Inputs other than scalars and vectors are left out.  The check is empty unless the epilogue only multiplies by
    scalars and vectors.

    Args:
        graph: the epilogue.
        product: the expression of the accumulator.
        shape: M and N.
        turned: the kernel computes the transpose of D.
    """
    texts: list[str] = []
    for letter, x in zip(ascii_lowercase[3:], graph.inputs):
        is_plain = x.kind in (*_LENGTHS, "scalar") and not (x.number or x.batch or x.half or x.split)
        if is_plain:
            texts.append(f"--in {letter}={shape[_LENGTHS[x.kind]] if x.kind in _LENGTHS else 1}=randint")
    if len(texts) < len(graph.inputs) or len(graph.outputs) != 1:
        return texts, ""
    found: list[str] = []
    for node in graph.nodes:
        if node.op == "multiply" and graph.nodes[node.operands[1]].op == "load":
            scaled, letter = (found[i] for i in node.operands)
            kind = graph.inputs[ascii_lowercase.index(letter) - 3].kind
            by_rows = kind in _LENGTHS and (_LENGTHS[kind] == 0) != turned  # one value per row of the kernel's result
            found.append(f"(({scaled}).T * {letter}).T" if by_rows else f"({scaled}) * {letter}")
        elif node.op in ("accum", "load"):
            found.append(product if node.op == "accum" else ascii_lowercase[3 + node.value])
        else:
            return texts, ""
    return texts, f"allclose(c, {found[graph.outputs[0].node]}, rtol=1e-2)"


def mlir(operation: GemmOperationUniversal) -> str:
    """Return the operation as a file for ``cute-opt`` and ``cute-run``; its header shows how to run it.

    Raises UnsupportedError for interleaved matrices.
    """
    _check_plain("emit.mlir", operation, "use plan.ir() for the text of the kernel")
    recipe, kinds = operation.variant().recipe(), operation.kinds
    m, n, k = 64, 96, 128
    parts = ""
    if operation.in_parts:
        a, b = (kind._replace(layout=layout) for kind, layout in ((kinds.a, "row"), (kinds.b, "column")))
        kinds, k = kinds._replace(a=a, b=b), 3 * k
        parts = "A and B consist of three tf32 parts, side by side along K (cute_dialect/kernels/gemm/split_tf32.py)."
    views = [
        laid(ArrayView(0, shape, (shape[1], 1) if t.layout == "row" else (1, shape[0]), t.element, -1, "", None),
             t.layout, name)
        for name, shape, t in zip("ABD", ((m, k), (k, n), (m, n)), (kinds.a, kinds.b, kinds.d))
    ]  # fmt: skip
    given = recipe.arguments(Operands(views[0], views[1], views[2]))[:3]
    texts = [
        f"--in {name}={'x'.join(map(str, v.shape))}={'poison' if name == 'C' else 'randint'}"
        + (f":strides={','.join(map(str, v.strides))}" if v.strides[1] != 1 else "")
        for name, v in zip("ABC", given)
    ]
    first, second = ("B^T", "A^T") if recipe.transposed else ("A", "B")
    check = "gemm" if not recipe.b_by_k else "allclose(c, a @ b)"
    graph = operation.variant().epilogue.graph
    if graph is not None:
        more, check = _of_epilogue(graph, "a @ b" if recipe.b_by_k else "a @ b.T", (m, n), turned=recipe.transposed)
        texts += more
    command = f"  cute-run FILE --kernel=launch --device=cpu {' '.join(texts)}"
    head = [
        f"{recipe.name}: D = {'A B' if graph is None else 'epilogue(A B)'}, A {kinds.a}, B {kinds.b}, D {kinds.d}.",
        f"@launch takes {first} as A, {second} as B{'' if recipe.b_by_k else ' (whose rows are columns there)'}, "
        f"D{'^T' * recipe.transposed} as C.",
        *([parts] if parts else []),
        "",
        f"{command} --check='{check}'" if check else command,
    ]
    if graph is not None and not check:
        head.append("  The arguments after C are the operands of the epilogue; add --in for those that are missing.")
    share = share_of(operation.variant().kernel)
    if share is not None:
        floats, counters = share.of(given[2].shape)
        head.append(f"  with more arguments: workspace={floats}=zeros and counters or flags={counters}=zeros")
    return "".join(f"// {line}".rstrip() + "\n" for line in head) + operation.ir()
