"""GEMMs for ``cute-bench op``: groups ``products``, ``types``, ``scaled`` and ``modes``.

* ``products``: ``op.mm`` and ``op.bmm``, with and without bias and gelu;
* ``types``: integers, 8-bit floats, 8-bit results, f32 and f64;
* ``scaled``: e4m3 with scales per tensor, per row and per block;
* ``modes``: pointer-array GEMM, batched split-K, and math modes of plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.gemm.split_tf32 import split_text
from cute_dialect.op.execute.kernels import Variant, text_of
from cute_dialect.op.functions.scaled import scaled_kernel
from cute_dialect.tools.bench.runner import (
    BenchError,
    Text,
    Trial,
    check_close,
    check_exact,
    check_limit,
    compiled,
    dtype,
    normal,
    operator,
    unread,
)

LIMITS = {"f16": 2.0**-10, "bf16": 2.0**-7}
"""Maximum error relative to the element and to the RMS of the result: about one unit in the last place."""


class Product(NamedTuple):
    """``a @ b`` of (M, K) and (K, N), batched if ``matrices`` > 1, with a bias and gelu if ``fused``."""

    m: int
    n: int
    k: int
    element: str = "f16"
    matrices: int = 1
    fused: bool = False

    @property
    def operation(self) -> str:
        """``mm``, ``bmm`` or ``mm + bias + gelu``."""
        return f"{'bmm' if self.matrices > 1 else 'mm'}{' + bias + gelu' if self.fused else ''}"

    @property
    def name(self) -> str:
        batch = f"{self.matrices}x" if self.matrices > 1 else ""
        return f"{self.operation} {self.element} {batch}{self.m}x{self.n}x{self.k}"

    def kernels(self) -> Mapping[str, Text]:
        a, b = (self.m, self.k), (self.k, self.n)
        more: dict[str, Any] = {"element": self.element}
        function: Callable[..., object] = op.mm
        if self.matrices > 1:
            function, a, b = op.bmm, (self.matrices, *a), (self.matrices, *b)
        if self.fused:
            more |= {"bias": (self.n,), "activation": "gelu"}
        choice = op.explain(function, a, b, **more).choice
        assert choice is not None
        return {choice.name: partial(text_of, choice)}

    def trial(self) -> Trial:
        import torch

        torch.manual_seed(0)
        batch = (self.matrices,) if self.matrices > 1 else ()
        a, b = normal(self.element, *batch, self.m, self.k), normal(self.element, *batch, self.k, self.n)
        bias = normal(self.element, self.n) if self.fused else None
        function: Callable[..., Any] = op.bmm if batch else op.mm

        def ours() -> torch.Tensor:
            return function(a, b) if bias is None else function(a, b, bias=bias, activation="gelu")

        def peer(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            if bias is None:
                return torch.matmul(a, b)
            return torch.nn.functional.gelu(torch.addmm(bias, a, b))

        def check() -> float:
            # Compare all columns of some rows of each matrix.
            rows = slice(0, self.m, max(1, self.m // 64))
            wanted = a[..., rows, :].double() @ b.double()
            if bias is not None:
                wanted = torch.nn.functional.gelu(wanted + bias.double())
            return check_close(self.name, ours()[..., rows, :], wanted, LIMITS[self.element])

        size = 2 * self.matrices * (self.m * self.k + self.k * self.n + self.m * self.n)
        work = 2.0 * self.matrices * self.m * self.n * self.k
        return Trial(check, ours, compiled(peer, a, b, bias), size, work, "TFLOP/s")


PRODUCTS = (
    *(Product(s, s, s, e) for e in LIMITS for s in (4096, 8192)),
    Product(8192, 28672, 4096, "bf16"),
    *(Product(s, s, s, "f16", fused=True) for s in (4096, 8192)),
    Product(8192, 28672, 4096, "f16", fused=True),
    *(Product(m, m, k, "f16", n) for n, m, k in ((32, 2048, 128), (128, 512, 512), (16, 1024, 4096), (512, 128, 64))),
)


# ---------------------------------------------------------------------------------------------------------------- types


_ROUNDED = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "f8E4M3FN": 2.0**-4, "f8E5M2": 2.0**-3}
"""Maximum relative error of rounding to a type."""


def _error_of_sums(element: str, math: str, k: int) -> float:
    """Return the error of sums of ``k`` products, relative to their RMS.

    Tensor cores truncate sums of 8-bit floats to 13 bits, once per 32 products, with an error of half a unit on
    average.  They round f32 operands to 11 bits, with an error of a quarter of a unit on average.  These errors add up
    like a random walk; the maximum of some million sums is six times as large.  Sums in f32 and f64 are off by at most
    a unit per product.
    """
    if element.startswith("f8"):
        return k / 32 * 2.0**-14
    if math == "tf32":
        return 6 * 2.0**-11 / 3**0.5
    return k * 2.0 ** (-53 if element == "f64" else -24)


class Typed(NamedTuple):
    """``a @ b`` of (M, K) and (K, N) with short type names.

    ``majors`` are the contiguous modes of A and B: by default ``kn`` for f32 and f64, else ``kk``.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    output: str
    math: str = "default"
    majors: str = ""

    @property
    def operation(self) -> str:
        """The operation, for example ``mm i8 i8 -> i32``."""
        more = f" {self.math}" * (self.math != "default") + f" {self.majors}" * (self.majors != "")
        return f"mm {self.a} {self.b} -> {self.output}{more}"

    @property
    def lying(self) -> str:
        """The contiguous modes of A and B."""
        return self.majors or ("kn" if self.a in ("f32", "f64") else "kk")

    @property
    def name(self) -> str:
        return f"{self.operation} {self.m}x{self.n}x{self.k}"

    def _operands(self, device: str) -> tuple[Any, Any]:
        import torch

        def matrix(element: str, rows: int) -> torch.Tensor:
            kind = dtype(element)
            if device == "meta":
                return torch.empty(rows, self.k, device=device, dtype=kind)
            if kind.is_floating_point:
                return normal(element, rows, self.k, device=device)
            info = torch.iinfo(kind)
            return torch.randint(info.min, info.max + 1, (rows, self.k), device=device, dtype=kind)

        def rows(x: torch.Tensor) -> torch.Tensor:
            return torch.empty(x.shape, device=device, dtype=x.dtype) if device == "meta" else x.contiguous()

        a, b = matrix(self.a, self.m), matrix(self.b, self.n).t()
        return rows(a.t()).t() if self.lying[0] == "m" else a, rows(b) if self.lying[1] == "n" else b

    def kernels(self) -> Mapping[str, Text]:
        found = op.explain(op.mm, *self._operands("meta"), dtype=dtype(self.output), math=self.math, gpu="NVIDIA H200")
        choice, other = found.choice, found.other
        if choice is None:
            assert other is not None
            return {other.name: partial(text_of, other)}
        texts: dict[str, Text] = {choice.name: partial(text_of, choice)}
        return texts | {c.name: partial(split_text, c) for c in found.parts}

    def trial(self) -> Trial:
        """Create normally distributed values, or integers of the full range."""
        import torch

        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = self.math == "tf32"  # This setting applies to torch's matmul.
        a, b = self._operands("cuda")
        kind = dtype(self.output)

        def ours() -> torch.Tensor:
            return op.mm(a, b, dtype=kind, math=self.math)

        def check() -> float:
            rows = slice(0, self.m, max(1, self.m // 64))
            wanted, found = a[rows].double() @ b.double(), ours()[rows].double()
            if not kind.is_floating_point:
                info = torch.iinfo(kind)
                check_exact(self.name, found, wanted.clamp(info.min, info.max))
                return 0.0
            of_sums = _error_of_sums(self.a, self.math, self.k)
            if kind.itemsize == 1:
                wanted = wanted.clamp(torch.finfo(kind).min, torch.finfo(kind).max)
            near, scale = wanted.abs(), wanted.square().mean().sqrt()
            return check_limit(self.name, found, wanted, 1.01 * _ROUNDED[self.output] * near + of_sums * (near + scale))

        # Shapes that torch does not support are padded with zeros.
        short = [-size % 16 if a.dtype.itemsize == 1 else 0 for size in (self.m, self.n, self.k)]
        pad = torch.nn.functional.pad
        aligned = (a, b)
        if a.dtype.itemsize == 1 and self.lying != "kk":  # Torch needs 8-bit operands contiguous along K.
            aligned = (a.contiguous(), b.t().contiguous().t())
        if any(short):
            aligned = (pad(a.view(torch.uint8), (0, short[2], 0, short[0])).view(a.dtype),
                       pad(b.t().view(torch.uint8), (0, short[2], 0, short[1])).view(b.dtype).t())  # fmt: skip

        def peer() -> torch.Tensor:
            if not a.dtype.is_floating_point:
                return operator("_int_mm")(*aligned)
            if a.dtype.itemsize == 1:
                one = torch.ones((), device="cuda")
                return operator("_scaled_mm")(*aligned, one, one, out_dtype=kind, use_fast_accum=True)
            return torch.mm(a, b) if a.dtype == kind else torch.mm(a, b).to(kind)

        sizes = [x.numel() * x.element_size() for x in (a, b)]
        traffic = sum(sizes) + self.m * self.n * kind.itemsize
        return Trial(check, ours, {"torch": peer}, traffic, 2.0 * self.m * self.n * self.k, "TFLOP/s")


TYPES = (
    *(Typed(s, s, s, "i8", "i8", "i32") for s in (4096, 8192)),
    Typed(4096, 4096, 4096, "i8", "i8", "bf16"),
    Typed(128, 8192, 8192, "i8", "i8", "i32"),
    *(Typed(s, s, s, "f8E5M2", "f8E4M3FN", "bf16") for s in (4096, 8192)),
    *(Typed(s, s, s, "f8E4M3FN", "f8E4M3FN", "f8E4M3FN") for s in (4096, 8192)),
    Typed(4096, 4096, 4096, "f16", "f16", "f8E4M3FN"),
    *(Typed(s, s, s, "f32", "f32", "f32", math) for math in ("exact", "3xtf32", "tf32") for s in (4096, 8192)),
    *(Typed(s, s, s, "f64", "f64", "f64") for s in (4096, 8192)),
    *(Typed(s, s, s, "f32", "f32", "f32", "tf32", majors) for majors in ("mk", "mn") for s in (4096, 8192)),
    *(Typed(m, n, 8192, "f32", "f32", "f32", "tf32", "kn") for m, n in ((1024, 1024), (128, 8192), (8192, 256))),
    *(
        Typed(s, s, s, x, x, y, "default", majors)
        for x, y in (("i8", "i32"), ("f8E4M3FN", "bf16"))
        for majors in ("kn", "mk")
        for s in (4096, 8192)
    ),
    Typed(2048, 50257, 2048, "f16", "f16", "f16"),
    *(
        Typed(s, s, s, x, x, y, m)
        for s in (4095, 513)
        for x, y, m in (
            ("i8", "i32", "default"),
            ("f8E4M3FN", "bf16", "default"),
            ("f32", "f32", "tf32"),
            ("f32", "f32", "exact"),
            ("f64", "f64", "default"),
        )
    ),
)


# --------------------------------------------------------------------------------------------------------------- scales


class Scaled(NamedTuple):
    """``scaled_mm`` of (M, K) and (K, N), contiguous along K, to bf16; ``recipe``: ``tensor``, ``row`` or ``block``."""

    m: int
    n: int
    k: int
    recipe: str
    fast: bool = False

    @property
    def operation(self) -> str:
        """The function and the recipe, for example ``scaled_mm row fast``."""
        return f"scaled_mm {self.recipe}{' fast' * self.fast}"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.m}x{self.n}x{self.k}"

    def kernels(self) -> Mapping[str, Text]:
        choice = scaled_kernel(self.m, self.n, self.k, self.recipe, fast=self.fast, gpu="NVIDIA H200")
        return {choice.name: partial(text_of, choice)}

    def trial(self) -> Trial:
        """Create operands of normally distributed values and scales around one."""
        import torch

        torch.manual_seed(0)
        a, b = (normal("f8E4M3FN", rows, self.k) for rows in (self.m, self.n))
        blocks = -(-self.k // 128)
        shapes = {
            "tensor": ((1,), (1,)),
            "row": ((self.m, 1), (1, self.n)),
            "block": ((self.m, blocks), (-(-self.n // 128), blocks)),
        }
        sa, sb = (torch.rand(s, device="cuda") + 0.5 for s in shapes[self.recipe])

        def ours() -> torch.Tensor:
            return op.scaled_mm(a, b.t(), sa, sb, recipe=self.recipe, fast=self.fast)

        def check() -> float:
            rows = slice(0, self.m, max(1, self.m // 64))
            x, y = a[rows].double(), b.double()
            if self.recipe == "block":
                x = x * sa[rows].double().repeat_interleave(128, 1)[:, : self.k]
                y = y * sb.double().repeat_interleave(128, 0)[: self.n].repeat_interleave(128, 1)[:, : self.k]
                wanted, s = x @ y.t(), sa
            else:
                s = sa[rows].double() if self.recipe == "row" else sa.double()
                wanted = x @ y.t() * s * sb.double()
            # The result is rounded to bf16.  Tensor cores truncate sums of 32 products to 13 bits, over all of K or
            # over 128 of it.  They accumulate like a random walk: the largest of millions is six times the RMS.
            spread = (x.square() @ y.t().square()).sqrt()
            spread = spread if self.recipe == "block" else spread * s * sb.double()
            of_sums = (self.k / 32 if self.fast else 6 * 4) * 2.0**-14
            limit = 1.01 * 2.0**-8 * wanted.abs() + of_sums * (wanted.abs() + spread)
            return check_limit(self.name, ours()[rows], wanted, limit)

        scaled_mm = operator("_scaled_mm")

        def with_scales(x: torch.Tensor, y: torch.Tensor) -> Callable[[], torch.Tensor]:
            return lambda: scaled_mm(a, b.t(), x, y, out_dtype=torch.bfloat16, use_fast_accum=self.fast)

        peers: dict[str, Callable[[], Any]] = {}
        if self.recipe == "block":
            # cuBLASLt needs scales of A with contiguous columns, and scales of B padded to four blocks along K.
            of_b = torch.zeros(sb.shape[0], -(-blocks // 4) * 4, device="cuda")
            of_b[:, :blocks] = sb
            peers["torch"] = with_scales(sa.t().contiguous().t(), of_b[:, :blocks].t())
            same = (peers["torch"]()[:64].double() - ours()[:64].double()).norm() / ours()[:64].double().norm()
            if not float(same) <= 2.0**-7:
                raise BenchError(f"{self.name}: the result of torch differs by {float(same):.3g}")
        else:
            peers["torch"] = with_scales(sa, sb) if self.recipe == "row" else with_scales(sa[0], sb[0])
        traffic = self.m * self.k + self.n * self.k + 2 * self.m * self.n
        return Trial(check, ours, peers, traffic, 2.0 * self.m * self.n * self.k, "TFLOP/s")


SCALED = (
    *(
        Scaled(m, n, k, recipe, fast) for recipe in ("tensor", "row") for fast in (True, False)
        for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 7168, 4096))
    ),
    *(
        Scaled(m, n, k, "block") for m in (64, 128, 4096)
        for n, k in ((2112, 7168), (24576, 1536), (7168, 16384), (4096, 7168))
    ),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- modes of plans


class Mode(NamedTuple):
    """``matrices`` GEMMs of (M, K) and (K, N), as an array of pointers (``array``) or a batch.

    ``split`` is the number of split-K slices and ``math`` the math mode of the plan.  B is contiguous along K for i8,
    else along N.
    """

    m: int
    n: int
    k: int
    element: str = "f16"
    matrices: int = 1
    array: bool = False
    split: tuple[str, int] = ("serial", 1)
    math: str = "multiply_add"

    @property
    def operation(self) -> str:
        """The kind and the element type, for example ``array f16``."""
        what = "array" if self.array else f"split-K {self.split[0]}" if self.split[1] > 1 else self.math
        return f"{what} {self.element}"

    @property
    def name(self) -> str:
        parts = f", {self.split[1]} parts" if self.split[1] > 1 else ""
        return f"{self.operation} {self.matrices}x{self.m}x{self.n}x{self.k}{parts}"

    def plan(self) -> op.Gemm:
        """Return the plan of the call."""
        of_b = "column" if self.element == "i8" else "row"
        result = "i32" if self.element == "i8" else self.element
        plan = op.Gemm(element=self.element, element_C=result, layout_A="row", layout_B=of_b, layout_C="row")
        plan.math_operation = self.math
        return plan

    def kernels(self) -> Mapping[str, Text]:
        m, n, k, result = self.m, self.n, self.k, "i32" if self.element == "i8" else self.element
        operand, plan, found = partial(unread, self.element), self.plan(), list[Variant]()
        columns = self.element == "i8"
        if self.array:
            count = range(self.matrices)
            a, d = [operand(m, k) for _ in count], [unread(result, m, n) for _ in count]
            b = [operand(n, k).T if columns else operand(k, n) for _ in count]
            arguments = plan.arguments(a, b, None, d, device="cpu")
            found = [arguments.operation.variant_for(arguments.operands, array=True)]
        else:
            batch = (self.matrices,) if self.matrices > 1 else ()
            b = operand(n, k).T if columns and not batch else operand(*batch, k, n)
            a, d = operand(*batch, m, k), unread(result, *batch, m, n)
            found = plan.arguments(a, b, None, d, split_k=self.split, device="cpu").sources()
        return {variant.name: variant.text for variant in found}

    def trial(self) -> Trial:
        """Create operands of normally distributed values or small integers."""
        import torch

        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = False
        kind = dtype(self.element)

        def normal(rows: int, columns: int) -> Any:
            size = (self.matrices, rows, columns)
            if self.element == "i8":
                return torch.randint(-128, 128, size, device="cuda", dtype=kind)
            return torch.randn(size, device="cuda").to(kind)

        a, b = normal(self.m, self.k), normal(self.k, self.n)
        if self.element == "i8":
            b = normal(self.n, self.k).mT
        d = torch.empty(
            self.matrices, self.m, self.n, device="cuda", dtype=torch.int32 if self.element == "i8" else kind
        )
        plan = self.plan()
        if self.array:
            of_a, of_b, of_d = ([x.clone() for x in t] if t is not d else list(d.clone()) for t in (a, b, d))
            ours = plan.bind(of_a, of_b, None, of_d)
        elif self.matrices > 1:
            of_d, ours = d, plan.bind(a, b, None, d, split_k=self.split)
        else:
            of_d, ours = d, plan.bind(a[0], b[0], None, d[0], split_k=self.split)

        def loop() -> None:
            for x, y in zip(a, b):
                torch.mm(x, y)

        peers: dict[str, Callable[[], object]] = {"torch": lambda: torch.bmm(a, b)}
        if self.element == "i8":
            peers = {"torch": lambda: operator("_int_mm")(a[0], b[0])}
        elif self.array:
            peers["loop of torch.mm"] = loop

        def check() -> float:
            ours()
            worst = 0.0
            for x, y, z in zip(a, b, of_d):
                rows = slice(0, self.m, max(1, self.m // 32))
                exact, found = x[rows].double() @ y.double(), z[rows].double()
                if self.element == "i8":
                    check_exact(self.name, found, exact)
                    continue
                scale = exact.square().mean().sqrt()
                unit = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}[self.element]
                narrow = {"multiply_add_fast_f16": 2.0**-11, "multiply_add_fast_bf16": 2.0**-8}.get(self.math, 0.0)
                limit = 1.01 * unit * exact.abs() + (6 * narrow + self.k * 2.0**-24) * (scale + exact.abs())
                worst = max(worst, check_limit(self.name, found, exact, limit))
            return worst

        traffic = sum(t.numel() * t.element_size() for t in (a, b, d))
        work = 2.0 * self.matrices * self.m * self.n * self.k
        return Trial(check, ours, peers, traffic, work, "TFLOP/s")


MODES = (
    Mode(512, 512, 512, matrices=128, array=True),
    Mode(1024, 1024, 4096, matrices=16, array=True),
    Mode(2048, 2048, 128, "bf16", matrices=32, array=True),
    Mode(256, 256, 256, "f32", matrices=64, array=True),
    Mode(256, 256, 16384, matrices=4, split=("parallel", 8)),
    Mode(256, 256, 16384, matrices=4, split=("serial", 8)),
    *(Mode(4096, 4096, 4096, "f32", math=f"multiply_add_{math}") for math in ("fast_f32", "fast_f16", "fast_bf16")),
    Mode(4096, 4096, 4096, "i8", math="multiply_add_saturate"),
)

GROUPS = {"products": PRODUCTS, "types": TYPES, "scaled": SCALED, "modes": MODES}
