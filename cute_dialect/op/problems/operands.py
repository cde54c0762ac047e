"""Operands of GEMMs: how they are read, and checks of shapes, types, strides and memory before a kernel is chosen.

Functions name their operands a, b, c and out, and copy those that no kernel can read in place.  Plans name them A, B, C
and D, have fixed types and layouts (:class:`Kinds`), and never copy.
"""

# Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.epilogue.activations import is_activation, unknown_activation
from cute_dialect.op.arrays.dtypes import SIZES, can_mix
from cute_dialect.op.arrays.operand_views import Matrix, overlap, same_matrix
from cute_dialect.op.errors import AlignmentError, DeviceError, DtypeError, EpilogueError, LayoutError, ShapeError
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, OutsideMemory, accepts, numpy_dtype, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.epilogue.graph import Graph
    from cute_dialect.op.epilogue.bind import Reduced


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

    def transposed(self) -> Operands:
        """Return the matrices of the transposed GEMM, ``D^T = B^T A^T``; other operands are unchanged."""
        c = None if self.c is None else self.c.transposed()
        return self._replace(a=self.b.transposed(), b=self.a.transposed(), d=self.d.transposed(), c=c)


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
        raise DeviceError(f'{call}: {name} is in CPU memory; move it to the GPU, or pass device="cpu"')
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
    return _is_storable(x.d, layout) and (x.c is None or fits_tma(x.c, layout)) and not (x.b.shape[-1] % 2 and pairs)


def check_tma(call: str, x: Operands, names: str = "ABCD", *, has_direct: bool = False) -> None:
    """Raise AlignmentError for an operand among ``names`` that TMA cannot read or write.

    ``has_direct`` is True if the same tile has a kernel that reads C and stores D without TMA.
    """
    for name, view in (("A", x.a), ("B", x.b), ("C", x.c), ("D", x.d)):
        if (
            name not in names
            or view is None
            or 0 in view.shape
            or (_is_storable(view) if name == "D" else fits_tma(view))
        ):
            continue
        item = SIZES.get(view.dtype, 1)
        if fits_tma(view):
            what = f"has lines of {_line(view)} bytes, but TMA stores multiples of 16"
        elif view.pointer % 16:
            what = f"has an address of {view.pointer % 16} mod 16, but TMA needs 0"
        else:
            steps = [s * item for s, n in zip(view.strides, view.shape) if s != 1 and n > 1 and s * item % 16]
            what = f"has a row stride of {steps[-1]} bytes, but TMA needs a multiple of 16"
        if has_direct and name in "CD":
            cure = "set epilogue_schedule to 'direct' in tile_description, or use no tile_description"
        elif call.endswith("Arguments"):  # of an operation as in PyCUTLASS, which always has a tile
            cure = "use a tile of mma.sync, whose instruction_shape begins with 16"
        else:
            cure = "set tile_description to None to have a kernel chosen"
        raise AlignmentError(f"{call}: {name} {what}; {cure}")


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


_OTHER = {
    (2, 1): "; use matmul for vectors",
    (3, 1): "; use matmul for vectors",
    (2, 3): "; use bmm or matmul for batches",
    (3, 2): "; use mm for matrices",
}
"""(Rank needed, rank found) -> the function that supports it."""


def matrix(x: ArrayView) -> Matrix:
    """Return the layout of a matrix, or of a batch."""
    item, address = numpy_dtype(x.dtype).itemsize, x.pointer % 16
    (*more, rows, columns), (*steps, row, column) = x.shape, x.strides
    one = Matrix((rows, columns), (row, column), item, address)
    return one._replace(matrices=more[0], step=steps[0] if more[0] > 1 else 0) if more else one


def check_product(call: str, rank: int, a: ArrayView, b: ArrayView) -> tuple[int, ...]:
    """Check the operands of a GEMM (``rank`` 2) or a batched GEMM (3), and return the result's shape.

    Raises ShapeError, DtypeError, LayoutError.
    """
    shape = product_shape(call, rank, a, b)
    if not can_mix(a.dtype, b.dtype):
        raise DtypeError(f"{call}: b has dtype {b.dtype}, but a has dtype {a.dtype}; pass operands of one dtype")
    for name, x in (("a", a), ("b", b)):
        _check_mode(call, name, x)
    return shape


def product_shape(
    call: str, rank: int | None, a: ArrayView, b: ArrayView, names: tuple[str, str] = ("a", "b")
) -> tuple[int, ...]:
    """Return the shape of the result of a GEMM, or of a batch of them.

    Args:
        rank: rank of the operands; None for matrices and batches, where one matrix may be shared by a batch.
        names: names of the operands in messages.

    Raises ShapeError.
    """
    first, second = names
    for name, x in zip(names, (a, b)):
        if rank is None and len(x.shape) not in (2, 3):
            raise ShapeError(f"{call}: {name} has shape {x.shape}; it must have rank 2, or 3 for a batch")
        if rank is not None and len(x.shape) != rank:
            more = _OTHER.get((rank, len(x.shape)), "; use matmul for other ranks" if len(x.shape) > 3 else "")
            raise ShapeError(f"{call}: {name} has shape {tuple(x.shape)}, but rank {rank} is needed{more}")
    if a.shape[-1] != b.shape[-2]:
        wanted = f"({'L, ' if len(b.shape) == 3 else ''}{a.shape[-1]}, N)"
        raise ShapeError(
            f"{call}: {second} has shape {tuple(b.shape)}, but {first} has shape {tuple(a.shape)}; "
            f"pass {second} of {wanted}"
        )
    counts = [x.shape[0] for x in (a, b) if len(x.shape) == 3]
    if len(set(counts)) == 2 and 1 not in counts:
        raise ShapeError(
            f"{call}: {second} has {counts[1]} matrices, but {first} has {counts[0]}; pass {counts[0]}, or one"
        )
    matrices = counts[-1:] if counts[:1] == [1] else counts[:1]
    return (*matrices, a.shape[-2], b.shape[-1])


def _check_mode(call: str, name: str, x: ArrayView) -> None:
    m = matrix(x)
    if not m.along(1) and not m.along(0) and 0 not in x.shape:
        raise LayoutError(
            f"{call}: {name} has strides {tuple(x.strides[-2:])}, but one must be 1; pass a contiguous copy"
        )


def check_result(
    call: str, out: ArrayView, shape: tuple[int, ...], dtype: str | None, *, arranged: bool = False
) -> None:
    """Check a given ``out``; ``arranged``: the epilogue reshapes or permutes it, so any strides are allowed.

    Raises ShapeError, DtypeError, LayoutError.
    """
    if tuple(out.shape) != shape:
        raise ShapeError(f"{call}: out has shape {tuple(out.shape)}; pass out of shape {shape}")
    if dtype is not None and dtype != out.dtype:
        raise DtypeError(f"{call}: dtype is {dtype}, but out has dtype {out.dtype}; omit dtype")
    if not arranged:
        _check_mode(call, "out", out)
    reach = 0
    for step, n in sorted((abs(step), n) for n, step in zip(out.shape, out.strides) if n > 1):
        if step <= reach and 0 not in shape:
            raise LayoutError(
                f"{call}: out has strides {tuple(out.strides)}, so its elements share memory; pass a contiguous out"
            )
        reach += step * (n - 1)


def check_overlap(call: str, views: Mapping[str, ArrayView], out: str = "out", c: str = "c") -> None:
    """Check that a given result shares no memory with other arrays, unless it is the addend.

    Args:
        out, c: names of the result and of the addend; "" if the call has none.

    Raises LayoutError.
    """
    result = views[out]
    for name, view in views.items():
        if name not in (out, c) and overlap(view, result):
            but = f" (only {c} may be {out})" if c else ""
            raise LayoutError(f"{call}: {out} shares memory with {name}; pass a separate {out}{but}")
    if c in views and not same_matrix(views[c], result) and overlap(views[c], result):
        raise LayoutError(
            f"{call}: {out} shares memory with {c}, but is not the same matrix; pass {c} itself or a copy"
        )


def check_one_device(call: str, views: Mapping[str, ArrayView], first: str = "A") -> None:
    """Raise DeviceError if arrays belong to several libraries or devices; memory at an address may be anywhere."""
    x = views[first]
    for name, view in views.items():
        if "address" in (view.library, x.library):
            continue
        if (view.library, view.device) != (x.library, x.device):
            of_a, this = [
                f"a {q.library} array on {'the CPU' if q.device < 0 else f'GPU {q.device}'}" for q in (x, view)
            ]
            raise DeviceError(f"{call}: {name} is {this}, but {first} is {of_a}; use one library and device")


def check_addends(
    call: str, views: Mapping[str, ArrayView], shape: tuple[int, ...], numbers: Mapping[str, object]
) -> None:
    """Check the given ones of ``c`` and ``bias``, and ``alpha`` and ``beta``.  Raises ShapeError, DtypeError."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DtypeError(f"{call}: {name} is {value!r}; pass a number")
    if "c" in views:
        found = tuple(views["c"].shape)
        if len(found) > len(shape) or any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1])):
            raise ShapeError(f"{call}: c has shape {found}; pass an array that broadcasts to {shape}")
    if "bias" in views:
        bias_mode(call, tuple(views["bias"].shape), *shape[-2:])


def bias_mode(call: str, shape: tuple[int, ...], m: int, n: int) -> str:
    """Return ``n`` for a per-column bias, ``m`` for a per-row bias.  Raises ShapeError for other shapes."""
    if shape in ((n,), (1, n)):
        return "n"
    if shape == (m, 1):
        return "m"
    raise ShapeError(f"{call}: bias has shape {shape}; pass a bias of ({n},), (1, {n}) or ({m}, 1)")


def check_activation(call: str, activation: object, hook: object) -> None:
    """Check an activation and a hook.  Raises EpilogueError."""
    if activation != "" and not is_activation(activation):
        raise EpilogueError(f"{call}: {unknown_activation(activation)}")
    if hook is not None and not callable(hook):
        raise EpilogueError(f"{call}: hook is {hook!r}; pass a function")
