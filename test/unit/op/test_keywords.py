"""Unknown, missing and surplus arguments raise one error class, with messages of one form, in all functions."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from inspect import Parameter, isclass, ismodule, signature
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.keywords import Missing

A, B, L = np.ones((8, 16), "f2"), np.ones((16, 8), "f2"), np.ones((2, 8, 8), "f2")
FP8 = np.ones((8, 8), ml_dtypes.float8_e4m3fn)
IMAGE, TAPS = np.ones((1, 8, 8, 8), "f2"), np.ones((8, 3, 3, 8), "f2")
CALLS: dict[str, tuple[Any, ...]] = {
    "mm": (A, B), "bmm": (L, L), "addmm": (A @ B, A, B), "baddbmm": (L, L, L), "int_mm": (A, B), "linear": (A, A),
    "matmul": (A, B), "mm_array": ([A], [B]), "scaled_mm": (A, B, A, B), "grouped_mm": (A, L),
    "scaled_grouped_mm": (A, L, A, L), "softmax": (A,), "log_softmax": (A,), "rms_norm": (A,), "layer_norm": (A,),
    "transpose": (A,), "sum": (A,), "mean": (A,), "max": (A,), "logsumexp": (A,), "cross_entropy": (A, A),
    "attention": (L, L, L), "conv2d": (IMAGE, TAPS), "conv2d_input": ((1, 8, 8, 8), TAPS, IMAGE),
    "conv2d_weight": (IMAGE, (8, 3, 3, 8), IMAGE), "conv1d": (L, L), "conv1d_input": ((2, 8, 8), L, L),
    "conv1d_weight": (L, (2, 8, 8), L), "conv3d": (IMAGE, TAPS), "conv3d_input": ((1, 8), TAPS, IMAGE),
    "conv3d_weight": (IMAGE, (8, 3), IMAGE), "elementwise": (np.exp, A), "add": (A, A), "mul": (A, A),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("device", ["cpu", None])
def test_unknown_arguments_are_rejected(name: str, device: str | None) -> None:
    more = {} if device is None else {"device": device}
    with pytest.raises(op.ArgumentError) as e:
        getattr(op, name)(*CALLS[name], devise="cpu", **more)
    assert isinstance(e.value, op.OpError) and isinstance(e.value, TypeError)
    assert str(e.value).startswith(f"{name}() has no argument 'devise'; did you mean 'device'? Arguments: "), e.value


def test_rest_of_the_error_message() -> None:
    with pytest.raises(op.ArgumentError) as e:
        op.mm(A, B, bais=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    options = "blocks, checks, max_steps, progress, report, reports, schedule, seed"
    assert str(e.value) == (
        "mm() has no argument 'bais'; did you mean 'bias'? Arguments: a, b, out, alpha, beta, c, bias, activation, "
        'hook, epilogue, args, dtype, math, accumulator, kernel, split_k, device, stream; with device="cpu" also '
        + options
    )
    with pytest.raises(op.ArgumentError, match=r"linear\(\) has no argument 'zzzz'\. Arguments: x, weight, bias"):
        op.linear(A, A, zzzz=1)
    with pytest.raises(op.ArgumentError, match=r"attention\(\) has no argument 'temperature'\. .*causal, scale"):
        op.attention(L, L, L, temperature=30.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_explain_suggests_arguments_of_the_explained_function() -> None:
    with pytest.raises(op.ArgumentError, match=r"mm\(\) has no argument 'bais'; did you mean 'bias'\? Arguments: a, b"):
        op.explain(op.mm, A, B, bais=1)
    with pytest.raises(op.ArgumentError, match=r"attention\(\) has no argument 'casual'; did you mean 'causal'\?"):
        op.explain(op.attention, L, L, L, casual=True)
    for name, given in (("bias", L), ("device", "cpu")):
        with pytest.raises(op.ArgumentError, match=f"explain: attention is not explained with {name}; omit it"):
            op.explain(op.attention, L, L, L, **{name: given})
    with pytest.raises(op.ArgumentError, match="explain: attention_backward is not explained with lse; omit it"):
        op.explain(op.attention_backward, L, L, lse=True)
    with pytest.raises(op.DtypeError, match="attention: None is not an array; pass an array or a shape"):
        op.explain(op.attention, (1, 2, 64, 64))
    with pytest.raises(op.ArgumentError, match="explain: mm is not explained with kernel; omit it"):
        op.explain(op.mm, A, B, kernel="x")


def required_arguments(function: Callable[..., Any]) -> list[str]:
    kinds = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    return [
        n for n, p in signature(function).parameters.items() if p.default is Parameter.empty and p.kind not in kinds
    ]


def callables() -> list[str]:
    """Return the public functions and classes that have required arguments, except named tuples and enumerations."""
    found: list[str] = []
    for name in dir(op):
        value = getattr(op, name)
        if ismodule(value) or name == "LayoutType" or not callable(value):
            continue
        if isclass(value) and issubclass(value, tuple | Enum | BaseException):
            continue
        if required_arguments(value):
            found.append(name)
    return found


@pytest.mark.parametrize("name", callables())
def test_a_call_without_arguments(name: str) -> None:
    function = getattr(op, name)
    more: dict[str, Any] = {"max": 1.0} if name == "clamp" else {}
    with pytest.raises(op.ArgumentError) as e:
        function(**more)
    required = required_arguments(function)
    assert str(e.value).startswith(f"{name}() needs an argument '"), e.value
    assert str(e.value).endswith(f"'; required arguments: {', '.join(required)}"), e.value


@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_the_last_argument(name: str) -> None:
    function, arrays = getattr(op, name), CALLS[name]
    if name == "int_mm":
        arrays = (A.astype("i1"), A.astype("i1"))
    if "scaled" in name:
        arrays = (FP8, FP8, np.ones((), "f4"), np.ones((), "f4"))
    if len(arrays) == 1 or name not in callables() or len(required_arguments(function)) < len(arrays):
        return
    last = required_arguments(function)[len(arrays) - 1]
    for more in ({}, {"device": "cpu"}):
        with pytest.raises(op.ArgumentError, match=rf"^{name}\(\) needs an argument '{last}'; required arguments: "):
            function(*arrays[:-1], **more)


def test_arguments_by_position_and_by_name() -> None:
    with pytest.raises(op.ArgumentError) as e:
        op.choose(1, 2, 3, 4, 5)  # type: ignore[call-arg, arg-type]  # pyright: ignore
    assert str(e.value) == (
        "choose() has at most 4 positional arguments (problem, sms, gpu, epilogue), but the call passes 5; pass the "
        "others by name"
    )
    with pytest.raises(op.ArgumentError) as e:
        op.Attention("f16", 64)  # type: ignore[call-arg]  # pyright: ignore
    assert str(e.value).startswith("Attention() needs an argument 'element'; required arguments: element, head_size")
    with pytest.raises(op.ArgumentError, match=r"^load\(\) has two values of argument 'folder'; pass it once$"):
        op.load("x", folder="y")  # type: ignore[misc]  # pyright: ignore
    with pytest.raises(TypeError, match=r"^Problem\(\) missing 2 required positional arguments: 'n' and 'k'$"):
        op.Problem(1)  # type: ignore[call-arg]  # pyright: ignore


def test_a_missing_argument_is_only_a_default() -> None:
    """Using the placeholder of a missing argument raises the error. Attribute lookups by tools do not."""
    missing = Missing("f", "x", ["x"])
    assert not hasattr(missing, "__torch_function__") and not callable(missing)
    uses: list[Any] = [bool, list, len, float, lambda x: x + 1, lambda x: 2 * x, lambda x: x[0], np.asarray]  # pyright: ignore
    for use in uses:
        with pytest.raises(op.ArgumentError, match=r"^f\(\) needs an argument 'x'; required arguments: x$"):
            use(missing)
    assert required_arguments(op.mm) == ["a", "b"]  # The placeholder default still counts as a required argument.


def test_modules_of_torch() -> None:
    pytest.importorskip("torch")
    with pytest.raises(op.ArgumentError, match=r"^Linear\(\) needs an argument 'out_features'; required arguments: in"):
        op.nn.Linear(3)  # type: ignore[call-arg]  # pyright: ignore


def test_functions_of_epilogues() -> None:
    for call, said in (
        (lambda: op.epilogue.gelu(), "gelu() needs an argument 'x'; required arguments: x"),
        (lambda: op.epilogue.elu(), "elu() needs an argument 'x'; required arguments: x"),
        (lambda: op.epilogue.where(True), "where() needs an argument 'x'; required arguments: condition, x, y"),
        (lambda: op.epilogue.relu(1.0, 2.0), "relu() has only the arguments x, but the call passes 2"),
    ):
        with pytest.raises(op.ArgumentError) as e:
            call()
        assert str(e.value) == said


H = np.ones((16, 16), np.float16)


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("softmax", (None,)), ("sum", (None,)), ("layer_norm", (None,)), ("transpose", (None,)), ("mm", (None, H)),
        ("mm", (H, None)), ("bmm", (H[None], None)), ("add", (H, None)), ("where", (None, H, H)),
        ("attention", (H[None, None], None, H[None, None])), ("cross_entropy", (H, None)),
        ("conv2d", (H[None, None], None)), ("conv2d", (None, H[None, None])), ("grouped_mm", (None, H[None])),
        ("addmm", (None, H, H)), ("baddbmm", (None, H[None], H[None])),
    ],
)  # fmt: skip
def test_operands_that_are_none(call: str, args: tuple[object, ...]) -> None:
    with pytest.raises(op.DtypeError, match=rf"^{call}.*: .* is None; pass an array"):
        getattr(op, call)(*args, device="cpu")


def test_an_epilogue_that_misnames_the_accumulator() -> None:
    with pytest.raises(op.EpilogueError, match="parameter acc is not in args; call it accum if it is the accumulator"):
        op.mm(H, H, epilogue=lambda acc: acc * 2, device="cpu")


def test_elementwise_of_no_function() -> None:
    with pytest.raises(op.ArgumentError, match="function is None; pass a function"):
        op.elementwise(None, H, device="cpu")


@pytest.mark.parametrize("wrong", [-1, 16])
def test_targets_that_are_no_classes(wrong: int) -> None:
    target = np.array([0, -100, wrong, *[5] * 13])
    with pytest.raises(op.ArgumentError, match=f"target has the class {wrong}, but x has 16 classes; pass 0 to 15"):
        op.cross_entropy(H, target, device="cpu")
