"""Matrix multiply on Hopper: which kernel for which problem, and ``mm`` as in torch.

>>> choose(Problem(8192, 8192, 8192), gpu="NVIDIA H200").name         # measured
'f16-f16-kk-128x256-c2d'
>>> choose(Problem(8000, 8000, 8000)).config.tile                       # predicted
(128, 256, 64)
>>> choose(Problem(1024, 1024, 1024)).config.tile[0] * choose(Problem(1024, 1024, 1024)).config.tile[1] <= 128 * 128
True
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import SplitConfig
from cute_dialect.kernels.gemm.epilogue import Epilogue, Hook
from cute_dialect.kernels.gemm.skinny import few_rows_text
from cute_dialect.op.choice import Choice, Problem, tuned
from cute_dialect.op.fused import Matrix, bias_mode, like, unfused
from cute_dialect.op.model import best, costs_of
from cute_dialect.op.operands import check_addends, check_product, check_result, import_torch, matrix
from cute_dialect.runtime import settings

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["Runner", "any_rows", "choose", "library", "mm", "runner", "text_of"]


def choose(problem: Problem, sms: int = 132, gpu: str = "") -> Choice:
    """Return the kernel for a problem on a chip of ``sms`` multiprocessors.

    ``gpu``: the name of the GPU, whose tables (:mod:`cute_dialect.op.choice`) are asked first: the user's, then the
    one of this package; then, and without a name, what is predicted to be the fastest of the menu
    (:mod:`cute_dialect.op.model`), by the costs of that GPU.
    """
    found = tuned(gpu).get(problem.key) if gpu else None
    return found or best(problem, costs_of(gpu, sms))


def text_of(choice: Choice) -> str:
    """Return the kernel's file."""
    if choice.skinny is not None:
        return few_rows_text(choice.skinny)
    return gemm_text(SplitConfig(choice.config, choice.parts) if choice.parts > 1 else choice.config)


@cache
def library(choice: Choice) -> CompiledModule:
    """Return the compiled kernel, from the compile cache where it is there."""
    return _compiled(choice.name, lambda: text_of(choice))


def _compiled(name: str, text: Callable[[], str]) -> CompiledModule:
    """Return a kernel by its name: from the folder ``CUTE_KERNELS`` (what ``cute-bench gemm --build`` made), else
    compiled.
    """
    from cute_dialect.pipelines import compile
    from cute_dialect.runtime import load

    kernels = settings.folder("CUTE_KERNELS", there=True)
    if kernels is not None and os.path.isdir(os.path.join(kernels, name)):
        return load(os.path.join(kernels, name))
    return compile(text(), filename=f"{name}.mlir")


class Runner:
    """A kernel with the memory that its blocks share; call it with A (M, K), B (N, K) and C (M, N)."""

    def __init__(self, choice: Choice, module: CompiledModule):
        self.choice = choice
        self._kernel: Kernel = module.kernel("launch")
        self._alone = choice.parts == 1 and not choice.config.stream_k
        self._shared: dict[tuple[object, int], tuple[object, object]] = {}

    def __call__(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, *more: object) -> None:
        """Compute ``c = a b^T`` on the current stream; ``more``: the epilogue's arguments."""
        if self._alone:
            self._kernel(a, b, c, *more)
        else:
            self._kernel(a, b, c, *self._workspace(c), *more)

    def _workspace(self, c: torch.Tensor) -> tuple[object, object]:
        import torch

        size, counters = self.choice.workspace(*c.shape)
        key = (torch.cuda.current_stream(c.device), counters)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = (
                torch.empty(size, device=c.device, dtype=torch.float32),
                torch.zeros(counters, device=c.device, dtype=torch.int32),
            )
        return found


@cache
def runner(choice: Choice) -> Runner:
    """Return the compiled kernel, ready to be called."""
    return Runner(choice, library(choice))


@cache
def any_rows(element: str, major_a: str, major_b: str) -> Kernel:
    """Return the kernel for rows that TMA cannot read: ``cp.async`` where it can serve them, else
    element by element.
    """
    from cute_dialect.kernels.ampere_gemm import AmpereConfig, ampere_gemm_text

    majors = ("k" if major_a == "k" else "mn", "k" if major_b == "k" else "mn")
    config = AmpereConfig(element, majors=majors)
    return _compiled(config.name, lambda: ampere_gemm_text(config)).kernel("launch")


_ELEMENTS = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32", "float8_e4m3fn": "f8E4M3FN"}


_OUTPUTS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}


def mm(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    activation: str = "",
    hook: Hook | None = None,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Return ``activation(alpha * a @ b + beta * c + bias)``, for f16, bf16, f32 (in tf32) and e4m3 on a Hopper GPU.

    ``a``: (M, K), ``b``: (K, N), each with a contiguous mode; ``out``: (M, N), row-major; ``dtype``: of the result
    where there is no ``out``, else that of ``a`` (bf16 for e4m3).  ``c``: like the result, may be ``out``, as in
    ``torch.addmm``; ``bias``: (N,), a value a column, or (M, 1), a value a row.  ``activation``: relu, gelu, gelu_tanh
    or silu.  ``hook``: :data:`cute_dialect.kernels.gemm.epilogue.Hook`, always the same function for the same
    kernel.  All of that is in f32, on the sums; ``alpha`` and ``beta`` are arguments of the kernel.

    Matrices of f16 and bf16 whose rows or addresses are no multiples of 16 bytes go through a kernel without TMA, and
    torch does the rest.  Raises ValueError for other types, shapes and devices, before anything is compiled;
    ``LaunchError`` where no kernel can read a matrix, with the reason; ImportError without torch.
    """
    torch = import_torch()
    x, y = matrix("a", a), matrix("b", b)
    check_product(a, b, x, y)
    shape = (x.shape[0], y.shape[1])
    if out is None:
        if dtype is None:
            dtype = torch.bfloat16 if a.dtype == torch.float8_e4m3fn else a.dtype
        d = torch.empty(shape, device=a.device, dtype=dtype)
        z = matrix("out", d)
    else:
        d, z = out, matrix("out", out)
        check_result(a, b, d, z, shape, dtype)
    if 0 in (*shape, x.shape[1]):  # nothing to multiply: sums of no terms
        if hook is not None:
            raise ValueError("expected matrices with elements for a hook")
        check_addends(a, shape, {"c": c, "bias": bias}, {"alpha": alpha, "beta": beta})
        return unfused(torch.zeros(shape, device=a.device), d, alpha, beta, c if beta else None, bias, activation)
    if alpha == 1.0 and c is None and bias is None and not activation and hook is None:
        _kernel_for(x, y, z, str(a.dtype), str(d.dtype))(a, b.t(), d)
        return d
    check_addends(a, shape, {"c": c, "bias": bias}, {"alpha": alpha, "beta": beta})
    if hook is not None and not callable(hook):
        raise ValueError(f"mm: hook: expected a function, got {hook!r}")
    c = None if beta == 0.0 else c
    if not fits_tma(x, y, z, str(a.dtype), str(d.dtype)) or d.shape[1] % 2:
        if hook is not None:
            raise ValueError("expected matrices whose addresses and rows are multiples of 16 bytes for a hook")
        return unfused(mm(a, b), d, alpha, beta, c, bias, activation)
    epilogue = Epilogue(
        alpha=1.0 if alpha == 1.0 else "arg",
        beta=0.0 if c is None else 1.0 if beta == 1.0 else "arg",
        bias="" if bias is None else bias_mode(tuple(bias.shape), *d.shape),
        bias_type="f32" if bias is None else _output(str(bias.dtype)),
        activation=activation,
        hook=hook,
    )
    more: list[object] = [] if c is None else [like(c, d)]
    if bias is not None:
        flat = bias.reshape(-1).contiguous()
        more.append(flat if flat.data_ptr() % 16 == 0 else flat.clone())
    more += [number for kind, number in ((epilogue.alpha, alpha), (epilogue.beta, beta)) if kind == "arg"]
    _kernel_for(x, y, z, str(a.dtype), str(d.dtype), epilogue)(a, b.t(), d, *more)
    return d


def _output(dtype: str) -> str:
    found = _OUTPUTS.get(dtype.removeprefix("torch."))
    if found is None:
        raise ValueError(f"expected a result and a bias of {', '.join(_OUTPUTS)}, got {dtype}")
    return found


def fits_tma(a: Matrix, b: Matrix, out: Matrix, dtype: str, result: str) -> bool:
    """Tell whether the Hopper kernel takes these matrices; types without another kernel always go there."""
    element = _element(dtype)
    _output(result)
    return element not in ("f16", "bf16") or all(m.suits_tma() for m in (a, b, out))


def _element(dtype: str) -> str:
    element = _ELEMENTS.get(dtype.removeprefix("torch."))
    if element is None:
        raise ValueError(f"expected elements of {', '.join(_ELEMENTS)}, got {dtype}")
    return element


@cache
def _kernel_for(
    a: Matrix, b: Matrix, out: Matrix, dtype: str, result: str, epilogue: Epilogue | None = None
) -> Runner | Kernel:
    element, output = _element(dtype), _output(result)
    majors = ("k" if a.contiguous == 1 else "m", "n" if b.contiguous == 1 else "k")
    if not fits_tma(a, b, out, dtype, result):
        if output != element:
            raise ValueError(f"expected a result of {element} for rows of no whole 16 bytes, got {output}")
        return any_rows(element, *majors)
    choice = choose(Problem(a.shape[0], b.shape[1], a.shape[1], element, output, *majors), gpu=_gpu())
    return runner(choice if epilogue is None else with_epilogue(choice, epilogue))


def with_epilogue(choice: Choice, epilogue: Epilogue) -> Choice:
    """Return the same kernel with an epilogue."""
    skinny = None if choice.skinny is None else choice.skinny._replace(epilogue=epilogue)
    return choice._replace(config=choice.config._replace(epilogue=epilogue), skinny=skinny)


@cache
def _gpu() -> str:
    """Return the name of torch's current GPU, none without one."""
    try:
        import torch
    except ImportError:
        return ""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""
