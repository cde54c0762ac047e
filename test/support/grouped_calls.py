"""Grouped GEMMs that the GPU tests run. Their kernels are determined on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from cute_dialect import op
from cute_dialect.op.execute import grouped as calls
from cute_dialect.op.execute import kernels

ENDS = {
    "even": [64, 128, 192, 256],
    "skewed": [0, 3, 250, 250, 251, 300, 300],
    "none": [0, 0, 0],
    "many": list(range(3, 3 * 300 + 1, 3)),
}
REST = 12
"""Padding rows, past the last group."""


class Case(NamedTuple):
    """A grouped GEMM: the grouped dimension, the ends of the groups, extents, element type and options."""

    form: str
    ends: str
    m: int = 136
    n: int = 264
    k: int = 200
    element: str = "float16"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        more = "".join(f"-{key}{value}" for key, value in self.options)
        return f"{self.form}-{self.ends}-{self.m}x{self.n}x{self.k}-{self.element}{more}"

    @property
    def rows(self) -> int:
        """Return the grouped extent, including padding rows, as a multiple of 16 so that TMA can load columns."""
        return -(-(ENDS[self.ends][-1] + REST) // 16) * 16

    def operands(self, device: str) -> tuple[Any, Any]:
        """Return operands of small integers, with NaN in rows of no group."""
        generator = torch.Generator().manual_seed(len(self.name))

        def made(*shape: int) -> Any:
            return torch.randint(-2, 3, shape, generator=generator).to(getattr(torch, self.element)).to(device)

        groups, last = len(ENDS[self.ends]), ENDS[self.ends][-1]
        if self.form == "k":
            a, b = made(self.rows, self.m), made(self.rows, self.n)
            a[last:], b[last:] = float("nan"), float("inf")
            return a.t(), b
        rows, matrices = made(self.rows, self.k), made(groups, self.k, self.n)
        if self.element == "float8_e4m3fn":
            matrices = matrices.mT.contiguous().mT
        else:
            rows[last:] = float("nan")
        return (rows, matrices) if self.form == "m" else (matrices.mT, rows.t())

    def call(self, a: Any, b: Any, device: str | None = None) -> Any:
        """Run the case."""
        offs = torch.tensor(ENDS[self.ends], dtype=torch.int32, device=a.device)
        options = dict(self.options)
        if options.pop("bias", False):
            options["bias"] = torch.arange(len(offs) * b.shape[-1], device=a.device).reshape(len(offs), -1).half() % 8
        return op.grouped_mm(a, b, offs, rest="zero", device=device, **options)


CASES = [
    *(Case("m", ends, element=element) for ends in ENDS for element in ("float16", "bfloat16")),
    *(Case("k", ends) for ends in ENDS),
    *(Case("n", ends) for ends in ("even", "skewed")),
    Case("m", "skewed", element="float8_e4m3fn", n=256, k=208),
    Case("m", "skewed", options=(("activation", "relu"), ("bias", True))),
    *(Case("m", "skewed", n=528, options=(("kernel", f"f16-f16-kn-{name}"),))
      for name in ("128x256-n2bd", "128x256-c2bd", "256x128-n2bd", "128x128-n2bt-q6", "192x128-c1b")),
    *(Case("k", "skewed", m=264, options=(("kernel", f"f16-f16-mn-{name}"),))
      for name in ("128x256-c1b", "128x128-n2bt-q6", "256x128-c1b")),
    Case("m", "even", n=2048, k=1024), Case("k", "even", m=1024, n=1024), Case("m", "skewed", n=33, k=45),
]  # fmt: skip


@contextmanager
def recorded() -> Iterator[dict[str, Any]]:
    """Record the configurations of the kernels that calls use, by name, without running them."""
    found: dict[str, Any] = {}

    def kernel_of(config: Any, cpu: bool = False) -> Any:
        found[kernels.name_of(config)] = config
        return lambda *_, **__: None

    before, calls.kernel_of = calls.kernel_of, kernel_of
    try:
        yield found
    finally:
        calls.kernel_of = before


def texts() -> Mapping[str, str]:
    """Return the texts of the kernels of all cases, by name."""
    with recorded() as found:
        for case in CASES:
            case.call(*case.operands("cpu"), device="cpu")
        for made in OTHERS.values():
            made("cpu").call()
    return {name: kernels.text_of(config) for name, config in found.items()} | list_texts()


class Other(NamedTuple):
    """A grouped GEMM with other arguments. ``call`` computes it and ``wanted`` returns the exact result."""

    call: Any
    wanted: Any


def numbers(device: str, *shape: int, kind: Any = torch.float16, least: int = -2) -> Any:
    """Return small random integers; the seed depends only on the shape."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(least, 3, shape, generator=generator).to(kind).to(device)


def powers(device: str, *shape: int) -> Any:
    """Return powers of two, for which accumulators stay exact."""
    return torch.exp2(numbers("cpu", *shape, kind=torch.float32)).to(device)


PARTS = [slice(0, 5), slice(5, 5), slice(5, 200), slice(200, 261)]
ROWS, TILE = 272, op.TileDescription(
    (128, 128, 32), 3, (2, 2, 1), op.MathInstruction((16, 8, 16), "f16", "f16", "f32")
)  # fmt: skip
"""Eleven rows belong to no group."""


def ends_of(device: str) -> Any:
    return torch.tensor([p.stop for p in PARTS], dtype=torch.int32, device=device)


def by_rows(a: Any, b: Any, parts: list[slice]) -> Any:
    """Return the grouped GEMM over ranges of rows in float64, with zeros in rows of no group."""
    found = torch.zeros(a.shape[0], b.shape[2], dtype=torch.float64, device=a.device)
    for g, part in enumerate(parts):
        found[part] = a[part].double() @ b[g].double()
    return found


def _on(device: str) -> dict[str, Any]:
    """Return the argument that selects the device; a GPU needs none."""
    return {"device": "cpu"} if device == "cpu" else {}


def of_row_groups(device: str) -> Other:
    groups = torch.full((ROWS,), -1, dtype=torch.int32)
    groups[3:10], groups[16:250] = 1, 3
    parts = [slice(0, 0), slice(3, 10), slice(0, 0), slice(16, 250)]
    a, b, given = numbers(device, ROWS, 72), numbers(device, 4, 72, 136), groups.to(device)
    call = lambda: op.grouped_mm(a, b, row_groups=given, rest="zero", **_on(device))  # noqa: E731
    return Other(call, lambda: by_rows(a, b, parts))


def of_lengths(device: str) -> Other:
    used = [0, 7, 130, 40]
    a, b = numbers(device, 4, 136, 72), numbers(device, 4, 72, 136)
    lengths = torch.tensor(used, dtype=torch.int32, device=device)
    call = lambda: op.grouped_mm(a, b, lengths=lengths, rest="zero", **_on(device))  # noqa: E731

    def wanted() -> Any:
        found = a.double() @ b.double()
        for g, n in enumerate(used):
            found[g, n:] = 0
        return found

    return Other(call, wanted)


def of_gather(kind: Any) -> Any:
    def made(device: str) -> Other:
        a, b = numbers(device, 40, 80, kind=kind), numbers(device, 4, 80, 136, kind=kind)
        which = (torch.arange(ROWS, dtype=torch.int32) * 7 % 40).to(device)
        dtype: Any = {"dtype": "f32"} if kind == torch.int8 else {}
        call = lambda: op.grouped_mm(a, b, ends_of(device), gather=which, rest="zero", **dtype, **_on(device))  # noqa: E731
        return Other(call, lambda: by_rows(a[which.long()], b, PARTS))

    return made


def of_scales(recipe: str, form: str = "m") -> Any:
    """Return a GEMM of 8-bit floats with scales."""

    def made(device: str) -> Other:
        rows, n, k = ROWS, 144, 272
        e4 = torch.float8_e4m3fn
        a, b = numbers(device, rows, k, kind=e4), numbers(device, 4, n, k, kind=e4).mT
        blocks = -(-k // 128)
        shapes = {"tensor": ((1,), (4,)), "row": ((rows, 1), (4, n)), "block": ((rows, blocks), (4, 2, blocks))}
        sa, sb = (powers(device, *shape) for shape in shapes[recipe])
        x, y = a.double(), b.double()
        if recipe == "block":
            x = x * sa.double().repeat_interleave(128, 1)[:, :k]
            wide = sb.double().repeat_interleave(128, 1)[:, :n].repeat_interleave(128, 2)[:, :, :k]
            y = y * wide.mT
        else:
            x, y = x * sa.double(), y * sb.double().reshape(4, 1, -1)
        how: dict[str, Any] = {"rest": "zero", "dtype": "f32", **_on(device)}
        if form == "m":
            call = lambda: op.scaled_grouped_mm(a, b, sa, sb, ends_of(device), **how)  # noqa: E731
            return Other(call, lambda: by_rows(x, y, PARTS))
        used = [0, 7, 68, 40]
        lengths = torch.tensor(used, dtype=torch.int32, device=device)
        a3, s3, x3 = (t.reshape(4, 68, -1) for t in (a, sa, x))
        call = lambda: op.scaled_grouped_mm(a3, b, s3, sb, lengths=lengths, **how)  # noqa: E731

        def wanted() -> Any:
            found = x3 @ y
            for g, n in enumerate(used):
                found[g, n:] = 0
            return found

        return Other(call, wanted)

    return made


def of_type(kind: Any, form: str = "m", **options: Any) -> Any:
    """Return a GEMM of other element types, or with kernels that use mma.sync."""

    def made(device: str) -> Other:
        a, b = numbers(device, ROWS, 72, kind=kind), numbers(device, 4, 72, 136, kind=kind)
        how: dict[str, Any] = {**options, **_on(device)}
        if form == "m":
            call = lambda: op.grouped_mm(a, b, ends_of(device), rest="zero", **how)  # noqa: E731
            return Other(call, lambda: by_rows(a, b, PARTS))
        y = numbers(device, ROWS, 136, kind=kind)
        call = lambda: op.grouped_mm(a.t(), y, ends_of(device), **how)  # noqa: E731
        return Other(call, lambda: torch.stack([a[p].double().t() @ y[p].double() for p in PARTS]))

    return made


def both(accum: Any, bias: Any) -> Any:
    """Return two epilogue results."""
    E = accum + bias
    D = op.epilogue.relu(E)
    return D, E


def of_results(kernel: Any) -> Any:
    """Return a GEMM whose epilogue has two results."""

    def made(device: str) -> Other:
        a, b, bias = numbers(device, ROWS, 72), numbers(device, 4, 72, 136), numbers(device, 136)

        def call() -> Any:
            how: dict[str, Any] = {"kernel": kernel, "rest": "zero", **_on(device)}
            found = op.grouped_mm(a, b, ends_of(device), epilogue=both, args={"bias": bias}, **how)
            return torch.stack(list(found))

        def wanted() -> Any:
            sums = by_rows(a, b, PARTS)
            sums[: PARTS[-1].stop] += bias.double()
            return torch.stack([sums.relu(), sums])

        return Other(call, wanted)

    return made


OTHERS: dict[str, Any] = {
    "row_groups": of_row_groups, "lengths": of_lengths,
    **{f"gather {kind}": of_gather(kind) for kind in (torch.float16, torch.int8, torch.float64)},
    **{f"scales {recipe}": of_scales(recipe) for recipe in ("tensor", "row", "block")},
    "scales block, lengths": of_scales("block", "rows"),
    "f64": of_type(torch.float64), "f64 steps": of_type(torch.float64, "k"),
    "f32": of_type(torch.float32, math="exact"), "f32 steps": of_type(torch.float32, "k", math="exact"),
    "3xtf32": of_type(torch.float32, math="3xtf32"), "mma.sync": of_type(torch.float16, kernel=TILE),
    "two results": of_results(None), "two results, mma.sync": of_results(TILE),
}  # fmt: skip
"""Other grouped GEMMs by name, each a function of the device."""

LISTS = ((130, 264, 72), (7, 9, 11), (0, 8, 8), (16, 8, 0), (64, 512, 96))
"""M, N and K of each GEMM of a list."""


def lists_of(device: str, kind: Any) -> tuple[list[Any], list[Any]]:
    """Return the operands of a list of GEMMs."""
    a = [numbers(device, m, k, kind=kind) for m, _, k in LISTS]
    return a, [numbers(device, k, n, kind=kind, least=-1) for _, n, k in LISTS]


def list_plan(a: list[Any], b: list[Any], mode: str) -> Any:
    """Return the plan of a list of GEMMs."""
    element: Any = {"element_D": "i32"} if a[0].dtype == torch.int8 else {}
    return op.GroupedGemm(a, b, precompute_mode=mode, **element)


LIST_KINDS = tuple([(kind, mode) for kind in (torch.float16, torch.float64, torch.float32, torch.int8)
                    for mode in ("host", "device")])  # fmt: skip


def list_texts() -> dict[str, str]:
    """Return the texts of the kernels of the lists, by name."""
    found: dict[str, str] = {}
    for kind, mode in LIST_KINDS:
        arguments = list_plan(*lists_of("cpu", kind), mode).arguments(device="cpu")
        variants = arguments.variants + ([arguments.grouped.tiles_variant()] if mode == "device" else [])
        found |= {v.name: v.text() for v in variants}
    return found
