"""im2col TMA: tensor maps of images for convolutions, built by the host.

The host creates ``atom = cute.nvgpu.cpasync.make_im2col_tma_atom(op, image, channels=64, pixels=128, …)`` and passes it
to a kernel.  There ``cute.copy(atom, …)`` moves the channels of consecutive pixels in the box of the map.  One side of
the copy is a coordinate tensor: the channels lie along dimension 0, and the pixels are a mode of stride 0 that starts
at the first pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.lang.machine.atoms import CopyAtom, parsed_atom, refuse
from cute_dialect.lang.machine.operands import in_kernel
from cute_dialect.lang.machine.tma import TmaOp, global_source, reduced
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import Int16, Int32

if TYPE_CHECKING:
    from cute_dialect.lang.values.tensors import Tensor

__all__ = ["Im2colOp", "make_im2col_tma_atom", "prefetch_columns"]


class Im2colOp(TmaOp):
    """Base of the descriptors of im2col TMA copies."""

    multicast: ClassVar[bool | None] = None


def make_im2col_tma_atom(
    op: Im2colOp, gmem_tensor: Tensor, *, channels: int, pixels: int, lower: Sequence[int], upper: Sequence[int],
    pixel_strides: Sequence[int] | None = None, swizzle: int = 0, oob: str = "zero", l2_promotion: int = 128,
) -> CopyAtom:  # fmt: skip
    """Create the im2col TMA atom of an image (C, W, …, N) with contiguous C. Called on the host.

    For a filter of S taps along W with padding p and dilation d, ``lower`` is -p and ``upper`` is p - (S - 1) * d. A
    copy for tap s sets ``atom.set("im2col_offsets", (s * d, …))``.

    Args:
        op: an im2col TMA descriptor.
        gmem_tensor: the image in global memory.
        channels: channels per instruction.
        pixels: pixels per instruction.
        lower: lower corner of the box of base pixels, W first, as an offset from the image's first pixel.
        upper: upper corner, W first, as an offset from the image's last pixel.
        pixel_strides: the strides of the convolution; None means 1.
        swizzle: the swizzle width of the rows in shared memory, in bytes.
        oob: fill value for out-of-bounds elements.
        l2_promotion: L2 promotion size in bytes.
    """
    what = f"make_im2col_tma_atom({getattr(op, 'name', op)})"
    if not isinstance(op, Im2colOp):
        raise KernelTypeError("F250", f"{what}: op must be an im2col TMA descriptor")
    tracer = current()
    source = global_source(gmem_tensor, op, what, "the atom")
    image: Any = reduced(source, op)
    words: list[str] = [str(image.type.data.ptr.element)]
    words += [reduction] if (reduction := getattr(op, "reduction_kind", "")) else []
    words += [f"channels = {int(channels)}", f"pixels = {int(pixels)}"]
    for name, numbers in (("lower", lower), ("upper", upper), ("pixel_strides", pixel_strides)):
        if numbers is not None:
            words.append(f"{name} = ({', '.join(str(int(n)) for n in numbers)})")
    given = (("swizzle", swizzle, 0), ("oob", oob, "zero"), ("l2", l2_promotion, 128))
    words += [f"{name} = {value}" for name, value, usual in given if value != usual]
    type = parsed_atom(f"!cute_nvgpu.atom.tma_{op.direction}_im2col<{', '.join(words)}>", what)
    made = tracer.op(f"cute_nvgpu.make_tma_{op.direction}_im2col", [image], [type])
    try:
        made.check_types()  # The type was given explicitly, so check that the tensor fits it.
    except AlgebraError as e:
        refuse("F254", what, e, hint=f"the tensor is {source!r}")
    return CopyAtom(type, op, made.results[0])


def prefetch_columns(atom: CopyAtom, coords: Any, what: str) -> None:
    """Prefetch into the L2 cache the data of one im2col load."""
    kind: Any = atom.type
    if coords.is_memory or not kind.LOADS:
        raise KernelTypeError("F254", f"{what}: needs an im2col load and a coordinate tensor, got {coords!r}")
    moved = kind.data.channels * kind.data.pixels
    if size(coords.shape_payload) != moved:
        raise KernelTypeError(
            "F254", f"{what}: the coordinates must cover one instruction ({moved} elements), got {coords!r}"
        )
    offsets = dict(atom.state).get("im2col_offsets", (0,) * kind.data.spatial)
    where = [*[Int32(x).ssa for x in coords.iterator], *[Int16(x).ssa for x in offsets]]
    in_kernel(what).op("cute_nvgpu.arch.tma_prefetch_im2col", [atom.ssa, *where])
