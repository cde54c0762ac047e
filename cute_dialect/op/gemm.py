"""Matrix multiply on Hopper: which kernel for which problem, ``mm`` and ``bmm`` as in torch.

>>> choose(Problem(8192, 8192, 8192), gpu="NVIDIA H200").name         # measured
'f16-f16-kk-128x224-c2dw'
>>> [m * n >= 128 * 192 for m, n, _ in [choose(Problem(size, size, size)).config.tile for size in (1000, 8000)]]
[False, True]
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import BITS, SplitConfig
from cute_dialect.kernels.gemm.epilogue import Epilogue, Hook
from cute_dialect.kernels.gemm.skinny import few_rows_text
from cute_dialect.op.choice import Choice, Problem, tuned
from cute_dialect.op.fused import Matrix, aligned_like, bias_mode, folds, like, unfused
from cute_dialect.op.known import Extras, KnownCalls, Prepared
from cute_dialect.op.model import best, costs_of
from cute_dialect.op.operands import check_addends, check_product, check_result, import_torch, matrix
from cute_dialect.runtime import settings
from cute_dialect.runtime.arrays import current_stream_of_torch

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["Runner", "Way", "any_rows", "bmm", "choose", "library", "mm", "runner", "text_of", "way_of"]


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


def library(choice: Choice, *, elsewhere: bool = False) -> CompiledModule:
    """Return the compiled kernel, from the compile cache where it is there; else compiled, or (``elsewhere``) compiled
    in another process.
    """
    return _LIBRARIES.get(choice, lambda: _compiled(choice.name, lambda: text_of(choice), elsewhere))


class Libraries:
    """Compiled kernels by what they are of.  Who asks for one that is being made waits for it; where making one fails
    the next one to ask tries again.
    """

    def __init__(self) -> None:
        self._made: dict[object, Future[CompiledModule]] = {}
        self._lock = Lock()

    def get(self, key: object, make: Callable[[], CompiledModule]) -> CompiledModule:
        """Return the kernels of ``key``, made if they are not."""
        with self._lock:
            found = self._made.get(key)
            mine = found is None
            if found is None:
                found = self._made[key] = Future()
        if mine:
            try:
                found.set_result(make())
            except BaseException as e:
                with self._lock:
                    del self._made[key]
                found.set_exception(e)
        return found.result()

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._made.clear()


_LIBRARIES = Libraries()


def _compiled(name: str, text: Callable[[], str], elsewhere: bool = False) -> CompiledModule:
    """Return a kernel by its name: from the folder ``CUTE_KERNELS`` (what ``cute-bench gemm --build`` made), else
    compiled.
    """
    from cute_dialect.pipelines import compile
    from cute_dialect.runtime import load

    kernels = settings.folder("CUTE_KERNELS", there=True)
    if kernels is not None and os.path.isdir(os.path.join(kernels, name)):
        return load(os.path.join(kernels, name))
    if elsewhere:
        from cute_dialect.pipelines.stages import compile_text_elsewhere

        return compile_text_elsewhere(text(), f"{name}.mlir")
    return compile(text(), filename=f"{name}.mlir")


class Runner:
    """A kernel with the memory that its blocks share; call it with A (M, K), B (N, K) and C (M, N), of batches with a
    third mode.
    """

    def __init__(self, choice: Choice, module: CompiledModule):
        self.choice = choice
        self._kernel: Kernel = module.kernel("launch")
        self._alone = choice.parts == 1 and not choice.config.stream_k
        self._swapped = choice.swapped
        self._shared: dict[tuple[int, int, int], tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, *more: object) -> None:
        """Compute ``c = a b^T`` on the current stream; ``more``: the epilogue's arguments."""
        given, more = self._given(a, b, c), self._extras(more)
        if self._alone:
            self._kernel(*given, *more)
        else:
            index = c.device.index or 0
            self._kernel(*given, *self._memory(current_stream_of_torch()(index), index, c.shape), *more)

    def _given(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return what the kernel takes: of the swapped problem, ``c^T = b a^T``."""
        return (b, a, c.transpose(0, 1)) if self._swapped else (a, b, c)

    def _extras(self, given: tuple[object, ...]) -> tuple[object, ...]:
        """Return the epilogue's arguments as the kernel takes them: the source like the result."""
        if not self._swapped or self.choice.config.epilogue.beta == 0.0:
            return given
        source, *others = given
        return source.transpose(0, 1), *others  # type: ignore[attr-defined]

    def _memory(self, stream: int, device: int, shape: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the memory for a launch on a stream, which keeps it; a launch that a graph captures has its own, since
        only the graph's replay sets its counters to zero.
        """
        import torch

        size, counters = self.choice.workspace(*shape)
        key = (stream, device, counters)
        found = None if torch.cuda.is_current_stream_capturing() else self._shared.get(key)
        if found is None:
            found = (
                torch.empty(size, device=f"cuda:{device}", dtype=torch.float32),
                torch.zeros(counters, device=f"cuda:{device}", dtype=torch.int32),
            )
            if not torch.cuda.is_current_stream_capturing():
                self._shared[key] = found
        return found

    def prepared(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, *extras: object) -> Prepared | None:
        """Return what launches on matrices like these at other addresses; ``extras``: the epilogue's arguments."""
        given, extras = self._given(a, b, c), self._extras(extras)
        if self._alone:
            found = _prepared(self._kernel, *given, *extras)
        else:
            index, shape = c.device.index or 0, tuple(c.shape)

            def more(stream: int) -> tuple[int, ...]:
                workspace, counters = self._memory(stream, index, shape)
                return workspace.data_ptr(), counters.data_ptr()

            memory = self._memory(current_stream_of_torch()(index), index, shape)
            found = _prepared(self._kernel, *given, *memory, *extras, more=more)
        return _in_order(found) if self._swapped and found is not None else found


def _in_order(prepared: Prepared) -> Prepared:
    """Return a launch that takes the address of A before that of B, of one that takes B's first."""
    launch = prepared.launch

    def swapped(stream: int, a: int, b: int, c: int, *more: int) -> None:
        launch(stream, b, a, c, *more)

    return prepared._replace(launch=swapped)


def _prepared(
    kernel: Kernel, *args: object, more: Callable[[int], tuple[int, ...]] | None = None
) -> Prepared | None:  # fmt: skip
    launch = kernel.by_address(*args)
    numbers = sum(isinstance(x, int | float) for x in args)
    return None if launch is None else Prepared(launch, kernel.alignment - 1, more, numbers)


@cache
def runner(choice: Choice) -> Runner:
    """Return the compiled kernel, ready to be called."""
    return Runner(choice, library(choice))


@cache
def any_rows(element: str, major_a: str, major_b: str, batch: bool = False) -> Kernel:
    """Return the kernel for rows that TMA cannot read: ``cp.async`` where it can serve them, else
    element by element.
    """
    return any_rows_library(element, major_a, major_b, batch).kernel("launch")


def any_rows_library(
    element: str, major_a: str, major_b: str, batch: bool = False, *, elsewhere: bool = False
) -> CompiledModule:  # fmt: skip
    """Return the compiled kernel of :func:`any_rows`; ``elsewhere``: compiled in another process."""
    from cute_dialect.kernels.ampere_gemm import AmpereConfig, ampere_gemm_text

    majors = ("k" if major_a == "k" else "mn", "k" if major_b == "k" else "mn")
    config = AmpereConfig(element, majors=majors, batch=batch)
    return _LIBRARIES.get(config, lambda: _compiled(config.name, lambda: ampere_gemm_text(config), elsewhere))


_MM, _BMM = KnownCalls(), KnownCalls()
"""Plain products that were computed."""

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
    torch does the rest; those of f32 and e4m3 are copied, also where they are not contiguous along K
    (:func:`cute_dialect.op.explain` says so).  Raises ValueError for other types, shapes and devices, before anything
    is compiled; ImportError without torch.
    """
    if alpha == 1.0 and c is None and bias is None and hook is None and not activation:
        done = _MM.again(a, b, out, dtype)
        return _product("mm", 2, a, b, out, dtype, Extras()) if done is None else done
    extras = Extras(alpha, beta, c, bias, activation, hook)
    done = _MM.again_with(a, b, out, dtype, extras)
    return _product("mm", 2, a, b, out, dtype, extras) if done is None else done


def bmm(
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
    """Return the product of each matrix of ``a``, (L, M, K), with that of ``b``, (K, N) of (L, K, N): (L, M, N).

    One of them may be one for all, (1, M, K) or with stride 0.  The rest is as in :func:`mm`, the same for all
    matrices but ``c``, which expands to (L, M, N).  Where ``b`` is one for all, and the rows of ``a`` and ``out`` go on
    from matrix to matrix, it is the product of (L M, K) with (K, N).
    """
    if alpha == 1.0 and c is None and bias is None and hook is None and not activation:
        done = _BMM.again(a, b, out, dtype)
        return _product("bmm", 3, a, b, out, dtype, Extras()) if done is None else done
    extras = Extras(alpha, beta, c, bias, activation, hook)
    done = _BMM.again_with(a, b, out, dtype, extras)
    return _product("bmm", 3, a, b, out, dtype, extras) if done is None else done


def epilogue_of(
    extras: Extras, m: int, n: int, bias: tuple[int, ...] | None, bias_type: str
) -> Epilogue | None:  # fmt: skip
    """Return what a kernel does with its sums, (m, n) of a matrix; None for nothing.

    ``bias``: the shape of one, and torch's name of its type.  Raises ValueError.
    """
    if extras.plain:
        return None
    none = extras.c is None or extras.beta == 0.0
    return Epilogue(
        alpha=1.0 if extras.alpha == 1.0 else "arg",
        beta=0.0 if none else 1.0 if extras.beta == 1.0 else "arg",
        bias="" if bias is None else bias_mode(bias, m, n),
        bias_type="f32" if bias is None else output_of(bias_type),
        activation=extras.activation,
        hook=extras.hook,
    )


def _product(
    call: str, rank: int, a: Any, b: Any, out: Any, dtype: torch.dtype | None, extras: Extras
) -> torch.Tensor:  # fmt: skip
    """Compute ``mm`` (``rank`` 2) or ``bmm`` (3)."""
    torch = import_torch()
    call_of = (a, b, out, dtype)
    x, y = matrix(call, "a", a), matrix(call, "b", b)
    check_product(call, rank, a, b, x, y)
    shape = (y.matrices if x.matrices == 1 else x.matrices, x.shape[0], y.shape[1])[3 - rank :]
    if out is None:
        if dtype is None:
            dtype = torch.bfloat16 if a.dtype == torch.float8_e4m3fn else a.dtype
        d = torch.empty(shape, device=a.device, dtype=dtype)
        z = matrix(call, "out", d)
    else:
        d, z = out, matrix(call, "out", out)
        check_result(call, a, b, d, z, shape, dtype)
    alpha, beta, c, bias, activation, hook = extras
    if not extras.plain:
        check_addends(call, a, shape, {"c": c, "bias": bias}, {"alpha": alpha, "beta": beta})
        if hook is not None and not callable(hook):
            raise ValueError(f"{call}: hook: expected a function, got {hook!r}")
    c = None if beta == 0.0 else c
    if 0 in (*shape, x.shape[1]):  # nothing to multiply: sums of no terms
        if hook is not None:
            raise ValueError(f"{call}: expected matrices with elements for a hook")
        return unfused(torch.zeros(shape, device=a.device), d, alpha, beta, c, bias, activation)
    of_bias = (None, "") if bias is None else (tuple(bias.shape), str(bias.dtype))
    epilogue = epilogue_of(extras, *z.shape, *of_bias)
    way = _way(a.device, x, y, z, str(a.dtype), str(d.dtype), epilogue)
    if way.by_torch:
        if hook is not None:
            raise ValueError(
                f"{call}: expected matrices whose addresses and rows are multiples of 16 bytes, and an even number of "
                "columns, for a hook"
            )
        return unfused(_product(call, rank, a, b, None, None, Extras()), d, alpha, beta, c, bias, activation)
    result = d
    if rank == 3 and way.folded:
        a, b, d = a.reshape(-1, a.shape[-1]), b[0], d.view(-1, d.shape[-1])
        c = None if c is None else c.expand(shape).reshape(d.shape)
    elif rank == 3:  # one for all is one matrix to the kernel
        a, b = (t[:1] if m.step == 0 else t for t, m in ((a, x), (b, y)))
    a = aligned_like(a, 1).copy_(a) if "a" in way.copied else a
    b = aligned_like(b, 0).copy_(b) if "b" in way.copied else b
    target = aligned_like(d, 1) if "out" in way.copied else d
    more: list[Any] = []
    if epilogue is not None:
        if c is not None:
            source = like(c, target)
            more.append(source if source.dim() == 2 else source.permute(1, 2, 0))
        if bias is not None:
            flat = bias.reshape(-1).contiguous()
            more.append(flat if flat.data_ptr() % 16 == 0 else flat.clone())
        more += [number for kind, number in ((epilogue.alpha, alpha), (epilogue.beta, beta)) if kind == "arg"]
    given = (a, b.t(), target) if d.dim() == 2 else (a.permute(1, 2, 0), b.permute(2, 1, 0), target.permute(1, 2, 0))
    kernel = way.kernel()
    kernel(*given, *more)
    if target is not d:
        d.copy_(target)
    # What was copied would have to be copied again.
    read = [t for t in more if not isinstance(t, int | float)]
    in_place = all(t.data_ptr() == x.data_ptr() for t, x in zip(read, extras.tensors))
    if in_place and not way.copied and result.is_cuda:
        prepared = kernel.prepared(*given, *more) if isinstance(kernel, Runner) else _prepared(kernel, *given)
        if prepared is not None:
            (_MM if rank == 2 else _BMM).remember(*call_of, result, prepared, extras)
    return result


def output_of(dtype: str) -> str:
    """Return the type of a result, or a bias, by torch's name.  Raises ValueError."""
    found = _OUTPUTS.get(dtype.removeprefix("torch."))
    if found is None:
        raise ValueError(f"expected a result and a bias of {', '.join(_OUTPUTS)}, got {dtype}")
    return found


def element_of(dtype: str) -> str:
    """Return the type of elements that are multiplied, by torch's name.  Raises ValueError."""
    element = _ELEMENTS.get(dtype.removeprefix("torch."))
    if element is None:
        raise ValueError(f"expected elements of {', '.join(_ELEMENTS)}, got {dtype}")
    return element


class Way(NamedTuple):
    """How a product is computed.

    ``problem``: what the kernel is given; ``choice``: a kernel of the menu, or None: the one for any rows;
    ``copied``: of ``a``, ``b`` and ``out`` those that the kernel cannot read or write where they are; ``folded``: the
    batch is one product of matrices; ``by_torch``: what becomes of the sums is torch's work.
    """

    problem: Problem
    choice: Choice | None
    copied: tuple[str, ...] = ()
    folded: bool = False
    by_torch: bool = False

    def kernel(self) -> Runner | Kernel:
        """Return the compiled kernel."""
        if self.choice is not None:
            return runner(self.choice)
        p = self.problem
        return any_rows(p.element, p.major_a, p.major_b, p.matrices > 1)


@lru_cache(maxsize=4096)
def way_of(
    a: Matrix, b: Matrix, out: Matrix, dtype: str, result: str, epilogue: Epilogue | None = None,
    gpu: str = "", sms: int = 132,
) -> Way:  # fmt: skip
    """Return how a product is computed: ``a`` (M, K), ``b`` (K, N), ``out`` (M, N), or batches of them.

    ``dtype``, ``result``: of the factors and of ``out``, as torch names them; ``epilogue``: what becomes of the sums;
    ``gpu``, ``sms``: as for :func:`choose`.  Raises ValueError for types and strides that there is no kernel for.
    """
    element, output = element_of(dtype), output_of(result)
    m, n, k, matrices = *out.shape, a.shape[1], out.matrices
    by_row = epilogue is not None and (epilogue.bias == "m" or epilogue.hook is not None)
    folded = folds(a, b, out) and (matrices == 1 or not by_row)
    if folded:
        m, matrices = m * matrices, 1
    majors = ("k" if a.contiguous == 1 else "m", "n" if b.contiguous == 1 else "k")
    copied: list[str] = []
    if BITS[element] == 16:
        readable = all(x.suits_tma() for x in (a, b, out))
    else:  # only what is contiguous along K can be multiplied; of this all can be copied
        readable, majors = True, ("k", "k")
        wanted = (("a", a, 1), ("b", b, 0), ("out", out, 1))
        copied = [name for name, x, mode in wanted if not (x.along(mode) and x.suits_tma())]
    problem = Problem(m, n, k, element, output, *majors, matrices)
    by_torch = epilogue is not None and (not readable or n % 2 != 0)
    if not readable:
        if output != element and not by_torch:
            raise ValueError(f"expected a result of {element} for rows of no whole 16 bytes, got {output}")
        return Way(problem, None, (), folded, by_torch)
    choice = choose(problem, sms, gpu)
    if epilogue is not None and not by_torch:
        choice = with_epilogue(choice, epilogue)
    return Way(problem, choice, tuple(copied), folded, by_torch)


def _way(
    device: torch.device, a: Matrix, b: Matrix, out: Matrix, dtype: str, result: str, epilogue: Epilogue | None
) -> Way:  # fmt: skip
    return way_of(a, b, out, dtype, result, epilogue, *gpu_of(device))


def with_epilogue(choice: Choice, epilogue: Epilogue) -> Choice:
    """Return the same kernel with an epilogue; a swapped problem has the swapped one."""
    epilogue = epilogue.transposed() if choice.swapped else epilogue
    skinny = None if choice.skinny is None else choice.skinny._replace(epilogue=epilogue)
    return choice._replace(config=choice.config._replace(epilogue=epilogue), skinny=skinny)


@cache
def gpu_of(device: torch.device) -> tuple[str, int]:
    """Return the name of a GPU and its number of multiprocessors."""
    import torch

    properties = torch.cuda.get_device_properties(device)
    return properties.name, properties.multi_processor_count
