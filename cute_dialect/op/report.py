"""Say how an operation would be computed, and why: :func:`explain` chooses, compiles nothing and runs nothing.

>>> found = explain(gemm.mm, (4096, 8192), (8192, 4096))
>>> found.problem.key, found.why, found.copies
('f16-f16-kn 4096x4096x8192', 'predicted to be the fastest', ())
>>> found.flops == 2 * 4096 * 4096 * 8192
True
"""

# torch is not there where the types are checked; operands are of any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.epilogue import Hook
from cute_dialect.op import choice as tables
from cute_dialect.op import gemm, ways
from cute_dialect.op.choice import Choice, Problem
from cute_dialect.op.dtypes import OUTPUTS, both, can_mix, result_of
from cute_dialect.op.fused import Matrix
from cute_dialect.op.known import Extras
from cute_dialect.op.menu import blocks
from cute_dialect.op.model import costs_of, predict, ranked

__all__ = ["Explanation", "explain", "explained_way", "here"]

WITHOUT_GPU = "NVIDIA H200"
"""The GPU that is meant where there is none."""
ANY_ROWS = "the sm_80 kernel for any rows"
_BYTES = {long: BITS[short] // 8 for long, short in OUTPUTS.items()}
_PEAK = {8: 4096, 16: 2048, 32: 1024}
"""Bits of an element -> multiplications and additions of an SM in a cycle, by wgmma (NVIDIA H100 whitepaper)."""


class Explanation(NamedTuple):
    """How a product is computed; printed, it says all of this.

    ``choice``: the kernel, None for the one that takes any rows; ``why``; ``microseconds``: predicted, of the kernel
    (0 for the one for any rows); ``others``: the next kernels of the menu with theirs; ``grid``: blocks; ``waves``:
    how often all multiprocessors are given tiles, a fraction where the last time not all are; ``shared_memory``: bytes
    of a block; ``copies``: operands that are copied, and bytes; ``flops``, ``bytes``: of the product, read and written
    once; ``bound``: microseconds that these take at the least; ``kernel``: its name.
    """

    operation: str
    problem: Problem
    gpu: str
    choice: Choice | None
    why: str
    microseconds: float
    others: tuple[tuple[float, Choice], ...]
    grid: int
    waves: float
    shared_memory: int
    copies: tuple[tuple[str, int], ...]
    folded: bool
    by_torch: bool
    flops: int
    bytes: int
    bound: float
    kernel: str = ""

    @property
    def last_wave(self) -> float:
        """The part of the multiprocessors' places that the last wave fills."""
        return self.waves % 1 or 1.0

    def __str__(self) -> str:
        p = self.problem
        batch = f"{p.matrices} matrices, " if p.matrices > 1 else ""
        lines = [
            f"{self.operation} on {self.gpu}: {batch}M {p.m}, N {p.n}, K {p.k}, {p.element} to {p.output}, "
            f"majors {p.major_a} and {p.major_b}",
        ]
        if self.folded:
            lines.append("  the batch is one product: B is one for all, and the rows of A and of the result go on")
        lines.append(f"  kernel    {self.kernel}: {self.why}")
        if self.choice is not None:
            lines += [
                f"  predicted {self.microseconds:.1f} us, {self.flops / self.microseconds / 1e6:.3g} TFLOP/s",
                f"  blocks    {self.grid} of {self.shared_memory} bytes of shared memory; {self.waves:.2f} waves, "
                f"the last one {self.last_wave:.0%} full",
            ]  # fmt: skip
        lines.append(
            f"  bound     {self.bound:.1f} us: {self.flops / 1e9:.3g} GFLOP, {self.bytes / 1e6:.3g} MB "
            "(tensor cores, DRAM)"
        )
        for name, size in self.copies:
            lines.append(f"  copied    {name}, {size / 1e6:.3g} MB: {_COPIED[name]}")
        if self.by_torch:
            lines.append("  then      torch computes what becomes of the sums")
        lines += [f"  else      {t:.1f} us  {c.name}" for t, c in self.others]
        return "\n".join(lines)


_COPIED = {
    "a": "its elements are multiplied only where they are contiguous along K, in rows of whole 16 bytes",
    "b": "its elements are multiplied only where they are contiguous along K, in columns of whole 16 bytes",
    "out": "TMA stores rows of whole 16 bytes",
}


def explain(
    function: Callable[..., object],
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: Any = None,
    bias: Any = None,
    activation: str = "",
    hook: Hook | None = None,
    dtype: object = None,
    element: str = "float16",
    gpu: str = "",
    others: int = 4,
) -> Explanation:
    """Return how ``op.mm`` or ``op.bmm`` (``function``) computes a product of these arguments.

    Matrices are whatever has ``shape``, ``strides`` or ``stride()`` and ``dtype``, on any device, or shapes, of
    contiguous rows and elements of type ``element``.  ``gpu``: for which, by its name; by default the one here, else an
    H200.  ``others``: how many more kernels are told of.  Raises ValueError as the function does.
    """
    name = getattr(function, "__name__", "")
    if function not in (gemm.mm, gemm.bmm):
        raise ValueError(f"explain: expected op.mm or op.bmm, got {name or repr(function)}")
    rank = 2 if function is gemm.mm else 3
    x, dtype_a = _matrix(name, "a", a, rank, element)
    y, dtype_b = _matrix(name, "b", b, rank, element)
    if x.shape[1] != y.shape[0] or (x.matrices != y.matrices and 1 not in (x.matrices, y.matrices)):
        raise ValueError(f"{name}: expected matrices that can be multiplied, got {_shape(a)} and {_shape(b)}")
    if not can_mix(dtype_a, dtype_b):
        raise ValueError(f"{name}: b: expected elements of {dtype_a}, as in a, got {dtype_b}")
    shape = (y.matrices if x.matrices == 1 else x.matrices, x.shape[0], y.shape[1])[3 - rank :]
    if 0 in (*shape, x.shape[1]):
        raise ValueError(f"{name}: expected matrices with elements, got {_shape(a)} and {_shape(b)}")
    result = _dtype(dtype) if dtype is not None else result_of(dtype_a)
    z, result = _matrix(name, "out", shape if out is None else out, rank, result)
    if (z.matrices, *z.shape)[3 - rank :] != shape:
        raise ValueError(f"{name}: out: expected shape {shape}, got {_shape(out)}")
    of_bias = (None, "") if bias is None else (_shape(bias), _dtype(getattr(bias, "dtype", "f32")))
    extras = Extras(alpha, beta, c, bias, activation, hook)
    epilogue = ways.epilogue_of(extras, *z.shape, *of_bias)
    gpu, sms = (gpu, 132) if gpu else here()
    way = ways.way_of(x, y, z, both(dtype_a, dtype_b), result, epilogue, gpu, sms)
    way = way._replace(folded=way.folded and z.matrices > 1)
    return explained_way(name, way, gpu, sms, {"a": x, "b": y, "out": z}, others)


def explained_way(
    name: str, way: ways.Way, gpu: str, sms: int, matrices: dict[str, Matrix], others: int, *,
    why: str = "", kernel: str = "",
) -> Explanation:  # fmt: skip
    """Return what there is to say of a way; ``why`` it is this one, where nobody chose; ``kernel``: its name, of one
    that is not on the menu.
    """
    p, costs = way.problem, costs_of(gpu, sms)
    bits, out_bits = BITS[p.element], BITS[p.output]
    elements = {n: prod(m.shape) * (m.matrices if m.step else 1) for n, m in matrices.items()}
    flops = 2 * p.matrices * p.m * p.n * p.k
    moved = ((elements["a"] + elements["b"]) * bits + elements["out"] * out_bits) // 8
    bound = max(flops / (2 * _PEAK[bits] * costs.sms * costs.ghz * 1e3), moved / costs.dram / 1e6)
    copies = tuple([(n, elements[n] * m.item) for n, m in matrices.items() if n in way.copied])
    if way.choice is None:
        why = why or "TMA reads and writes addresses, rows and matrices of whole 16 bytes"
        return Explanation(
            name, p, gpu, None, why, 0.0, (), 0, 0.0, 0, copies, way.folded, way.by_torch, flops, moved, bound,
            kernel or ANY_ROWS,
        )  # fmt: skip
    plain = way.choice if why else ways.choose(p, sms, gpu)
    rest = [(t, c) for t, c in ranked(p, costs, others + 1) if c != plain][:others]
    grid, waves = _blocks(plain, p)
    return Explanation(
        name, p, gpu, way.choice, why or _why(p, gpu), predict(plain, p, costs), tuple(rest), grid, waves,
        (plain.skinny or plain.config).smem_bytes, copies, way.folded, way.by_torch, flops, moved, bound,
        way.choice.name,
    )  # fmt: skip


def _blocks(choice: Choice, problem: Problem) -> tuple[int, float]:
    """Return the blocks of a launch, and the waves of their tiles."""
    c, found = choice.config, blocks(choice, problem)
    slots = max(1, c.sms // c.cluster)
    if choice.skinny is not None or choice.parts > 1:  # one tile a block, or a part of one
        return found, found / c.sms
    if c.stream_k:
        return slots * c.cluster, found / (slots * c.cluster)
    tiles = found // c.cluster  # the fewest blocks that need no more waves
    return -(-tiles // -(-tiles // slots)) * c.cluster, tiles / slots


def _why(problem: Problem, gpu: str) -> str:
    """Return where the choice comes from."""
    if problem.key in tables.read(tables.table_path(gpu)):
        return f"measured to be the fastest, says {tables.table_path(gpu)}"
    if problem.key in tables.shipped(gpu):
        return f"measured to be the fastest on {gpu}, says the table of this package"
    return "predicted to be the fastest"


def here() -> tuple[str, int]:
    """Return the name and the multiprocessors of the GPU here, where torch is imported and has one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return ways.gpu_of(torch.device("cuda", torch.cuda.current_device()))
    return WITHOUT_GPU, 132


def _shape(t: Any) -> tuple[int, ...]:
    return tuple(t if isinstance(t, tuple | list) else t.shape)


def _dtype(dtype: object) -> str:
    """Return the name of an element type: ``torch.float16``, ``numpy.dtype("float16")``, ``"f16"``."""
    name = str(dtype).removeprefix("torch.")
    return {short: long for long, short in OUTPUTS.items()}.get(name, name)


def _matrix(call: str, name: str, t: Any, rank: int, element: str) -> tuple[Matrix, str]:
    """Return how an operand lies in memory, and its type; a shape is one of contiguous rows."""
    shape = _shape(t)
    if len(shape) != rank or min(shape) < 0:
        what = "a matrix" if rank == 2 else "matrices, (L, rows, columns)"
        raise ValueError(f"{call}: {name}: expected {what}, got shape {shape}")
    if isinstance(t, tuple | list):
        dtype, address = _dtype(element), 0
        stride = tuple([prod(shape[i + 1 :]) for i in range(rank)])
    else:
        dtype = _dtype(t.dtype)
        size = _BYTES.get(dtype, 1)
        strides = getattr(t, "strides", None)
        if not hasattr(t, "stride") and strides is None:
            raise ValueError(f"{call}: {name}: expected a tensor with strides, or a shape, got {t!r}")
        stride = tuple(t.stride()) if strides is None else tuple([s // size for s in strides])
        address = t.data_ptr() if hasattr(t, "data_ptr") else t.ctypes.data if hasattr(t, "ctypes") else 0
    item = _BYTES.get(dtype, 1)  # unknown types are refused later
    (*_, rows, columns), (*_, row, column) = shape, stride
    one = Matrix((rows, columns), (row, column), item, address % 16)
    return one if rank == 2 else one._replace(matrices=shape[0], step=stride[0] if shape[0] > 1 else 0), dtype
