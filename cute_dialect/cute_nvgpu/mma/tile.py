"""``convert-cute-algo-to-arch`` of products by matrix instructions of a thread or a warp."""

from __future__ import annotations

from cute_dialect.cute_nvgpu.mma.ops import DotProductOp, FmaOp, MmaSyncOp
from cute_dialect.cute_nvgpu.mma.types import DotProductType, UniversalFmaType
from cute_dialect.cute_nvgpu.tiled_mma.products import ProductOp
from cute_dialect.cute_nvgpu.tiled_mma.tile import Product, multiply_by


def multiply(product: Product) -> None:
    """Lower a ``cute.gemm``: one op an instruction."""
    make: type[ProductOp] = MmaSyncOp
    if isinstance(product.atom, UniversalFmaType | DotProductType):
        make = FmaOp if isinstance(product.atom, UniversalFmaType) else DotProductOp
    multiply_by(make, product)
