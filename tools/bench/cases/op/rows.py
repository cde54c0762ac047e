"""Row functions and memory-bound elementwise functions for ``cute-bench op``: groups ``rows``, ``norm_quantize``,
``sampling`` and ``elementwise``.

TB/s counts each input and output once.  Row functions are measured forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from cute_dialect import op
from cute_dialect.kernels.common.philox import drawn_of_arrays
from cute_dialect.kernels.rows.sums import loss_parts
from cute_dialect.op import epilogue
from cute_dialect.op.execute import rows as row_kernels
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.functions.elementwise import Elementwise
from cute_dialect.tools.bench.runner import (
    BenchError,
    Text,
    Trial,
    can_compile,
    check_close,
    check_limit,
    compiled,
    dtype,
    normal,
    tuned_compile,
)

if TYPE_CHECKING:  # pragma: no cover
    import torch


ELEMENTS = 1 << 28
EPS = 1e-5
LENGTHS = (768, 4096, 5120, 12288, 32768, 50257, 128256)
LIMITS = {"f32": 4e-6, "f16": 1.1e-3, "bf16": 9e-3}
"""About a unit in the last place of 16-bit elements, or 67 rounding errors of f32."""


class Rows(NamedTuple):
    """``function`` of ``rows`` rows of ``n`` elements; ``backward``: the gradients of all arguments."""

    function: str
    backward: bool
    element: str
    rows: int
    n: int

    @property
    def operation(self) -> str:
        """The function and the pass, for example ``softmax backward``."""
        return self.function + " backward" * self.backward

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.rows}x{self.n}"

    @property
    def call(self) -> str:
        """The name of the function without its optional operands."""
        return self.function.partition(" ")[0]

    @property
    def traffic(self) -> int:
        """The minimum number of bytes to move: each operand and result once."""
        matrices = 1 if self.call in ("sum", "mean", "max", "logsumexp", "cross_entropy") else 2
        if self.backward:  # saved operands, and gradients read and written
            few = {"sum": 1, "mean": 1, "max": 2, "logsumexp": 2, "cross_entropy": 2}
            matrices = few.get(self.call, 3)
        matrices += 2 if "residual" in self.function else 0
        return (4 if self.element == "f32" else 2) * self.n * (self.rows * matrices + len(self.vectors))

    @property
    def vectors(self) -> str:
        """The per-column operands: ``w`` (weight) and ``b`` (bias)."""
        return {"rms_norm": "w", "layer_norm": "wb"}.get(self.call, "")

    def kernels(self) -> Mapping[str, Text]:
        call, takes = self.call, self.vectors + "r" * ("residual" in self.function)
        if call in ("sum", "logsumexp", "cross_entropy"):
            found = [row_kernels.sum_kernel(call, self.element, self.n, self.rows)]
        else:
            found = [row_kernels.row_kernel(call, self.element, self.n, takes, self.rows)]
        if call == "cross_entropy":
            steps = ("all",) if loss_parts(self.rows) == 1 else ("first", "last")
            found += [row_kernels.loss_kernel(self.element, True, step) for step in steps]
        if self.backward:
            found += self._gradients()
        return {k.name: k.text for k in found}

    def _gradients(self) -> list[RowKernel]:
        """Return the kernels of the backward pass."""
        if self.call == "cross_entropy":
            return [row_kernels.entropy_kernel(self.element, self.n, self.element, True, self.rows)]
        if "softmax" in self.call:
            return [row_kernels.row_kernel(f"{self.call}_backward", self.element, self.n, "d", self.rows)]
        norm = row_kernels.norm_kernel(self.call, self.element, self.n, self.vectors)
        blocks = row_kernels.norm_blocks(self.element, self.n, self.vectors, self.rows)
        return [norm, row_kernels.column_kernel(self.element, self.vectors, blocks)]

    def tiny(self) -> Rows:
        """Return a problem with few rows and the same number of elements modulo 8."""
        n = self.n if self.n <= 200 else 200 + self.n % 8
        return self._replace(rows=min(self.rows, 5), n=n)

    def trial(self, device: str = "cuda", compiled: bool | None = None) -> Trial:
        """Create normally distributed operands, weights and upstream gradients, and uniform targets.

        ``compiled`` adds ``torch.compile`` to the peers; None: if it works.
        """
        import torch

        torch.manual_seed(self.n)
        compiled = can_compile() if compiled is None else compiled
        run: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(shape, device=device, dtype=dtype(self.element))

        given = [normal(self.rows, self.n), *(normal(self.n) for _ in self.vectors)]
        if "residual" in self.function:
            given.append(normal(self.rows, self.n))
        target = torch.randint(0, self.n, (self.rows,), device=device)
        of_ours, of_torch = self._ours(target, run), self._torch(target)
        if not self.backward:

            def check() -> float:
                return self._check_forward(_tuple(of_ours(*given)), given, target)

            peers: dict[str, Callable[[], object]] = {"torch": lambda: of_torch(*given)}
            if compiled:
                fast = tuned_compile(of_torch)
                peers["compiled"] = lambda: fast(*given)
            return Trial(check, lambda: of_ours(*given), peers, self.traffic, float(self.traffic), "TB/s")
        leaves = [t.requires_grad_() for t in given]
        results = _tuple(of_ours(*leaves))
        grads = [torch.randn_like(y) for y in results]

        def gradient(results: tuple[Any, ...]) -> Callable[[], Any]:
            return lambda: torch.autograd.grad(results, leaves, grads, retain_graph=True)

        peers = {"torch": gradient(_tuple(of_torch(*leaves)))}
        if compiled:
            peers["compiled"] = gradient(_tuple(tuned_compile(of_torch)(*leaves)))
        ours = gradient(results)

        def check_gradient() -> float:
            return self._check_backward(ours(), results, [t.detach() for t in leaves], target, grads)

        return Trial(check_gradient, ours, peers, self.traffic, float(self.traffic), "TB/s")

    def _ours(self, target: Any, run: dict[str, Any]) -> Callable[..., Any]:
        """Return our function of the tensors."""
        if self.call == "cross_entropy":
            return lambda x: op.cross_entropy(x, target, **run)
        if self.call == "rms_norm":
            return lambda x, w, r=None: op.rms_norm(x, w, EPS, residual=r, **run)
        if self.call == "layer_norm":
            return lambda x, w, b, r=None: op.layer_norm(x, w, b, EPS, residual=r, **run)
        function = getattr(op, self.call)
        return lambda x: function(x, **run)

    def _torch(self, target: Any) -> Callable[..., Any]:
        """Return torch's function of the tensors."""
        import torch
        import torch.nn.functional as F

        n = self.n

        def rms_norm(x: Any, w: Any, r: Any = None) -> Any:
            total = x if r is None else x + r
            y = F.rms_norm(total, (n,), w, EPS)
            return y if r is None else (y, total)

        def layer_norm(x: Any, w: Any, b: Any, r: Any = None) -> Any:
            total = x if r is None else x + r
            y = F.layer_norm(total, (n,), w, b, EPS)
            return y if r is None else (y, total)

        found: dict[str, Callable[..., Any]] = {
            "softmax": lambda x: torch.softmax(x, -1), "log_softmax": lambda x: torch.log_softmax(x, -1),
            "logsumexp": lambda x: torch.logsumexp(x, -1), "sum": lambda x: torch.sum(x, -1),
            "mean": lambda x: torch.mean(x, -1), "max": lambda x: torch.amax(x, -1),
            # A copy even for one column, where `contiguous` would return a view.
            "transpose": lambda x: x.t().clone(memory_format=torch.contiguous_format),
            "cross_entropy": lambda x: F.cross_entropy(x, target),
            "rms_norm": rms_norm, "layer_norm": layer_norm,
        }  # fmt: skip
        return found[self.call]

    def _parts(self) -> Iterator[slice]:
        """Yield slices of rows of at most 2^24 elements, to limit the memory of float64."""
        step = max(1, (1 << 24) // self.n)
        return (slice(start, start + step) for start in range(0, self.rows, step))

    def _check_forward(self, found: tuple[Any, ...], given: list[Any], target: Any) -> float:
        """Compare results with float64; return the largest error relative to the limit."""
        x, worst = given[0], 0.0
        exact = self._torch(target)
        if self.call == "transpose":
            if not bool((found[0] == x.t()).all()):
                raise BenchError(f"{self.name}: elements differ")
            return 0.0
        if self.call == "cross_entropy":
            import torch.nn.functional as F

            sums = [F.cross_entropy(x[s].double(), target[s], reduction="sum") for s in self._parts()]
            return self._share("loss", found[0], sum(sums) / self.rows, 0.125)
        for part in self._parts():
            of = [(t[part] if t.dim() == 2 else t).double() for t in given]
            if "residual" in self.function:  # The norm uses the rounded sum, which is also an output.
                total = found[1][part]
                worst = max(worst, self._share("sum", total, of[0] + of[-1]))
                of = [total.double(), *of[1:-1]]
            extra = {"sum": self.n**0.5, "mean": self.n**-0.5}.get(self.call, 0.0)
            worst = max(worst, self._share("result", found[0][part], _tuple(exact(*of))[0], extra))
        return worst

    def _check_backward(
        self, found: tuple[Any, ...], results: tuple[Any, ...], given: list[Any], target: Any, grads: list[Any]
    ) -> float:
        """Compare gradients with float64 or, if the rounded result is saved, with the gradients of that result."""
        import torch

        worst = 0.0
        columns: list[Any] = [0.0 for t in given if t.dim() == 1]
        for part in self._parts():
            of = [(t[part] if t.dim() == 2 else t).double().requires_grad_() for t in given]
            dy = [g[part].double() if g.dim() else g.double() for g in grads]
            extra: Any = 0.0
            if self.call in ("softmax", "log_softmax"):
                s = results[0][part].detach().double()
                total = (s * dy[0] if self.call == "softmax" else dy[0]).sum(-1, keepdim=True)
                wanted: tuple[Any, ...] = (
                    (s * (dy[0] - total)) if self.call == "softmax" else (dy[0] - s.exp() * total),
                )
                extra = s.abs() * total.abs() / 8 if self.call == "softmax" else s.exp() * total.abs()
            elif self.call == "max":
                wanted = self._of_maximum(found[0][part], of[0].detach(), dy[0])
            elif self.call == "cross_entropy":
                loss = torch.nn.functional.cross_entropy(of[0], target[part], reduction="sum") / self.rows
                wanted = torch.autograd.grad(loss, of, dy)
            else:
                if "residual" in self.function:  # The gradient uses the rounded sum.
                    total = results[1][part].detach().double().requires_grad_()
                    y = _tuple(self._torch(target)(total, *of[1:-1]))
                    wanted = torch.autograd.grad(y, [total, *of[1:-1]], dy[:1])
                    wanted = (wanted[0] + dy[1], *wanted[1:], wanted[0] + dy[1])
                    extra = self._scale(total.detach(), of[1].detach() * dy[0]) + dy[1].abs()
                else:
                    wanted = torch.autograd.grad(_tuple(self._torch(target)(*of)), of, dy)
                    if self.call == "logsumexp":  # Like torch, the saved result is rounded to half a unit.
                        kept = 2.0**-24 if self.element == "f32" else LIMITS[self.element] / 2
                        y = results[0][part].detach().double()[:, None].abs()
                        extra = wanted[0].abs() * y * kept / LIMITS[self.element]
                    if "norm" in self.call:
                        extra = self._scale(of[0].detach(), of[1].detach() * dy[0])
            at = 0
            for t, got, exact in zip(given, found, wanted):
                if t.dim() == 1:
                    columns[at] = columns[at] + exact
                    at += 1
                else:
                    worst = max(worst, self._share("gradient", got[part], exact, extra))
        gradients = [got for t, got in zip(given, found) if t.dim() == 1]
        for got, exact in zip(gradients, columns):
            worst = max(worst, self._share("gradient of a vector", got, exact, self.rows**0.5))
        return worst

    def _of_maximum(self, found: Any, x: Any, dy: Any) -> tuple[Any, ...]:
        """Return a valid gradient of the maximum.

        Equal maxima may share ``dy`` in any way.  The found gradient is valid if it is 0 at other elements and sums to
        ``dy``.
        """
        import torch

        is_most = x == x.amax(-1, keepdim=True)
        total = (found.double() * is_most).sum(-1)
        if not bool(((total - dy).abs() <= 4 * LIMITS[self.element] * (dy.abs() + 2.0**-10)).all()):
            raise BenchError(f"{self.name}: gradients of the maxima of a row do not sum to dy")
        return (torch.where(is_most, found.double(), 0.0),)

    def _scale(self, x: Any, g: Any) -> Any:
        """Return the magnitude of the terms that cancel in a row of the gradient of a norm.

        It is ``rstd rms(g)``, and larger if x-hat itself is the difference of much larger numbers.
        """
        centered = x - x.mean(-1, keepdim=True) if self.call == "layer_norm" else x
        rstd = (centered.square().mean(-1, keepdim=True) + EPS).rsqrt()
        large = x.square().mean(-1, keepdim=True).sqrt() * rstd
        return rstd * (g.square().mean(-1, keepdim=True).sqrt() + g.abs()) * (1 + large / 8)

    def _share(self, label: str, found: Any, wanted: Any, extra: Any = 0.0) -> float:
        """Return the largest error relative to the limit.  Raises :class:`BenchError`."""
        import torch

        spacing = torch.finfo(found.dtype).smallest_normal / 1024  # the spacing of subnormal f16 numbers is 2^-24
        return check_close(f"{self.name}: {label}", found, wanted, LIMITS[self.element], terms=extra, least=spacing)


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def named(operation: str, element: str, n: int) -> Rows:
    """Return a case with 2^28 elements."""
    return Rows(operation.removesuffix(" backward"), operation.endswith(" backward"), element, ELEMENTS // n, n)


BACKWARD = ("softmax", "log_softmax", "rms_norm", "layer_norm", "cross_entropy")
CASES = (
    *(
        named(operation, "bf16", n)
        for operation in ("softmax", "log_softmax", "rms_norm", "layer_norm", "cross_entropy")
        for n in LENGTHS
    ),
    *(
        named(operation, "bf16", n)
        for operation in ("rms_norm + residual", "layer_norm + residual")
        for n in LENGTHS[:4]
    ),
    *(named(operation, "bf16", n) for operation in ("sum", "logsumexp") for n in (768, 4096, 50257)),
    *(named(f"{operation} backward", "bf16", n) for operation in BACKWARD for n in (768, 4096, 5120, 12288, 32768)),
    *(
        named(f"{operation} backward", "bf16", n)
        for operation in BACKWARD
        if "norm" not in operation
        for n in (50257, 128256)
    ),
    *(
        named(operation, element, n)
        for element in ("f16", "f32")
        for operation in ("softmax", "rms_norm", "layer_norm")
        for n in (1024, 4096, 4095, 32768)
    ),
)


# ----------------------------------------------------------------------------------------------- element-wise functions


ELEMENT_LIMITS = {"f32": 4e-6, "bf16": 9e-3}

FUNCTIONS: dict[str, tuple[Elementwise, str]] = {
    "add": (op.add, "mm"),
    "gelu": (op.elementwise(lambda x: epilogue.gelu(x)), "m"),
    "swiglu": (op.elementwise(lambda gate, up: epilogue.silu(gate) * up), "mm"),
    "bias + relu + residual": (op.elementwise(lambda x, b, r: epilogue.relu(x + b) + r), "mnm"),
}
"""The functions, and the kind of each argument: matrix ``m`` or per-column vector ``n``."""


class Elements(NamedTuple):
    """A function on matrices with a number of rows."""

    operation: str
    element: str
    m: int
    n: int

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.m}x{self.n}"

    def kernels(self) -> Mapping[str, Text]:
        made, takes = FUNCTIONS[self.operation]
        kind: Any = np.float32 if self.element == "f32" else ml_dtypes.bfloat16
        n = 32 + self.n % 16
        found: RowKernel = made.kernel(*[np.zeros((4, n) if x == "m" else (n,), kind) for x in takes])
        return {found.name: found.text}

    def trial(self) -> Trial:
        import torch

        torch.manual_seed(self.n)
        made, takes = FUNCTIONS[self.operation]
        given = [normal(self.element, *((self.m, self.n) if x == "m" else (self.n,))) for x in takes]

        def check() -> float:
            found, worst, step = made(*given), 0.0, max(1, (1 << 24) // self.n)
            for start in range(0, self.m, step):
                part = slice(start, start + step)
                wanted = made.function(*[(t[part] if t.dim() == 2 else t).double() for t in given])
                worst = max(worst, check_close(self.name, found[part], wanted, ELEMENT_LIMITS[self.element]))
            return worst

        traffic = given[0].element_size() * (self.m * self.n * (takes.count("m") + 1) + self.n * takes.count("n"))
        return Trial(check, lambda: made(*given), compiled(made.function, *given), traffic, float(traffic), "TB/s")


ELEMENTWISE = [
    *(Elements(f, e, m, n) for f in FUNCTIONS for e in ELEMENT_LIMITS for m, n in ((16384, 4096), (8192, 5120))),
    *(Elements(f, "bf16", 8191, 5003) for f in FUNCTIONS),
]

# ------------------------------------------------------------------------------------------- norms with 8-bit results


class NormQuantize(NamedTuple):
    """RMSNorm of the sum with a residual, to e4m3 with a scale per row, or per 128 columns (``block``)."""

    element: str
    rows: int
    n: int
    block: int | None = None

    @property
    def operation(self) -> str:
        return "rms_norm + residual to e4m3"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.rows}x{self.n} {'blocks' if self.block else 'rows'}"

    def _explained(self) -> Any:
        shape = (self.rows, self.n)
        how: dict[str, Any] = {"quantize": "f8E4M3FN", "block": self.block, "element": self.element}
        return op.explain(op.rms_norm, shape, (self.n,), residual=shape, **how)

    def kernels(self) -> Mapping[str, Text]:
        return {kernel.name: kernel.text for kernel in self._explained().kernels}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.n)
        x, residual = (normal(self.element, self.rows, self.n, device=device) for _ in range(2))
        weight = normal(self.element, self.n, device=device)
        columns, kind = self.block or self.n, torch.float8_e4m3fn
        run: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}

        def ours() -> tuple[Any, ...]:
            how: dict[str, Any] = {"quantize": kind, "block": self.block, **run}
            return op.rms_norm(x, weight, EPS, residual=residual, **how)

        def with_torch(x: Any, residual: Any, weight: Any) -> tuple[Any, ...]:
            total = x + residual
            y = torch.nn.functional.rms_norm(total.float(), (self.n,), weight.float(), EPS)
            blocks = y.view(self.rows, -1, columns)
            scales = blocks.abs().amax(-1, keepdim=True) / 448.0
            return (blocks / scales).to(kind).view(self.rows, self.n), scales[..., 0], total

        def check() -> float:
            q, scales, total = ours()
            if not bool((total == x + residual).all()):
                raise BenchError(f"{self.name}: the sum with the residual is wrong")
            exact = torch.nn.functional.rms_norm(total.double(), (self.n,), weight.double(), EPS)
            blocks = exact.view(self.rows, -1, columns)
            wanted = blocks.abs().amax(-1) / 448.0
            check_close(f"{self.name}: scales", scales, wanted, 4e-6)
            # Half a unit in the last place of e4m3, relative to elements and, for subnormal ones, to the scale.
            limit = 2.0**-4 * 1.001 * blocks.abs() + 2.0**-10 * 1.01 * wanted[..., None]
            found = q.double().view(blocks.shape) * scales.double()[..., None]
            return check_limit(self.name, found, blocks, limit)

        peers = compiled(with_torch, x, residual, weight) if device == "cuda" else {}
        traffic = int(self._explained().bytes)
        return Trial(check, ours, peers, traffic, float(traffic), "TB/s")


NORM_QUANTIZE = [
    NormQuantize("bf16", rows, n, block)
    for rows, n in ((16384, 4096), (8192, 7168), (16384, 8192), (64, 4096))
    for block in (None, 128)
]

# ------------------------------------------------------------------------------------------------------------ sampling


class Sample(NamedTuple):
    """A token of each row, with filters."""

    element: str
    rows: int
    n: int
    top_k: int = 0
    top_p: float = 1.0

    @property
    def operation(self) -> str:
        return "sample"

    @property
    def name(self) -> str:
        filters = f" top_k={self.top_k}" * bool(self.top_k) + f" top_p={self.top_p}" * (self.top_p < 1)
        return f"sample {self.element} {self.rows}x{self.n}{filters}"

    def kernels(self) -> Mapping[str, Text]:
        how: dict[str, Any] = {"top_k": self.top_k, "top_p": self.top_p, "element": self.element}
        return {k.name: k.text for k in op.explain(op.sample, (self.rows, self.n), **how).kernels}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.n)
        x = normal(self.element, self.rows, self.n, device=device, scale=3.0)
        seed, offset = (torch.tensor([i], device=device) for i in (5, 2))
        how: dict[str, Any] = {"top_k": self.top_k, "top_p": self.top_p, "seed": seed, "offset": offset}
        how |= {"device": "cpu"} if device == "cpu" else {}

        def ours() -> torch.Tensor:
            return op.sample(x, **how)

        def with_torch() -> torch.Tensor:
            if not self.top_k and self.top_p == 1:
                return torch.multinomial(torch.softmax(x.float(), -1), 1)[:, 0]
            if self.top_p == 1:
                values, places = x.float().topk(self.top_k, -1)
                return places.gather(-1, torch.multinomial(torch.softmax(values, -1), 1))[:, 0]
            values, places = x.float().sort(-1, descending=True)
            if self.top_k:
                values[:, self.top_k :] = float("-inf")
            shares = torch.softmax(values, -1)
            shares = shares * (shares.cumsum(-1) - shares < self.top_p)
            return places.gather(-1, torch.multinomial(shares, 1))[:, 0]

        def check() -> float:
            tokens = ours().long()
            if not torch.equal(tokens, ours().long()):
                raise BenchError(f"{self.name}: equal calls give different tokens")
            worst = 0.0
            for part in self._parts():
                worst = max(worst, self._check(x[part].double(), tokens[part], part))
            return worst

        traffic = self.rows * (self.n * (4 if self.element == "f32" else 2) + 4)
        return Trial(check, ours, {"torch": with_torch}, traffic, float(traffic), "TB/s")

    def _parts(self) -> Iterator[slice]:
        step = max(1, (1 << 24) // self.n)
        return (slice(start, min(start + step, self.rows)) for start in range(0, self.rows, step))

    def _check(self, x: torch.Tensor, tokens: torch.Tensor, part: slice) -> float:
        """Compare tokens with the inverse of the exact distribution function of the kept tokens."""
        import torch

        order = x.sort(dim=-1, descending=True, stable=True)[1]
        powers = (x - x.amax(-1, keepdim=True)).exp()
        ordered = powers.gather(-1, order)
        if self.top_k:
            ordered[:, self.top_k :] = 0
        sums = ordered.cumsum(-1)
        # A token at the edge of top-p may be kept or not, by roundings.
        ordered[sums - ordered > (self.top_p + 1e-5) * sums[:, -1:]] = 0
        powers = torch.zeros_like(powers).scatter(-1, order, ordered)
        up_to = powers.cumsum(-1)
        of_all, at = up_to[:, -1:], tokens[:, None]
        drawn = drawn_of_arrays(x.new_zeros(self.rows, 1), 5, 2)[part]
        high, own = up_to.gather(-1, at) / of_all, powers.gather(-1, at) / of_all
        if bool((own == 0).any()):
            raise BenchError(f"{self.name}: {int((own == 0).sum())} tokens are not kept")
        edge = ordered.amin(-1, keepdim=True) / of_all if self.top_p < 1 else 0.0
        far = torch.maximum(drawn - high, high - own - drawn).clamp(min=0) - edge
        if float(far.max()) > 1e-4:
            raise BenchError(
                f"{self.name}: the random number is {float(far.max()):.1e} outside of the token's interval"
            )
        return max(0.0, float(far.max()) / 1e-4)


class Topk(NamedTuple):
    """The greatest elements of each row."""

    element: str
    rows: int
    n: int
    k: int

    @property
    def operation(self) -> str:
        return "topk"

    @property
    def name(self) -> str:
        return f"topk {self.element} {self.rows}x{self.n} k={self.k}"

    def kernels(self) -> Mapping[str, Text]:
        return {k.name: k.text for k in op.explain(op.topk, (self.rows, self.n), self.k, element=self.element).kernels}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.n)
        x = normal(self.element, self.rows, self.n, device=device)
        how: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}

        def ours() -> tuple[torch.Tensor, torch.Tensor]:
            return op.topk(x, self.k, **how)

        def check() -> float:
            values, indices = ours()
            wanted = x.sort(dim=-1, descending=True, stable=True)
            if not torch.equal(indices, wanted[1][:, : self.k]) or not torch.equal(values, wanted[0][:, : self.k]):
                raise BenchError(f"{self.name}: the elements differ from those of a stable sort")
            return 0.0

        size = 4 if self.element == "f32" else 2
        traffic = self.rows * (self.n * size + self.k * (size + 8))
        return Trial(check, ours, {"torch": lambda: x.topk(self.k)}, traffic, float(traffic), "TB/s")


SAMPLING = [
    Sample("f32", 4096, 32000),
    Sample("bf16", 4096, 32000),
    Sample("bf16", 256, 128256),
    Sample("bf16", 64, 151936),
    Sample("f32", 8, 128256),
    Sample("bf16", 1024, 50257),
    Sample("f32", 4096, 32000, 50),
    Sample("bf16", 256, 128256, 50),
    Sample("bf16", 256, 128256, 50, 0.9),
    Sample("bf16", 256, 128256, 0, 0.9),
    Topk("f32", 4096, 32000, 50),
    Topk("bf16", 4096, 32000, 50),
    Topk("bf16", 16384, 4096, 64),
    Topk("bf16", 256, 128256, 1000),
]

GROUPS = {"rows": CASES, "norm_quantize": NORM_QUANTIZE, "sampling": SAMPLING, "elementwise": ELEMENTWISE}
