"""Reference results of a GEMM, computed by NumPy in f64."""

# Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cute_dialect.op.epilogue.bind import traced_of
from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.errors import UnsupportedError

if TYPE_CHECKING:  # pragma: no cover
    from numpy import float64
    from numpy.typing import NDArray

__all__ = ["activated_f64", "as_f64", "reference", "visited_reference"]


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
