"""Plans of GEMMs on GPUs without wgmma, whose kernels are those of ``op.Gemm`` with the ``kernel_cc`` of the GPU.

:func:`plan_on` returns the plan of a call for its :class:`~cute_dialect.op.select.gemm_dispatch.Target`.  On sm_100 and
sm_120 it selects the kernels with TMA.  Other GPUs, and operands that TMA cannot read, take those of sm_80.

>>> from cute_dialect.op.problems.gemm import GemmProblem, check_gemm
>>> from cute_dialect.op.epilogue.combination import LinearCombination
>>> a, b, out = (ArrayView(0, (512, 512), (512, 1), "f16", -1, "numpy", None) for _ in range(3))
>>> views = {"a": a, "b": b, "out": out}
>>> checked = check_gemm(GemmProblem.of("mm", 2, views, None, LinearCombination(), tf32=False))
>>> plan_on("mm", checked, views, Target("NVIDIA B200", 148, chip=100))[0].kernel.name
'f16-f16-kn-64x64x64-13-sm100'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from cute_dialect.kernels.common.elements import BITS, factors, sums_of
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.ampere import AmpereConfig
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.sm100 import Sm100Config
from cute_dialect.kernels.gemm.sm120 import Sm120Config
from cute_dialect.op.arrays.dtypes import SIZES, both, check_types, element_of
from cute_dialect.op.arrays.library import aligned_strides
from cute_dialect.op.arrays.operand_views import folded, folds
from cute_dialect.op.epilogue.bind import Arranged
from cute_dialect.op.errors import DtypeError, LayoutError, UnsupportedError
from cute_dialect.op.problems.gemm import CheckedGemm, without_memory
from cute_dialect.op.problems.operands import Operands, matrix
from cute_dialect.op.select.backends import MMA_SYNC, WGMMA, backend_of, unmeasured
from cute_dialect.op.select.configurations import Configured, KernelRequest, SgemmRung, check_chip, configured
from cute_dialect.op.select.descriptions import TileDescription
from cute_dialect.op.select.gemm_dispatch import CACHES, SCALES, Plan, Target, by_rows, check_flipped, make_plan
from cute_dialect.op.select.plan_tiles import chosen, problem_of, tiles_of
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.epilogue.graph import Graph


def plan_on(
    call: str,
    checked: CheckedGemm,
    views: Mapping[str, ArrayView],
    target: Target,
    graph: Graph | None = None,
    own: Arranged | None = None,
) -> tuple[Plan, bool]:
    """Return the plan of a checked problem on any GPU; see :func:`~cute_dialect.op.select.gemm_dispatch.make_plan`.

    Raises LayoutError, UnsupportedError.
    """
    if not target.chip:
        return make_plan(call, checked, views, target, graph, own)
    epilogue = checked.epilogue if graph is None else Epilogue(graph=graph)
    try:
        return _planned(call, without_memory(views), checked.result, checked.arithmetic, epilogue, target), False
    except TypeError:  # A requested kernel that cannot be hashed; its check reports it.
        return _plan(call, without_memory(views), checked.result, checked.arithmetic, epilogue, target), False


def _plan(
    call: str,
    operands: tuple[tuple[str, ArrayView], ...],
    result: str,
    arithmetic: str,
    epilogue: Epilogue | None,
    target: Target,
) -> Plan:
    """Return the plan of a GEMM.  It computes the transposed problem if the columns of the result are contiguous."""
    views, chip = dict(operands), target.chip
    _check_request(call, views, arithmetic, target)
    flipped = not matrix(views["out"]).along(1)
    if flipped:
        check_flipped(call, views, epilogue)
    views, turned = by_rows(views, epilogue)
    kind = both(views["a"].dtype, views["b"].dtype)
    check_types(kind, result, arithmetic)
    element = element_of(kind, arithmetic)
    by_row = turned is not None and turned.by_row
    x, y, z = (matrix(views[n]) for n in ("a", "b", "out"))
    is_folded = folds(x, y, z) and (z.matrices == 1 or not by_row)
    if is_folded and len(views["out"].shape) == 3:
        views |= {n: folded(views[n]) for n in ("a", "out", "c") if n in views}
        views["b"] = views["b"]._replace(shape=views["b"].shape[1:], strides=views["b"].strides[1:])
    copied = _copied(views, element, chip)
    views |= {n: _aligned(views[n], mode) for n, mode in copied.items()}
    of_a, of_b = factors(element)
    layouts = ["row" if matrix(views[n]).along(1) else "column" for n in ("a", "b")]
    is_batch = len(views["out"].shape) == 3
    asked = KernelRequest(of_a, of_b, sums_of(element), result, *layouts, batch=is_batch, has_tma=False, chip=chip)
    asked = _of_chip(asked)
    m, n, k = views["out"].shape[-2], views["b"].shape[-1], views["a"].shape[-1]
    problem = problem_of(asked, m, n, k, views["out"].shape[0] if is_batch else 1)
    kernel = _kernel_of(call, views, asked, turned, target)
    by_torch = kernel is None
    if kernel is None:
        kernel = _kernel_of(call, views, asked, None, target)
        assert kernel is not None
    chip_name = backend_of(kernel).target or f"sm_{chip}"
    return Plan(
        problem, kernel, epilogue, flipped, chip_name, copied=tuple(copied), folded=is_folded, by_torch=by_torch
    )


_planned = lru_cache(maxsize=4096)(_plan)
CACHES.append(_planned.cache_clear)


def _check_request(call: str, views: Mapping[str, ArrayView], arithmetic: str, target: Target) -> None:
    """Raise UnsupportedError for scales, arithmetic and requests that only the kernels of sm_90 have."""
    if SCALES[0] in views:
        WGMMA.check_gpu(divmod(target.chip, 10), call)
    if arithmetic not in ("", "exact", "tf32"):
        words = {"two": "two-level accumulation", "3xtf32": "math='3xtf32'"}
        cure = "use math='default' (fast=True of scaled_mm)" if arithmetic == "two" else "omit math and accumulator"
        raise UnsupportedError(
            f"{call}: {words.get(arithmetic, f'accumulation in {arithmetic}')} needs the kernels of sm_{WGMMA.chip}, "
            f'but the GPU is sm_{target.chip}; {cure}, or use device="cpu"'
        )
    if target.wanted.split_k is not None:
        raise UnsupportedError(
            f"{call}: split_k needs the kernels of sm_{WGMMA.chip}, but the GPU is sm_{target.chip}; use op.Gemm with "
            f"kernel_cc={target.chip}, whose run() has split_k"
        )


def _copied(views: Mapping[str, ArrayView], element: str, chip: int) -> dict[str, int]:
    """Return the operands that are copied for TMA, with the contiguous mode of their copies.

    16-bit operands are not copied: other kernels read them in place.
    """
    backend = unmeasured(chip)
    if backend is None or element not in ("tf32", *_BYTES_OF_FLOATS):
        return {}
    if element == "tf32" and not backend.has_tensor_memory:
        return {}
    along_k = element == "tf32" or not backend.has_tensor_memory
    found = dict[str, int]()
    for name, mode in (("a", 1), ("b", 0)):
        x = matrix(views[name])
        if not x.suits_tma() or (along_k and not x.along(mode)):
            found[name] = mode if along_k else int(x.along(1))
    return found


def _of_chip(asked: KernelRequest) -> KernelRequest:
    """Return the requirements of kernels for the chip, or of those for sm_80 if the chip has none for the operands."""
    if unmeasured(asked.chip) is None:
        return asked
    try:
        check_chip(asked.chip, asked, "")
    except (DtypeError, LayoutError, UnsupportedError):
        return asked._replace(chip=MMA_SYNC.chip)
    return asked


_BYTES_OF_FLOATS = ("f8E4M3FN", "f8E5M2", "f8E4M3FN_f8E5M2", "f8E5M2_f8E4M3FN")


def _aligned(view: ArrayView, mode: int) -> ArrayView:
    """Return the view of an aligned copy of an operand, contiguous along a mode."""
    return view._replace(pointer=0, strides=aligned_strides(view.shape, mode, SIZES[view.dtype]))


def _kernel_of(
    call: str, views: Mapping[str, ArrayView], asked: KernelRequest, epilogue: Epilogue | None, target: Target
) -> Configured | None:
    """Return the best kernel with an epilogue, in terms of the kernel's D; None if the array library computes it.

    Raises UnsupportedError if the call selects another kernel.
    """
    graph = None if epilogue is None else epilogue.graph
    x = Operands(
        views["a"],
        views["b"],
        views["out"],
        views.get("c"),
        along="" if epilogue is None else epilogue.bias,
        graph=graph,
    )
    opclass = "simt" if asked.element == "f32" else "tensor_op"
    first = chosen(x, asked, gpu=target.gpu, sms=target.sms, opclass=opclass, chip=asked.chip, call=call)
    given, names = target.wanted.kernel, list[str]()
    if isinstance(given, TileDescription):
        kernel = configured(given, asked)
        return kernel if epilogue is None or _has_epilogue(kernel, epilogue, asked, x.b.shape[-1]) else None
    for td in _candidates(first, asked, (x.d.shape[-2], x.b.shape[-1], x.a.shape[-1]), opclass, target):
        kernel = configured(td, asked)
        if given is not None and given not in _names_of(kernel, epilogue, target):
            names.append(kernel.name)
            continue
        if epilogue is None or not epilogue.active:
            return kernel
        if _has_epilogue(kernel, epilogue, asked, x.b.shape[-1]):
            return kernel
    if given is not None:
        raise UnsupportedError(
            f"{call}: kernel is {given!r}; on sm_{target.chip} use one of {', '.join(dict.fromkeys(names))}, or omit it"
        )
    return None


def _candidates(
    first: TileDescription, asked: KernelRequest, problem: tuple[int, int, int], opclass: str, target: Target
) -> Iterator[TileDescription]:
    """Yield the best tile, and then the others that can read the same operands."""
    yield first
    if opclass == "simt":
        return
    is_first = type(configured(first, asked))
    for td in tiles_of(asked, problem, gpu=target.gpu, sms=target.sms, opclass=opclass, chip=asked.chip):
        kernel = configured(td, asked)
        if type(kernel) is is_first:
            is_direct = isinstance(kernel, Sm100Config) and first.epilogue_schedule == "direct"
            yield td.replace({"epilogue_schedule": "direct"}) if is_direct else td


def _names_of(kernel: Configured, epilogue: Epilogue | None, target: Target) -> tuple[str, str]:
    """Return the name of a kernel, and its name in explanations, with the epilogue and the chip."""
    whole = kernel
    if epilogue is not None and isinstance(kernel, Sm100Config | Sm120Config | AmpereConfig | WarpConfig):
        whole = kernel._replace(epilogue=epilogue)
    return kernel.name, f"{whole.name}-{backend_of(kernel).target or f'sm_{target.chip}'}"


def _has_epilogue(kernel: Configured, epilogue: Epilogue, asked: KernelRequest, columns: int) -> bool:
    """Return True if a kernel computes an epilogue of rows with this number of columns.

    The kernels of sm_80 compute it element by element, for 16-bit operands only.
    """
    if isinstance(kernel, Sm100Config):
        try:
            kernel._replace(epilogue=epilogue).check()
        except ValueError:
            return False
        return not epilogue.whole_rows or columns <= kernel.tile[1]
    if isinstance(kernel, SgemmRung) or BITS[asked.element_a] == 32 or asked.output not in ("f16", "bf16", "f32"):
        return False
    if not isinstance(kernel, Sm120Config) and BITS[asked.element_a] != 16:
        return False
    return epilogue.graph is None or epilogue.by_element


def why_chosen(plan: Plan, chip: int) -> str:
    """Return the reason for the kernel of a plan for a GPU without wgmma."""
    if isinstance(plan.kernel, Sm100Config | Sm120Config):
        return "TMA can read both operands"
    backend = unmeasured(chip)
    if backend is None:
        return f"sm_{chip} runs the kernels of sm_{MMA_SYNC.chip}"
    of_a, of_b = factors(plan.problem.element)
    try:
        check_chip(chip, KernelRequest(of_a, of_b, "f32", plan.problem.output, layout_b="column", chip=chip), "")
    except (DtypeError, UnsupportedError):
        return f"no kernel of sm_{chip} with TMA multiplies {plan.problem.element} to {plan.problem.output}"
    return "TMA needs addresses and strides that are multiples of 16 bytes"
