"""``cute-bench op --groups epilogues``: GEMMs with Python epilogues compared with torch and ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.epilogue.reductions import CombineConfig, combine_parts_text
from cute_dialect.op import epilogue
from cute_dialect.op.epilogue import (
    FakeTensor,
    Traced,
    dropout,
    gelu,
    pairs,
    permute,
    quantize,
    reshape,
    silu,
    sum_squares,
    trace,
)
from cute_dialect.op.epilogue.bind import described
from cute_dialect.op.epilogue.derivative import kept_name, kept_of, slope_of
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.tools.bench.cases.op.gemm import LIMITS
from cute_dialect.tools.bench.runner import Text, Trial, check_close, compiled, normal, tuned_compile


def bias_gelu(accum: Any, bias: Any) -> Any:
    """Return ``gelu(a @ b + bias)``."""
    return gelu(accum + bias)


def residual(accum: Any, bias: Any, skip: Any) -> Any:
    """Return ``a @ b + bias + skip``."""
    return accum + bias + skip


def gelu_residual(accum: Any, bias: Any, skip: Any) -> Any:
    """Return ``gelu(a @ b + bias) + skip``."""
    return gelu(accum + bias) + skip


def swiglu(accum: Any) -> Any:
    """Return ``silu(gate) * up`` of the even and the odd columns."""
    gate, up = pairs(accum)
    return silu(gate) * up


def bias_gelu_aux(accum: Any, bias: Any) -> Any:
    """Return ``gelu(pre)`` and ``pre``, which the backward pass needs."""
    pre = accum + bias
    return {"D": gelu(pre), "pre": pre}


def squares(accum: Any, bias: Any) -> Any:
    """Return ``a @ b + bias`` and the sum of squares of each row, for a norm."""
    D = accum + bias
    return {"D": D, "squares": sum_squares(D, -1)}


def heads(accum: Any, bias: Any) -> Any:
    """Return ``a @ b + bias`` split into heads of 128 columns, one matrix per head."""
    return permute(reshape(accum + bias, (accum.shape[0], -1, HEAD)), (1, 0, 2))


def quantized(accum: Any, bias: Any) -> Any:
    """Return ``gelu(a @ b + bias)`` as e4m3 with a scale per 128 columns of a row."""
    D, scales = quantize(gelu(accum + bias))
    return {"D": D, "scales": scales}


def dropped(accum: Any, bias: Any, skip: Any) -> Any:
    """Return ``a @ b + bias`` with a dropout of one tenth, plus ``skip``."""
    return dropout(accum + bias, 0.1, SEED) + skip


HEAD, SEED = 128, 2026


def _torch(name: str, a: Any, b: Any, bias: Any, skip: Any) -> Any:
    """Return the result of torch."""
    import torch

    if name == "swiglu":
        x = a @ b
        return torch.nn.functional.silu(x[:, 0::2]) * x[:, 1::2]
    pre = torch.addmm(bias, a, b)
    if name == "residual":
        return pre + skip
    if name == "heads":
        return pre.view(pre.shape[0], -1, HEAD).transpose(0, 1).contiguous()
    if name == "dropped":
        return torch.nn.functional.dropout(pre, 0.1) + skip
    if name == "quantized":
        x = torch.nn.functional.gelu(pre).float().view(pre.shape[0], -1, 128)
        scales = x.abs().amax(-1, keepdim=True) / 448.0
        return (x / scales).to(torch.float8_e4m3fn).view(pre.shape), scales[..., 0]
    if name == "squares":
        return pre, pre.float().square().sum(-1, keepdim=True)
    d = torch.nn.functional.gelu(pre)
    return (d, pre) if name == "bias_gelu_aux" else d if name == "bias_gelu" else d + skip


_ALL = (bias_gelu, residual, gelu_residual, swiglu, bias_gelu_aux, squares, heads, quantized, dropped)
FUNCTIONS: dict[str, Callable[..., Any]] = {f.__name__: f for f in _ALL}
_OF_ALL_ROWS = ("heads", "quantized", "dropped")
"""Functions whose result on a subset of rows differs from the rows of the full result."""
_SHAPES: dict[str, Callable[[int, int], tuple[int, ...]]] = {"bias": lambda m, n: (n,), "skip": lambda m, n: (m, n)}


class Fused(NamedTuple):
    """An epilogue ``function`` of ``a @ b``, (M, K) by (K, N)."""

    function: str
    m: int
    n: int
    k: int
    element: str = "bf16"

    @property
    def operation(self) -> str:
        """The operation and its epilogue, for example ``mm + residual``."""
        return f"mm + {self.function}"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.m}x{self.n}x{self.k}"

    def _parameters(self) -> list[str]:
        code = FUNCTIONS[self.function].__code__
        return list(code.co_varnames[1 : code.co_argcount])

    def described(self) -> dict[str, FakeTensor]:
        """Return the arguments as fake tensors."""
        return {p: FakeTensor(self.element, _SHAPES[p](self.m, self.n)) for p in self._parameters()}

    def traced(self) -> Traced:
        """Return the traced epilogue."""
        return trace(FUNCTIONS[self.function], {"accum": FakeTensor("f32", (self.m, self.n)), **self.described()})

    def kernels(self) -> Mapping[str, Text]:
        choice = op.explain(
            op.mm, (self.m, self.k), (self.k, self.n), element=self.element, epilogue=self.traced(),
            args=self.described(), gpu="NVIDIA H200",
        ).choice  # fmt: skip
        assert choice is not None
        found = dict[str, Text]({choice.name: partial(text_of, choice)})
        for x in self.traced().graph.outputs:
            if x.reduce:
                config = CombineConfig(x.reduce)
                found[config.name] = partial(combine_parts_text, config)
        return found

    def trial(self) -> Trial:
        import torch

        torch.manual_seed(0)
        m, n, k, random = self.m, self.n, self.k, partial(normal, self.element)
        # Accumulators are about 1, as in neural networks.
        a, b, bias, skip = random(m, k), random(k, n, scale=k**-0.5), random(n), random(m, n)
        args = {p: {"bias": bias, "skip": skip}[p] for p in self._parameters()}
        traced, function = self.traced(), FUNCTIONS[self.function]

        def ours() -> Any:
            return op.mm(a, b, epilogue=traced, args=args)

        def check() -> float:
            rows = slice(None) if self.function in _OF_ALL_ROWS else slice(0, m, max(1, m // 64))
            some = {p: x[rows].double() if x.dim() == 2 else x.double() for p, x in args.items()}
            wanted: Any = function(a[rows].double() @ b.double(), **some)
            found: Any = ours()
            limit = LIMITS[self.element]
            if self.function == "quantized":  # e4m3 has three mantissa bits.
                found, wanted = (
                    {"D": x["D"].double() * x["scales"].double().repeat_interleave(128, -1)} for x in (found, wanted)
                )
                limit = 2.0**-3
            both = [(found[x], wanted[x]) for x in wanted] if isinstance(wanted, dict) else [(found, wanted)]
            return max(check_close(self.name, x[rows], y, limit) for x, y in both)

        def peer(a: Any, b: Any, bias: Any, skip: Any) -> Any:
            return _torch(self.function, a, b, bias, skip)

        results = {"swiglu": 0.5, "bias_gelu_aux": 2.0, "quantized": 0.5}.get(self.function, 1.0)
        size = 2 * (m * k + k * n + int(results * m * n) + (m * n if "skip" in args else 0))
        return Trial(check, ours, compiled(peer, a, b, bias, skip), size, 2.0 * m * n * k, "TFLOP/s")


class Learned(NamedTuple):
    """Forward and backward of an epilogue ``function`` of ``a @ b``: gradients of the operands and all arguments."""

    function: str
    m: int
    n: int
    k: int
    element: str = "bf16"

    @property
    def operation(self) -> str:
        """The operation, for example ``mm + residual, gradients``."""
        return f"mm + {self.function}, gradients"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.m}x{self.n}x{self.k}"

    def kernels(self) -> Mapping[str, Text]:
        """Return the kernels: forward, derivative of the saved results, and GEMMs of the operands' gradients."""
        from cute_dialect.op.torch.gradients import SlopeCall  # late: torch

        forward = Fused(self.function, self.m, self.n, self.k, self.element)
        m, n, k, traced, args = self.m, self.n, self.k, forward.traced(), forward.described()
        names = tuple(args)
        kept = kept_of(traced, (m, n), names, ("D",), True, True)
        assert kept is not None
        how: dict[str, Any] = {"element": self.element, "gpu": "NVIDIA H200"}
        a, b, d = (described(FakeTensor(self.element, shape)) for shape in ((m, k), (k, n), (m, n)))
        calls = (
            op.explain(op.mm, a, b, epilogue=kept.forward, args=args, **how),
            op.explain(op.mm, d, b.T, **how),
            op.explain(op.mm, a.T, d, **how),
        )
        found: dict[str, Text] = {}
        for call in calls:
            assert call.choice is not None
            found[call.choice.name] = partial(text_of, call.choice)
        slope = slope_of(traced, (m, n), names, ("D",), True, kept.node)
        more = {p: described(FakeTensor(self.element, t.shape)) for p, t in args.items()}
        more |= {"grad_D": d, kept_name(traced): d}
        kernels = SlopeCall(slope, (m, n), {f"d_{p}": self.element for p in names} | {"D": self.element}).kernels(more)
        return found | {kernel.name: kernel.text for kernel in kernels}

    def trial(self) -> Trial:
        import torch

        torch.manual_seed(0)
        m, n, k, random = self.m, self.n, self.k, partial(normal, self.element)
        a, b, bias, skip = random(m, k), random(k, n, scale=k**-0.5), random(n), random(m, n)
        grad = random(m, n)
        forward = Fused(self.function, m, n, k, self.element)
        traced, names = forward.traced(), list(forward.described())
        tensors = [t.requires_grad_() for t in (a, b, *({"bias": bias, "skip": skip}[p] for p in names))]

        def ours() -> Any:
            d = op.mm(a, b, epilogue=traced, args=dict(zip(names, tensors[2:])))
            return torch.autograd.grad(d, tensors, grad)

        def peer() -> Any:
            return torch.autograd.grad(_torch(self.function, a, b, bias, skip), tensors, grad)

        def check() -> float:
            wide = [t.detach().double().requires_grad_() for t in tensors]
            want = torch.autograd.grad(FUNCTIONS[self.function](wide[0] @ wide[1], *wide[2:]), wide, grad.double())
            # The gradient of the accumulator is rounded before the GEMMs.
            return max(check_close(self.name, x, y, 4 * LIMITS[self.element]) for x, y in zip(ours(), want))

        size = 2 * (3 * (m * k + k * n) + 6 * m * n)
        return Trial(check, ours, {"torch": peer}, size, 6.0 * m * n * k, "TFLOP/s")


ACTIVATIONS = ("relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "hardswish", "softplus", "elu", "mish")


class TextEpilogue(NamedTuple):
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

    def tiny(self) -> TextEpilogue:
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
def function_of(problem: TextEpilogue, library: str) -> Callable[..., dict[str, Any]]:
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


CASES = (
    *(Fused(f, s, s, s) for f in ("bias_gelu", "residual", "gelu_residual", "bias_gelu_aux") for s in (4096, 8192)),
    *(Fused(f, 8192, 28672, 4096) for f in ("bias_gelu", "residual", "swiglu")),
    Fused("swiglu", 4096, 8192, 4096),
    *(Fused("squares", s, s, s) for s in (4096, 8192)),
    *(Fused(f, s, s, s) for f in ("heads", "quantized", "dropped") for s in (4096, 8192)),
    *(Learned(f, s, s, s) for f in ("bias_gelu", "gelu_residual") for s in (4096, 8192)),
)

GROUPS = {"epilogues": CASES}
