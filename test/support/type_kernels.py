"""Kernels of single element types that GPU tests launch directly: exact f32, ``mma.sync`` (f64 and others), 3xTF32."""

from __future__ import annotations

from collections.abc import Callable

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SkinnyConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text
from cute_dialect.kernels.gemm.mma_sync import WarpConfig, warp_gemm_text
from cute_dialect.kernels.gemm.simt import ExactConfig, exact_gemm_text
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig, split_text

EXACT = [ExactConfig(a, b) for a in "km" for b in "nk"]
EXACT += [ExactConfig(batch=True), ExactConfig(epilogue=Epilogue(alpha="arg", bias="n", activation="relu"))]
EXACT += [ExactConfig(small=True, parts=3), ExactConfig("m", "k", batch=True, small=True, parts=2)]
EXACT += [ExactConfig("m", small=True)]
WARP = [
    WarpConfig(element, output, (a, b))
    for element, output in (("f64", "f64"), ("tf32", "f32"), ("i8", "i32"), ("i8_ui8", "i32"), ("f8E4M3FN", "bf16"))
    for a, b in (("k", "mn"), ("mn", "k"))
]
WARP += [WarpConfig(batch=True), WarpConfig("i8", "i8")]
WARP += [WarpConfig(element, output, ("k", "mn"), parts=4) for element, output in (("f64", "f64"), ("tf32", "f32"))]
WARP += [WarpConfig("i8", "i32", batch=True, tile=(64, 64), warps=(2, 2), parts=3)]
WARP += [WarpConfig("tf32", "f32", ("mn", "mn"), tile=(64, 64), warps=(2, 2), stages=8, parts=8, ahead=True)]
TF32 = GemmConfig(element="tf32", output="f32", tile=(128, 128, 32), deferred=False)
THREE = {"three": TF32._replace(promote=True, tile=(128, 192, 32)), "three_at_once": TF32._replace(tile=(128, 256, 32))}
"""3xTF32 GEMMs, with two-level and with one-level accumulation."""

WORDS = GemmConfig(
    element="tf32", output="f32", tile=(128, 256, 32), cluster_m=2, deferred=False, major_a="m", major_c="m"
)
BYTES = WORDS._replace(element="i8", output="i32", tile=(128, 256, 128))
REGISTERS: dict[str, GemmConfig] = {
    "words_columns": WORDS,
    "words_rows": WORDS._replace(major_c="n", cluster_m=1, cluster_n=2, tile=(256, 128, 32)),
    "words_small": WORDS._replace(tile=(64, 32, 32), cluster_m=1, cluster_n=4),
    "words_turns": WORDS._replace(tile=(128, 128, 32), schedule="pingpong", cluster_m=1),
    "words_batch": WORDS._replace(tile=(192, 96, 32), cluster_m=1, batch=True),
    "bytes_columns": BYTES,
    "bytes_rows": BYTES._replace(major_c="n", cluster_m=1, cluster_n=2, tile=(192, 128, 128)),
    "bytes_floats": BYTES._replace(element="f8E4M3FN", output="bf16", tile=(128, 224, 128), deferred=True),
    "bytes_shared": BYTES._replace(tile=(256, 128, 128), major_c="n", cluster_m=1, cluster_n=2),
    "direct": GemmConfig(direct=True),
    "direct_columns": WORDS._replace(direct=True),
}
"""Hopper GEMMs that load A through registers, and GEMMs that store to rows of any alignment."""

_FEW = SkinnyConfig(columns=128, stages_a=4, stages=6)
FEW: dict[str, SkinnyConfig] = {
    "few_a_along_m": _FEW._replace(major_a="m"),
    "few_b_along_n": _FEW._replace(major_b="n", rows=64, live=32, columns=96, parts=2, direct=True),
    "few_neither_along_k": _FEW._replace(major_a="m", major_b="n", parts=4, element="bf16", output="bf16"),
    "few_columns": _FEW._replace(major_c="m"),
    "few_columns_of_any": _FEW._replace(major_c="m", major_a="m", major_b="n", rows=64, parts=4),
    "few_columns_words": _FEW._replace(
        major_c="m", rows=64, live=16, parts=2, element="tf32", output="f32", direct=True
    ),
    "few_columns_bytes": _FEW._replace(major_c="m", parts=2, element="f8E4M3FN", output="bf16"),
}  # fmt: skip
"""Skinny GEMMs for few rows with other major modes, and for few columns."""

KERNELS: dict[str, Callable[[], str]] = {
    **{c.name: lambda c=c: exact_gemm_text(c) for c in EXACT},
    **{c.name: lambda c=c: warp_gemm_text(c) for c in WARP},
    **{name: lambda c=c: gemm_text(c) for name, c in THREE.items()},
    **{name: lambda c=c: gemm_text(c) for name, c in REGISTERS.items()},
    **{name: lambda c=c: few_rows_text(c) for name, c in FEW.items()},
    "split_a": lambda: split_text(PartsConfig("a")), "split_b": lambda: split_text(PartsConfig("b")),
}  # fmt: skip
