"""Gradients of the row functions.  Backward passes use them, and they can be called directly.

Gradients of weights are sums over all rows, computed in f32 and always in the same order.
"""

# torch is not installed where the types are checked. Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from math import gcd
from typing import Any

from cute_dialect.kernels.finish_reduction import CombineConfig, combine_parts_text
from cute_dialect.kernels.packed_norm_grads import is_packed_norm_length, packed_norm_blocks
from cute_dialect.kernels.row_config import width
from cute_dialect.kernels.row_grads import (  # fmt: skip
    entropy_backward_text,
    entropy_class,
    gradient_class,
    norm_backward_text,
    part_columns,
    resident,
)
from cute_dialect.op.errors import DtypeError
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.rows.call import RowCall, RowKernel
from cute_dialect.op.rows.functions import row_kernel
from cute_dialect.op.rows.packed import entropy_kernel as packed_entropy_kernel
from cute_dialect.op.rows.packed import norm_gradient_kernel, packed_kernel
from cute_dialect.op.rows.streamed import compute as streamed
from cute_dialect.op.rows.streamed import is_streamed
from cute_dialect.op.select.gemm_dispatch import gpu_of

__all__ = [
    "column_kernel", "cross_entropy_backward", "entropy_kernel", "layer_norm_backward", "log_softmax_backward",
    "norm_blocks", "norm_kernel", "number_backward", "rms_norm_backward", "softmax_backward",
]  # fmt: skip

_KNOWN = {
    name: KnownCalls(tf32=False)
    for name in ("softmax", "log_softmax", "rms_norm", "layer_norm", "cross_entropy", "max", "logsumexp")
}  # fmt: skip
"""Cached calls by function."""

MANY_BLOCKS = 256
"""Above this number of partial sums per column, more threads add them up and a block has fewer columns."""

SOME_BLOCKS = 16
"""Up to this number of partial sums per column, a thread adds up all of them."""

PROCESSORS = 132
"""Multiprocessors of an H100 or H200."""

BLOCKS_ON_CPU = 2
"""Blocks on the interpreter: more than one, and few enough that each has several rows."""


def norm_kernel(call: str, element: str, n: int, takes: str) -> RowKernel:
    """Return the kernel of a norm's gradients for rows of ``n`` elements."""
    op = call.replace("_norm", "norm")
    config = gradient_class(element, n, takes)
    name = f"rows-{op}_backward{'-' + takes if takes else ''}-{element}-{config.name}"
    return RowKernel(name, norm_backward_text, (op, element, n, takes, config))


def column_kernel(element: str, takes: str, blocks: int) -> RowKernel:
    """Return the kernel that adds up the partial gradients of weights and biases, one per block."""
    across = 8 if blocks > MANY_BLOCKS else 256 if blocks <= SOME_BLOCKS else CombineConfig().across
    config = CombineConfig(output=element, across=across, apart=len(takes) == 2, dependent=True)
    return RowKernel(config.name, combine_parts_text, (config,))


def entropy_kernel(element: str, n: int, of_loss: str, mean: bool) -> RowKernel:
    """Return the kernel of the cross entropy gradient for rows of ``n`` elements."""
    name = f"rows-cross_entropy_backward-{element}-{of_loss}{'-mean' if mean else ''}-{entropy_class(element, n).name}"
    return RowKernel(name, entropy_backward_text, (element, n, of_loss, mean), "launch_entropy")


def softmax_backward(dy: Any, y: Any, *, device: object = None) -> Any:
    """Return the gradient of ``x`` from that of ``y = softmax(x)``: ``y (dy - sum(y dy))``.

    For ``device`` see :func:`cute_dialect.op.softmax`.  Raises subclasses of :class:`cute_dialect.op.OpError`.
    """
    return _mapped("softmax", dy, y, device)


def log_softmax_backward(dy: Any, y: Any, *, device: object = None) -> Any:
    """Return the gradient of ``x`` from that of ``y = log_softmax(x)``: ``dy - e^y sum(dy)``."""
    return _mapped("log_softmax", dy, y, device)


def _mapped(call: str, dy: Any, y: Any, device: object) -> Any:
    """Compute the gradient of ``softmax`` or ``log_softmax``."""
    if device is None:
        done = _KNOWN[call].again((), y, dy)
        if done is not None:
            return done
    one = RowCall(f"{call}_backward", {"y": y, "dy": dy}, device)
    n = one.length()
    one.expect("dy", one.x.shape)
    dx = one.result(one.x.shape)
    if 0 not in one.x.shape:
        packed = one.packed_rows(one.x, one.views["dy"], one.view_of(dx))
        if packed is not None:
            one.launch(packed_kernel(one.name, one.element, n, "d"), *packed)
        elif is_streamed(one.name, one.element, n, "d"):
            streamed(one, one.name, "d", one.matrix("y"), one.matrix_of(dx), d=one.matrix("dy"))
        else:
            kernel = row_kernel(one.name, one.element, n, "d")
            one.launch(kernel, one.matrix("y"), one.matrix("dy"), one.matrix_of(dx))
        if device is None:
            one.remember(_KNOWN[call], (), (y, dy), dx)
    return dx


def number_backward(call: str, dy: Any, x: Any, *, device: object = None) -> Any:
    """Return the gradient of ``x`` from that of ``call``, which is ``max`` or ``logsumexp`` of each row.

    Equal maxima share the gradient, as in ``torch.amax``.  ``dy`` has one element per row.
    """
    if device is None:
        done = _KNOWN[call].again((), x, dy)
        if done is not None:
            return done
    one = RowCall(f"{call}_backward", {"x": x, "dy": dy}, device)
    n = one.length()
    if one.views["dy"].shape != (*one.x.shape[:-1], 1):
        one.expect("dy", one.x.shape[:-1])
    dx = one.result(one.x.shape)
    if 0 not in one.x.shape:
        each = one.views["dy"]
        if each.strides and not any(each.strides):  # one number, expanded to all rows
            each = each._replace(shape=(one.count,), strides=(0,))
        else:
            each = one.flat("dy")
        packed = one.packed_rows(one.x, one.view_of(dx))
        if packed is not None:
            one.launch(packed_kernel(one.name, one.element, n, "g"), packed[0], each, packed[1])
        elif is_streamed(one.name, one.element, n, "g"):
            streamed(one, one.name, "g", one.matrix("x"), one.matrix_of(dx), g=each)
        else:
            one.launch(row_kernel(one.name, one.element, n, "g"), one.matrix("x"), each, one.matrix_of(dx))
        if device is None:
            one.remember(_KNOWN[call], (), (x, dy), dx)
    return dx


def rms_norm_backward(
    dy: Any, x: Any, weight: Any = None, eps: float = 2.0**-23, *, ds: Any = None, device: object = None
) -> tuple[Any, Any]:  # fmt: skip
    """Return the gradients of ``x`` and ``weight`` (None without one) from that of ``rms_norm(x, weight, eps)``.

    With a residual, ``x`` is the sum that is normalized, and ``ds`` its own gradient, which is added.
    """
    dx, dw, _ = _normed("rms_norm", dy, x, weight, False, eps, ds, device)
    return dx, dw


def layer_norm_backward(
    dy: Any, x: Any, weight: Any = None, bias: bool = False, eps: float = 1e-5, *, ds: Any = None,
    device: object = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return the gradients of ``x``, ``weight`` and ``bias`` from that of ``layer_norm(x, weight, bias, eps)``.

    The gradient of a weight or bias that the norm does not have is None. For ``ds`` see :func:`rms_norm_backward`.
    """
    return _normed("layer_norm", dy, x, weight, bias, eps, ds, device)


def _normed(
    call: str, dy: Any, x: Any, weight: Any, bias: bool, eps: float, ds: Any, device: object
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Compute the gradients of a norm."""
    takes = ("w" if weight is not None else "") + ("b" if bias else "")
    operands = takes + ("r" if ds is not None else "")
    read = tuple([t for t in (x, weight, dy, ds) if t is not None])
    if device is None:
        done = _KNOWN[call].again((eps, operands), *read)
        if done is not None:
            return _named(takes, done)
    one = RowCall(f"{call}_backward", {"x": x, "weight": weight, "dy": dy, "ds": ds}, device)
    n = one.length()
    one.expect("dy", one.x.shape)
    one.expect("ds", one.x.shape)
    one.expect("weight", (n,))
    dx, vectors = one.result(one.x.shape), [one.result((n,)) for _ in takes]
    if 0 in one.x.shape:
        for vector in vectors:  # Empty sums are 0.
            vector[...] = 0
        return _named(takes, (dx, *vectors))
    of_w, columns, of_sum = one.vector("weight"), part_columns(n), one.views.get("ds")
    packed = None
    if is_packed_norm_length(one.element, n):
        packed = one.flat_matrices(one.x, one.views["dy"], of_sum, one.view_of(dx))
    if packed is not None:
        of_x, of_dy, of_sum, of_dx = packed
    else:
        of_x, of_dy, of_dx = one.matrix("x"), one.matrix("dy"), one.matrix_of(dx)
        of_sum = None if ds is None else one.matrix("ds")
    if packed is None and is_streamed(one.name, one.element, n, operands):
        parts, blocks = streamed(
            one, one.name, operands, of_x, of_dx, d=of_dy, w=of_w, r=of_sum, eps=float(eps), sums=len(takes)
        )
    else:
        processors = None if one.cpu else gpu_of(one.gpu)[1]
        if packed is not None:
            kernel = norm_gradient_kernel(call, one.element, n, operands)
            blocks = packed_norm_blocks(one.element, n, one.count, processors or 1)
        else:
            kernel = norm_kernel(call, one.element, n, operands)
            blocks = norm_blocks(one.element, n, operands, one.count, processors)
        parts = one.result((blocks, len(takes) * columns), "f32") if takes else None
        groups = blocks if parts is None else one.matrix_of(parts)
        one.launch(kernel, of_x, of_w, of_dy, of_sum, of_dx, groups, float(eps))
    if parts is not None:
        of = one.matrix_of(parts)
        of = of._replace(shape=(blocks, n, len(takes)), strides=(of.strides[0], 1, columns))
        to = [one.numbers(v)._replace(shape=(n, 1), strides=(1, n)) for v in vectors]
        one.launch(column_kernel(one.element, takes, blocks), of, *to)
    results = [dx, *vectors]
    if device is None:
        one.remember(_KNOWN[call], (eps, operands), read, tuple(results))
    return _named(takes, tuple(results))


def norm_blocks(element: str, n: int, takes: str, rows: int, processors: int | None = PROCESSORS) -> int:
    """Return the number of blocks that share the rows of a norm's gradients: as many as the GPU holds at once.

    Args:
        element, n: type and length of the rows.
        takes: the parameters that need gradients, and r, as in :func:`norm_kernel`.
        rows: the number of rows.
        processors: multiprocessors of the GPU; None for the interpreter.
    """
    config, w = gradient_class(element, n, takes), width(element)
    blocks = BLOCKS_ON_CPU
    if processors is not None:
        blocks = processors * resident(config)
        if config.cluster > 1:  # A cluster runs within one GPC, whose multiprocessors hold whole clusters.
            blocks = max(1, blocks // 8 * 8 // config.cluster)
    if n % w:  # This way all rows of a group of threads begin at the same element of a vector.
        unit = w // gcd(w, config.rows)
        blocks = max(unit, blocks // unit * unit)
    return min(blocks, -(-rows // config.rows))


def _named(takes: str, results: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Return the gradients of the row, the weight and the bias, None for absent ones."""
    dx, *vectors = results
    found = dict(zip(takes, vectors))
    return dx, found.get("w"), found.get("b")


def cross_entropy_backward(
    g: Any, x: Any, target: Any, lse: Any, count: Any = None, ignore_index: int = -100, *, device: object = None
) -> Any:  # fmt: skip
    """Return the gradient of ``x`` from that of ``cross_entropy(x, target)``: ``(softmax(x) - one_hot(target)) g``.

    Args:
        g: gradient of each row's loss, or of the sum or mean of all losses.
        x: logits, (…, classes).
        target: class of each row, i64 of (…).
        lse: ``logsumexp`` of each row in f32, from the forward pass.
        count: number of targets of a mean; None for a sum or for separate losses.
        ignore_index: rows with this target have a gradient of 0.
        device: ``"cpu"`` runs on the interpreter.
    """
    known = _KNOWN["cross_entropy"]
    read = tuple([t for t in (x, target, lse, g, count) if t is not None])
    if device is None:
        done = known.again((ignore_index, count is None), *read)
        if done is not None:
            return done
    others = ("target", "lse", "g", "count")
    arrays = {"x": x, "target": target, "lse": lse, "g": g, "count": count}
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
    dx = one.result(one.x.shape)
    if 0 not in one.x.shape:
        rows = one.count
        each = (
            one.flat("g") if one.views["g"].shape == of_rows else one.numbers(g)._replace(shape=(rows,), strides=(0,))
        )
        total = None if count is None else one.numbers(count)
        packed = one.packed_rows(one.x, one.view_of(dx))
        if packed is not None:
            kernel, (of_x, of_dx) = packed_entropy_kernel(one.element, n, of_loss, count is not None), packed
        else:
            kernel = entropy_kernel(one.element, n, of_loss, count is not None)
            of_x, of_dx = one.matrix("x"), one.matrix_of(dx)
        one.launch(kernel, of_x, one.flat("target"), one.flat("lse"), each, total, of_dx, ignore_index)
        if device is None:
            one.remember(known, (ignore_index, count is None), read, dx)
    return dx
