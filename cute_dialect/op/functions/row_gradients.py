"""Gradients of the row functions.  Backward passes use them, and they can be called directly.

Gradients of weights are sums over all rows, computed in f32 and always in the same order.
"""

# torch is not installed where the types are checked. Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

from cute_dialect.kernels.rows.gradients import part_columns
from cute_dialect.kernels.rows.packed_norm_gradients import is_packed_norm_length
from cute_dialect.op.errors import DtypeError
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.rows import (
    choose_kernels,
    column_kernel,
    entropy_kernel,
    launch_rows,
    launch_streamed,
    packed_entropy_kernel,
    processors_of,
)
from cute_dialect.op.problems.rows import ROW_FUNCTIONS, RowProblem

_KNOWN = {f.name: KnownCalls(tf32=False) for f in ROW_FUNCTIONS if f.has_gradient}
"""Cached calls by function."""


def softmax_backward(dy: Any, y: Any, *, device: object = None) -> Any:
    """Return the gradient of ``x`` from that of ``y = softmax(x)``: ``y (dy - sum(y dy))``.

    For ``device`` see :func:`cute_dialect.op.softmax`.  Raises subclasses of :class:`cute_dialect.op.OpError`.
    """
    return mapped_backward("softmax", dy, y, device)


def log_softmax_backward(dy: Any, y: Any, *, device: object = None) -> Any:
    """Return the gradient of ``x`` from that of ``y = log_softmax(x)``: ``dy - e^y sum(dy)``."""
    return mapped_backward("log_softmax", dy, y, device)


def mapped_backward(call: str, dy: Any, y: Any, device: object = None) -> Any:
    """Compute the gradient of a function of :data:`~cute_dialect.op.problems.rows.MAPS`."""

    def compute() -> object:
        one = RowCall(f"{call}_backward", {"y": y, "dy": dy}, device)
        one.length()
        one.expect("dy", one.x.shape)
        dx = one.result(one.x.shape)
        if 0 not in one.x.shape:
            launch_rows(one, "d", dx)
        return dx

    return _KNOWN[call].call((), (y, dy), compute) if device is None else compute()


def number_backward(call: str, dy: Any, x: Any, *, device: object = None) -> Any:
    """Return the gradient of ``x`` from that of ``call``, a number of each row.

    Equal maxima share the gradient, as in ``torch.amax``.  ``dy`` has one element per row.
    """

    def compute() -> object:
        one = RowCall(f"{call}_backward", {"x": x, "dy": dy}, device)
        one.length()
        if one.views["dy"].shape != (*one.x.shape[:-1], 1):
            one.expect("dy", one.x.shape[:-1])
        dx = one.result(one.x.shape)
        if 0 not in one.x.shape:
            each = one.views["dy"]
            if each.strides and not any(each.strides):  # one number, expanded to all rows
                each = each._replace(shape=(one.count,), strides=(0,))
            else:
                each = one.flat("dy")
            launch_rows(one, "g", dx, g=each)
        return dx

    return _KNOWN[call].call((), (x, dy), compute) if device is None else compute()


def rms_norm_backward(
    dy: Any, x: Any, weight: Any = None, eps: float = 2.0**-23, *, ds: Any = None, device: object = None
) -> tuple[Any, Any]:
    """Return the gradients of ``x`` and ``weight`` (None without one) from that of ``rms_norm(x, weight, eps)``.

    With a residual, ``x`` is the sum that is normalized, and ``ds`` its own gradient, which is added.
    """
    dx, dw, _ = _normed("rms_norm", dy, x, weight, False, eps, ds, device)
    return dx, dw


def layer_norm_backward(
    dy: Any, x: Any, weight: Any = None, bias: bool = False, eps: float = 1e-5, *, ds: Any = None, device: object = None
) -> tuple[Any, Any, Any]:
    """Return the gradients of ``x``, ``weight`` and ``bias`` from that of ``layer_norm(x, weight, bias, eps)``.

    The gradient of a weight or bias that the norm does not have is None. For ``ds`` see :func:`rms_norm_backward`.
    """
    return _normed("layer_norm", dy, x, weight, bias, eps, ds, device)


def _normed(
    call: str, dy: Any, x: Any, weight: Any, bias: bool, eps: float, ds: Any, device: object
) -> tuple[Any, Any, Any]:
    """Compute the gradients of a norm."""
    takes = ("w" if weight is not None else "") + ("b" if bias else "")
    operands = takes + ("r" if ds is not None else "")
    read = tuple([t for t in (x, weight, dy, ds) if t is not None])

    def compute() -> tuple[object, ...]:
        one = RowCall(f"{call}_backward", {"x": x, "weight": weight, "dy": dy, "ds": ds}, device)
        n = one.length()
        one.expect("dy", one.x.shape)
        one.expect("ds", one.x.shape)
        one.expect("weight", (n,))
        dx, vectors = one.result(one.x.shape), [one.result((n,)) for _ in takes]
        if 0 in one.x.shape:
            for vector in vectors:  # Empty sums are 0.
                vector[...] = 0
            return (dx, *vectors)
        of_w, columns, of_sum = one.vector("weight"), part_columns(n), one.views.get("ds")
        packed = None
        if is_packed_norm_length(one.element, n):
            packed = one.flat_matrices(one.x, one.views["dy"], of_sum, one.view_of(dx))
        p = RowProblem(one.name, one.element, one.count, n, operands, packed is not None)
        if packed is not None and p.family == "packed":
            of_x, of_dy, of_sum, of_dx = packed
        else:
            of_x, of_dy, of_dx = one.matrix("x"), one.matrix("dy"), one.matrix_of(dx)
            of_sum = None if ds is None else one.matrix("ds")
        if p.family == "streamed":
            parts, blocks = launch_streamed(
                one, operands, of_x, of_dx, d=of_dy, w=of_w, r=of_sum, eps=float(eps), sums=len(takes)
            )
        else:
            choice = choose_kernels(p, processors_of(one))
            blocks = choice.groups
            parts = one.result((blocks, len(takes) * columns), "f32") if takes else None
            groups = blocks if parts is None else one.matrix_of(parts)
            one.launch(choice.kernels[0], of_x, of_w, of_dy, of_sum, of_dx, groups, float(eps))
        if parts is not None:
            of = one.matrix_of(parts)
            of = of._replace(shape=(blocks, n, len(takes)), strides=(of.strides[0], 1, columns))
            to = [one.numbers(v)._replace(shape=(n, 1), strides=(1, n)) for v in vectors]
            one.launch(column_kernel(one.element, takes, blocks), of, *to)
        return (dx, *vectors)

    done = compute() if device is not None else _KNOWN[call].call((eps, operands), read, compute)
    return _named(takes, done)


def _named(takes: str, results: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Return the gradients of the row, the weight and the bias, None for absent ones."""
    dx, *vectors = results
    found = dict(zip(takes, vectors))
    return dx, found.get("w"), found.get("b")


def cross_entropy_backward(
    g: Any, x: Any, target: Any, lse: Any, count: Any = None, ignore_index: int = -100, *,
    label_smoothing: float = 0.0, out: Any = None, device: object = None,
) -> Any:  # fmt: skip
    """Return the gradient of ``x`` from that of ``cross_entropy(x, target)``: ``(softmax(x) - one_hot(target)) g``.

    Args:
        g: gradient of each row's loss, or of the sum or mean of all losses.
        x: logits, (…, classes).
        target: class of each row, i64 of (…).
        lse: ``logsumexp`` of each row in f32, from the forward pass.
        count: number of targets of a mean; None for a sum or for separate losses.
        ignore_index: rows with this target have a gradient of 0.
        label_smoothing: fraction of a row's loss that is the mean over all classes.
        out: memory for the gradient; may be ``x``.
        device: ``"cpu"`` runs on the interpreter.
    """
    known = _KNOWN["cross_entropy"]
    read = tuple([t for t in (x, target, lse, g, count, out) if t is not None])
    how = (ignore_index, count is None, out is None, float(label_smoothing))

    def compute() -> object:
        others = ("target", "lse", "g", "count")
        arrays = {"x": x, "target": target, "lse": lse, "g": g, "count": count, "out": out}
        one = RowCall("cross_entropy_backward", arrays, device, others=others)
        n = one.length()
        of_rows = one.x.shape[:-1]
        one.expect("target", of_rows)
        one.expect("lse", of_rows)
        for key, wanted in (("target", "i64"), ("lse", "f32"), ("count", "f32")):
            if key in one.views and one.views[key].dtype != wanted:
                raise one.wrong_type(key, wanted)
        of_loss = one.views["g"].dtype
        if of_loss not in ("f32", one.element):
            allowed = " or ".join(dict.fromkeys(("f32", one.element)))
            raise DtypeError(f"{one.name}: g has dtype {of_loss}; it must have {allowed}")
        if one.views["g"].shape != of_rows:
            one.expect("g", ())
        dx = one.result(one.x.shape, out="out")
        if 0 not in one.x.shape:
            rows = one.count
            each = (
                one.flat("g")
                if one.views["g"].shape == of_rows
                else one.numbers(g)._replace(shape=(rows,), strides=(0,))
            )
            total = None if count is None else one.numbers(count)
            smoothing = float(label_smoothing) if label_smoothing else None
            packed = None if smoothing else one.packed_rows(one.x, one.view_of(dx))
            if packed is None:
                kernel = entropy_kernel(one.element, n, of_loss, count is not None, rows, smoothing is not None)
            else:
                kernel = packed_entropy_kernel(one.element, n, of_loss, count is not None)
            of_x, of_dx = (one.matrix("x"), one.matrix_of(dx)) if packed is None else packed
            one.launch(kernel, of_x, one.flat("target"), one.flat("lse"), each, total, smoothing, of_dx, ignore_index)
        return dx

    return known.call(how, read, compute) if device is None else compute()
