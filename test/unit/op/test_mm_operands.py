"""What ``mm`` and ``bmm`` are given: torch tensors that fit, or a message that names the operand, before anything is
compiled.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cute_dialect.op import gemm


class Tensor:
    """As much of a torch tensor as ``mm`` looks at before it chooses a kernel."""

    def __init__(
        self, *shape: int, dtype: str = "torch.float16", device: str = "cuda:0", at: int = 0, stride: Any = ()
    ):
        self.shape, self.dtype, self.device, self.is_cuda = shape, dtype, device, device.startswith("cuda")
        self._at = at or id(self) // 16 * 16
        steps = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        self._stride = tuple(stride) or tuple(steps)

    def stride(self) -> tuple[int, ...]:
        return self._stride

    def element_size(self) -> int:
        return {"torch.float16": 2, "torch.bfloat16": 2, "torch.float32": 4}[self.dtype]

    def data_ptr(self) -> int:
        return self._at

    def t(self) -> Tensor:
        return self


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(shape: tuple[int, ...], device: str, dtype: str) -> Tensor:
        return Tensor(*shape, device=device, dtype=dtype)

    def chosen(*_: object) -> object:
        raise AssertionError("a kernel was chosen")

    fake = SimpleNamespace(empty=empty, float8_e4m3fn="torch.float8_e4m3fn", bfloat16="torch.bfloat16")
    monkeypatch.setitem(sys.modules, "torch", fake)  # type: ignore[arg-type]
    monkeypatch.setattr(gemm, "_way", chosen)


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]
    with pytest.raises(ImportError) as e:
        gemm.mm(np.zeros((4, 4)), np.zeros((4, 4)))  # type: ignore[arg-type]
    assert str(e.value) == (
        "mm and bmm multiply torch tensors on a GPU and need torch (pip install torch); kernels alone take numpy "
        "arrays too: cute_dialect.pipelines.compile(…).kernel(…)"
    )


A, B = Tensor(64, 32), Tensor(32, 48)


@pytest.mark.parametrize(
    ("operands", "options", "said"),
    [
        (
            (np.zeros((64, 32)), B),
            {},
            "a: expected a strided torch tensor on a GPU, got numpy.ndarray; torch.as_tensor(a, device='cuda') "
            "makes one",
        ),
        (
            (A, [[1.0]]),
            {},
            "b: expected a strided torch tensor on a GPU, got list; 'list' object has no attribute 'shape'",
        ),
        ((A, Tensor(31, 48)), {}, "b: expected 32 rows, as a of shape (64, 32) has columns, got shape (31, 48)"),
        ((Tensor(32), B), {}, "a: expected a matrix, got a tensor of shape (32,)"),
        (
            (A, Tensor(2, 32, 48)),
            {},
            "b: expected a matrix, got a tensor of shape (2, 32, 48); bmm takes batches of them",
        ),
        (
            (A, Tensor(32, 48, dtype="torch.bfloat16")),
            {},
            "b: expected elements of torch.float16, as in a, got torch.bfloat16",
        ),
        ((A, Tensor(32, 48, device="cuda:1")), {}, "b: expected a tensor on cuda:0, as a is, got one on cuda:1"),
        ((A, Tensor(32, 48, device="cpu")), {}, "b: expected a tensor on cuda:0, as a is, got one on cpu"),
        (
            (Tensor(64, 32, device="cpu"), Tensor(32, 48, device="cpu")),
            {},
            "a: expected a tensor on a GPU, got one on cpu: a.cuda() is there",
        ),
        ((A, B), {"out": Tensor(64, 47)}, "out: expected shape (64, 48), got (64, 47)"),
        ((A, B), {"out": Tensor(48)}, "out: expected shape (64, 48), got (48,)"),
        ((A, B), {"out": Tensor(64, 48, device="cpu")}, "out: expected a tensor on cuda:0, as a is, got one on cpu"),
        (
            (A, B),
            {"out": Tensor(64, 48), "dtype": "torch.float32"},
            "dtype: expected that of out, torch.float16, got torch.float32",
        ),
        ((A, B), {"out": Tensor(64, 48, at=A.data_ptr())}, "out: expected memory of its own, it begins where a does"),
        (
            (A, B),
            {"out": Tensor(64, 48, stride=(1, 64))},
            "out: expected rows that are contiguous, got strides (1, 64)",
        ),
        ((A, B), {"alpha": "2"}, "alpha: expected a number, got '2'"),
        ((A, B), {"beta": None, "c": Tensor(64, 48)}, "beta: expected a number, got None"),
        ((A, B), {"c": Tensor(64, 47)}, "c: expected a shape that expands to (64, 48), got (64, 47)"),
        ((A, B), {"c": np.zeros((64, 48))}, "c: expected a strided torch tensor on a GPU, got numpy.ndarray; "
         "torch.as_tensor(c, device='cuda') makes one"),
        ((A, B), {"bias": Tensor(48, device="cpu")}, "bias: expected a tensor on cuda:0, as a is, got one on cpu"),
        ((A, B), {"hook": "relu"}, "hook: expected a function, got 'relu'"),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit(operands: tuple[Any, Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as e:
        gemm.mm(*operands, **options)
    assert str(e.value) == f"mm: {said}"


BATCH_A, BATCH_B = Tensor(3, 64, 32), Tensor(3, 32, 48)


@pytest.mark.parametrize(
    ("operands", "options", "said"),
    [
        ((A, BATCH_B), {}, "a: expected matrices, (L, rows, columns), got a tensor of shape (64, 32); mm takes one"),
        ((BATCH_A, Tensor(4, 32, 48)), {}, "b: expected as many matrices as in a, 3, or one, got 4"),
        ((BATCH_A, Tensor(0, 32, 48)), {}, "b: expected as many matrices as in a, 3, or one, got 0"),
        (
            (BATCH_A, Tensor(3, 31, 48)),
            {},
            "b: expected 32 rows, as a of shape (3, 64, 32) has columns, got shape (3, 31, 48)",
        ),
        ((BATCH_A, BATCH_B), {"out": Tensor(3, 64, 47)}, "out: expected shape (3, 64, 48), got (3, 64, 47)"),
        ((Tensor(1, 64, 32), BATCH_B), {"out": Tensor(64, 48)}, "out: expected shape (3, 64, 48), got (64, 48)"),
        (
            (BATCH_A, BATCH_B),
            {"out": Tensor(3, 64, 48, stride=(0, 48, 1))},
            "out: expected memory for each of 3 matrices, got one for all (stride 0)",
        ),
        (
            (BATCH_A, BATCH_B),
            {"out": Tensor(3, 64, 48, stride=(1, 144, 3))},
            "out: expected rows that are contiguous, got strides (144, 3)",
        ),
        (
            (BATCH_A, BATCH_B),
            {"c": Tensor(2, 64, 48)},
            "c: expected a shape that expands to (3, 64, 48), got (2, 64, 48)",
        ),
        ((BATCH_A, BATCH_B), {"alpha": "2"}, "alpha: expected a number, got '2'"),
        ((BATCH_A, BATCH_B), {"hook": "relu"}, "hook: expected a function, got 'relu'"),
    ],
)  # fmt: skip
def test_batches_that_do_not_fit(operands: tuple[Any, Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as e:
        gemm.bmm(*operands, **options)
    assert str(e.value) == f"bmm: {said}"


def test_operands_that_fit_get_a_kernel() -> None:
    for options in ({}, {"out": Tensor(64, 48)}, {"dtype": "torch.float32"}):
        with pytest.raises(AssertionError, match="a kernel was chosen"):
            gemm.mm(A, B, **options)  # type: ignore[arg-type]
