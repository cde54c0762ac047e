"""``cute-bench op --groups rows``: softmax, norms, sums and losses of rows, forward and backward.

Row lengths are even and odd, with 2^28 elements in all.  TB/s counts each input and output once.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect import op
from cute_dialect.kernels.row_sums import loss_parts
from cute_dialect.op.rows import functions as rows
from cute_dialect.op.rows import gradients as row_grads
from cute_dialect.op.rows.call import RowKernel
from cute_dialect.tools.bench.cases.elementwise_add import BenchError
from cute_dialect.tools.bench.cases.op import Trial, can_compile, compiled

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["CASES", "LENGTHS", "Rows"]

TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
BYTES = {"f32": 4, "f16": 2, "bf16": 2}
ELEMENTS = 1 << 28
EPS = 1e-5
LENGTHS = (768, 4096, 5120, 12288, 32768, 50257, 128256)
LIMITS = {"f32": 4e-6, "f16": 1.1e-3, "bf16": 9e-3}
"""Maximum error relative to the element and to the RMS of the rows: about one unit in the last place."""

BACKWARD = ("softmax", "log_softmax", "rms_norm", "layer_norm", "cross_entropy")
TAKES = {"rms_norm": "w", "rms_norm + residual": "wr", "layer_norm": "wb", "layer_norm + residual": "wbr"}


class Rows(NamedTuple):
    """An operation on rows of ``n`` elements."""

    operation: str
    element: str
    n: int

    @property
    def call(self) -> str:
        """The name of the function."""
        return self.operation.partition(" ")[0]

    @property
    def backward(self) -> bool:
        """True for the backward pass."""
        return self.operation.endswith(" backward")

    @property
    def takes(self) -> str:
        """The operands in addition to the rows."""
        return TAKES.get(self.operation.removesuffix(" backward"), "")

    @property
    def rows(self) -> int:
        """The number of rows."""
        return ELEMENTS // self.n

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.rows}x{self.n}"

    @property
    def traffic(self) -> int:
        """The minimum number of bytes to move."""
        matrices = {"sum": 1, "logsumexp": 1, "cross_entropy": 1}.get(self.call, 2)
        matrices += 2 if "residual" in self.operation else 1 if self.backward else 0
        return BYTES[self.element] * self.n * (matrices * self.rows + len(self.takes.strip("r")))

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        """Return the kernels of the call by name, with functions that generate their texts."""
        call, found = self.call, cast("list[RowKernel]", [])
        if self.backward:
            found += self._gradients()
        elif call in ("sum", "logsumexp", "cross_entropy"):
            found.append(rows.sum_kernel(call, self.element, self.n, self.rows))
        else:
            found.append(rows.row_kernel(call, self.element, self.n, self.takes))
        if call == "cross_entropy" and not self.backward:
            steps = ("all",) if loss_parts(self.rows) == 1 else ("first", "last")
            found += [rows.loss_kernel(self.element, True, step) for step in steps]
        return {k.name: k.text for k in found}

    def _gradients(self) -> list[RowKernel]:
        """Return the kernels of the backward pass."""
        if self.call == "cross_entropy":
            return [row_grads.entropy_kernel(self.element, self.n, self.element, True)]
        if "softmax" in self.call:
            return [rows.row_kernel(f"{self.call}_backward", self.element, self.n, "d")]
        norm = row_grads.norm_kernel(self.call, self.element, self.n, self.takes)
        blocks = row_grads.norm_blocks(self.element, self.n, self.takes, self.rows)
        return [norm, row_grads.column_kernel(self.element, self.takes, blocks)]

    def trial(self) -> Trial:
        """Create operands of normally distributed values."""
        import torch

        if self.backward:
            return _backward_trial(self)

        torch.manual_seed(self.n)
        kind = getattr(torch, TYPES[self.element])
        x = torch.randn(self.rows, self.n, device="cuda", dtype=kind)
        given: list[Any] = [x]
        if self.operation == "cross_entropy":
            given.append(torch.randint(0, self.n, (self.rows,), device="cuda"))
        given += [torch.randn(self.n, device="cuda", dtype=kind) for _ in self.takes.strip("r")]
        if "residual" in self.operation:
            given.append(torch.randn_like(x))
        ours, peer = _functions(self.operation, self.n)

        def check() -> float:
            found = ours(*given)
            if self.operation == "cross_entropy":
                return self._loss(float(found), given)
            found = cast("tuple[Any, ...]", found if isinstance(found, tuple) else (found,))
            worst, step = 0.0, max(1, (1 << 24) // self.n)
            for start in range(0, self.rows, step):
                part = slice(start, start + step)
                of = [(t[part] if t.dim() == 2 else t).double() for t in given]
                wanted = peer(*of)
                if "residual" in self.operation:  # The norm uses the rounded sum, which is also an output.
                    total = found[1][part]
                    worst = max(worst, _share(self, total, of[0] + of[-1]))
                    wanted = peer(total.double(), *of[1:-1], torch.zeros_like(of[-1]))[0]
                worst = max(worst, _share(self, found[0][part], wanted))
            return worst

        return Trial(
            check, lambda: ours(*given), compiled(peer, *given), self.traffic, float(self.traffic), "TB/s"
        )  # fmt: skip

    def _loss(self, found: float, given: list[Any]) -> float:
        import torch

        total, step = 0.0, max(1, (1 << 24) // self.n)
        for start in range(0, self.rows, step):
            part = slice(start, start + step)
            x, t = given[0][part].double(), given[1][part]
            total += float(torch.nn.functional.cross_entropy(x, t, reduction="sum"))
        share = abs(found / (total / self.rows) - 1) / LIMITS[self.element]
        if not share <= 1:
            raise BenchError(f"{self.name}: the error is {share:.2f} times the limit")
        return share


def _share(case: Rows, found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the largest error relative to the limit.  Raises :class:`BenchError`."""
    import torch

    scale = wanted.square().mean().sqrt()
    if case.operation == "sum":
        scale = scale + case.n**0.5
    spacing = torch.finfo(found.dtype).smallest_normal / 1024  # the spacing of subnormal f16 numbers is 2^-24
    limit = LIMITS[case.element] * (wanted.abs() + scale) + spacing
    share = float(((found.double() - wanted).abs() / limit).max())
    if not share <= 1:
        raise BenchError(f"{case.name}: the error is {share:.2f} times the limit")
    return share


def _backward_trial(case: Rows) -> Trial:
    """Create the data and the results of a forward pass; torch's gradients use autograd with a retained graph."""
    import torch

    torch.manual_seed(case.n)
    kind = getattr(torch, TYPES[case.element])
    x = torch.randn(case.rows, case.n, device="cuda", dtype=kind, requires_grad=True)
    weights = [torch.randn(case.n, device="cuda", dtype=kind, requires_grad=True) for _ in case.takes]
    target = torch.randint(0, case.n, (case.rows,), device="cuda")
    _, peer = _functions(case.call, case.n)
    inputs = [x, *weights]
    more = [target] if case.call == "cross_entropy" else []
    dy = torch.ones((), device="cuda", dtype=kind) if more else torch.randn_like(x)
    fixed = [t.detach() for t in inputs]

    def ours() -> tuple[Any, ...]:
        if case.call == "cross_entropy":
            return (row_grads.cross_entropy_backward(dy, fixed[0], target, lse, count),)
        if case.call == "rms_norm":
            return row_grads.rms_norm_backward(dy, fixed[0], fixed[1], EPS)
        if case.call == "layer_norm":
            return row_grads.layer_norm_backward(dy, fixed[0], fixed[1], True, EPS)
        return (getattr(row_grads, f"{case.call}_backward")(dy, y),)

    lse = count = y = None
    if case.call == "cross_entropy":
        lse = torch.cat([part.float().logsumexp(-1) for part in fixed[0].split(1 << 10)])
        count = torch.full((), float(case.rows), device="cuda")
    elif "softmax" in case.call:
        y = peer(*fixed)

    def check() -> float:
        found, worst, step = ours(), 0.0, max(1, (1 << 23) // case.n)
        sums = [torch.zeros(case.n, device="cuda", dtype=torch.float64) for _ in weights]
        for start in range(0, case.rows, step):
            part = slice(start, start + step)
            of = [t.double().requires_grad_() for t in (fixed[0][part], *fixed[1:])]
            if more:
                result = torch.nn.functional.cross_entropy(of[0], target[part], reduction="sum") / case.rows
                wanted = torch.autograd.grad(result, of)
            elif y is not None:  # The gradient uses the rounded result.
                d, s = dy[part].double(), y[part].double()
                total = (s * d).sum(-1, keepdim=True) if case.call == "softmax" else d.sum(-1, keepdim=True)
                wanted = (s * (d - total) if case.call == "softmax" else d - s.exp() * total,)
            else:
                wanted = torch.autograd.grad(peer(*of), of, dy[part].double())
            worst = max(worst, _share(case, found[0][part], wanted[0]))
            for total, term in zip(sums, wanted[1:]):
                total += term
        return max([worst, *[_share(case, got, total) for got, total in zip(found[1:], sums)]])

    def graph(function: Callable[..., Any]) -> Callable[[], object]:
        result = function(*inputs, *more)
        return lambda: torch.autograd.grad(result, inputs, dy, retain_graph=True)

    peers = {"torch": graph(peer)}
    if can_compile():
        config: Any = import_module("torch._functorch.config")
        config.donated_buffer = False  # The graph is retained.
        torch.compiler.reset()
        peers["compiled"] = graph(torch.compile(peer, dynamic=False))
        peers["compiled"]()
    return Trial(check, ours, peers, case.traffic, float(case.traffic), "TB/s")


def _functions(operation: str, n: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return our function and torch's."""
    import torch
    import torch.nn.functional as F

    def rms_added(x: Any, w: Any, r: Any) -> Any:
        total = x + r
        return F.rms_norm(total, (n,), w, EPS), total

    def layer_added(x: Any, w: Any, b: Any, r: Any) -> Any:
        total = x + r
        return F.layer_norm(total, (n,), w, b, EPS), total

    found: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "softmax": (op.softmax, lambda x: torch.softmax(x, -1)),
        "log_softmax": (op.log_softmax, lambda x: torch.log_softmax(x, -1)),
        "sum": (op.sum, lambda x: torch.sum(x, -1)),
        "logsumexp": (op.logsumexp, lambda x: torch.logsumexp(x, -1)),
        "cross_entropy": (op.cross_entropy, F.cross_entropy),
        "rms_norm": (lambda x, w: op.rms_norm(x, w, EPS), lambda x, w: F.rms_norm(x, (n,), w, EPS)),
        "layer_norm": (
            lambda x, w, b: op.layer_norm(x, w, b, EPS), lambda x, w, b: F.layer_norm(x, (n,), w, b, EPS)
        ),
        "rms_norm + residual": (lambda x, w, r: op.rms_norm(x, w, EPS, residual=r), rms_added),
        "layer_norm + residual": (lambda x, w, b, r: op.layer_norm(x, w, b, EPS, residual=r), layer_added),
    }  # fmt: skip
    return found[operation]


CASES = (
    *(
        Rows(operation, "bf16", n)
        for operation in ("softmax", "log_softmax", "rms_norm", "layer_norm", "cross_entropy")
        for n in LENGTHS
    ),
    *(
        Rows(operation, "bf16", n)
        for operation in ("rms_norm + residual", "layer_norm + residual")
        for n in LENGTHS[:4]
    ),
    *(Rows(operation, "bf16", n) for operation in ("sum", "logsumexp") for n in (768, 4096, 50257)),
    *(Rows(f"{operation} backward", "bf16", n) for operation in BACKWARD for n in (768, 4096, 5120, 12288, 32768)),
    *(
        Rows(f"{operation} backward", "bf16", n)
        for operation in BACKWARD
        if "norm" not in operation
        for n in (50257, 128256)
    ),
    *(
        Rows(operation, element, n)
        for element in ("f16", "f32")
        for operation in ("softmax", "rms_norm", "layer_norm")
        for n in (1024, 4096, 4095, 32768)
    ),
)
