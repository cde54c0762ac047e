"""Random epilogues of random GEMMs compared with torch and, for every second problem, ``torch.compile``."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.op import epilogue
from cute_dialect.tools.bench.cases.op.products import LIMITS
from cute_dialect.tools.bench.checks import check_close
from cute_dialect.tools.bench.peers import normal, tuned_compile
from cute_dialect.tools.bench.random import log_uniform
from cute_dialect.tools.bench.runner import Trial

__all__ = ["RandomEpilogue", "draw"]

ACTIVATIONS = ("relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "hardswish", "softplus", "elu", "mish")
MOST_FLOPS = 3e11


class RandomEpilogue(NamedTuple):
    """``(M, K) @ (K, N)`` with a Python epilogue; ``linear``: B is the transpose of (N, K)."""

    element: str
    m: int
    n: int
    k: int
    linear: bool
    body: tuple[str, ...]
    results: tuple[str, ...]

    @property
    def operation(self) -> str:
        """The kind of results, for example ``mm, 2 results``."""
        return (
            "mm, reduced"
            if "reduced" in self.results
            else f"mm, {len(self.results)} result" + "s" * (len(self.results) > 1)
        )

    @property
    def name(self) -> str:
        said = "; ".join((*self.body, f"return {', '.join(self.results)}"))
        return f"mm {self.element} {'kn'[not self.linear]} {self.m}x{self.n}x{self.k}: {said}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The arguments of the epilogue."""
        text = " ".join(self.body)
        return tuple(p for p in ("bias", "row", "skip") if p in text.replace("(", " ").replace(")", " ").replace(
            ",", " ").split())  # fmt: skip

    @property
    def source(self) -> str:
        """The source of the epilogue."""
        lines = [f"def function({', '.join(('accum', *self.parameters))}):", *(f"    {line}" for line in self.body)]
        returned = ", ".join(f"{name!r}: {name}" for name in self.results)
        return "\n".join([*lines, f"    return {{{returned}}}"])

    def tiny(self) -> RandomEpilogue:
        """Return the same epilogue on one small tile."""
        return self._replace(m=min(self.m, 24), n=min(self.n, 48) // 8 * 8, k=min(self.k, 40) // 8 * 8)

    def trial(self, device: str, compiled: bool) -> Trial:
        """Create operands of normally distributed values, with accumulators of about 1, as in neural networks."""
        import torch

        torch.manual_seed(0)
        m, n, k, drawn = self.m, self.n, self.k, partial(normal, self.element, device=device)
        a = drawn(m, k)
        b = drawn(n, k, scale=k**-0.5).t() if self.linear else drawn(k, n, scale=k**-0.5)
        shapes = {"bias": (n,), "row": (m, 1), "skip": (m, n)}
        args = {p: drawn(*shapes[p]) for p in self.parameters}
        function = function_of(self, "ours")
        run: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}
        described = {p: epilogue.FakeTensor(self.element, shapes[p]) for p in args}
        traced = epilogue.trace(function, {"accum": epilogue.FakeTensor("f32", (m, n)), **described})

        def ours() -> Any:
            return op.mm(a, b, epilogue=traced, args=args, **run)

        fused = self.body[0] == "x0 = accum + bias" and "accum" not in " ".join(self.body[1:])
        # In idiomatic torch code, the bias is part of the GEMM.
        of_torch = function_of(self._replace(body=("x0 = accum", *self.body[1:])) if fused else self, "torch")
        taken = of_torch.__code__.co_varnames[1 : of_torch.__code__.co_argcount]

        def peer(a: Any, b: Any, args: Mapping[str, Any]) -> Any:
            accum = torch.addmm(args["bias"], a, b) if fused else a @ b
            return of_torch(accum, **{p: args[p] for p in taken})

        peers: dict[str, Callable[[], object]] = {"torch": lambda: peer(a, b, args)}
        if compiled:
            fast = tuned_compile(peer)
            peers["compiled"] = lambda: fast(a, b, args)

        def check() -> float:
            return self._check(ours(), a, b, args)

        matrices = len([r for r in self.results if r != "reduced"]) + ("skip" in args)
        traffic = 2 * (m * k + k * n + matrices * m * n)
        return Trial(check, ours, peers, traffic, 2.0 * m * n * k, "TFLOP/s")

    def _check(self, found: Mapping[str, Any], a: Any, b: Any, args: Mapping[str, Any]) -> float:
        """Compare 64 rows with float64; return the largest error relative to the limit.

        The limit is the rounding of the result plus 8 times the RMS change of the result when accumulators change by
        2^-12.
        """
        import torch

        rows = torch.arange(0, self.m, max(1, self.m // 64), device=a.device)
        some = {p: (x[rows] if p != "bias" else x).double() for p, x in args.items()}
        accum = a[rows].double() @ b.double()
        exact = function_of(self, "torch")
        wanted = exact(accum, **some)
        noise = 2.0**-12 * torch.randn_like(accum) * accum.square().mean().sqrt()
        shifted = exact(accum + noise, **some)
        worst = 0.0
        for name, want in wanted.items():
            # The f32 sum of a row has at most one rounding error per term.
            rounding = 2.0**-18 if name == "reduced" else LIMITS[self.element]
            moved = 8 * float((shifted[name] - want).square().mean().sqrt())
            worst = max(worst, check_close(f"{self.name}: {name}", found[name][rows], want, rounding, least=moved))
        return worst


@cache
def function_of(problem: RandomEpilogue, library: str) -> Callable[..., dict[str, Any]]:
    """Compile the epilogue with the functions of ``op.epilogue`` (``ours``) or of ``torch``."""
    names: dict[str, Any] = {}
    if library == "ours":
        names = {f: getattr(epilogue, f) for f in (*ACTIVATIONS, "sum", "sum_squares", "maximum", "minimum")}
    else:
        import torch
        import torch.nn.functional as F

        names = {f: getattr(F, f) for f in ACTIVATIONS if f not in ("sigmoid", "tanh")}
        names |= {"sigmoid": torch.sigmoid, "tanh": torch.tanh}
        names |= {"maximum": torch.maximum, "minimum": torch.minimum}
        names["sum"] = lambda x, dim: x.sum(dim, keepdim=True, dtype=_wide(x))
        names["sum_squares"] = lambda x, dim: x.to(_wide(x)).square().sum(dim, keepdim=True)
    exec(problem.source, names)
    return names["function"]


def _wide(x: Any) -> Any:
    """Return the type of a reduction: f32, or float64 for the reference."""
    import torch

    return torch.float64 if x.dtype == torch.float64 else torch.float32


def draw(rng: random.Random, number: int) -> RandomEpilogue:
    """Draw a GEMM and an epilogue.

    * GEMM: f16 or bf16; M 16 to 16,384, N and K 64 to 16,384, log-uniform, N and K multiples of 8, at most 3e11 FLOPs;
      B is stored as (N, K) or as (K, N).
    * Epilogue: 1 to 5 steps on the last value or on two earlier values.  A step adds or multiplies a per-column,
      per-row or full array, applies one of ten activations, scales a value, or takes the maximum or (once) the product
      of two values.
    * Results: one in four returns an earlier value as a second result, one in eight a row sum or row sum of squares.

    Data is normally distributed, with accumulators of about 1.  64 rows are compared with float64.  The tolerance is
    2^-10 (bf16: 2^-7) of the element and of the RMS, plus 8 times the effect of accumulator errors of 2^-12.
    """
    element = rng.choice(tuple(LIMITS))
    while True:
        m, n, k = log_uniform(rng, 16, 16384), log_uniform(rng, 64, 16384, 8), log_uniform(rng, 64, 16384, 8)
        if 2.0 * m * n * k <= MOST_FLOPS:
            break
    linear = rng.random() < 0.5
    steps = rng.randint(1, 5)
    values, body = ["accum"], list[str]()
    while len(body) < steps:
        x = values[-1]
        other = rng.choice(values)
        kind = rng.choice(("bias", "bias", "array", "array", "activation", "activation", "scale", "two"))
        if kind == "bias" and not body:
            made = f"{x} + bias"
        elif kind in ("bias", "array"):
            made = f"{x} {rng.choice('+*')} {rng.choice(('bias', 'row', 'skip', 'skip'))}"
        elif kind == "activation":
            made = f"{rng.choice(ACTIVATIONS)}({x})"
        elif kind == "scale":
            made = f"{x} * {rng.choice((0.125, 0.5, 1.702))}"
        else:
            made = rng.choice((f"{x} * {other}", f"maximum({x}, {other})", f"{x} + {other}"))
            if "*" in made and any(f"{y} * {z}" in line for line in body for y in values for z in values):
                continue  # Only one product of values is drawn, because higher powers overflow f16.
        values.append(f"x{len(body)}")
        body.append(f"{values[-1]} = {made}")
    body.append(f"D = {values[-1]}")
    results = ["D"]
    chance = rng.random()
    if chance < 0.25 and len(values) > 2:
        results.append(rng.choice(values[1:-1]))
    elif chance < 0.375:
        body.append(f"reduced = {rng.choice(('sum', 'sum_squares'))}(D, -1)")
        results.append("reduced")
    return RandomEpilogue(element, m, n, k, linear, tuple(body), tuple(results))
