"""``op.attention_backward`` on the interpreter, and its place among the gradients of torch calls."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from attention_gradients import Call, exact, inputs  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.kernels.attention.backward_config import BackwardConfig  # noqa: E402
from cute_dialect.op.execute.array_call import RowCall  # noqa: E402
from cute_dialect.op.execute.attention_backward import (  # noqa: E402
    BACKWARD_OTHERS,
    GRADIENTS,
    choose_backward,
    computed_gradients,
)
from cute_dialect.op.operators import attention as operators  # noqa: E402
from cute_dialect.op.operators.attention import gradients_by_kernels  # noqa: E402
from cute_dialect.op.operators.attention_matmuls import (  # noqa: E402
    Mask,
    Saved,
    attention_of,
    gradients_by_matmuls,
)
from cute_dialect.op.plans import attention  # noqa: E402

CASES = [
    Call(1, 2, 1, 20, 40, 64, True, None, None, "bhsd", True),
    Call(2, 1, 1, 70, 40, 40, "bottom_right", None, -0.1, "bshd", False),
    Call(1, 2, 2, 33, 150, 128, False, (20, 5), None, "bshd", True),
    # Packed sequences, one of them without queries.
    Call(1, 2, 1, 0, 0, 64, "bottom_right", None, None, "bhsd", True, ((9, 5), (0, 4), (30, 3))),
    # Values have heads of another size.
    Call(1, 2, 2, 70, 90, 192, True, None, None, "bshd", True, size_v=128),
    Call(1, 4, 1, 80, 20, 184, False, None, None, "bhsd", False, size_v=120),
    Call(1, 2, 1, 0, 0, 40, "bottom_right", None, None, "bhsd", False, ((9, 5), (30, 40)), size_v=72),
    Call(1, 2, 1, 70, 100, 64, True, None, 0.0, "bhsd", False),
    # Blocks share a tile of keys.
    Call(1, 8, 1, 40, 30, 64, True, None, None, "bshd", False),
]


@pytest.mark.slow
@pytest.mark.parametrize("call", CASES)
def test_gradients(call: Call) -> None:
    leaves, begins = inputs(call, torch.float16, "cpu")
    given = [x.detach() for x in leaves]
    options: dict[str, Any] = {**call.options(), **begins, "device": "cpu"}
    out, lse = op.attention(*given, lse=True, **options)
    torch.manual_seed(1)
    grad, grad_lse = torch.randn_like(out), torch.randn_like(lse) if call.of_lse else None
    for deterministic in (False, True) if not call.of_lse else (False,):
        found = op.attention_backward(grad, *given, out, lse, grad_lse, deterministic=deterministic, **options)
        for x, y in zip(found, exact(call, given, grad, grad_lse), strict=True):
            assert float((x.double() - y).norm()) <= 2e-3 * float(y.norm())


FEATURES: dict[str, dict[str, Any]] = {
    "softcap and ALiBi, packed": {"softcap": 2.0, "slopes": torch.rand(3, 2), "packed": True, "causal": "bottom_right"},
    "bias": {"bias": torch.randn(2, 1, 100).half(), "of_bias": True},
    "bias and softcap": {"bias": torch.randn(2, 1, 100).half(), "softcap": 0.75, "causal": "top_left", "of_bias": True},
    "one bias, softcap and window": {
        "bias": torch.randn(1, 1, 70, 100), "softcap": 1.5, "left": 20, "right": 30, "of_bias": True
    },
    "mask, sinks and softcap": {
        "bias": torch.rand(2, 1, 70, 100) > 0.3, "sinks": torch.randn(2).half(), "softcap": 1.5, "left": 40,
        "right": 20,
    },
    "sinks, packed": {"sinks": torch.randn(2), "packed": True},
    "a bias for each score, in a fixed order": {
        "bias": torch.randn(2, 2, 70, 100), "softcap": 1.5, "causal": "top_left", "of_bias": True, "deterministic": True
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FEATURES)
def test_functions_of_scores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels' gradients of soft cap, ALiBi, mask and sinks equal those of f32 matmuls."""
    if name == "sinks, packed":  # a short kernel
        tiles = BackwardConfig("f16", 64, tile_m=64, tile_n=64)
        monkeypatch.setattr(operators, "choose_backward", lambda problem: choose_backward(problem, tiles))
    given = dict(FEATURES[name])
    begins: list[Any] = [None, None]
    shapes = [(2, 2, 70, 64), (2, 1, 100, 64), (2, 1, 100, 64)]
    if given.pop("packed", False):
        begins = [torch.tensor(x, dtype=torch.int32) for x in ([0, 30, 30, 70], [0, 50, 60, 100])]
        shapes = [(70, 2, 64), (100, 1, 64), (100, 1, 64)]
    torch.manual_seed(2)
    q, k, v = (torch.randn(shape).half() for shape in shapes)
    of_bias = given.pop("of_bias", False)
    arrays = {name: given.pop(name, None) for name in ("sinks", "slopes", "bias")}
    mask = Mask(**{"causal": "", "left": -1, "right": -1, "scale": None, "layout": "bhsd", "longest": None, **given})
    saved = Saved(q, k, v, *begins, q, torch.empty(0), **arrays)
    out, lse = attention_of(saved, mask)
    saved = saved._replace(out=out, lse=lse)
    grad, grad_lse = torch.randn_like(out), torch.randn_like(lse)
    found = gradients_by_kernels(saved, grad, grad_lse, mask, of_bias, "cpu")
    assert found is not None
    for x, y in zip(found, gradients_by_matmuls(saved, grad, grad_lse, mask, of_bias), strict=True):
        assert (x is None) == (y is None)
        if x is not None and y is not None:
            assert x.dtype == y.dtype and x.shape == y.shape
            assert float((x.float() - y.float()).norm()) < 1e-3 * float(y.float().norm())


@pytest.mark.slow
def test_gradients_of_a_mask_in_a_fixed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the same bits under all schedules, with blocks that share queries."""
    torch.manual_seed(2)
    q, k, v, bias = (torch.randn(shape).half() for shape in ((1, 2, 70, 64), *[(1, 1, 200, 64)] * 2, (1, 2, 70, 200)))
    mask = Mask("", -1, -1, None, "bhsd", None, deterministic=True)
    out, lse = attention_of(Saved(q, k, v, None, None, q, torch.empty(0), bias=bias), mask)
    saved, grad = Saved(q, k, v, None, None, out, lse, bias=bias), torch.randn_like(out)
    found: list[Any] = []
    for schedule in ("round-robin", "adversarial", "reverse", "random"):
        monkeypatch.setattr(operators, "RowCall", partial(RowCall, run={"schedule": schedule, "seed": 5}))
        found.append(gradients_by_kernels(saved, grad, None, mask, True, "cpu"))
    for x in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(x, found[0]) if a is not None)
    assert found[0].bias is not None


@pytest.mark.parametrize("shape", [(70, 100), (2, 1, 70, 100), (2, 2, 1, 100), (2, 2, 70, 1)])
def test_gradients_of_shared_masks_in_a_fixed_order(shape: tuple[int, ...]) -> None:
    """Kernels would add the gradients of scores that share an element of the mask in any order."""
    q, k = torch.randn(2, 2, 70, 64).half(), torch.randn(2, 2, 100, 64).half()
    saved = Saved(q, k, k, None, None, q, torch.zeros(2, 2, 70), bias=torch.zeros(shape))
    mask = Mask("", -1, -1, None, "bhsd", None, deterministic=True)
    assert gradients_by_kernels(saved, q, None, mask, True, "cpu") is None


Q, LSE = torch.zeros(1, 2, 8, 64).half(), torch.zeros(1, 2, 8)
ENDS = torch.tensor([0, 3, 8], dtype=torch.int32)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"out": Q[:, :1]}, op.ShapeError, r"out has shape \(1, 1, 8, 64\); it must have \(1, 2, 8, 64\)"),
        ({"dout": Q[..., :32]}, op.ShapeError, r"dout has shape \(1, 2, 8, 32\); it must have"),
        ({"lse": None}, op.ShapeError, r"lse is None; pass the lse of op.attention\(…, lse=True\)"),
        ({"deterministic": "x"}, op.ArgumentError, "deterministic is 'x'; pass True or False"),
        ({"max_seqlen_k": 2.5}, op.ShapeError, "max_seqlen_k is 2.5; pass an int of 0 or more"),
        ({"max_seqlen_k": 7}, op.ShapeError, "attention_backward: max_seqlen_k is 7, but each sequence has 8 keys"),
        (
            {
                **dict.fromkeys(("dout", "q", "k", "v", "out"), Q[0].transpose(0, 1)),
                "lse": LSE[0],
                "max_seqlen_k": 3,
                "cu_seqlens_q": ENDS,
                "cu_seqlens_k": ENDS,
            },
            op.ShapeError,
            "max_seqlen_k is 3, but a sequence has 5 keys; pass 5 or more",
        ),
        ({"lse": LSE[..., 1:]}, op.ShapeError, r"lse has shape \(1, 2, 7\); it must have \(1, 2, 8\)"),
        ({"dlse": LSE.half()}, op.DtypeError, "dlse has dtype f16; pass an array of f32"),
        ({"kernel": 3}, op.UnsupportedError, "kernel is 3; pass a kernel name or a BackwardConfig"),
        ({"kernel": BackwardConfig(tile_m=128, q_stages=1)}, op.UnsupportedError, "must be at least 2"),
        (
            {"kernel": "attention-backward-f16-64-right-128x128"},
            op.UnsupportedError,
            'does not match this call; use "attention-backward-f16-64-full-',
        ),
        ({"attn_mask": Q}, op.ArgumentError, "attention_backward has no argument|has no argument 'attn_mask'"),
    ],
)
def test_errors(given: dict[str, Any], error: type[op.OpError], words: str) -> None:
    arguments: dict[str, Any] = {"dout": Q, "q": Q, "k": Q, "v": Q, "out": Q, "lse": LSE, **given}
    with pytest.raises(error, match=words):
        op.attention_backward(**arguments, device="cpu")


def test_explain() -> None:
    found = op.explain(op.attention_backward, (2, 8, 1024, 128), (2, 2, 1024, 128), causal=True, element="bf16")
    assert [k.name.rpartition("-")[2] for k in found.kernels] == ["delta", "64x128", "dq"]
    assert found.flops == 10 * 128 * 2 * 8 * 1024 * 1025 // 2
    assert "backward of attention of 2 sequences, 8 heads of 128 on 2" in str(found) and "workspace" in str(found)
    assert "-dlse-" in op.explain(op.attention_backward, (2, 8, 64, 64), (2, 2, 64, 64), dlse=(2, 8, 64)).kernel
    latent = op.explain(op.attention_backward, (2, 8, 1024, 192), (2, 8, 1024, 192), (2, 8, 1024, 128))
    assert latent.kernel == "attention-backward-f16-192-full-64x64-v128" and "heads of 192 and 128" in str(latent)


def test_slices_of_key_tiles() -> None:
    """Few tiles of keys with many query heads are divided, but not if the order of additions is fixed."""

    def parts(heads: int, batch: int, rows: int, **more: Any) -> int:
        found = op.explain(op.attention_backward, (batch, heads, rows, 64), (batch, 1, rows, 64), **more)
        assert ("split " in str(found)) == found.config.split == (found.way.parts > 1)
        return found.way.parts

    assert parts(8, 3, 394) == 11
    assert parts(8, 3, 394, deterministic=True) == 1
    assert parts(8, 3, 394, kernel="attention-backward-f16-64-full-128x128") == 1
    assert parts(8, 3, 394, kernel="attention-backward-f16-64-full-split-128x128") == 11
    assert parts(1, 1, 64) == 1
    assert parts(8, 128, 2048) == 1
    # Five sequences of 400 to 2000 rows: the blocks of the longest one would finish last.
    ends = torch.tensor([0, 400, 2400, 2800, 3200, 3600], dtype=torch.int32)
    sizes = {"cu_seqlens_q": ends, "cu_seqlens_k": ends, "max_seqlen_q": 2000, "max_seqlen_k": 2000}
    assert op.explain(op.attention_backward, (3600, 8, 64), (3600, 1, 64), **sizes).way.parts > 4
    with pytest.raises(op.UnsupportedError, match="split=True adds dk and dv in any order"):
        parts(8, 3, 394, deterministic=True, kernel="attention-backward-f16-64-full-ordered-split-128x128")


@pytest.mark.slow
def test_plan() -> None:
    call = CASES[0]
    given = [x.detach() for x in inputs(call, torch.float16, "cpu")[0]]
    plan = op.Attention(element="f16", head_size=64, causal=True, lse=True)
    done = plan.run(*given, device="cpu")
    grad = torch.randn_like(done.out)
    found = plan.backward(grad, *given, done.out, done.lse, device="cpu")
    arrays = dict(zip(("q", "k", "v", "out", "dout", "lse"), (*given, done.out, grad, done.lse)))
    arrays |= {name: torch.full_like(x, float("nan")) for name, x in zip(GRADIENTS, given)}
    one = attention.RowCall("backward", arrays, "cpu", BACKWARD_OTHERS, ("f16",))
    bound = computed_gradients(one, plan._backward_way(one, None, None, False))
    for x, y, z, name in zip(found, exact(call, given, grad, None), bound, GRADIENTS, strict=True):
        assert float((x.double() - y).norm()) < 2e-3 * float(y.norm()) and z is arrays[name] and torch.equal(x, z)


def test_gradients_of_a_prepared_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launches that ``bind_backward`` prepares write to the given arrays, and copies are refused."""
    launches: list[tuple[str, set[int]]] = []
    monkeypatch.setattr(attention, "_Bound", _recorded(launches))
    plan = op.Attention(element="f16", head_size=64, causal=True, lse=True)
    grads = [torch.empty_like(Q) for _ in range(3)]
    arrays = [Q + i for i in range(5)]
    call = plan.bind_backward(*arrays, LSE, *grads)
    call()
    assert len(launches) > 1 and {x.data_ptr() for x in (*arrays, LSE, *grads)} <= set().union(
        *[x for _, x in launches]
    )
    wide = torch.zeros(1, 2, 8, 65).half()[..., :64]
    for given, error, words in (
        ((*arrays, LSE, None, *grads[1:]), op.ShapeError, "bind_backward: dq is None; pass an array"),
        ((*arrays, LSE, Q[..., :32], *grads[1:]), op.ShapeError, "dq has shape"),
        ((*arrays, LSE, wide, *grads[1:]), op.LayoutError, "dq has address .* but needs contiguous heads"),
        ((wide, *arrays[1:], LSE, *grads), op.LayoutError, "dout has strides .* pass a copy"),
        ((*arrays, LSE, arrays[1], *grads[1:]), op.LayoutError, "dq shares memory with q"),
        ((*arrays, LSE, grads[0], grads[0], grads[2]), op.LayoutError, "shares memory with d"),
    ):
        with pytest.raises(error, match=words):
            plan.bind_backward(*given)


def _recorded(launches: list[tuple[str, set[int]]]) -> Any:
    """Return the class of prepared calls with fake kernels, which accepts arrays in CPU memory."""

    class Recorded(attention._Bound):
        def __init__(self, name: str, arrays: Any, others: Any, elements: Any) -> None:
            attention.RowCall.__init__(self, name, arrays, "cpu", others, elements)
            self.calls: Any = []

        def launch(self, kernel: Any, *given: Any) -> None:
            pointers = {x.data_ptr() if hasattr(x, "data_ptr") else getattr(x, "pointer", 0) for x in given}
            self.calls.append(lambda stream: launches.append((kernel.name, pointers)))

    return Recorded
