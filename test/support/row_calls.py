"""The row calls of ``test/gpu/test_op_rows_gpu.py``, and the kernels that they launch."""

from __future__ import annotations

from math import gcd

from cute_dialect.kernels.rows.packed import is_packed_length
from cute_dialect.kernels.rows.packed_norm_gradients import is_packed_norm_length
from cute_dialect.op.execute import rows as row_kernels
from cute_dialect.op.execute.array_call import RowKernel

LENGTHS = (7, 768, 1001, 4096, 5003, 12289, 32768, 50257, 128256)
MAPS = {
    "softmax": ("",), "log_softmax": ("",), "rms_norm": ("w", "wr", ""), "layer_norm": ("wb", "wbr", "")
}  # fmt: skip
SUMS = ("sum", "mean", "max", "logsumexp", "cross_entropy")
CALLS = [
    *((call, "bf16", n, takes) for call, kinds in MAPS.items() for n in LENGTHS for takes in kinds[:1]),
    *((call, element, n, "") for call in MAPS for element in ("f32", "f16") for n in (768, 1001, 40000)),
    *((call, "bf16", n, takes) for call, kinds in MAPS.items() for n in (1001, 4096, 16384) for takes in kinds[1:]),
    *(("rms_norm", "bf16", n, "r") for n in (768, 1001, 4096)),
    *((call, element, n, "") for call in SUMS for element in ("f32", "bf16") for n in (7, 768, 4095, 50257, 180560)),
]
"""Function, element type, row length, and optional arguments."""
GRADIENTS = [
    *((call, "bf16", n, "") for call in ("softmax", "log_softmax", "cross_entropy") for n in (7, 1001, 4096, 50257)),
    *(("rms_norm", "bf16", n, "w") for n in (7, 768, 1001, 4096, 5120, 32768)),
    *(("layer_norm", "bf16", n, "wb") for n in (7, 768, 1001, 4096, 12288, 32768)),
    ("rms_norm", "f32", 4096, "w"), ("layer_norm", "f32", 1001, "wb"), ("layer_norm", "bf16", 1001, ""),
    *((call, element, n, "") for call in ("max", "logsumexp") for element in ("f32", "bf16") for n in (7, 1001)),
]  # fmt: skip
"""Calls whose gradients are checked."""


TRANSPOSES = [
    ("bf16", 1001, 3), ("bf16", 3, 1001), ("bf16", 1002, 8), ("bf16", 31, 5000), ("f32", 4096, 16), ("f32", 17, 999),
    ("bf16", 900, 100),
]  # fmt: skip
"""Element type, rows and columns of narrow matrices."""


def packed_kernels() -> list[RowKernel]:
    """Return the kernels of calls with short contiguous rows, and those of narrow and unaligned transposes."""
    found: list[RowKernel] = []
    for call, element, n, takes in CALLS:
        if is_packed_length(element, n):
            entropy = call == "cross_entropy"
            if entropy:
                found.append(row_kernels.packed_entropy_kernel(element, n))
            else:
                found.append(row_kernels.packed_kernel(call, element, n, takes))
    for call, element, n, takes in GRADIENTS:
        if "norm" in call and is_packed_norm_length(element, n):
            found.append(row_kernels.packed_norm_kernel(call, element, n, takes))
        elif call == "cross_entropy" and is_packed_length(element, n):
            kinds = ((element, True), (element, False), ("f32", False))
            found += [row_kernels.packed_entropy_kernel(element, n, *of) for of in kinds]
        elif "norm" not in call and is_packed_length(element, n):
            found.append(row_kernels.packed_kernel(f"{call}_backward", element, n, "d" if "softmax" in call else "g"))
    for element, m, n in TRANSPOSES:
        vector = 4 if element == "f32" else 8
        found.append(
            row_kernels.narrow_kernel(element, min(m, n), gcd(vector, max(m, n)) if min(m, n) <= 32 else 1, m > n)
        )
    for e in ("f32", "bf16", "f16"):
        found += [
            row_kernels.unaligned_kernel(e, 1 << log, aligned) for log in (18, 22, 26) for aligned in (False, True)
        ]
    return found


def kernels() -> dict[str, RowKernel]:
    """Return all kernels by name."""
    found = [
        row_kernels.loss_kernel(element, mean, step)
        for element in ("f32", "bf16")
        for mean in (True, False)
        for step in ("all", "first", "last")
    ]
    for call, element, n, takes in CALLS:
        if call in SUMS:
            found += [row_kernels.sum_kernel(call, element, n, count) for count in (1, 133)]
        else:
            found.append(row_kernels.row_kernel(call, element, n, takes))
    for call, element, n, takes in GRADIENTS:
        if call == "cross_entropy":
            kinds = ((element, True), (element, False), ("f32", False))
            found += [row_kernels.entropy_kernel(element, n, *of) for of in kinds]
        elif "norm" not in call:
            found.append(row_kernels.row_kernel(f"{call}_backward", element, n, "d" if "softmax" in call else "g"))
        else:
            found.append(row_kernels.norm_kernel(call, element, n, takes))
            found += [row_kernels.column_kernel(element, takes, groups) for groups in (1, 100, 1000)] if takes else []
    return {k.name: k for k in [*found, *packed_kernels()]}
