"""Random calls of every public function of ``op``: tensors with random layouts, and bounds of their errors.

A :class:`Call` is drawn from a *family*, a function with element types and options, which determine the kernels.
Shapes, layouts and numbers vary within a family, so a few hundred kernels serve thousands of calls.  Each tensor is a
view of memory whose other elements are NaN (or 77 for integers).  A view is contiguous, has padded rows, is transposed,
is not 16-byte aligned, or takes every second element of a mode.  Results are written to new memory or to such a view
filled with NaN.  Results and gradients must agree with float64 within their bounds.  Arguments and the memory around
views must not change.
"""

# pyright: basic

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from cute_dialect import op
from cute_dialect.op import epilogue
from cute_dialect.op.functions import element_functions as element_functions_module

__all__ = ["FAMILIES", "Call", "draw", "element_functions", "problem_of", "public_functions"]

UNITS = {
    torch.float64: 2.0**-52, torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7,
    torch.float8_e4m3fn: 2.0**-3, torch.float8_e5m2: 2.0**-2,
}  # fmt: skip
F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
E4M3, E5M2, I8, U8, I32 = torch.float8_e4m3fn, torch.float8_e5m2, torch.int8, torch.uint8, torch.int32
VIEWS = ("contiguous", "padded", "odd rows", "transposed", "misaligned", "strided")
POISON = 77


class Memory(NamedTuple):
    """A view, its underlying memory, and the name of its layout."""

    view: torch.Tensor
    base: torch.Tensor
    layout: str


class Call:
    """A call with its tensors.

    ``function`` takes the tensors by name, and ``out`` if there is one. ``exact`` is the same in float64. ``slack``
    takes the float64 tensors and returns the error that accumulation may add to each result. ``learned`` names the
    tensors whose gradients are checked. ``gradient_bound`` is the allowed error relative to the largest element, in
    addition to four units of the type. ``gradient_floor`` takes the float64 tensors and returns an error allowed where
    terms cancel.
    """

    def __init__(self, text: str, device: str) -> None:
        self.text, self.device = text, device
        self.memory: dict[str, Memory] = {}
        self.function: Callable[..., Any] = lambda **_: None
        self.exact: Callable[..., Any] = lambda **_: None
        self.slack: Callable[..., Any] = lambda **_: 0.0
        self.out: Memory | None = None
        self.learned: tuple[str, ...] = ()
        self.gradient_bound = 0.0
        self.gradient_floor: Callable[..., float] = lambda **_: 0.0

    @property
    def run(self) -> dict[str, Any]:
        """Return the options that select the interpreter."""
        return {"device": "cpu"} if self.device == "cpu" else {}

    def describe(self) -> str:
        """Describe the call in one line, with the dtype, shape, strides and offset of each tensor."""
        said = [
            f"{n}={str(m.view.dtype).removeprefix('torch.')}{list(m.view.shape)} strides {m.view.stride()} "
            f"offset {m.view.storage_offset()}"
            for n, m in {**self.memory, **({"out": self.out} if self.out else {})}.items()
        ]
        return f"{self.text}: {'; '.join(said)}" + (f"; gradients of {', '.join(self.learned)}" if self.learned else "")


class Draw:
    """Source of random numbers and tensors for the families."""

    def __init__(self, rng: random.Random, device: str, small: bool) -> None:
        self.rng, self.device, self.small = rng, device, small
        self.generator = torch.Generator("cpu").manual_seed(rng.getrandbits(40))
        self.integers = rng.random() < 0.5

    def size(self, *sizes: int, zero: bool = True) -> int:
        """Return one of the sizes, or 0 in one of 30 draws. Sizes for the interpreter are at most about 40."""
        if zero and self.rng.random() < 1 / 30:
            return 0
        found = self.rng.choice(sizes)
        return found if not self.small or found <= 40 else 32 + found % 16

    def values(self, shape: Sequence[int], dtype: torch.dtype, scale: float = 1.0) -> torch.Tensor:
        """Return small integers or normally distributed numbers, on the device."""
        shape = tuple(shape)
        if dtype in (I8, U8, I32) or (self.integers and scale == 1.0):
            low = 0 if dtype == U8 else -3
            made = torch.randint(low, 4, shape, generator=self.generator)
        else:
            made = torch.randn(shape, generator=self.generator, dtype=F64 if dtype == F64 else F32) * scale
        return made.to(dtype).to(self.device)

    def memory(
        self, shape: Sequence[int], dtype: torch.dtype, values: torch.Tensor | None = None,
        layouts: Sequence[str] = VIEWS, filled: bool = True,
    ) -> Memory:  # fmt: skip
        """Return a view of the values (random by default), in memory that is poisoned outside the view."""
        shape = tuple(shape)
        layout = self.rng.choice(
            [x for x in layouts if len(shape) >= 2 or x in ("contiguous", "misaligned", "strided")]
        )
        item = torch.empty((), dtype=dtype).element_size()
        step = max(1, 16 // item)
        order = list(range(len(shape)))
        if layout == "transposed":
            order[-1], order[-2] = order[-2], order[-1]
        extents = [shape[i] for i in order]
        offset, strides, stride = 0, [0] * len(shape), 1
        if layout == "misaligned":
            offset = self.rng.choice((1, 3, step + 1))
        for at in reversed(range(len(shape))):
            times = 2 if layout == "strided" and at == max(0, len(shape) - 2) else 1
            strides[at] = stride * times
            stride = strides[at] * max(extents[at], 1)
            if at == len(shape) - 1 and layout == "padded":
                stride = (stride + step - 1) // step * step + step
            elif at == len(shape) - 1 and layout == "odd rows":
                stride += self.rng.choice((1, 3))
        back = [order.index(i) for i in range(len(shape))]
        strides = [strides[i] for i in back]
        size = offset + stride + 16
        base = _poison(size, dtype, self.device)
        view = base.as_strided(shape, strides, offset)
        if filled:
            view.copy_(self.values(shape, dtype) if values is None else values)
        return Memory(view, base, layout)


def _poison(size: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    if dtype.is_floating_point:
        if dtype.itemsize == 1:
            return torch.full((size,), 0x7F, dtype=U8, device=device).view(dtype)
        return torch.full((size,), math.nan, dtype=dtype, device=device)
    return torch.full((size,), POISON, dtype=dtype, device=device)


Make = Callable[[Draw], Call]
FAMILIES: dict[str, tuple[Make, int]] = {}
"""Family -> function that draws a call, and its weight."""


def _family(name: str, weight: int = 1) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        FAMILIES[name] = (make, weight)
        return make

    return add


def _learn(call: Call, d: Draw, names: Sequence[str], chance: float = 0.4, bound: float = 0.0) -> None:
    """With probability ``chance``, mark the named tensors for the check of their gradients."""
    if d.rng.random() < chance:
        call.learned, call.gradient_bound = tuple(names), bound


def _out(call: Call, d: Draw, shape: Sequence[int], dtype: torch.dtype, layouts: Sequence[str] = VIEWS) -> None:
    if not call.learned and d.rng.random() < 0.5:
        call.out = d.memory(shape, dtype, layouts=layouts, filled=False)


def accumulation(dtype: torch.dtype, k: int, math_: str = "") -> float:
    """Return the error of a dot product of length ``k``, relative to the sum of the magnitudes of its terms.

    Tensor cores add 16 or more products at once to an f32 accumulator.  They truncate each product to 2^-22 of the
    largest (8-bit floats: 2^-13).  tf32 rounds both factors to 2^-11.  FMAs round after each addition.
    """
    if dtype in (I8, U8):
        return 0.0
    if dtype == F64:
        return (k + 4) * 2.0**-53
    if dtype == F32:
        return {"tf32": 2.0**-10, "3xtf32": (k + 8) * 2.0**-22}.get(math_, (k + 4) * 2.0**-24)
    if dtype in (E4M3, E5M2):
        return (k // 32 + 1) * 2.0**-13
    return (k // 16 + 8) * 2.0**-22


# GEMMs

SHAPES = ((64, 96, 64), (200, 136, 72), (33, 57, 41), (1, 64, 128), (16, 512, 1024), (1024, 768, 512))
ELEMENTS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64, "e4m3": E4M3, "e5m2": E5M2, "i8": I8, "u8": U8}
RESULT = {F16: F16, BF16: BF16, F32: F32, F64: F64, E4M3: BF16, E5M2: BF16, I8: I32, U8: I32}
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "": lambda x: x, "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
}  # fmt: skip


def _mnk(d: Draw) -> tuple[int, int, int]:
    m, n, k = d.rng.choice(SHAPES)
    if d.small:
        m, n, k = (x if x <= 40 else 24 + x % 24 for x in (m, n, k))
    chance = d.rng.random()
    if chance < 0.08:
        m, n, k = [(0, n, k), (m, 0, k), (m, n, 0)][d.rng.randrange(3)]
    return m, n, k


def _product(
    d: Draw, name: str, a: torch.dtype, b: torch.dtype, *, batch: bool = False, math_: str = "", activation: str = "",
    more: str = "",
) -> Call:  # fmt: skip
    """Return a call of mm, bmm, addmm, baddbmm or linear."""
    m, n, k = _mnk(d)
    count = d.rng.choice((1, 2, 3)) if batch else 0
    lead = (count,) if batch else ()
    result = RESULT[a]
    is_linear = name == "linear"
    alpha = d.rng.choice((1.0, 0.5)) if "alpha" in more else 1.0
    beta = d.rng.choice((1.0, -2.0, 0.0)) if "c" in more else 1.0
    text = f"op.{name}({math_ and f'math={math_!r}, '}activation={activation!r}, alpha={alpha}, beta={beta})"
    call = Call(text, d.device)
    call.memory["a"] = d.memory((*lead, m, k), a)
    call.memory["b"] = d.memory((*lead, n, k) if is_linear else (*lead, k, n), b)
    if "bias" in more:
        call.memory["bias"] = d.memory((n,), F32 if a in (E4M3, E5M2) else result, layouts=("contiguous", "misaligned"))
    if "c" in more:
        call.memory["c"] = d.memory((*lead, m, n), result)
    how: dict[str, Any] = dict(call.run)
    how |= {"math": math_} if math_ else {}
    how |= {"activation": activation} if activation else {}
    how |= {"alpha": alpha} if "alpha" in more else {}

    def function(a: Any, b: Any, bias: Any = None, c: Any = None, out: Any = None) -> Any:
        extra = {} if out is None else {"out": out}
        if is_linear:
            return op.linear(a, b, bias, **how, **extra)
        extra |= {} if bias is None else {"bias": bias}
        if name in ("addmm", "baddbmm"):
            return getattr(op, name)(c, a, b, beta=beta, **how, **extra)
        extra |= {} if c is None else {"c": c, "beta": beta}
        return getattr(op, name)(a, b, **how, **extra)

    def before(a: Any, b: Any, bias: Any = None, c: Any = None) -> Any:
        y = alpha * (a @ (b.mT if is_linear else b))
        y = y if c is None or beta == 0 else y + beta * c
        return y if bias is None else y + bias

    def exact(**tensors: Any) -> Any:
        return ACTIVATIONS[activation](before(**tensors))

    def slack(**tensors: Any) -> Any:
        sizes = {n: t.abs() for n, t in tensors.items()}
        product = sizes["a"] @ (sizes["b"].mT if is_linear else sizes["b"])
        sums = product * abs(alpha)
        if "c" in tensors:
            sums = sums + abs(beta) * sizes["c"]
        if "bias" in tensors:
            sums = sums + sizes["bias"]
        # Activations magnify an error by at most 1.13, and their own error is about 2^-17.
        error = 1.2 * (accumulation(a, k, math_) * product * abs(alpha) + 2.0**-22 * sums * (result != F64))
        return error + (2.0**-17 if activation not in ("", "relu") else 0.0)

    call.function, call.exact, call.slack = function, exact, slack
    if a in (F16, BF16, F32, F64) and not (d.integers is False and activation == "relu"):
        names = [x for x in call.memory if x != "c" or beta != 0]
        _learn(call, d, names, 0.35, 2.0**-9 if math_ == "tf32" else 0.0)
    if not is_linear:
        _out(call, d, (*lead, m, n), result)
    return call


def _products() -> None:
    def add(name: str, element: str, b: str = "", **how: Any) -> None:
        label = f"{name} {element}{' ' + b if b else ''} {' '.join(str(x) for x in how.values() if x is not True)}"
        heavy = 3 if element in ("f16", "bf16") else 1

        def make(d: Draw) -> Call:
            return _product(d, name, ELEMENTS[element], ELEMENTS[b or element], **how)

        _family(label.strip(), heavy)(make)

    for element in ELEMENTS:
        add("mm", element)
    add("mm", "e4m3", "e5m2")
    add("mm", "i8", "u8")
    for math_ in ("tf32", "3xtf32"):
        add("mm", "f32", math_=math_)
    for element in ("f16", "bf16", "f32"):
        add("mm", element, more="alpha bias c")
        add("bmm", element, batch=True)
        add("addmm", element, more="c alpha")
    for activation in ("relu", "gelu", "silu"):
        add("mm", "f16", activation=activation, more="bias")
        add("linear", "bf16", activation=activation, more="bias")
    add("linear", "f16", more="bias")
    add("linear", "f32", more="bias")
    add("bmm", "f64", batch=True)
    add("bmm", "e4m3", batch=True)
    add("bmm", "f16", batch=True, activation="tanh", more="bias")
    add("baddbmm", "f16", batch=True, more="c alpha")
    add("baddbmm", "bf16", batch=True, more="c")


_products()


def _simple(
    d: Draw, text: str, tensors: dict[str, Memory], function: Callable[..., Any], exact: Callable[..., Any],
    slack: Callable[..., Any] = lambda **_: 0.0,
) -> Call:  # fmt: skip
    call = Call(text, d.device)
    call.memory, call.function, call.exact, call.slack = tensors, function, exact, slack
    return call


@_family("int_mm", 2)
def _int_mm(d: Draw) -> Call:
    m, n, k = _mnk(d)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    a, b = d.rng.choice((I8, U8)), d.rng.choice((I8, U8))
    tensors = {"a": d.memory((m, k), a), "b": d.memory((k, n), b)}
    return _simple(d, "op.int_mm", tensors, lambda a, b: op.int_mm(a, b, **run), lambda a, b: a @ b)


@_family("matmul f16", 2)
def _matmul(d: Draw) -> Call:
    m, n, k = _mnk(d)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    shapes = d.rng.choice([
        ((k,), (k,)), ((m, k), (k,)), ((k,), (k, n)), ((m, k), (k, n)), ((2, m, k), (k, n)), ((2, m, k), (1, k, n)),
        ((2, 1, m, k), (3, k, n)), ((m, k), (2, k, n)),
    ])  # fmt: skip
    tensors = {"a": d.memory(shapes[0], F16), "b": d.memory(shapes[1], F16)}
    call = _simple(
        d, "op.matmul", tensors, lambda a, b: op.matmul(a, b, **run), lambda a, b: torch.matmul(a, b),
        lambda a, b: accumulation(F16, k) * torch.matmul(a.abs(), b.abs()),
    )  # fmt: skip
    _learn(call, d, ("a", "b"))
    return call


@_family("mm epilogue f16", 2)
def _fused(d: Draw) -> Call:
    m, n, k = _mnk(d)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    two = d.rng.random() < 0.5
    tensors = {
        "a": d.memory((m, k), F16), "b": d.memory((k, n), F16), "row": d.memory((m, 1), F16, layouts=("contiguous",)),
        "skip": d.memory((m, n), F16),
    }  # fmt: skip
    one, both = _epilogue_one, _epilogue_two
    function = both if two else one

    def ours(a: Any, b: Any, row: Any, skip: Any) -> Any:
        found = op.mm(a, b, epilogue=function, args={"row": row, "skip": skip}, **run)
        return tuple(found.values()) if two else found

    def exact(a: Any, b: Any, row: Any, skip: Any) -> Any:
        x = a @ b * row + skip
        y = torch.tanh(x)
        return (y, x) if two else y

    def slack(a: Any, b: Any, row: Any, skip: Any) -> Any:
        sums = a.abs() @ b.abs() * row.abs()
        error = accumulation(F16, k) * sums + 2.0**-22 * (sums + skip.abs()) + 2.0**-17
        return (error, error) if two else error

    call = _simple(d, f"op.mm(epilogue: {2 if two else 1} results)", tensors, ours, exact, slack)
    if not two:
        _learn(call, d, tuple(tensors))
    return call


def _epilogue_one(accum: Any, row: Any, skip: Any) -> Any:
    return epilogue.tanh(accum * row + skip)


def _epilogue_two(accum: Any, row: Any, skip: Any) -> Any:
    x = accum * row + skip
    return {"D": epilogue.tanh(x), "x": x}


@_family("mm_array f16", 2)
def _mm_array(d: Draw) -> Call:
    m, n, k = _mnk(d)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    count = d.rng.choice((1, 2, 4))
    # All matrices of an operand have the same major mode and the same alignment of rows.
    kinds = (("contiguous", "padded"), ("odd rows",), ("misaligned",), ("transposed",))
    of_a, of_b = (d.rng.choice(kinds) for _ in "ab")
    tensors = {f"a{i}": d.memory((m, k), F16, layouts=of_a) for i in range(count)}
    tensors |= {f"b{i}": d.memory((k, n), F16, layouts=of_b) for i in range(count)}

    def halves(t: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        return [t[f"a{i}"] for i in range(count)], [t[f"b{i}"] for i in range(count)]

    def exact(**t: Any) -> Any:
        return tuple(a @ b for a, b in zip(*halves(t)))

    def slack(**t: Any) -> Any:
        return tuple(accumulation(F16, k) * (a.abs() @ b.abs()) for a, b in zip(*halves(t)))

    call = _simple(d, "op.mm_array", tensors, lambda **t: tuple(op.mm_array(*halves(t), **run)), exact, slack)
    _learn(call, d, tuple(tensors))
    return call


def _ends(d: Draw, groups: int, rows: int) -> list[int]:
    return sorted(d.rng.randint(0, rows) for _ in range(groups))


@_family("grouped_mm bf16 rows", 2)
def _grouped(d: Draw) -> Call:
    rows, n, k = d.size(64, 200, 513, zero=False), d.size(64, 136, zero=False), d.size(64, 72, 256, zero=False)
    groups = d.rng.choice((1, 3, 8))
    ends = _ends(d, groups, rows)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    offs = torch.tensor(ends, dtype=torch.int32, device=d.device)
    tensors = {"a": d.memory((rows, k), BF16), "b": d.memory((groups, k, n), BF16)}

    def each(a: Any, b: Any, times: float = 1.0) -> Any:
        found, begin = [], 0
        for g, end in enumerate(ends):
            found.append(a[begin:end] @ b[g] * times)
            begin = end
        return torch.cat([*found, a[begin:] @ b[0] * 0])

    call = _simple(
        d, f"op.grouped_mm(offs={ends}, rest='zero')", tensors,
        lambda a, b: op.grouped_mm(a, b, offs, rest="zero", **run), each,
        lambda a, b: each(a.abs(), b.abs(), accumulation(BF16, k)),
    )  # fmt: skip
    _learn(call, d, ("a", "b"))
    return call


@_family("grouped_mm bf16 steps of K")
def _grouped_k(d: Draw) -> Call:
    total, m, n = d.size(64, 200, 513, zero=False), d.size(64, 136, zero=False), d.size(64, 72, zero=False)
    groups = d.rng.choice((1, 3, 8))
    ends = _ends(d, groups, total)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    offs = torch.tensor(ends, dtype=torch.int32, device=d.device)
    tensors = {"a": d.memory((m, total), BF16), "b": d.memory((total, n), BF16)}

    def each(a: Any, b: Any, times: float = 1.0) -> Any:
        begins = [0, *ends[:-1]]
        return torch.stack([a[:, i:j] @ b[i:j] * times for i, j in zip(begins, ends)])

    return _simple(
        d, f"op.grouped_mm(steps of K, offs={ends})", tensors, lambda a, b: op.grouped_mm(a, b, offs, **run), each,
        lambda a, b: each(a.abs(), b.abs(), accumulation(BF16, total)),
    )  # fmt: skip


@_family("grouped_mm f16 lists")
def _grouped_lists(d: Draw) -> Call:
    count = d.rng.choice((1, 2, 4))
    shapes = [(d.size(64, 17, 130), d.size(64, 40, 9), d.size(72, 30, 128)) for _ in range(count)]
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    tensors = {f"a{i}": d.memory((m, k), F16) for i, (m, _, k) in enumerate(shapes)}
    tensors |= {f"b{i}": d.memory((k, n), F16) for i, (_, n, k) in enumerate(shapes)}

    def halves(t: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        return [t[f"a{i}"] for i in range(count)], [t[f"b{i}"] for i in range(count)]

    call = _simple(
        d, f"op.grouped_mm(lists of {shapes})", tensors, lambda **t: tuple(op.grouped_mm(*halves(t), **run)),
        lambda **t: tuple(a @ b for a, b in zip(*halves(t))),
        lambda **t: tuple(accumulation(F16, a.shape[1]) * (a.abs() @ b.abs()) for a, b in zip(*halves(t))),
    )  # fmt: skip
    _learn(call, d, tuple(tensors), 0.3)
    return call


def _scales(d: Draw, shape: Sequence[int]) -> Memory:
    values = torch.exp2(torch.randint(-3, 4, tuple(shape), generator=d.generator).float()).to(d.device)
    return d.memory(shape, F32, values, layouts=("contiguous",))


@_family("scaled_mm", 2)
def _scaled(d: Draw) -> Call:
    m, n, k = d.size(64, 200, 33), d.size(64, 136, 512), d.size(128, 272, 512, zero=False)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    recipe = d.rng.choice(("tensor", "row", "block"))
    blocks = -(-k // 128)
    of_a, of_b = {"tensor": ((1,), (1,)), "row": ((m, 1), (1, n))}.get(recipe, ((m, blocks), (-(-n // 128), blocks)))
    layouts = ("contiguous", "padded")
    tensors = {"a": d.memory((m, k), E4M3, layouts=layouts), "b": d.memory((n, k), E4M3, layouts=layouts)}
    tensors |= {"sa": _scales(d, of_a), "sb": _scales(d, of_b)}

    def exact(a: Any, b: Any, sa: Any, sb: Any) -> Any:
        if recipe != "block":
            return a @ b.t() * sa * sb
        x = a * sa.repeat_interleave(128, 1)[:, :k]
        return x @ (b * sb.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]).t()

    return _simple(
        d, f"op.scaled_mm(recipe={recipe!r})", tensors,
        lambda a, b, sa, sb: op.scaled_mm(a, b.t(), sa, sb, recipe=recipe, **run), exact,
        lambda a, b, sa, sb: accumulation(E4M3, 128) * exact(a.abs(), b.abs(), sa, sb),
    )  # fmt: skip


@_family("scaled_grouped_mm")
def _scaled_grouped(d: Draw) -> Call:
    rows, n, k = d.size(64, 200, zero=False), d.size(64, 136, zero=False), d.size(128, 256, zero=False)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    groups = d.rng.choice((1, 4))
    ends = [*_ends(d, groups - 1, rows), rows]
    offs = torch.tensor(ends, dtype=torch.int32, device=d.device)
    tensors = {"a": d.memory((rows, k), E4M3, layouts=("contiguous",))}
    tensors |= {"b": d.memory((groups, n, k), E4M3, layouts=("contiguous",))}
    tensors |= {"sa": _scales(d, (rows, 1)), "sb": _scales(d, (groups, n))}

    def exact(a: Any, b: Any, sa: Any, sb: Any) -> Any:
        begins = [0, *ends[:-1]]
        return torch.cat([a[i:j] @ b[g].t() * sa[i:j] * sb[g] for g, (i, j) in enumerate(zip(begins, ends))])

    return _simple(
        d, f"op.scaled_grouped_mm(offs={ends})", tensors,
        lambda a, b, sa, sb: op.scaled_grouped_mm(a, b.mT, sa, sb, offs, **run), exact,
        lambda a, b, sa, sb: accumulation(E4M3, 128) * exact(a.abs(), b.abs(), sa, sb),
    )  # fmt: skip


# Rows

COLUMNS = (1, 7, 64, 768, 1001, 5003)
ROW_EXACT: dict[str, Callable[..., torch.Tensor]] = {
    "softmax": lambda x: torch.softmax(x, -1), "log_softmax": lambda x: torch.log_softmax(x, -1),
    "sum": lambda x: x.sum(-1), "mean": lambda x: x.mean(-1), "max": lambda x: x.amax(-1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "rms_norm": lambda x, w=None: F.rms_norm(x, x.shape[-1:], w, 1e-5),
    "layer_norm": lambda x, w=None, b=None: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
}  # fmt: skip


def _rows(d: Draw, name: str, dtype: torch.dtype) -> Call:
    n = d.size(*COLUMNS, zero=False)
    shape = d.rng.choice([(d.size(1, 3, 65, 300),), (2, d.size(1, 5, 33)), ()])
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    tensors = {"x": d.memory((*shape, n), dtype, d.values((*shape, n), dtype, scale=1.001))}  # normal numbers
    vectors = {"rms_norm": "w", "layer_norm": "wb"}.get(name, "")
    vectors = vectors if d.rng.random() < 0.7 else ""
    tensors |= {v: d.memory((n,), dtype, layouts=("contiguous", "misaligned")) for v in vectors}

    def function(out: Any = None, **t: Any) -> Any:
        more = run if out is None else {**run, "out": out}
        if name in ("rms_norm", "layer_norm"):
            return getattr(op, name)(t["x"], *(t[v] for v in vectors), eps=1e-5, **more)
        return getattr(op, name)(t["x"], **more)

    def slack(x: Any, **t: Any) -> Any:
        unit = 2.0**-52 if dtype == F64 else 2.0**-20
        if name in ("sum", "mean"):
            return unit * x.abs().sum(-1) / (1 if name == "sum" else max(n, 1))
        if "norm" in name:  # With one column, a norm divides numbers that cancel.
            large = (
                1
                + x.abs().amax(-1, keepdim=True)
                * ((x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True) + 1e-5).rsqrt()
                / 8
            )
            return unit * large * (1 + abs(t.get("w", torch.ones((), dtype=F64, device=x.device))) * 4)
        return unit * (1 + x.abs().amax(-1) if name == "logsumexp" else 8.0)

    call = _simple(d, f"op.{name}", tensors, function, ROW_EXACT[name], slack)
    if n and name != "max":
        _learn(call, d, tuple(tensors), bound=2.0**-7 if dtype == BF16 else 2.0**-9 if dtype == F16 else 2.0**-14)
    if vectors or "norm" in name:

        def floor(x: Any, **t: Any) -> float:
            centered = x - x.mean(-1, keepdim=True) if name == "layer_norm" else x
            return 2.0**-15 * float((centered.square().mean(-1) + 1e-5).rsqrt().amax()) if x.numel() else 0.0

        call.gradient_floor = floor
    if name in ("softmax", "log_softmax", "rms_norm", "layer_norm"):
        _out(call, d, (*shape, n), dtype, ("contiguous", "padded", "odd rows", "misaligned"))  # Contiguous rows only.
    return call


def _row_families() -> None:
    for name in ROW_EXACT:
        for element in ("f32", "f16", "bf16"):

            def make(d: Draw, name: str = name, element: str = element) -> Call:
                return _rows(d, name, ELEMENTS[element])

            _family(f"{name} {element}")(make)


_row_families()


@_family("cross_entropy", 3)
def _cross_entropy(d: Draw) -> Call:
    rows, n, dtype = (
        d.size(1, 5, 130, zero=False),
        d.size(2, 10, 333, 1001, 5003, zero=False),
        d.rng.choice((F32, BF16)),
    )
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how: dict[str, Any] = {"reduction": d.rng.choice(("mean", "sum", "none"))}
    how |= {"label_smoothing": 0.1} if d.rng.random() < 0.3 else {}
    target = torch.randint(0, n, (rows,), generator=d.generator)
    if rows > 1:
        target[d.rng.randrange(rows)] = -100
    if int((target >= 0).sum()) == 0:
        target[0] = 0
    target = target.to(d.device)
    tensors = {"x": d.memory((rows, n), dtype, d.values((rows, n), dtype, 1.001))}
    call = _simple(
        d, f"op.cross_entropy({how})", tensors, lambda x: op.cross_entropy(x, target, **how, **run),
        lambda x: F.cross_entropy(x, target, **how),
        lambda x: 2.0**-18 * (1 + x.abs().max()) * (rows if how["reduction"] == "sum" else 1),
    )  # fmt: skip
    _learn(call, d, ("x",), bound=2.0**-7 if dtype == BF16 else 2.0**-14)
    return call


@_family("gated", 2)
def _gated(d: Draw) -> Call:
    n, dtype = d.size(1, 7, 64, 333, 1000), d.rng.choice((F16, BF16, F32))
    shape = (*d.rng.choice([(d.size(1, 3, 65, 300),), (2, d.size(1, 5, 33)), ()]), 2 * n)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    activation = d.rng.choice(("silu", "gelu", "gelu_tanh", "relu", "sigmoid"))
    f = ACTIVATIONS.get(activation, lambda x: F.gelu(x, approximate="tanh"))
    # Normal numbers: relu has no derivative at 0.
    tensors = {"x": d.memory(shape, dtype, d.values(shape, dtype, 1.001))}

    def slack(x: Any) -> Any:
        a, b = x.chunk(2, -1)
        return 2.0**-17 * (1 + a.abs()) * b.abs()

    call = _simple(
        d, f"op.gated({activation!r})", tensors, lambda x: op.gated(x, activation, **run),
        lambda x: f(x[..., :n]) * x[..., n:], slack,
    )  # fmt: skip
    _learn(call, d, ("x",))
    return call


@_family("linear_cross_entropy", 3)
def _linear_cross_entropy(d: Draw) -> Call:
    rows, n, k = d.size(1, 5, 130), d.size(2, 10, 333, 1001, zero=False), d.size(1, 8, 33, 64, zero=False)
    dtype = d.rng.choice((F16, BF16, F32))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how: dict[str, Any] = {"reduction": d.rng.choice(("mean", "sum", "none"))}
    how |= {"label_smoothing": 0.1} if d.rng.random() < 0.3 else {}
    chunk = d.rng.choice((None, rows // 2 + 1, 64))
    target = torch.randint(0, n, (rows,), generator=d.generator)
    if rows > 1:
        target[d.rng.randrange(rows)] = -100
    target = target.to(d.device)
    shapes = {"x": (rows, k), "weight": (n, k)} | ({"bias": (n,)} if d.rng.random() < 0.5 else {})
    scales = {"x": 1.001, "weight": 1 / math.sqrt(k) if k > 1 else 1.001, "bias": 1.001}
    tensors = {name: d.memory(shape, dtype, d.values(shape, dtype, scales[name])) for name, shape in shapes.items()}

    def exact(x: Any, weight: Any, bias: Any = None) -> Any:
        return F.cross_entropy(F.linear(x, weight, bias), target, **how)

    def slack(x: Any, weight: Any, bias: Any = None) -> Any:
        if not rows:
            return 0.0
        # Logits are rounded to the type of x.
        logits = F.linear(x.abs(), weight.abs(), None if bias is None else bias.abs())
        error = (UNITS[dtype] + 2.0**-17) * (1 + float(logits.max()))
        return error * (rows if how["reduction"] == "sum" else 1)

    call = _simple(
        d, f"op.linear_cross_entropy({how}, chunk={chunk})", tensors,
        lambda x, weight, bias=None: op.linear_cross_entropy(x, weight, target, bias, chunk=chunk, **how, **run),
        exact, slack,
    )  # fmt: skip
    if rows:
        _learn(call, d, tuple(tensors), bound={BF16: 2.0**-5, F16: 2.0**-8, F32: 2.0**-14}[dtype])
        # Gradients of logits are at most 2, and 2 / rows for a mean; they and the logits are rounded.
        call.gradient_floor = lambda x, weight, **_: (
            4 * UNITS[dtype] * max(1.0, float(x.abs().max()), float(weight.abs().max()))
        )
    return call


REGIONS: dict[str, object] = {"array": None, "row": "row", "block": 128, "tile": (128, 128)}


def _shape_of_scales(regions: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    rows, n = shape[:-1], shape[-1]
    if regions == "tile":
        return -(-rows[0] // 128), -(-n // 128)
    return {"array": (), "row": (*rows, 1), "block": (*rows, -(-n // 128))}[regions]


def _spread(scales: torch.Tensor, regions: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the scale of each element."""
    if regions in ("array", "row"):
        return scales.expand(shape)
    found = scales.repeat_interleave(128, -1)[..., : shape[-1]]
    return found.repeat_interleave(128, 0)[: shape[0]] if regions == "tile" else found


def _quantized_shape(d: Draw, regions: str) -> tuple[int, ...]:
    lead = [(d.size(1, 3, 33, 130, 300),)]
    lead += [] if regions == "tile" else [(2, d.size(1, 5, 33)), ()]
    n = d.rng.choice((1, 7, 64, 128, 130, 257)) if d.small else d.size(1, 7, 64, 128, 1001, 5003)
    return (*d.rng.choice(lead), n)


@_family("quantize", 3)
def _quantize(d: Draw) -> Call:
    regions = d.rng.choice(tuple(REGIONS))
    dtype, result = (d.rng.choice(x) for x in ((F16, BF16, F32), (E4M3, E5M2, I8)))
    shape = _quantized_shape(d, regions)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    most = 127.0 if result == I8 else float(torch.finfo(result).max)
    given = d.rng.random() < 0.3 and 0 not in shape
    tensors = {"x": d.memory(shape, dtype)}
    tensors |= {"scale": _scales(d, _shape_of_scales(regions, shape))} if given else {}

    def exact(x: Any, scale: Any = None) -> Any:
        if scale is None:
            scale = torch.ones(_shape_of_scales(regions, shape), dtype=F64, device=x.device)
            if x.numel():
                # Padding with zeros to whole regions does not change their largest magnitudes.
                n, height = shape[-1], shape[0] if len(shape) > 1 else 1
                wide = {"block": 128, "tile": 128}.get(regions, n)
                sizes = F.pad(x.abs(), (0, -n % wide, *((0, -height % 128) if regions == "tile" else ())))
                if regions == "array":
                    scale = sizes.max()
                elif regions == "tile":
                    scale = sizes.unflatten(0, (-1, 128)).unflatten(2, (-1, 128)).amax((1, 3))
                else:
                    scale = sizes.unflatten(-1, (-1, wide)).amax(-1)
                scale = torch.where(scale > 2.0**-110, scale / most, 1.0)
        wide = _spread(scale, regions, shape)
        return (x / wide).clamp(-most, most) * wide, scale

    def ours(x: Any, scale: Any = None) -> Any:
        how = {"block": REGIONS[regions]} if scale is None else {"scale": scale}
        q, found = op.quantize(x, result, **how, **run)
        return q.double() * _spread(found.double(), regions, shape), found

    def slack(x: Any, **t: Any) -> Any:
        values, scale = exact(x, **t)
        step = _spread(scale, regions, shape)
        # Half a unit of the result, or of its smallest normal numbers; the factor is rounded to f32.
        if result == I8:
            return 0.501 * step + 2.0**-20 * values.abs(), 2.0**-22 * scale
        unit, tiny = UNITS[result], float(torch.finfo(result).smallest_normal) * UNITS[result]
        return 0.501 * unit * values.abs() + 0.501 * tiny * step, 2.0**-22 * scale

    how = "scale" if given else f"block={REGIONS[regions]}"
    return _simple(d, f"op.quantize({result}, {how})", tensors, ours, exact, slack)


@_family("dequantize", 2)
def _dequantize(d: Draw) -> Call:
    regions = d.rng.choice(tuple(REGIONS))
    dtype, result = (d.rng.choice(x) for x in ((E4M3, E5M2, I8), (F16, BF16, F32)))
    shape = _quantized_shape(d, regions)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    tensors = {"q": d.memory(shape, dtype), "scales": _scales(d, _shape_of_scales(regions, shape))}
    # The shape of the scales selects the regions; one scale always belongs to the whole array.
    return _simple(
        d, f"op.dequantize({result}, {regions})", tensors, lambda q, scales: op.dequantize(q, scales, result, **run),
        lambda q, scales: q * _spread(scales, regions, shape),
    )  # fmt: skip


class _Quantized(NamedTuple):
    """Shape and format of drawn weights."""

    n: int
    k: int
    bits: int
    group: int  # 0: a row
    scale: torch.dtype

    @property
    def groups(self) -> int:
        return -(-self.k // self.group) if self.group else 1

    def exact(self, q: Any, scales: Any, zeros: Any = 0) -> Any:
        """Return the weights (N, K), given integers (N, K), scales and zero points (N, groups)."""
        at = torch.arange(self.k, device=q.device) // (self.group or self.k)
        return (q - (zeros[:, at] if torch.is_tensor(zeros) else zeros)) * scales[:, at]


def _quantized_weights(d: Draw, step: int = 1, bits: int = 0) -> _Quantized:
    n, k = (-(-d.size(1, 7, 33, 64, 130, 264, zero=False) // step) * step for _ in "nk")
    group = d.rng.choice([g for g in (0, 32, 64, 128) if not g or k > g or k % g == 0])
    return _Quantized(n, k, bits or d.rng.choice((4, 8)), group, d.rng.choice((F16, BF16, F32)))


def _words(x: torch.Tensor, bits: int, order: Sequence[int]) -> torch.Tensor:
    """Return integers packed along rows to 32-bit words."""
    per = 32 // bits
    words = sum(x[:, order[i] :: per].long() << bits * i for i in range(per))
    return torch.where(words >= 2**31, words - 2**32, words).to(I32)


def _integers_of(words: Any, bits: int, order: Sequence[int]) -> Any:
    """Return the integers of :func:`_words`."""
    found = [(words.long() >> bits * order.index(i)) & ((1 << bits) - 1) for i in range(32 // bits)]
    return torch.stack(found, -1).flatten(-2).double()


@_family("pack_weight", 2)
def _pack_weight(d: Draw) -> Call:
    w = _quantized_weights(d)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    low = -(1 << w.bits - 1)
    q, zeros = (torch.randint(low, -low, s, generator=d.generator) for s in ((w.n, w.k), (w.n, w.groups)))
    tensors = {"q": d.memory((w.n, w.k), I8, q.to(I8)), "scales": d.memory((w.n, w.groups), w.scale)}
    if d.rng.random() < 0.5:
        tensors["zeros"] = d.memory((w.n, w.groups), I8, zeros.to(I8))

    def ours(q: Any, scales: Any, zeros: Any = None) -> Any:
        packed = op.pack_weight(q, scales, zeros, bits=w.bits, group=w.group or None, **run)
        return op.unpack_weight(packed, F32, **run)

    return _simple(d, f"op.pack_weight({w})", tensors, ours, w.exact)


@_family("unpack_weight", 1)
def _unpack_weight(d: Draw) -> Call:
    call = _pack_weight(d)
    call.text = call.text.replace("op.pack_weight", "op.unpack_weight")
    return call


def _checkpoint(d: Draw, layout: str) -> Call:
    """Draw a call of pack_gptq or pack_awq."""
    awq = layout == "awq"
    w = _quantized_weights(d, 8, 4 if awq else 0)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    order = (0, 2, 4, 6, 1, 3, 5, 7) if awq else range(32 // w.bits)
    q = torch.randint(0, 1 << w.bits, (w.k, w.n), generator=d.generator)
    zeros = torch.randint(0, (1 << w.bits) - 1, (w.groups, w.n), generator=d.generator)
    words = _words(q, w.bits, order) if awq else _words(q.T, w.bits, order).T
    tensors = {"qweight": d.memory(words.shape, I32, words), "scales": d.memory((w.groups, w.n), w.scale)}
    points = _words(zeros, w.bits, order)
    tensors["qzeros"] = d.memory(points.shape, I32, points)

    def ours(qweight: Any, scales: Any, qzeros: Any) -> Any:
        how: Any = {} if awq else {"bits": w.bits}
        made = getattr(op, f"pack_{layout}")(qweight, scales, qzeros, group=w.group or None, **how, **run)
        return op.unpack_weight(made, F32, **run)

    def exact(qweight: Any, scales: Any, qzeros: Any) -> Any:
        q = _integers_of(qweight, w.bits, order).T if awq else _integers_of(qweight.T, w.bits, order)
        return w.exact(q, scales.T, _integers_of(qzeros, w.bits, order).T + (0 if awq else 1))

    return _simple(d, f"op.pack_{layout}({w})", tensors, ours, exact)


@_family("pack_gptq", 1)
def _pack_gptq(d: Draw) -> Call:
    return _checkpoint(d, "gptq")


@_family("pack_awq", 1)
def _pack_awq(d: Draw) -> Call:
    return _checkpoint(d, "awq")


@_family("mm_packed", 3)
def _mm_packed(d: Draw) -> Call:
    w, m, dtype = _quantized_weights(d), d.size(1, 5, 17, 40, 130), d.rng.choice((F16, BF16))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    low, kind = -(1 << w.bits - 1), I8
    q = torch.randint(low, -low, (w.n, w.k), generator=d.generator).to(I8)
    if w.bits == 8 and d.rng.random() < 0.5:
        kind = torch.float8_e4m3fn
        q = (q.float() / 16).to(kind)
    tensors = {"x": d.memory((m, w.k), dtype), "q": d.memory(q.shape, kind, q), "scales": _scales(d, (w.n, w.groups))}
    if d.rng.random() < 0.5:
        tensors["bias"] = d.memory((w.n,), dtype)

    def ours(x: Any, q: Any, scales: Any, bias: Any = None) -> Any:
        packed = op.pack_weight(q, scales, bits=w.bits, group=w.group or None, **run)
        return op.mm_packed(x, packed, bias, **run)

    def exact(x: Any, q: Any, scales: Any, bias: Any = 0.0) -> Any:
        return x @ w.exact(q, scales).T + bias

    def slack(x: Any, q: Any, scales: Any, bias: Any = 0.0) -> Any:
        rounds = 2.0 ** (-11 if dtype == F16 else -8)  # weights may be rounded to the type of x
        return (accumulation(F16, w.k) + rounds) * (x.abs() @ w.exact(q, scales).abs().T)

    return _simple(d, f"op.mm_packed({w._replace(scale=F32)})", tensors, ours, exact, slack)


def _sparse(d: Draw) -> tuple[Any, Any]:
    """Return a type, and 2:4 sparse weights of random shape."""
    n, k, dtype = 8 * d.rng.choice((1, 3, 9, 25)), 16 * d.rng.choice((1, 4, 9, 17)), d.rng.choice((F16, BF16))
    kept = torch.rand(n, k // 4, 4, generator=d.generator).argsort(-1) < 2
    values = d.values((n, k), dtype, 1.0).cpu()
    return dtype, torch.where(kept.reshape(n, k), values, torch.zeros((), dtype=values.dtype))


@_family("mm_sparse", 2)
def _mm_sparse(d: Draw) -> Call:
    dtype, w = _sparse(d)
    m, (n, k) = d.size(1, 5, 17, 40, 130), w.shape
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    tensors = {"x": d.memory((m, k), dtype), "w": d.memory((n, k), dtype, w)}
    if d.rng.random() < 0.5:
        tensors["bias"] = d.memory((n,), dtype)

    def ours(x: Any, w: Any, bias: Any = None) -> Any:
        return op.mm_sparse(x, op.compress_2_4(w, **run), bias, **run)

    return _simple(
        d, "op.mm_sparse()", tensors, ours, lambda x, w, bias=0.0: x @ w.T + bias,
        lambda x, w, bias=0.0: accumulation(F16, k) * (x.abs() @ w.abs().T),
    )  # fmt: skip


@_family("compress_2_4", 1)
def _compress(d: Draw) -> Call:
    dtype, w = _sparse(d)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    return _simple(
        d, "op.compress_2_4()", {"w": d.memory(w.shape, dtype, w)},
        lambda w: op.expand_2_4(op.compress_2_4(w, **run), **run), lambda w: w,
    )  # fmt: skip


@_family("expand_2_4", 1)
def _expand(d: Draw) -> Call:
    call = _compress(d)
    call.text = call.text.replace("compress_2_4", "expand_2_4")
    return call


@_family("transpose", 2)
def _transpose(d: Draw) -> Call:
    shape, dtype = (d.size(1, 33, 64, 300), d.size(1, 33, 64, 257)), d.rng.choice((F16, BF16, F32))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    tensors = {"x": d.memory(shape, dtype)}
    call = _simple(
        d, "op.transpose", tensors, lambda x, out=None: op.transpose(x, out=out, **run), lambda x: x.mT
    )  # fmt: skip
    _out(call, d, shape[::-1], dtype, ("contiguous", "padded", "odd rows", "misaligned"))
    return call


# Elements


def _scaled_sum(x: Any, y: Any) -> Any:
    return epilogue.silu(x * 0.5 + y)


@_family("elementwise", 4)
def _elements(d: Draw) -> Call:
    name = d.rng.choice(("add", "sub", "mul", "div", "elementwise"))
    dtype = d.rng.choice((F16, BF16, F32))
    shape = tuple(d.size(1, 3, 17, 64, 130) for _ in range(d.rng.choice((1, 2, 2, 3))))
    other = tuple(1 if d.rng.random() < 0.25 else n for n in shape)[d.rng.randrange(len(shape)) :]
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    values = d.values(other, dtype)
    if name == "div":
        values = torch.where(values.abs().float() < 0.25, torch.ones_like(values), values)
    tensors = {"x": d.memory(shape, dtype), "y": d.memory(other, dtype, values)}
    exact: dict[str, Callable[..., Any]] = {
        "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
        "elementwise": lambda x, y: F.silu(x * 0.5 + y),
    }  # fmt: skip

    def function(x: Any, y: Any, out: Any = None) -> Any:
        more = run if out is None else {**run, "out": out}
        if name == "elementwise":
            return op.elementwise(_scaled_sum, x, y, **more)
        return getattr(op, name)(x, y, **more)

    def slack(x: Any, y: Any) -> Any:
        return 2.0**-20 * (x.abs() + y.abs() + 1)

    call = _simple(d, f"op.{name}", tensors, function, lambda x, y: exact[name](x, y), slack)
    _learn(call, d, ("x", "y"))
    result = torch.broadcast_shapes(shape, other)
    _out(call, d, result, dtype, [x for x in VIEWS if len(result) > 1 or x != "strided"])
    return call


# Convolutions


def _conv(d: Draw, rank: int, kind: str, dtype: torch.dtype) -> Call:
    taps = d.rng.choice((1, 3))
    stride, dilation = d.rng.choice((1, 1, 2)), d.rng.choice((1, 1, 2))
    groups = d.rng.choice((1, 1, 2))
    c, k = d.rng.choice(((8, 16), (64, 64), (3, 8))) if groups == 1 else (32, 32)
    if d.small:
        c, k = min(c, 16), min(k, 16)
    if d.rng.random() < 0.15:
        c = k = groups = 16
    size, padding = d.rng.choice((5, 8, 14) if not d.small else (5, 6)), taps // 2
    if rank == 3:
        size = min(size, 6)
    how = (stride, padding, dilation, groups)
    math_ = d.rng.choice(("exact", "tf32")) if dtype == F32 else ""
    batch = d.rng.choice((1, 2)) if d.rng.random() > 0.03 else 0
    x_shape, f_shape = (batch, c, *[size] * rank), (k, c // groups, *[taps] * rank)
    extent = (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
    y_shape = (batch, k, *[max(extent, 0)] * rank)
    if extent < 1:
        return _conv(d, rank, kind, dtype)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    run |= {"math": math_} if math_ else {}
    forward = getattr(F, f"conv{rank}d")

    def last(shape: Sequence[int]) -> Memory:
        """Allocate a tensor with channels last, or sometimes channels first."""
        if d.rng.random() < 0.2:
            return d.memory(shape, dtype, layouts=("contiguous", "misaligned"))
        order = (0, *range(2, rank + 2), 1)
        made = d.memory([shape[i] for i in order], dtype, layouts=("contiguous", "padded", "misaligned"))
        back = [order.index(i) for i in range(rank + 2)]
        return made._replace(view=made.view.permute(back))

    name = f"conv{rank}d" + {"fprop": "", "dgrad": "_input", "wgrad": "_weight"}[kind]
    function = getattr(op, name)
    options = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}, math={math_!r}"
    text = f"op.{name}({options})"
    if kind == "fprop":
        tensors = {"x": last(x_shape), "f": last(f_shape)}

        def ours(x: Any, f: Any) -> Any:
            return function(x, f, None, *how, **run)

        def exact(x: Any, f: Any) -> Any:
            return forward(x, f, None, *how)

        terms = c // groups * taps**rank
    elif kind == "dgrad":
        tensors = {"f": last(f_shape), "y": last(y_shape)}

        def ours(f: Any, y: Any) -> Any:
            return function(x_shape, f, y, *how, **run)

        def exact(f: Any, y: Any) -> Any:
            x = torch.zeros(x_shape, dtype=F64, device=f.device, requires_grad=True)
            return torch.autograd.grad(forward(x, f, None, *how), x, y)[0]

        terms = k // groups * taps**rank
    else:
        tensors = {"x": last(x_shape), "y": last(y_shape)}

        def ours(x: Any, y: Any) -> Any:
            return function(x, f_shape, y, *how, **run)

        def exact(x: Any, y: Any) -> Any:
            f = torch.zeros(f_shape, dtype=F64, device=x.device, requires_grad=True)
            return torch.autograd.grad(forward(x, f, None, *how), f, y)[0]

        terms = batch * extent**rank
    slack = accumulation(dtype, terms, math_)

    def error(**t: Any) -> Any:
        return slack * exact(**{n: x.abs() for n, x in t.items()})

    call = _simple(d, text, tensors, ours, exact, error)
    if kind == "fprop" and batch:
        _learn(call, d, ("x", "f"), bound=2.0**-9 if math_ == "tf32" else 0.0)
    return call


def _conv_families() -> None:
    for rank in (1, 2, 3):
        for kind in ("fprop", "dgrad", "wgrad"):
            for element in ("f16", "bf16", "f32") if rank == 2 else ("f16",):

                def make(d: Draw, rank: int = rank, kind: str = kind, element: str = element) -> Call:
                    return _conv(d, rank, kind, ELEMENTS[element])

                _family(f"conv{rank}d {kind} {element}", 2 if rank == 2 and element != "f32" else 1)(make)


_conv_families()


# Attention


def _attention(d: Draw, dtype: torch.dtype, mask: str) -> Call:
    head, shared, heads_k = (
        d.rng.choice((64, 128) if not d.small else (64,)),
        d.rng.choice((1, 2)),
        d.rng.choice((1, 2)),
    )
    queries, keys = d.size(1, 17, 64, 200, 300), d.size(1, 40, 64, 177, 333, zero=False)
    batch, layout = d.rng.choice((1, 2)), d.rng.choice(("bhsd", "bshd"))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how: dict[str, Any] = {
        "layout": layout,
        "causal": {"top_left": "top_left", "bottom_right": "bottom_right"}.get(mask, False),
    }
    if mask == "window":
        how["window"] = (d.rng.choice((0, 5, 90)), d.rng.choice((0, 5, 90)))
    with_lse = d.rng.random() < 0.2

    def shape(heads: int, rows: int) -> tuple[int, ...]:
        return (batch, heads, rows, head) if layout == "bhsd" else (batch, rows, heads, head)

    rows = {"q": shape(heads_k * shared, queries), "k": shape(heads_k, keys), "v": shape(heads_k, keys)}
    layouts = ("contiguous", "padded", "odd rows", "misaligned", "strided")
    tensors = {n: d.memory(s, dtype, d.values(s, dtype, 1.001), layouts=layouts) for n, s in rows.items()}

    def seen() -> torch.Tensor:
        own = torch.arange(queries, device=d.device)[:, None] + (keys - queries if mask == "bottom_right" else 0)
        at = torch.arange(keys, device=d.device)[None]
        found = torch.ones(queries, keys, dtype=torch.bool, device=d.device)
        if how["causal"]:
            found &= at <= own
        if mask == "window":
            left, right = how["window"]
            found &= (at >= own - left) & (at <= own + right)
        return found

    def exact(q: Any, k: Any, v: Any) -> Any:
        if layout == "bshd":
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        k, v = (x.repeat_interleave(shared, 1) for x in (k, v))
        scores = (q @ k.mT / math.sqrt(head)).masked_fill(~seen(), -1e300)
        weights = torch.softmax(scores, -1) * seen()
        logs = torch.where(seen().any(-1), torch.logsumexp(scores, -1), -math.inf)
        y = weights @ v
        y = y if layout == "bhsd" else y.transpose(1, 2)
        return (y, logs) if with_lse else y

    def slack(q: Any, k: Any, v: Any) -> Any:
        # The softmax weights are rounded before the second GEMM.
        error = 2.0 * UNITS[dtype] * max(1.0, float(v.abs().max()) if v.numel() else 1.0)
        return (error, 1e-4) if with_lse else error

    def ours(q: Any, k: Any, v: Any, out: Any = None) -> Any:
        return op.attention(q, k, v, lse=with_lse, out=out, **how, **run)

    call = _simple(d, f"op.attention({how}, lse={with_lse})", tensors, ours, exact, slack)
    if queries and not with_lse:
        _learn(call, d, ("q", "k", "v"), 0.4, 2.0**-5 if dtype == BF16 else 2.0**-8)

        def floor(q: Any, k: Any, v: Any) -> float:
            # Score gradients are differences of rounded numbers of up to 2 |v| sqrt(head).  The scale is
            # 1 / sqrt(head).  With one key they are 0.
            return UNITS[dtype] * float(v.abs().max()) * max(float(q.abs().max()), float(k.abs().max()))

        call.gradient_floor = floor
    if not with_lse:
        _out(call, d, rows["q"], dtype, ("contiguous", "padded"))
    return call


def _attention_families() -> None:
    for element in ("f16", "bf16"):
        for mask in ("full", "top_left", "bottom_right", "window"):

            def make(d: Draw, element: str = element, mask: str = mask) -> Call:
                return _attention(d, ELEMENTS[element], mask)

            _family(f"attention {element} {mask}", 2)(make)


_attention_families()


@_family("attention packed")
def _packed(d: Draw) -> Call:
    head, heads, dtype = 64, d.rng.choice((1, 2)), F16
    lengths = [d.rng.choice((0, 1, 17, 65, 130)) for _ in range(d.rng.choice((1, 3)))]
    lengths[0] = lengths[0] or 5
    causal = d.rng.random() < 0.5
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    ends = torch.tensor([0, *lengths]).cumsum(0).to(d.device, torch.int32)
    shape = (sum(lengths), heads, head)
    tensors = {
        n: d.memory(shape, dtype, d.values(shape, dtype, 1.001), layouts=("contiguous", "padded")) for n in "qkv"
    }

    def exact(q: Any, k: Any, v: Any) -> Any:
        found, begin = [], 0
        for n in lengths:
            x, y, z = (t[begin : begin + n].transpose(0, 1) for t in (q, k, v))
            scores = x @ y.mT / math.sqrt(head)
            if causal:
                scores = scores.masked_fill(torch.ones(n, n, device=q.device).triu(1).bool(), -math.inf)
            found.append((torch.softmax(scores, -1) @ z).transpose(0, 1))
            begin += n
        return torch.cat(found)

    return _simple(
        d, f"op.attention(packed {lengths}, causal={causal})", tensors,
        lambda q, k, v: op.attention(q, k, v, cu_seqlens_q=ends, cu_seqlens_k=ends, causal=causal, **run), exact,
        lambda q, k, v: 2.0 * UNITS[dtype] * float(v.abs().max()),
    )  # fmt: skip


ATTENTION_VIEWS = ("contiguous", "padded", "odd rows", "misaligned", "strided")


@_family("scaled_dot_product_attention", 2)
def _scaled_dot_product_attention(d: Draw) -> Call:
    dtype, head, heads, shared = d.rng.choice((F16, BF16)), 64, d.rng.choice((1, 2)), d.rng.choice((1, 2))
    queries, keys, batch = d.size(1, 17, 200), d.size(1, 40, 177, zero=False), d.rng.choice((1, 2))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how: dict[str, Any] = {"is_causal": d.rng.random() < 0.5, "enable_gqa": shared > 1}
    how |= {"scale": 0.25} if d.rng.random() < 0.3 else {}
    lead, lead_k = ((batch,), (batch,)) if d.rng.random() < 0.2 else ((batch, heads * shared), (batch, heads))
    if len(lead) == 1:
        how["enable_gqa"], shared = False, 1
    shapes = {"query": (*lead, queries, head), "key": (*lead_k, keys, head), "value": (*lead_k, keys, head)}
    tensors = {n: d.memory(s, dtype, d.values(s, dtype, 1.001), layouts=ATTENTION_VIEWS) for n, s in shapes.items()}

    def exact(query: Any, key: Any, value: Any) -> Any:
        key, value = (x.repeat_interleave(shared, 1) if shared > 1 else x for x in (key, value))
        scores = query @ key.mT * how.get("scale", 1 / math.sqrt(head))
        if how["is_causal"]:
            unseen = torch.ones(queries, keys, dtype=torch.bool, device=query.device).triu(1)
            scores = scores.masked_fill(unseen, -math.inf)
        return torch.softmax(scores, -1) @ value

    call = _simple(
        d, f"op.scaled_dot_product_attention({how})", tensors,
        lambda query, key, value: op.scaled_dot_product_attention(query, key, value, **how, **run), exact,
        lambda query, key, value: 2.0 * UNITS[dtype] * max(1.0, float(value.abs().max())),
    )  # fmt: skip
    if queries:
        _learn(call, d, tuple(tensors), 0.4, 2.0**-5 if dtype == BF16 else 2.0**-8)
        call.gradient_floor = lambda query, key, value: (
            2 * UNITS[dtype] * float(value.abs().max()) * max(float(query.abs().max()), float(key.abs().max()))
        )
    return call


@_family("attention_backward", 2)
def _attention_backward(d: Draw) -> Call:
    dtype, head, heads, shared = d.rng.choice((F16, BF16)), 64, d.rng.choice((1, 2)), d.rng.choice((1, 2))
    queries, keys, batch = d.size(1, 17, 200), d.size(1, 40, 177, zero=False), d.rng.choice((1, 2))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how: dict[str, Any] = {"causal": d.rng.random() < 0.5, "deterministic": d.rng.random() < 0.3}
    shapes = {n: (batch, heads * shared, queries, head) for n in ("dout", "q")}
    shapes |= {n: (batch, heads, keys, head) for n in "kv"}
    tensors = {n: d.memory(s, dtype, d.values(s, dtype, 1.001), layouts=ATTENTION_VIEWS) for n, s in shapes.items()}

    def forward(q: Any, k: Any, v: Any) -> Any:
        k, v = (x.repeat_interleave(shared, 1) for x in (k, v))
        scores = q @ k.mT / math.sqrt(head)
        if how["causal"]:
            unseen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(unseen, -math.inf)
        return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)

    out, lse = forward(*(tensors[n].view.double() for n in "qkv"))
    tensors["out"] = d.memory(out.shape, dtype, out.to(dtype), layouts=ATTENTION_VIEWS)
    tensors["lse"] = d.memory(lse.shape, F32, lse.float(), layouts=("contiguous",))

    def exact(dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(forward(*leaves)[0], leaves, dout)

    def slack(dout: Any, **t: Any) -> Any:
        if not queries:
            return (0.0, 0.0, 0.0)
        wanted = exact(dout, **t)
        # Score gradients are differences of rounded numbers.
        most = {n: float(x.abs().max()) for n, x in t.items()}
        floor = 0.25 * float(dout.abs().max()) * most["v"] * max(most["q"], most["k"])
        return tuple(UNITS[dtype] * (4 * float(x.abs().max()) + floor) for x in wanted)

    return _simple(
        d, f"op.attention_backward({how})", tensors,
        lambda dout, q, k, v, out, lse: op.attention_backward(dout, q, k, v, out, lse, **how, **run), exact, slack,
    )  # fmt: skip


def _functions_of_scores(d: Draw, queries: int, keys: int) -> tuple[str, Any, Any]:
    """Draw ``score_mod`` and ``mask_mod``, or None, which take traced values as well as float64 tensors."""
    slopes, bias = d.values((2,), F32, 1.001), d.values((2, queries + keys), F32, 1.001)
    document = torch.arange(max(queries, keys), device=d.device) // d.rng.choice((5, 50))
    width = d.rng.choice((0, 9, 70))
    scores = {
        "none": None,
        "alibi": lambda s, b, h, i, j: s + slopes[h] * (j - i),
        "relative": lambda s, b, h, i, j: s + bias[h, i - j + keys],
        "softcap": lambda s, b, h, i, j: 2.0 * torch.tanh(s / 2.0),
    }
    masks = {
        "none": None,
        "causal": lambda b, h, i, j: i >= j,
        "window": lambda b, h, i, j: (i >= j) & (i - j <= width),
        "document": lambda b, h, i, j: document[i] == document[j],
        "head": lambda b, h, i, j: torch.where(h == 0, i >= j, (i - j) % 3 == 0),
    }
    score, mask = d.rng.choice(list(scores)), d.rng.choice(list(masks))
    return f"{score}, {mask}", scores[score], masks[mask]


def _places(shape: Sequence[int], device: str) -> list[torch.Tensor]:
    """Return the sequence, head, query and key of each score."""
    return [torch.arange(n, device=device).reshape([n if k == i else 1 for k in range(4)]) for i, n in enumerate(shape)]


@_family("flex_attention", 2)
def _flex_attention(d: Draw) -> Call:
    heads_k = d.rng.choice((1, 2))
    queries, keys = d.size(1, 17, 64, 200, 300, zero=False), d.size(1, 40, 64, 177, 333, zero=False)
    batch, dtype = d.rng.choice((1, 2)), d.rng.choice((F16, BF16))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    text, score_mod, mask_mod = _functions_of_scores(d, queries, keys)
    with_lse = d.rng.random() < 0.3
    shapes = {"q": (batch, 2, queries, 64), "k": (batch, heads_k, keys, 64), "v": (batch, heads_k, keys, 64)}
    layouts = ("contiguous", "padded", "odd rows", "misaligned", "strided")
    tensors = {n: d.memory(s, dtype, d.values(s, dtype, 1.001), layouts=layouts) for n, s in shapes.items()}

    def ours(q: Any, k: Any, v: Any) -> Any:
        block = None
        if mask_mod is not None:
            # Gradients of heads of 64 need multiples of 128.
            size = 128 if q.requires_grad else (128, 64)
            block = op.create_block_mask(mask_mod, batch, 2, queries, keys, d.device, size)
        return op.flex_attention(q, k, v, score_mod, block, enable_gqa=True, return_lse=with_lse, **run)

    def exact(q: Any, k: Any, v: Any) -> Any:
        places = _places((batch, 2, queries, keys), d.device)
        k, v = (x.repeat_interleave(2 // heads_k, 1) for x in (k, v))
        scores = q @ k.mT / 8
        scores = scores if score_mod is None else score_mod(scores, *places)
        seen = torch.ones_like(scores, dtype=torch.bool)
        seen = seen if mask_mod is None else mask_mod(*places).expand(scores.shape)
        scores = scores.masked_fill(~seen, -1e300)
        logs = torch.where(seen.any(-1), torch.logsumexp(scores, -1), -math.inf)
        y = (torch.softmax(scores, -1) * seen) @ v
        return (y, logs) if with_lse else y

    def slack(q: Any, k: Any, v: Any) -> Any:
        # The softmax weights are rounded before the second GEMM.  Biases of up to 300 slopes are rounded to f32.
        error = 2.0 * UNITS[dtype] * max(1.0, float(v.abs().max()))
        return (error, 1e-3) if with_lse else error

    call = _simple(d, f"op.flex_attention({text}, lse={with_lse})", tensors, ours, exact, slack)
    if not with_lse:
        _learn(call, d, ("q", "k", "v"), 0.4, 2.0**-5 if dtype == BF16 else 2.0**-8)
        # As for op.attention: score gradients are differences of rounded numbers.
        call.gradient_floor = lambda q, k, v: (
            UNITS[dtype] * float(v.abs().max()) * max(float(q.abs().max()), float(k.abs().max()))
        )
    return call


@_family("create_block_mask", 1)
def _create_block_mask(d: Draw) -> Call:
    queries, keys = d.size(1, 64, 130, 300, zero=False) * 4, d.size(1, 64, 130, 300, zero=False) * 4
    mask_mod = None
    while mask_mod is None:
        text, _, mask_mod = _functions_of_scores(d, queries, keys)
    batch, size = d.rng.choice((None, 1, 2)), d.rng.choice((64, 128, (128, 64)))
    m, n = size if isinstance(size, tuple) else (size, size)
    # Blocks of these rows and columns are counted.
    tensors = {n: d.memory((1,), I32) for n in ("rows", "columns")}

    def ours(**_: Any) -> Any:
        found = op.create_block_mask(mask_mod, batch, 2, queries, keys, d.device, size)
        shape = (batch or 1, 2, -(-queries // m), -(-keys // n))

        def blocks(counts: Any, indices: Any) -> Any:
            marked = torch.arange(shape[-1], device=d.device) < counts[..., None]
            return torch.zeros(shape, dtype=torch.bool, device=d.device).scatter(-1, indices.long(), marked)

        full = blocks(found.full_kv_num_blocks, found.full_kv_indices)
        return blocks(found.kv_num_blocks, found.kv_indices) + 2 * full.to(I32)

    def exact(**_: Any) -> Any:
        places = _places((batch or 1, 2, queries, keys), d.device)
        seen = mask_mod(*places).expand(batch or 1, 2, queries, keys)
        seen = F.pad(seen.double(), (0, -keys % n, 0, -queries % m))
        seen = seen.unflatten(-1, (-1, n)).unflatten(2, (-1, m)).sum((3, 5))
        return torch.where(seen == m * n, 2.0, torch.where(seen > 0, 1.0, 0.0))

    return _simple(d, f"op.create_block_mask({text}, {batch}, {size}, {queries}, {keys})", tensors, ours, exact)


@_family("cascade_attention", 2)
def _cascade_attention(d: Draw) -> Call:
    dtype, head, heads, shared = d.rng.choice((F16, BF16)), 64, d.rng.choice((1, 2)), d.rng.choice((1, 2, 4))
    batch, queries, layout = d.rng.choice((1, 3, 5)), d.size(1, 3), d.rng.choice(("bhsd", "bshd"))
    prefix, keys = d.size(1, 40, 177), d.size(3, 40, 130, zero=False)
    groups = [0, d.rng.randrange(batch + 1), batch] if d.rng.random() < 0.5 else [0, batch]
    used = [d.rng.choice((queries, keys)) for _ in range(batch)]
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how: dict[str, Any] = {"layout": layout, "lse": True, "causal": d.rng.random() < 0.7}
    begins = {"cu_groups": torch.tensor(groups, dtype=torch.int32, device=d.device)} if len(groups) > 2 else {}
    lengths = torch.tensor(used, dtype=torch.int32, device=d.device)

    def shape(batch: int, heads: int, rows: int) -> tuple[int, ...]:
        return (batch, heads, rows, head) if layout == "bhsd" else (batch, rows, heads, head)

    shapes = {"q": shape(batch, heads * shared, queries)}
    shapes |= {f"{n}_shared": shape(len(groups) - 1, heads, prefix) for n in "kv"}
    shapes |= {n: shape(batch, heads, keys) for n in "kv"}
    tensors = {n: d.memory(s, dtype, d.values(s, dtype, 1.001), layouts=ATTENTION_VIEWS) for n, s in shapes.items()}

    def exact(**given: Any) -> Any:
        found, logs = [], []
        given = given if layout == "bhsd" else {n: x.transpose(1, 2) for n, x in given.items()}
        for b, n in enumerate(used):
            group = sum(begin <= b for begin in groups) - 1
            k, v = (
                torch.cat([given[f"{x}_shared"][group], given[x][b, :, :n]], 1).repeat_interleave(shared, 0)
                for x in "kv"
            )
            scores = given["q"][b] @ k.mT / math.sqrt(head)
            if how["causal"]:
                unseen = torch.ones(queries, n, dtype=torch.bool, device=scores.device).triu(n - queries + 1)
                scores = scores.masked_fill(torch.nn.functional.pad(unseen, (prefix, 0)), -math.inf)
            found.append(torch.softmax(scores, -1) @ v)
            logs.append(torch.logsumexp(scores, -1))
        out = torch.stack(found)
        return out if layout == "bhsd" else out.transpose(1, 2), torch.stack(logs)

    def ours(**given: Any) -> Any:
        return op.cascade_attention(**given, **begins, seqused_k=lengths, **how, **run)

    text = f"op.cascade_attention({how}, groups={groups}, used={used})"
    return _simple(d, text, tensors, ours, exact, lambda v, **_: (2.0 * UNITS[dtype] * float(v.abs().max()), 1e-4))


@_family("merge_attention", 2)
def _merge_attention(d: Draw) -> Call:
    parts, head, dtype = d.size(1, 2, 5, 9), d.rng.choice((8, 40, 64, 128, 256)), d.rng.choice((F32, F16, BF16))
    lead = d.rng.choice([(d.size(1, 3, 33, 130),), (2, d.size(1, 5, 33)), (2, 3, d.size(1, 7)), ()])
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    logs = d.values((parts, *lead), F32, 1.001)
    if d.rng.random() < 0.3 and parts > 1:
        logs[d.rng.randrange(parts)] = -math.inf  # A slice without keys.
    tensors = {"outs": d.memory((parts, *lead, head), dtype), "lses": d.memory((parts, *lead), F32, logs)}

    def exact(outs: Any, lses: Any) -> Any:
        lse = torch.logsumexp(lses, 0)
        return (torch.exp(lses - lse)[..., None] * outs).sum(0), lse

    call = _simple(
        d, "op.merge_attention()", tensors, lambda outs, lses: op.merge_attention(outs, lses, **run), exact,
        lambda outs, lses: (2.0**-18 * float(outs.abs().max()) if outs.numel() else 0.0, 2.0**-18),
    )  # fmt: skip
    if parts:
        _learn(call, d, ("outs", "lses"))
        # The gradient of lses is a sum over the head, computed from the rounded result.
        unit = (UNITS[dtype] + 2.0**-16) * math.sqrt(head)
        call.gradient_floor = lambda outs, lses: unit * (1 + float(outs.abs().max())) if outs.numel() else 0.0
    return call


# Rotary position embeddings and caches


def _rotated(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """Rotate the pairs of (B, H, S, D) by the angles of (B or 1, S, R / 2)."""
    half = cos.shape[-1]
    cos, sin, turned = cos[:, None], sin[:, None], x[..., : 2 * half]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else (turned[..., :half], turned[..., half:])
    pair = (a * cos - b * sin, a * sin + b * cos)
    found = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return torch.cat((found, x[..., 2 * half :]), -1)


def _tables(d: Draw, rows: int, head: int, dtype: torch.dtype) -> dict[str, Memory]:
    shape, kind = (rows, d.rng.choice((8, head // 4, head // 2))), d.rng.choice((F32, dtype))
    angles = torch.rand(shape, generator=d.generator) * 6
    return {
        "cos": d.memory(shape, kind, angles.cos().to(d.device), ("contiguous", "padded")),
        "sin": d.memory(shape, kind, angles.sin().to(d.device), ("contiguous", "padded")),
    }


@_family("merge_attention_", 2)
def _merge_in_place(d: Draw) -> Call:
    head, dtype = d.rng.choice((8, 40, 64, 128, 256)), d.rng.choice((F32, F16, BF16))
    lead = d.rng.choice([(d.size(1, 3, 33, 130),), (2, d.size(1, 5, 33))])
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    tensors = {n: d.memory((*lead, head), dtype) for n in ("out", "other")}
    tensors |= {n: d.memory(lead, F32, d.values(lead, F32, 1.001)) for n in ("lse", "other_lse")}

    def exact(out: Any, lse: Any, other: Any, other_lse: Any) -> Any:
        total = torch.logaddexp(lse, other_lse)
        return torch.exp(lse - total)[..., None] * out + torch.exp(other_lse - total)[..., None] * other, total

    def ours(out: Any, lse: Any, other: Any, other_lse: Any) -> Any:
        mine = [x.clone(memory_format=torch.contiguous_format) for x in (out, lse)]
        return op.merge_attention_(*mine, other, other_lse, **run)

    def slack(out: Any, other: Any, **_: Any) -> Any:
        return (2.0**-18 * max(float(x.abs().max()) for x in (out, other)) if out.numel() else 0.0, 2.0**-18)

    return _simple(d, "op.merge_attention_()", tensors, ours, exact, slack)


@_family("rope", 3)
def _rope(d: Draw) -> Call:
    dtype, head, heads = d.rng.choice((F16, BF16)), d.rng.choice((32, 64, 128)), d.rng.choice((1, 2, 3))
    batch, rows, layout = d.size(1, 2), d.size(1, 5, 17, 130), d.rng.choice(("bhsd", "bshd"))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how: dict[str, Any] = {"layout": layout, "interleaved": d.rng.random() < 0.5}
    table_rows = rows + d.rng.choice((1, 7))
    kind = d.rng.choice(("", "rows", "sequences", "offsets"))
    given: dict[str, Any] = {}
    own = torch.arange(rows)[None]
    if kind in ("rows", "sequences"):
        own = torch.randint(0, table_rows, (batch if kind == "sequences" else 1, rows), generator=d.generator)
        given["positions"] = (own if kind == "sequences" else own[0]).to(d.device, torch.int32)
    elif kind == "offsets":
        begins = torch.randint(0, table_rows - rows + 1, (batch,), generator=d.generator)
        own, given["offsets"] = begins[:, None] + own, begins.to(d.device, torch.int32)
    own = own.to(d.device)
    is_pair = d.rng.random() < 0.4

    def shape(heads: int) -> tuple[int, ...]:
        return (batch, heads, rows, head) if layout == "bhsd" else (batch, rows, heads, head)

    tensors = {"x": d.memory(shape(heads), dtype)} | ({"y": d.memory(shape(1), dtype)} if is_pair else {})
    names = tuple(tensors)
    tensors |= _tables(d, table_rows, head, dtype)

    def ours(cos: Any, sin: Any, out: Any = None, **t: Any) -> Any:
        more = run if out is None else {**run, "out": out}
        return op.rope(tuple(t.values()) if is_pair else t["x"], cos, sin, **how, **given, **more)

    def exact(cos: Any, sin: Any, **t: Any) -> Any:
        found = []
        for x in t.values():
            x = x if layout == "bhsd" else x.transpose(1, 2)
            x = _rotated(x, cos[own], sin[own], how["interleaved"])
            found.append(x if layout == "bhsd" else x.transpose(1, 2))
        return tuple(found) if is_pair else found[0]

    def slack(x: Any, y: Any = None, **_: Any) -> Any:
        found = tuple(2.0**-21 * float(t.abs().max()) if t.numel() else 0.0 for t in (x, y) if t is not None)
        return found if is_pair else found[0]

    call = _simple(d, f"op.rope({how}, {kind or 'no positions'})", tensors, ours, exact, slack)
    _learn(call, d, names)
    if not is_pair:
        _out(call, d, shape(heads), dtype, ("contiguous", "padded"))
    return call


@_family("append_kv", 3)
def _append_kv(d: Draw) -> Call:
    dtype, head, heads = d.rng.choice((F16, BF16)), d.rng.choice((32, 64, 128)), d.rng.choice((1, 2, 3))
    batch, rows, layout = d.size(1, 2, zero=False), d.size(1, 5, 17), d.rng.choice(("bhsd", "bshd"))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how: dict[str, Any] = {"layout": layout, "interleaved": d.rng.random() < 0.5}
    room = rows + d.rng.choice((0, 1, 20))
    paged = d.rng.random() < 0.4
    page = d.rng.choice((8, 16)) if paged else room
    pages = -(-room // page) if paged else 1
    table = torch.randperm(batch * pages, generator=d.generator).reshape(batch, pages)
    given: dict[str, Any] = {"page_table": table.to(d.device, torch.int32)} if paged else {}
    table = table if paged else torch.arange(batch)[:, None]
    used = torch.randint(0, room - rows + 1, (batch,), generator=d.generator)

    def shape(batch: int, rows: int) -> tuple[int, ...]:
        return (batch, heads, rows, head) if layout == "bhsd" else (batch, rows, heads, head)

    caches = shape(batch * pages, page)
    tensors = {f"{n}_cache": d.memory(caches, dtype, layouts=("contiguous", "padded")) for n in "kv"}
    tensors |= {n: d.memory(shape(batch, rows), dtype) for n in "kv"}
    tensors |= _tables(d, room + 1, head, dtype) if d.rng.random() < 0.5 else {}
    originals = {n: tensors[f"{n}_cache"] for n in "kv"}

    def copies(wide: bool) -> tuple[list[Any], list[Any]]:
        """Return copies of the caches, and their memory."""
        bases = [m.base.clone().nan_to_num(POISON) for m in originals.values()]
        bases = [b.double() for b in bases] if wide else bases
        views = [
            b.as_strided(m.view.shape, m.view.stride(), m.view.storage_offset())
            for b, m in zip(bases, originals.values())
        ]
        return views, bases

    def ours(k_cache: Any, v_cache: Any, k: Any, v: Any, **tables: Any) -> Any:
        views, bases = copies(False)
        op.append_kv(views[0], views[1], k, v, used.to(k.device, torch.int32), **tables, **how, **given, **run)
        return tuple(bases)

    def exact(k_cache: Any, v_cache: Any, k: Any, v: Any, **tables: Any) -> Any:
        views, bases = copies(True)
        at = (used[:, None] + torch.arange(rows)).to(k.device)
        k, v = (x if layout == "bhsd" else x.transpose(1, 2) for x in (k, v))
        if tables:
            k = _rotated(k, tables["cos"][at], tables["sin"][at], how["interleaved"])
        for cache, new in zip(views, (k, v)):
            cache = cache if layout == "bhsd" else cache.transpose(1, 2)
            for b in range(batch):
                for i, row in enumerate(at[b].tolist()):
                    cache[int(table[b, row // page]), :, row % page] = new[b, :, i]
        return tuple(bases)

    def slack(k: Any, **tables: Any) -> Any:
        return (2.0**-21 * float(k.abs().max()) if k.numel() and "cos" in tables else 0.0, 0.0)

    text = f"op.append_kv({how}, used={used.tolist()}, {f'pages of {page}' if paged else f'room={room}'})"
    return _simple(d, text, tensors, ours, exact, slack)


@_family("mla_decode", 2)
def _mla_decode(d: Draw) -> Call:
    dtype, heads, queries = d.rng.choice((F16, BF16)), d.rng.choice((3, 16, 20)), d.rng.choice((1, 2))
    batch, keys, page = d.size(1, 2), d.rng.choice((1, 63, 64, 65, 130)), d.rng.choice((0, 0, 1, 16, 64))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    pages = -(-keys // page) if page else 1
    room = page * pages or keys
    how: dict[str, Any] = {
        "causal": d.rng.random() < 0.5,
        "lse": d.rng.random() < 0.5,
        "scale": d.rng.choice((None, 0.1)),
    }
    how |= {"split_keys": d.rng.choice((None, 1, 2))}
    table = torch.randperm(batch * pages, generator=d.generator).reshape(batch, pages)
    given: dict[str, Any] = {"page_table": table.to(d.device, torch.int32)} if page else {}
    used = torch.randint(0, room + 1, (batch,), generator=d.generator)
    if d.rng.random() < 0.5:
        given["seqused_k"] = used.to(d.device, torch.int32)
    else:
        used = torch.full((batch,), room)
    shape = (batch * pages, page, 576) if page else (batch, keys, 576)
    shape = shape if d.rng.random() < 0.5 else (*shape[:2], 1, 576)
    tensors = {"q": d.memory((batch, queries, heads, 576), dtype)}
    tensors["cache"] = d.memory(shape, dtype, layouts=("contiguous", "padded"))

    def exact(q: Any, cache: Any) -> Any:
        rows = cache.reshape(-1, page or keys, 576)
        rows = rows[table.to(rows.device)].flatten(1, 2) if page else rows
        scores = torch.einsum("bshd,bkd->bhsk", q, rows) * (how["scale"] or 576**-0.5)
        end = used.to(q.device)[:, None, None, None]
        last = end - queries + 1 + torch.arange(queries, device=q.device)[:, None] if how["causal"] else end
        scores = scores.masked_fill(torch.arange(room, device=q.device) >= last, -math.inf)
        lse = torch.logsumexp(scores, -1)
        powers = torch.exp(scores - lse[..., None].clamp_min(-1e300))
        out = torch.einsum("bhsk,bkd->bshd", powers, rows[..., :512])
        return (out, lse) if how["lse"] else out

    def slack(q: Any, cache: Any) -> Any:
        seen = [x for x in (q, cache) if x.numel()]
        most = max([float(x.abs().max()) for x in seen], default=0.0)
        of_out = UNITS[dtype] * most
        return (of_out, 2.0**-18 * (1 + most)) if how["lse"] else of_out

    text = f"op.mla_decode({how}, used={used.tolist()}, page={page})"
    return _simple(d, text, tensors, lambda q, cache: op.mla_decode(q, cache, **how, **given, **run), exact, slack)


# Mixtures of experts, and sampling


@_family("route", 3)
def _route(d: Draw) -> Call:
    experts, score, dtype = d.rng.choice((8, 40, 64)), d.rng.choice(("softmax", "sigmoid")), d.rng.choice((F32, BF16))
    lead = d.rng.choice([(d.size(1, 3, 33, 130),), (2, d.size(1, 5)), ()])
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    has_bias, k = d.rng.random() < 0.4, d.rng.choice((1, 2, 4))
    scale: float = d.rng.choice((1.0, 2.5))
    how: dict[str, Any] = {"normalise": d.rng.random() < 0.5, "scale": scale}
    how |= {"groups": 4, "top_groups": 2} if d.rng.random() < 0.4 else {}
    # Normal numbers: equal scores of groups, which a bias rounds, would be ambiguous.
    tensors = {"logits": d.memory((*lead, experts), dtype, d.values((*lead, experts), dtype, 1.001))}
    tensors |= {"bias": d.memory((experts,), F32, d.values((experts,), F32, 1.001))} if has_bias else {}

    def ours(logits: Any, bias: Any = None) -> Any:
        weights, chosen = op.route(logits, k, score, bias=bias, **how, **run)
        return weights, logits.gather(-1, chosen.long())

    def exact(logits: Any, bias: Any = None) -> Any:
        scores = torch.softmax(logits, -1) if score == "softmax" else torch.sigmoid(logits)
        ranked = scores.detach() if bias is None else scores.detach() + bias
        if "groups" in how:
            of_groups = ranked.unflatten(-1, (4, -1)).sort(dim=-1, descending=True).values
            of_groups = of_groups[..., 0] if bias is None else of_groups[..., :2].sum(-1)
            best = of_groups.sort(dim=-1, descending=True, stable=True).indices[..., :2]
            inside = torch.zeros_like(of_groups).scatter(-1, best, 1.0).repeat_interleave(experts // 4, -1)
            ranked = ranked.masked_fill(inside == 0, -math.inf)
        chosen = ranked.sort(dim=-1, descending=True, stable=True).indices[..., :k]
        weights = scores.gather(-1, chosen)
        if how["normalise"]:
            weights = weights / (weights.sum(-1, keepdim=True) + (1e-20 if score == "sigmoid" else 0.0))
        return weights * scale, logits.gather(-1, chosen)

    call = _simple(
        d, f"op.route(k={k}, score={score!r}, {how})", tensors, ours, exact, lambda **_: (2.0**-16 * scale, 2.0**-16)
    )
    _learn(call, d, ("logits",))
    call.gradient_floor = lambda **_: 2.0**-14 * scale
    return call


@_family("dispatch", 2)
def _dispatch(d: Draw) -> Call:
    experts, k, n, dtype = (
        d.rng.choice((1, 8, 40)),
        d.rng.choice((1, 2, 4)),
        d.size(1, 7, 64, 333),
        d.rng.choice((F16, BF16, F32)),
    )
    lead = d.rng.choice([(d.size(1, 3, 33, 130),), (2, d.size(1, 5)), ()])
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    # Numbers outside of the experts drop pairs.
    chosen = torch.randint(-1, experts + 1, (*lead, k), generator=d.generator)
    numbers = chosen.to(d.device, d.rng.choice((torch.int32, torch.int64)))
    keys = torch.where((chosen < 0) | (chosen >= experts), experts, chosen).flatten()
    pairs = keys.sort(stable=True).indices
    order = torch.empty_like(pairs).scatter_(0, pairs, torch.arange(pairs.numel()))
    order = torch.where(keys < experts, order, -1 - order).reshape(chosen.shape).to(d.device)
    offs = torch.bincount(keys, minlength=experts + 1)[:experts].cumsum(0).to(d.device)
    tokens, inside = (pairs // k).to(d.device), (keys[pairs] < experts).to(d.device)
    call = Call(f"op.dispatch(num_experts={experts}, k={k})", d.device)
    call.memory["x"] = d.memory((*lead, n), dtype)
    _learn(call, d, ("x",))

    def exact(x: Any) -> Any:
        rows = x.reshape(math.prod(lead), n)[tokens] * inside[:, None]
        return rows if call.learned else (rows, offs, order)

    def ours(x: Any) -> Any:
        found = op.dispatch(x, numbers, experts, **run)
        return found[0] if call.learned else found

    call.function, call.exact = ours, exact
    return call


@_family("combine", 2)
def _combine(d: Draw) -> Call:
    k, n, dtype = d.rng.choice((1, 2, 4)), d.size(1, 7, 64, 333), d.rng.choice((F16, BF16, F32))
    lead = d.rng.choice([(d.size(1, 3, 33, 130),), (2, d.size(1, 5)), ()])
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    pairs = math.prod(lead) * k
    rows = torch.randperm(pairs, generator=d.generator).reshape(*lead, k)
    kept = torch.rand(rows.shape, generator=d.generator) < 0.8
    order = torch.where(kept, rows, -1 - rows).to(d.device, torch.int32)
    rows, kept = rows.to(d.device), kept.to(d.device)
    tensors = {"y": d.memory((pairs, n), dtype)}
    tensors |= {"weights": d.memory((*lead, k), F32, layouts=("contiguous",))} if d.rng.random() < 0.7 else {}

    def exact(y: Any, weights: Any = None) -> Any:
        factors = kept.double() if weights is None else weights * kept
        return (y[rows] * factors[..., None]).sum(-2)

    call = _simple(
        d, f"op.combine(k={k})", tensors, lambda y, weights=None: op.combine(y, order, weights, **run), exact,
        lambda y, weights=None: 2.0**-20 * exact(y.abs(), None if weights is None else weights.abs()),
    )  # fmt: skip
    _learn(call, d, tuple(tensors))
    # The gradient of a weight is a sum over the columns.
    call.gradient_floor = lambda y, weights=None: 2.0**-20 * n * float(y.abs().max()) if y.numel() else 0.0
    return call


@_family("sample", 2)
def _sample(d: Draw) -> Call:
    n, dtype = d.size(1, 7, 64, 1001, 5003, zero=False), d.rng.choice((F16, BF16, F32))
    shape = (*d.rng.choice([(d.size(1, 3, 33),), (2, d.size(1, 5)), ()]), n)
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    how = d.rng.choice(({"temperature": 0}, {"temperature": 0.7, "top_k": 3}, {"temperature": 2.0, "min_p": 0.25}))
    seed = d.rng.getrandbits(40)

    def token(logits: Any) -> Any:
        return op.sample(logits, **how, seed=seed, **run)

    def is_kept(logits: Any) -> Any:
        """Return 1 for each row whose token passes the filter, up to a rounding of min_p."""
        found = logits.gather(-1, token(logits).long()[..., None])[..., 0].double()
        if "top_k" in how:
            least = logits.double().topk(min(3, n)).values[..., -1]
        else:
            least = logits.double().amax(-1) + how["temperature"] * math.log(how["min_p"]) - 2.0**-10
        return (found >= least).to(I32)

    is_greedy = how["temperature"] == 0
    return _simple(
        d, f"op.sample({how}, seed={seed})", {"logits": d.memory(shape, dtype)}, token if is_greedy else is_kept,
        # The token is the first one of equal logits.
        lambda logits: logits.sort(dim=-1, descending=True, stable=True).indices[..., 0]
        if is_greedy
        else torch.ones(shape[:-1], dtype=I32, device=logits.device),
    )  # fmt: skip


@_family("topk", 2)
def _topk(d: Draw) -> Call:
    n, dtype, largest = d.size(1, 7, 64, 1001, 5003, zero=False), d.rng.choice((F16, BF16, F32)), d.rng.random() < 0.7
    shape, k = (*d.rng.choice([(d.size(1, 3, 33),), (2, d.size(1, 5)), ()]), n), min(n, d.rng.choice((1, 5, 60)))
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    call = Call(f"op.topk(k={k}, largest={largest})", d.device)
    call.memory["x"] = d.memory(shape, dtype)
    _learn(call, d, ("x",))

    def ours(x: Any) -> Any:
        found = op.topk(x, k, largest=largest, **run)
        return found[0] if call.learned else found

    def exact(x: Any) -> Any:
        values, indices = (t[..., :k] for t in x.sort(dim=-1, descending=largest, stable=True))
        return values if call.learned else (values, indices)

    call.function, call.exact = ours, exact
    return call


@_family("embedding", 2)
def _embedding(d: Draw) -> Call:
    rows, columns, dtype = d.size(1, 5, 300, zero=False), d.size(1, 8, 40, 130), d.rng.choice((F16, BF16, F32))
    shape = d.rng.choice([(d.size(1, 3, 70, 600),), (2, d.size(1, 5)), ()])
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    padding = d.rng.choice((None, 0, -1))
    indices = torch.randint(0, rows, shape, generator=d.generator).to(d.device, d.rng.choice((torch.int64, I32)))
    call = Call(f"op.embedding(tokens={shape}, padding_idx={padding})", d.device)
    call.memory["weight"] = d.memory((rows, columns), dtype)
    _learn(call, d, ("weight",))
    call.function = lambda weight: op.embedding(indices, weight, padding, **run)
    call.exact = lambda weight: torch.nn.functional.embedding(indices, weight, padding)
    call.gradient_floor = lambda weight: 2.0**-20 * math.prod(shape)
    return call


@_family("adamw_", 2)
def _adamw(d: Draw) -> Call:
    dtype = d.rng.choice((F16, BF16, F32))
    state, shapes = d.rng.choice((F32, dtype)), [(d.size(1, 7, 300),) for _ in range(d.rng.choice((1, 3)))]
    run: dict[str, Any] = {"device": "cpu"} if d.device == "cpu" else {}
    step, lr, decay = d.rng.choice((1, 30)), 2.0**-6, 2.0**-4
    call = Call(f"op.adamw_(step={step}, sizes={shapes})", d.device)
    for i, shape in enumerate(shapes):
        for name, kind in (("p", dtype), ("g", dtype), ("m", state), ("v", state)):
            values = d.values(shape, kind, 1.001)
            call.memory[f"{name}{i}"] = d.memory(shape, kind, values.abs() if name == "v" else values)

    def lists(tensors: dict[str, Any]) -> list[list[Any]]:
        return [[tensors[f"{name}{i}"] for i in range(len(shapes))] for name in "pgmv"]

    def ours(**tensors: Any) -> Any:
        # Copies, because the call writes them; torch's default layout, which it needs.
        given = [[t.clone(memory_format=torch.contiguous_format) for t in x] for x in lists(tensors)]
        op.adamw_(*given, step, lr=lr, weight_decay=decay, **run)
        return tuple([t for x in (given[0], *given[2:]) for t in x])

    def exact(**tensors: Any) -> Any:
        p, g, m, v = lists(tensors)
        m = [0.9 * x + 0.1 * y for x, y in zip(m, g)]
        v = [0.999 * x + 0.001 * y * y for x, y in zip(v, g)]
        size, root = lr / (1 - 0.9**step), math.sqrt(1 - 0.999**step)
        new = [x * (1 - lr * decay) - size * y / (z.sqrt() / root + 1e-8) for x, y, z in zip(p, m, v)]
        return tuple([*new, *m, *v])

    def slack(**tensors: Any) -> Any:
        return tuple([2.0**-20 * (1 + x.abs()) for x in exact(**tensors)])

    call.function, call.exact, call.slack = ours, exact, slack
    return call


def public_functions() -> set[str]:
    """Return the names of the functions of ``op`` that launch kernels."""
    others = {
        "attention_dropout_mask",
        "explain",
        "choose",
        "prefetch",
        "tune",
        "load",
        "get_allocated_size",
        "get_memory_pool",
        "scale_blocks",
    }
    functors = {"gelu", "hardswish", "leaky_relu", "relu", "sigmoid", "silu", "tanh"}  # epilogue functors of plans
    found = {n for n in dir(op) if not n.startswith("_") and n.islower() and n not in others | functors}
    return {n for n in found if inspect.isfunction(x := getattr(op, n)) or isinstance(x, op.Elementwise)}


def element_functions() -> set[str]:
    """Return the names of the element-wise functions of ``op``."""
    module = element_functions_module.__name__
    return {n for n in dir(op) if inspect.isfunction(x := getattr(op, n)) and x.__module__ == module}


def draw(family: str, rng: random.Random, device: str, small: bool) -> Call:
    """Draw a call of a family. ``small`` limits the sizes for the interpreter."""
    return FAMILIES[family][0](Draw(rng, device, small))


def problem_of(call: Call) -> str:
    """Compute a call, and its gradients if they are checked. Return a description of the error, or ""."""
    wide = {n: m.view.detach().double().requires_grad_(n in call.learned) for n, m in call.memory.items()}
    before = {n: m.base.clone() for n, m in call.memory.items()}
    leaves = {n: m.view.detach().requires_grad_(n in call.learned) for n, m in call.memory.items()}
    outside = None if call.out is None else call.out.base.clone()
    found = call.function(**leaves, **({} if call.out is None else {"out": call.out.view}))
    wanted = call.exact(**wide)
    slack = call.slack(**{n: t.detach() for n, t in wide.items()})
    results, exact = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    allowed = slack if isinstance(slack, tuple) else (slack,) * len(exact)
    if call.out is not None and results[0] is not call.out.view:
        return "the result is not out"
    if len(results) != len(exact):
        return f"{len(results)} results; {len(exact)} are right"
    for i, (got, want, more) in enumerate(zip(results, exact, allowed)):
        said = _differs(got.detach(), want.detach(), more)
        if said:
            return f"result {i}: {said}"
    if call.learned:
        said = _gradients_differ(call, leaves, wide, results, exact)
        if said:
            return said
    for n, m in call.memory.items():
        if not _same(m.base, before[n]):
            return f"argument {n} or memory around it changed"
    if call.out is not None and outside is not None:
        outside.as_strided(call.out.view.shape, call.out.view.stride(), call.out.view.storage_offset()).copy_(
            call.out.view
        )
        if not _same(call.out.base, outside):
            return "memory around out changed"
    return ""


def _gradients_differ(call: Call, leaves: Any, wide: Any, results: Any, exact: Any) -> str:
    """Return a description of the wrong gradients, or "".

    The limit is 4 units of the type, relative to the element and, because its terms may cancel, to the largest element.
    The bound of the family is added.  Gradients in float64 get 16 units, because the reference rounds as often.
    """
    names = call.learned
    generator = torch.Generator("cpu").manual_seed(5)
    grads = [torch.randint(-2, 3, y.shape, generator=generator).to(y.device, y.dtype) for y in results]
    got = torch.autograd.grad(results, [leaves[n] for n in names], grads, allow_unused=True)
    want = torch.autograd.grad(exact, [wide[n] for n in names], [g.double() for g in grads], allow_unused=True)
    floor = call.gradient_floor(**{n: t.detach() for n, t in wide.items()})
    for n, g, w in zip(names, got, want):
        if w is None or w.numel() == 0:
            continue
        if g is None:
            return f"there is no gradient of {n}"
        most = float(w.abs().max())
        unit = (
            (16 if g.dtype == F64 else 4) * UNITS[g.dtype] + call.gradient_bound + (2.0**-18 if g.dtype != F64 else 0.0)
        )
        said = _differs(g, w, unit * (most + 2.0**-16) + floor)
        if said:
            return f"gradient of {n}: {said}"
    return ""


def _differs(got: torch.Tensor, want: torch.Tensor, slack: Any) -> str:
    """Describe the error if a result is off by more than its rounding and ``slack``, else return None."""
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)}; {tuple(want.shape)} is right"
    if want.numel() == 0:
        return ""
    x = got.double()
    unit = UNITS.get(got.dtype, 0.0)
    most = float(torch.finfo(got.dtype).max) if got.dtype.is_floating_point else float(torch.iinfo(got.dtype).max)
    tiny = float(torch.finfo(got.dtype).smallest_normal) * unit if got.dtype.is_floating_point else 0.0
    same = (x == want) | (x.isnan() & want.isnan())
    error = torch.where(same, 0.0, (x - want).abs())
    limit = unit / 2 * want.abs() * 1.001 + slack + tiny
    over = want.abs() > most * 0.99  # The result overflows.
    bad = ~(error <= limit) & ~over
    if not bool(bad.any()):
        return ""
    at = tuple(int(i) for i in bad.nonzero()[0])
    worst = float((error / limit)[bad].nan_to_num(math.inf).max())
    count, values = int(bad.sum()), f"at {at} {float(x[at])}, exactly {float(want[at])}"
    return f"{count} of {want.numel()} elements are off, by up to {worst:.3g} of the limit; {values}"


def _same(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Return True if two tensors are bitwise equal."""
    return bool((x.view(U8) == y.view(U8)).all())
