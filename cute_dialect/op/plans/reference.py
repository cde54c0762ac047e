"""Reference results of GEMMs and convolutions, computed by NumPy in f64."""

# Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.conv.config import DGRAD, FPROP
from cute_dialect.op.arrays.operand_views import first, last
from cute_dialect.op.epilogue.bind import traced_of
from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.problems.conv import ConvOptions, Geometry, planned_geometry

if TYPE_CHECKING:  # pragma: no cover
    from numpy import float64
    from numpy.typing import NDArray


def as_f64(array: Any) -> NDArray[float64]:
    """Return the values of an array of NumPy, torch or CuPy."""
    import numpy as np

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return array.detach().cpu().double().numpy()
    return np.asarray(array.get() if hasattr(array, "get") else array).astype(np.float64)


def reference(
    a: Any, b: Any, c: Any = None, alpha: Any = 1.0, beta: Any = 0.0, bias: Any = None, activation: str = "",
    visitor: Callable[..., Any] | None = None,
) -> NDArray[float64]:  # fmt: skip
    """Return ``activation(alpha * a @ b + beta * c + bias)`` of matrices or batches.

    Raises UnsupportedError for a visitor in the kernel language that NumPy cannot compute.
    """
    import numpy as np

    sums = as_f64(a) @ as_f64(b) if np.any(alpha != 0.0) else np.zeros(())
    found = np.zeros(np.broadcast_shapes((*_batch(a, b), a.shape[-2], b.shape[-1]), sums.shape)) + alpha * sums
    if np.any(beta != 0.0):
        found = found + beta * as_f64(c).reshape(found.shape)
    if bias is not None:
        found = found + as_f64(bias)
    if activation:
        found = activated_f64(activation, found)
    if visitor is not None:
        rows, columns = np.indices(found.shape[-2:])
        try:
            found = np.asarray(visitor(found, rows, columns), np.float64)
        except Exception as e:
            raise UnsupportedError(
                f"reference: NumPy cannot compute the epilogue_visitor ({e}); use a function with a parameter accum"
            ) from e
    return found


def activated_f64(activation: str, x: NDArray[float64]) -> NDArray[float64]:
    """Apply an activation in f64."""
    import numpy as np

    return np.asarray(activated(activation)(x), np.float64)


def visited_reference(a: Any, b: Any, visitor: Any, args: Mapping[str, Any]) -> Any:
    """Return the results of an epilogue's function for the GEMM in f64 and its arguments; booleans stay booleans."""
    import numpy as np

    sums = as_f64(a) @ as_f64(b)
    traced = traced_of("Gemm.reference", visitor, args, sums.shape)

    def wide(x: Any) -> Any:
        if isinstance(x, bool | int | float):
            return x
        truths = str(x.dtype).endswith("bool")
        return as_f64(x).astype(np.bool_) if truths else as_f64(x)

    given = {n: wide(args[n]) for n in traced.parameters if n != "accum"}
    with np.errstate(all="ignore"):
        return traced.reference(sums, **given)


def _batch(a: Any, b: Any) -> tuple[int, ...]:
    return max(tuple(a.shape[:-2]), tuple(b.shape[:-2]), key=lambda s: (len(s), s))


def convolved(g: Geometry, a: NDArray[float64], b: NDArray[float64]) -> NDArray[float64]:
    """Return the accumulator of a convolution or a gradient, for operands with channels last."""
    import numpy as np

    w, groups = g.window, g.groups
    image = np.zeros(g.image) if g.kind == DGRAD else b if g.kind != FPROP else a
    pads = ((0, 0), *zip(w.before, w.after), (0, 0))
    seen, found = np.pad(image, pads), np.zeros(g.output)
    k, c = g.filter[0] // groups, g.filter[-1]
    for group, at in itertools.product(range(groups), itertools.product(*map(range, w.taps))):
        ks, cs = slice(group * k, (group + 1) * k), slice(group * c, (group + 1) * c)
        spans: list[slice] = []
        for tap, taps, n, u, d in zip(at, w.taps, g.result[1:-1], w.strides, w.dilations):
            start = (taps - 1 - tap if w.flip else tap) * d
            spans.append(slice(start, start + (n - 1) * u + 1, u))
        pixels = (slice(None), *spans, cs)
        if g.kind == FPROP:
            found[..., ks] += seen[pixels] @ b[(ks, *at)].T
        elif g.kind == DGRAD:
            seen[pixels] += a[..., ks] @ b[(ks, *at)]
        else:
            found[(ks, *at)] = a[..., ks].reshape(-1, k).T @ seen[pixels].reshape(-1, c)
    if g.kind != DGRAD:
        return found
    inner = tuple([slice(before, before + n) for before, n in zip(w.before, g.extents)])
    return seen[(slice(None), *inner)]


def conv_reference(
    kind: str, arrays: Sequence[Any], numbers: tuple[float, float], how: ConvOptions, bias: Any = None,
    activation: str = "",
    visitor: Any = None, args: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Return ``activation(alpha * sums + beta * C + bias)`` of a convolution, or the results of an epilogue.

    Args:
        arrays: A, B, C and D; only the shape of D is used.
    """
    import numpy as np

    turn = how.data_format == "NCHW"
    a, b, c = (None if t is None else as_f64(t) for t in arrays[:3])
    assert a is not None and b is not None
    x, y = (t.transpose(last((0, 1, 2, 3), turn)) for t in (a, b))
    shape = None if arrays[3] is None else last(tuple(arrays[3].shape), turn)
    g = planned_geometry("Conv2d.reference", kind, (x.shape, y.shape), shape, how)
    sums = convolved(g, x, y).transpose(first((0, 1, 2, 3), turn))
    if visitor is not None:
        return _visited(sums, g, visitor, args or {}, turn)
    alpha, beta = numbers
    found = alpha * sums if alpha != 0.0 else np.zeros(sums.shape)

    def of_channels(t: NDArray[float64]) -> NDArray[float64]:
        return t.reshape(first((1, 1, 1, -1), turn)) if t.size == g.output[-1] else t

    if beta != 0.0 and c is not None:
        found = found + beta * of_channels(c)
    if bias is not None:
        found = found + of_channels(as_f64(bias))
    return activated_f64(activation, found) if activation else found


def _visited(sums: NDArray[float64], g: Geometry, visitor: Any, args: Mapping[str, Any], turn: bool) -> Any:
    """Return the results of an epilogue's function for the accumulator, as matrices with a row per pixel."""
    import numpy as np

    def rows(t: Any) -> Any:
        if isinstance(t, bool | int | float):
            return t
        wide = as_f64(t)
        if wide.ndim != 4:
            return wide
        wide = wide.transpose(last((0, 1, 2, 3), turn))
        return wide.reshape(-1, g.matrix[1]) if wide.shape == g.output else wide.reshape(1, -1)

    given = {n: rows(t) for n, t in args.items()}
    traced = traced_of("Conv2d.reference", visitor, given, g.matrix)
    given = {n: given[n] for n in traced.parameters if n != "accum"}
    with np.errstate(all="ignore"):
        return traced.reference(rows(sums), **given)
