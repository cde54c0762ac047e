"""The arrays of a planned GEMM: read in place, checked against the plan, never copied.

All checks come before anything is compiled or written.
"""

# Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.operand_views import overlap, same_matrix
from cute_dialect.op.errors import AlignmentError, DeviceError, DtypeError, LayoutError, ShapeError
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, OutsideMemory, accepts, numpy_dtype, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.epilogue.graph import Graph
    from cute_dialect.op.epilogue.bind import Reduced

__all__ = [
    "Kinds", "Operands", "Type", "as_planned", "check", "check_addends", "check_tma", "fits_results", "fits_tma",
    "folded", "found_type", "laid", "layout_found", "new_like", "of_shape", "read",
]  # fmt: skip


class Type(NamedTuple):
    """The element and the layout of an operand."""

    element: str
    layout: str

    def __str__(self) -> str:
        return f"{self.element}, {self.layout}-major"


class Kinds(NamedTuple):
    """The types of the operands; ``c`` is None if there is no C."""

    a: Type
    b: Type
    c: Type | None
    d: Type


class Operands(NamedTuple):
    """The operands of a GEMM."""

    a: ArrayView  # (M, K), or a batch (L, M, K)
    b: ArrayView  # (K, N), or a batch
    d: ArrayView  # (M, N), or a batch
    c: ArrayView | None = None  # like D
    bias: ArrayView | None = None  # a vector
    alpha: float = 1.0
    beta: float = 0.0
    along: str = ""  # index of the bias, "n" or "m"
    # For pointer arrays, the positions of the matrices along the first mode: see execute.pointer_arrays.
    places: ArrayView | None = None
    graph: Graph | None = None  # epilogue, which then replaces C, bias, alpha and beta
    # Arrays and numbers of the epilogue in the kernel's layout, with the batch mode last.
    behind: tuple[ArrayView | float | None, ...] = ()
    reduced: tuple[Reduced, ...] = ()  # the reduced results among them
    scales: tuple[ArrayView, ...] = ()  # block scales of A and B
    stored: ArrayView | None = None  # D in the kernel's modes, if an epilogue reshapes it

    @property
    def by_element(self) -> bool:
        """True if the epilogue is elementwise."""
        return self.graph is None or not (self.graph.paired or self.graph.reduces or self.graph.whole_rows)


def read(call: str, name: str, array: object, on_cpu: bool | None = None) -> ArrayView:
    """Return the view of an array.  ``on_cpu`` is True or False if it must be in CPU or GPU memory, None for either.

    Raises DtypeError, DeviceError.
    """
    try:
        view = view_of(array)
    except NotAnArray as e:
        error = LayoutError if isinstance(e, OutsideMemory) else DtypeError
        raise error(f"{call}: {name}: {e}") from None
    if on_cpu and view.device >= 0:
        raise DeviceError(f'{call}: {name} is on GPU {view.device}; with device="cpu" it must be in CPU memory')
    if on_cpu is False and view.device < 0 and view.library != "numpy":
        raise DeviceError(
            f'{call}: {name} is in CPU memory; move it to the GPU, or pass device="cpu"'
        )  # fmt: skip
    return view


def layout_found(view: ArrayView) -> str:
    """Return the layout of a matrix, or of each matrix of a batch; row-major if it is both.  Raises LayoutError."""
    (m, n), (row, column) = view.shape[-2:], view.strides[-2:]
    if column == 1 or n == 1 or 0 in (m, n):
        return "row"
    if row == 1 or m == 1:
        return "column"
    raise LayoutError(f"strides {view.strides}; its rows or columns must be contiguous")


def found_type(call: str, name: str, view: ArrayView) -> Type:
    """Return the element and the layout of an array.  Raises LayoutError, ShapeError."""
    if len(view.shape) not in (2, 3):
        raise ShapeError(f"{call}: {name} has shape {view.shape}; it must have rank 2, or 3 for a batch")
    try:
        return Type(view.dtype, layout_found(view))
    except LayoutError as e:
        raise LayoutError(f"{call}: {name} has {e}") from None


def fits_tma(view: ArrayView, layout: str = "") -> bool:
    """Return True if TMA can read the matrices: address, row stride and batch stride are multiples of 16 bytes.

    ``layout`` is "row" or "column" as the kernel reads them.  It matters if the contiguous mode has one element,
    because another mode may then have a stride of 1 as well.
    """
    item, along = SIZES.get(view.dtype, 1), {"row": len(view.shape) - 1, "column": len(view.shape) - 2}.get(layout)
    others = [(s, n) for i, (s, n) in enumerate(zip(view.strides, view.shape)) if i != along]
    steps = [s for s, n in others if n > 1 and (s != 1 or along is not None)]
    return view.pointer % 16 == 0 and all(s > 0 and s * item % 16 == 0 for s in steps)


def _is_storable(view: ArrayView, layout: str = "") -> bool:
    """Return True if TMA can store the matrices without changing other memory; for ``layout`` see :func:`fits_tma`.

    TMA stores write whole units of 16 bytes, so a line that ends inside a unit needs padding that may change.
    """
    return fits_tma(view, layout) and _line(view, layout) % 16 == 0


def _line(view: ArrayView, layout: str = "") -> int:
    """Return the bytes of a line of contiguous elements."""
    layout = layout or layout_found(view)
    return view.shape[-1 if layout == "row" else -2] * SIZES.get(view.dtype, 1)


def fits_results(x: Operands, *, flipped: bool) -> bool:
    """Return True if wgmma kernels can write D in place, and read C and the bias in pairs of columns.

    ``flipped`` is True if the kernel computes the transposed problem.
    """
    pairs, layout = (x.c is not None or x.along == "n") and not flipped, "column" if flipped else "row"
    return (
        _is_storable(x.d, layout) and (x.c is None or fits_tma(x.c, layout)) and not (x.b.shape[-1] % 2 and pairs)
    )  # fmt: skip


def check_tma(call: str, x: Operands) -> None:
    """Raise AlignmentError for an operand that TMA cannot read or write."""
    for name, view in (("A", x.a), ("B", x.b), ("C", x.c), ("D", x.d)):
        if view is None or 0 in view.shape or (_is_storable(view) if name == "D" else fits_tma(view)):
            continue
        item = SIZES.get(view.dtype, 1)
        if fits_tma(view):
            what, bytes_ = f"has lines of {_line(view)} bytes, but TMA stores multiples of 16", _line(view)
        elif view.pointer % 16:
            what, bytes_ = f"has an address of {view.pointer % 16} mod 16, but TMA needs 0", view.pointer % 16
        else:
            steps = [s * item for s, n in zip(view.strides, view.shape) if s != 1 and n > 1 and s * item % 16]
            what, bytes_ = f"has a row stride of {steps[-1]} bytes, but TMA needs a multiple of 16", steps[-1]
        unit = max(1, (bytes_ & -bytes_) // item)
        raise AlignmentError(f"{call}: {name} {what}; use alignment_{name}={unit}, or another tile_description")


def folded(x: Operands, *, by_row: bool = False) -> Operands:
    """Return a batch as one GEMM if B is the same for all and the matrices of A, C and D are adjacent.

    ``by_row`` is True if the epilogue depends on the row.
    """
    if len(x.d.shape) == 2 or len(x.a.shape) == 2 or x.along == "m" or by_row:
        return x
    b = x.b
    if len(b.shape) == 3 and b.shape[0] > 1 and b.strides[0] != 0:
        return x
    rows = [v for v in (x.a, x.d, x.c) if v is not None]
    if any(v.strides[2] != 1 or v.strides[0] != v.shape[1] * v.strides[1] for v in rows if v.shape[0] > 1):
        return x
    if any(v.shape[0] != x.d.shape[0] or v.strides[2] != 1 for v in rows):
        return x

    def one(view: ArrayView) -> ArrayView:
        (matrices, m, n), (_, row, column) = view.shape, view.strides
        return view._replace(shape=(matrices * m, n), strides=(row, column))

    b = b._replace(shape=b.shape[-2:], strides=b.strides[-2:])
    return x._replace(a=one(x.a), b=b, d=one(x.d), c=None if x.c is None else one(x.c))


def as_planned(call: str, name: str, view: ArrayView, wanted: Type) -> ArrayView:
    """Return an operand with the planned element and layout.  Raises DtypeError, LayoutError."""
    error = None if accepts(wanted.element, view.dtype) else DtypeError
    try:
        found = str(Type(view.dtype, layout_found(view)))
    except LayoutError:
        found = f"{view.dtype}, strides {view.strides}"
    try:
        view = laid(view, wanted.layout, name)
    except LayoutError:
        error = error or LayoutError
    if error is not None:
        raise error(f"{call}: {name} has {found}; the plan needs {wanted}")
    return view


def of_shape(call: str, name: str, view: ArrayView, shape: Sequence[int], layout: str, why: str) -> ArrayView:
    """Return an operand with a known shape, to which a flat array is reshaped.  Raises ShapeError."""
    shape = tuple(shape)
    if len(view.shape) == 1 and view.shape[0] == _size(shape) and (view.strides[0] == 1 or view.shape[0] < 2):
        *batch, m, n = shape
        strides = (n, 1) if layout == "row" else (1, m)
        return view._replace(shape=shape, strides=(*[m * n for _ in batch], *strides))
    if view.shape != shape and (len(shape) == 2 or view.shape not in (shape[1:], (1, *shape[1:]))):
        raise ShapeError(f"{call}: {name} has shape {view.shape}; it must have {shape}{why}")
    return view


def _size(shape: Sequence[int]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def check(
    call: str, kinds: Kinds, a: object, b: object, c: object = None, d: object = None, *, alpha: float = 1.0,
    beta: float = 0.0, bias: object = None, problem: Sequence[int] | None = None, batch: int = 0,
    on_cpu: bool | None = False,
    shape_of: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None,
) -> tuple[Operands, Any]:  # fmt: skip
    """Return the checked operands of a GEMM, and D, which is allocated if absent.

    Args:
        problem: (M, N, K), or None to derive it from A and B.
        batch: number of matrices, 0 to derive it from A and B.
        on_cpu: see :func:`read`.
        shape_of: returns the shape of D for that of the accumulator, if an epilogue changes it.

    Raises:
        OpError: if an operand does not fit.
    """
    x, y = read(call, "A", a, on_cpu), read(call, "B", b, on_cpu)
    if problem is not None:
        m, n, k = problem
        many = (batch,) if batch else ()
        x = of_shape(call, "A", x, (*many, m, k), kinds.a.layout, " for this problem_size")
        y = of_shape(call, "B", y, (*many, k, n), kinds.b.layout, " for this problem_size")
    else:
        for name, view in (("A", x), ("B", y)):
            if len(view.shape) not in (2, 3):
                raise ShapeError(f"{call}: {name} has shape {view.shape}; it must have rank 2, or 3 for a batch")
        m, k = x.shape[-2:]
        n = y.shape[-1]
        if y.shape[-2] != k:
            raise ShapeError(f"{call}: B has shape {y.shape[-2:]}; it must have ({k}, N), because A has {x.shape[-2:]}")
    of = sorted({v.shape[0] for v in (x, y) if len(v.shape) == 3})
    if len(of) == 2 and of[0] != 1:
        raise ShapeError(f"{call}: B has {y.shape[0]} matrices; it must have {x.shape[0]} like A, or one")
    shape = (*(of[-1:]), m, n)
    x, y = as_planned(call, "A", x, kinds.a), as_planned(call, "B", y, kinds.b)
    if beta != 0.0 and (c is None or kinds.c is None):
        raise ShapeError(f"{call}: beta is {beta}, but C is missing; pass C or beta=0")
    shape = shape if shape_of is None else shape_of(shape)
    d = new_like(a, shape, kinds.d) if d is None else d
    z = of_shape(call, "D", read(call, "D", d, on_cpu), shape, kinds.d.layout, "")
    if z.shape != shape:
        raise ShapeError(f"{call}: D has shape {z.shape}; it must have {shape}")
    z = as_planned(call, "D", z, kinds.d)
    w = None
    if beta != 0.0 and kinds.c is not None:
        w = of_shape(call, "C", read(call, "C", c, on_cpu), shape, kinds.c.layout, "")
        w = as_planned(call, "C", w, kinds.c)
        if w.shape != shape:
            raise ShapeError(f"{call}: C has shape {w.shape}; it must have {shape}")
    v, along = (None, "") if bias is None else _bias(call, read(call, "bias", bias, on_cpu), m, n)
    for name, view in (("B", y), ("C", w), ("D", z), ("bias", v)):
        if view is None or "address" in (view.library, x.library):
            continue
        if (view.library, view.device) != (x.library, x.device):
            of_a, this = [
                f"a {q.library} array on {'the CPU' if q.device < 0 else f'GPU {q.device}'}" for q in (x, view)
            ]
            raise DeviceError(f"{call}: {name} is {this}, but A is {of_a}; use one library and device")
    for name, view in (("A", x), ("B", y)):
        if overlap(z, view):
            raise LayoutError(f"{call}: D shares memory with {name}; only C may share memory with D")
    check_addends(call, z, w, v)
    return Operands(x, y, z, w, v, alpha, beta, along), d


def check_addends(call: str, d: ArrayView, c: ArrayView | None, bias: ArrayView | None) -> None:
    """Raise LayoutError if D shares memory with the bias, or with C unless it is the same matrix."""
    if c is not None and not same_matrix(c, d) and overlap(c, d):
        raise LayoutError(
            f"{call}: D shares memory with C; only a C that is exactly the same matrix may be overwritten"
        )
    if bias is not None and overlap(bias, d):
        raise LayoutError(f"{call}: D shares memory with bias; only C may share memory with D")


def _bias(call: str, view: ArrayView, m: int, n: int) -> tuple[ArrayView, str]:
    """Return a bias as a vector, and its index of D: ``n`` (per column) or ``m`` (per row)."""
    if view.shape not in ((n,), (1, n), (m, 1)):
        raise ShapeError(f"{call}: bias has shape {view.shape}; it must have ({n},), (1, {n}) or ({m}, 1)")
    along = "n" if view.shape in ((n,), (1, n)) else "m"
    extent = n if along == "n" else m
    stride = view.strides[-1] if along == "n" else view.strides[0]
    if stride != 1 and extent > 1:
        raise LayoutError(f"{call}: bias has strides {view.strides}; it must be contiguous")
    return view._replace(shape=(extent,), strides=(1,)), along


def new_like(array: object, shape: Sequence[int], wanted: Type) -> Any:
    """Allocate an array of the library and on the device of another one.  Raises DeviceError for unknown libraries."""
    view = view_of(array)
    *batch, m, n = shape
    rows = wanted.layout == "row"
    order = (*batch, m, n) if rows else (*batch, n, m)
    element = "f32" if wanted.element == "tf32" else wanted.element
    if view.library == "torch":
        import torch

        name = numpy_dtype(element).name
        made: Any = torch.empty(order, dtype=getattr(torch, name), device=array.device)  # type: ignore[attr-defined]
        return made if rows else made.mT
    if view.library == "numpy":
        import numpy as np

        found = np.empty(order, numpy_dtype(element))
        return found if rows else found.swapaxes(-1, -2)
    if type(array).__module__.startswith("cupy"):
        import cupy

        with cupy.cuda.Device(view.device):
            found = cupy.empty(order, numpy_dtype(element))
        return found if rows else found.swapaxes(-1, -2)
    raise DeviceError(f"Gemm: D is missing, and arrays of type {type(array).__name__} cannot be allocated; pass D")


def laid(view: ArrayView, layout: str, what: str) -> ArrayView:
    """Return a matrix, or a batch, in a layout.  Modes of one element get strides as if there were more.

    Raises LayoutError if the array has another layout.

    >>> laid(ArrayView(0, (1, 40), (3, 1), "f16", -1, "numpy", None), "row", "A").strides
    (40, 1)
    """
    (*matrices, m, n), (*steps, row, column) = view.shape, view.strides
    along, other, extent, lines = (column, row, n, m) if layout == "row" else (row, column, m, n)
    if along != 1 and extent > 1 and 0 not in view.shape:
        strided = f"strides {view.strides}"
        found = "column-major layout" if row == 1 else "row-major layout" if column == 1 else strided
        raise LayoutError(f"{what} has {found}; the plan needs {layout}-major")
    unit = max(1, 16 // SIZES.get(view.dtype, 1))
    if lines <= 1 or 0 in view.shape:
        other = -(-max(extent, 1) // unit) * unit
    steps = [-(-lines * other // unit) * unit if matrices[0] == 1 else steps[0]] if matrices else []
    return view._replace(strides=(*steps, *((other, 1) if layout == "row" else (1, other))))
