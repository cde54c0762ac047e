"""Dispatch of convolutions: the kernels, and the problem that they compute.

:data:`ROWS` lists the kinds of kernels in the order of preference.  Each row decides whether its kernels apply and are
predicted to be faster than those of later rows; the last row applies to all problems.

>>> from cute_dialect.op.problems.conv import geometry
>>> g = geometry("conv2d", "fprop", (32, 224, 224, 3), (64, 7, 7, 3), 2, 3, 1, 1)
>>> way = choose_conv(ConvTask(ConvRequest(g, "f16", "f16")))
>>> way.kind.value, way.inner.request.geometry.filter
('the columns of the filter are folded into channels', (64, 7, 1, 32))
>>> choose_conv(way.inner).config.name
'fprop-f16-f16-7x1-p3x0-s2x1-256x64-c1d-w32'
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.conv.config import WGRAD, ConvConfig, of_elements
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
from cute_dialect.kernels.conv.few_results import FewResultsConfig
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.conv.channel_padding import narrow
from cute_dialect.op.conv.choice import ConvRequest, chosen_with_time, config_for, has_epilogue, slices_of
from cute_dialect.op.conv.few_channels import FewChannels, PartialWeights, few_channels
from cute_dialect.op.conv.gemm_time import gradient_as_fprop, grouped_gemm
from cute_dialect.op.conv.im2col_gemm import type_of_sums

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.epilogue.combination import LinearCombination
    from cute_dialect.op.problems.conv import ConvOptions, Prepared


class ConvTask(NamedTuple):
    """A convolution whose kernels are chosen, and the GPU."""

    request: ConvRequest
    gpu: str = ""
    sms: int = 132
    kernel: object = None  # the kernel that the call selects
    plain: bool = True  # there is no traced epilogue, addend, bias or activation
    traced: bool = False  # the epilogue is traced
    wide: str = "f32"  # type of an accumulator in memory
    nothing: bool = False  # alpha is 0, so that operands do not matter
    vector: int = 8  # elements of the result that one store writes; 0 if rows are not contiguous

    @property
    def in_parts(self) -> bool:
        """True if f32 is split into tf32 parts, which only GEMMs of columns do."""
        return self.request.sums == "3xtf32"

    def of_sums(self) -> ConvTask:
        """Return the task without its epilogue, whose result is the accumulator."""
        request = self.request._replace(output=self.wide, epilogue=Epilogue())
        return self._replace(request=request, plain=True, traced=False)


def task_of(
    ready: Prepared, epilogue: Epilogue, given: ConvOptions, extras: LinearCombination, gpu: str, sms: int, *,
    traced: bool, vector: int = 8,
) -> ConvTask:  # fmt: skip
    """Return the task of a checked call; ``traced`` is True if its epilogue is traced."""
    sums = "" if ready.arithmetic in ("tf32", "exact") else ready.arithmetic
    request = ConvRequest(ready.geometry, ready.element, ready.output, sums, epilogue, slices_of(given.split_k))
    plain = not traced and ready.c is None and ready.bias is None and not extras.activation
    wide, nothing = type_of_sums(ready.image.dtype), extras.alpha == 0.0
    return ConvTask(request, gpu, sms, given.kernel, plain, traced, wide, nothing, vector)


class ConvKind(Enum):
    """A kind of kernels, and the reason for it."""

    FEW_CHANNELS = "a group has few channels"
    TRANSPOSED = "fprop of the gradient with a transposed filter"
    FOLDED = "the columns of the filter are folded into channels"
    APART = "the arrays' library computes the epilogue"
    IM2COL = "im2col loads"
    PADDED_GROUPS = "groups are padded"
    GROUPS = "a launch for each group"
    COLUMNS = "columns are written to memory"


class ConvDispatch(NamedTuple):
    """A dispatch decision for a convolution."""

    kind: ConvKind
    request: ConvRequest  # the problem that the kernel computes
    config: ConvConfig | None = None  # the kernel with im2col loads
    few: FewChannels | None = None  # the kernel for few channels
    apart: bool = False  # the array library computes the epilogue
    microseconds: float = 0.0  # predicted time of ``config``
    inner: ConvTask | None = None  # a convolution that is dispatched again: of copies, accumulators or a group


def choose_conv(task: ConvTask) -> ConvDispatch:
    """Return the dispatch decision for a convolution.  Raises UnsupportedError for an unsuitable ``task.kernel``."""
    if task.nothing:
        return _columns(task)
    return next(found for row in ROWS if (found := row(task)) is not None)


def _few_channels(task: ConvTask) -> ConvDispatch | None:
    """Choose a kernel for few channels per group; epilogues that it does not support are computed by the library."""
    request = task.request
    if task.kernel is not None or task.in_parts:
        return None
    few = few_channels(request._replace(sums=""), task.sms)
    if few is None:
        return None
    epilogue, output = request.epilogue, request.output
    if isinstance(few, PartialWeights):
        apart = epilogue.active
        return ConvDispatch(ConvKind.FEW_CHANNELS, request, few=few, apart=apart)
    if task.vector == 0 or (isinstance(few, DepthwiseConfig) and task.vector < few.channels):
        return None
    if isinstance(few, FewResultsConfig):
        apart = epilogue.active
        few = few._replace(output=task.wide if apart else output)
    else:
        apart = not of_elements(epilogue)
        few = few._replace(output=task.wide if apart else output, epilogue=Epilogue() if apart else epilogue)
    return ConvDispatch(ConvKind.FEW_CHANNELS, request, few=few, apart=apart)


def _transposed(task: ConvTask) -> ConvDispatch | None:
    """Compute the gradient of an image as an fprop, whose loads can be narrower."""
    request = task.request
    if task.kernel is not None or task.in_parts or request.sums or request.geometry.is_product:
        return None
    found = gradient_as_fprop(request._replace(epilogue=Epilogue(), parts=0), task.gpu, task.sms)
    if found is None:
        return None
    inner = task._replace(request=request._replace(geometry=found[1]))
    return ConvDispatch(ConvKind.TRANSPOSED, request, inner=inner)


def _folded(task: ConvTask) -> ConvDispatch | None:
    """Fold the columns of the filter into channels."""
    request = task.request
    left = None if task.in_parts or request.geometry.is_product else narrow(request, task.gpu, task.sms)
    if left is None:
        return None
    apart = request.geometry.kind == WGRAD and not task.plain
    inner = task.of_sums() if apart else task
    inner = inner._replace(request=inner.request._replace(geometry=left))
    return ConvDispatch(ConvKind.FOLDED, request, apart=apart, inner=inner)


def _im2col(task: ConvTask) -> ConvDispatch | None:
    """Choose a GEMM with im2col loads."""
    request = task.request
    if request.geometry.is_product or (task.kernel is None and task.in_parts):
        return None
    apart = request.epilogue.active and not has_epilogue(request.geometry, request.epilogue)
    request = task.of_sums().request if apart else request
    if task.kernel is not None:
        found = 0.0, config_for(request, task.kernel, task.gpu, task.sms)
    else:
        found = chosen_with_time(request, task.gpu, task.sms)
    if found is None:
        return None
    if apart:
        return ConvDispatch(ConvKind.APART, request, apart=True, inner=task.of_sums())
    return ConvDispatch(ConvKind.IM2COL, request, found[1], microseconds=found[0])


def _groups(task: ConvTask) -> ConvDispatch | None:
    """Choose a GEMM with im2col loads for padded groups, or for one group at a time."""
    request, groups = task.request, task.request.geometry.groups
    chooses = task.plain and task.kernel is None and not task.in_parts
    if groups == 1 or request.geometry.is_product or not chooses:
        return None
    grouped = grouped_gemm(request, task.gpu, task.sms)
    if grouped is None:
        return None
    request = request._replace(geometry=grouped)
    if grouped.groups == 1:
        return ConvDispatch(ConvKind.GROUPS, request, inner=task._replace(request=request))
    found = chosen_with_time(request, task.gpu, task.sms)
    assert found is not None
    return ConvDispatch(ConvKind.PADDED_GROUPS, request, found[1], microseconds=found[0])


def _columns(task: ConvTask) -> ConvDispatch:
    """Write columns to memory and multiply them; a convolution of one tap is multiplied in place.

    The GEMM of groups is a batch, whose kernels have no bias per matrix.
    """
    apart = task.traced or (task.request.geometry.groups > 1 and not task.plain)
    return ConvDispatch(ConvKind.COLUMNS, task.request, apart=apart)


ROWS: tuple[Callable[[ConvTask], ConvDispatch | None], ...] = (
    _few_channels,
    _transposed,
    _folded,
    _im2col,
    _groups,
    _columns,
)
"""The kinds of kernels, in the order of preference."""
