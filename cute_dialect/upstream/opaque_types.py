"""Types of gpu, nvgpu and other dialects whose parameters are stored as text."""

from typing import ClassVar

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import at_punctuation, raw_body


class OpaqueType(Data[str], TypeAttribute):
    """Type whose parameters are stored as text. A `plain` type has no parameters."""

    plain: ClassVar[bool] = True

    def __init__(self, text: str = "") -> None:
        super().__init__(text)

    @property
    def text(self) -> str:
        """Parameters without the brackets."""
        return self.data

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        if cls.plain:
            return ""
        if not at_punctuation(parser, "<"):
            parser.raise_error(f"expected '<' after '!{cls.name}'")
        return raw_body(parser)

    def print_parameter(self, printer: Printer) -> None:
        if not self.plain:
            printer.print_string(f"<{self.data}>")


class AsyncTokenType(OpaqueType):
    """`!gpu.async.token`"""

    name = "gpu.async.token"


class SparseDnTensorHandleType(OpaqueType):
    """`!gpu.sparse.dntensor_handle`"""

    name = "gpu.sparse.dntensor_handle"


class SparseSpMatHandleType(OpaqueType):
    """`!gpu.sparse.spmat_handle`"""

    name = "gpu.sparse.spmat_handle"


class SparseSpGEMMOpHandleType(OpaqueType):
    """`!gpu.sparse.spgemmop_handle`"""

    name = "gpu.sparse.spgemmop_handle"


class MMAMatrixType(OpaqueType):
    """`!gpu.mma_matrix<16x16xf16, "AOp">`"""

    name = "gpu.mma_matrix"
    plain = False


class DeviceAsyncTokenType(OpaqueType):
    """`!nvgpu.device.async.token`"""

    name = "nvgpu.device.async.token"


class MBarrierTokenType(OpaqueType):
    """`!nvgpu.mbarrier.token`"""

    name = "nvgpu.mbarrier.token"


class MBarrierGroupType(OpaqueType):
    """`!nvgpu.mbarrier.group<memorySpace = …, num_barriers = 4>`"""

    name = "nvgpu.mbarrier.group"
    plain = False


class TensorMapDescriptorType(OpaqueType):
    """`!nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, …>`"""

    name = "nvgpu.tensormap.descriptor"
    plain = False


class WarpgroupAccumulatorType(OpaqueType):
    """`!nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>`"""

    name = "nvgpu.warpgroup.accumulator"
    plain = False


class WarpgroupMatrixDescriptorType(OpaqueType):
    """`!nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>`"""

    name = "nvgpu.warpgroup.descriptor"
    plain = False


class _Types:
    all: ClassVar[dict[str, type[OpaqueType]]] = {
        t.name: t
        for t in (
            AsyncTokenType, SparseDnTensorHandleType, SparseSpMatHandleType, SparseSpGEMMOpHandleType, MMAMatrixType,
            DeviceAsyncTokenType, MBarrierTokenType,
            MBarrierGroupType, TensorMapDescriptorType, WarpgroupAccumulatorType,
            WarpgroupMatrixDescriptorType,
        )
    }  # fmt: skip


def opaque_class(name: str) -> type[OpaqueType] | None:
    """Return the class of the type `!name`, or None if it is not stored as text."""
    return _Types.all.get(name)


def opaque_type(name: str) -> Attribute:
    """Build the type `!name` without parameters."""
    return _Types.all[name]()


def opaque_types(dialect: str) -> list[type[OpaqueType]]:
    """Return the types of `dialect` that are stored as text."""
    return [t for n, t in _Types.all.items() if n.startswith(dialect + ".")]
