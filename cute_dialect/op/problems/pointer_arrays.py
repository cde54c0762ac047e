"""GEMMs of matrices at separate addresses: operands as lists, their checks, and the arguments of a kernel.

A batched kernel computes GEMMs of equal shapes.  GEMMs of any sizes are the rows of a table of offsets from one base
address per operand.  Its columns are :data:`cute_dialect.kernels.gemm.pointer_array.COLUMNS`.

>>> tiles_of([(130, 64, 8), (0, 64, 8), (64, 100, 16)], (64, 64)).tolist()
[3, 0, 2]
>>> turns_of([(130, 64, 8), (0, 64, 8), (64, 100, 16)], (64, 64)).tolist()
[[2, 0], [2, 1], [0, 0], [0, 1], [0, 2]]
"""

# Pyright does not infer the types of NumPy's results.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from cute_dialect.kernels.gemm.pointer_array import COLUMNS
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.epilogue.bind import Bound, bound, described, refuse_arranged
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced
from cute_dialect.op.errors import AlignmentError, DeviceError, EpilogueError, LayoutError, ShapeError
from cute_dialect.op.problems.gemm import planned_operands
from cute_dialect.op.problems.operands import Kinds, Operands, Type, new_like
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, view_of
from cute_dialect.runtime.host_memory import span
from cute_dialect.runtime.launch_plan import MAX_EXTENT_I32

if TYPE_CHECKING:  # pragma: no cover
    from numpy import int32, int64
    from numpy.typing import NDArray

    from cute_dialect.kernels.gemm.pointer_array import ListedConfig


Extents: TypeAlias = tuple[int, int, int]
"""M, N and K."""


def is_several(array: object) -> bool:
    """Return True if an operand is a Python list of arrays."""
    if not isinstance(array, list | tuple) or isinstance(array, ArrayView) or not array:
        return False
    kinds = ("shape", "__dlpack__", "__cuda_array_interface__")
    return all([any([hasattr(x, kind) for kind in kinds]) for x in cast("list[object]", array)])


def products_of(
    call: str, kinds: Kinds, A: object, B: object, C: object, D: object, *, alpha: float, beta: float,
    bias: object = None, problem: Sequence[int] | None = None, on_cpu: bool | None = False,
    traced: Traced | None = None,
) -> tuple[list[Operands], list[Any]]:  # fmt: skip
    """Return the checked operands of equal GEMMs, and their results, which are allocated if absent.

    Args:
        A, B, C, D: lists of arrays or of addresses; addresses may also be an i64 array, and need ``problem``.
        problem: (M, N, K).
        traced: an epilogue, which determines the shape of the results.

    Raises:
        OpError: if an operand does not fit.
    """

    def shape_of(sums: tuple[int, ...]) -> tuple[int, ...]:
        return sums if traced is None else traced.shape_of((len(cast("Sequence[object]", A)), *sums))[1:]

    count = len(cast("Sequence[object]", A))
    size = None if problem is None else (problem[0], problem[1], problem[2])
    given = [each_matrix(call, n, x, count, size, kinds) for n, x in zip("ABCD", (A, B, C, D))]
    found: list[Operands] = []
    results: list[Any] = []
    for a, b, c, d in zip(*given):
        x, made = planned_operands(
            call, kinds, a, b, c, d, alpha=alpha, beta=beta, bias=bias, problem=problem, on_cpu=on_cpu,
            shape_of=shape_of,
        )  # fmt: skip
        if len(x.d.shape) != 2:
            raise ShapeError(f"{call}: a list must hold matrices, got a batch of shape {x.d.shape}")
        found.append(x)
        results.append(made)
    first = found[0]
    for i, x in enumerate(found):
        if (x.d.shape, x.a.shape) != (first.d.shape, first.a.shape):
            sizes = [(*y.d.shape, y.a.shape[1]) for y in (first, x)]
            raise ShapeError(
                f"{call}: (M, N, K) is {sizes[1]} at index {i}, but {sizes[0]} at index 0; all must be equal"
            )
    return found, results


def with_epilogue(
    call: str, found: Sequence[Operands], results: Sequence[Any], traced: Traced, args: Mapping[str, Any], kinds: Kinds
) -> tuple[list[Operands], Bound]:
    """Bind a traced epilogue to equal GEMMs; its arrays are those of a batch of them.

    Results other than D are allocated if absent.  Raises OpError.
    """
    first, like = found[0], results[0]
    sums = (len(found), first.a.shape[0], first.b.shape[1])
    if traced.views:
        refuse_arranged(call, traced)
    if (traced.graph.paired or traced.graph.whole_rows) and kinds.d.layout == "column":
        raise LayoutError(f"{call}: outs is column-major; pairs() and whole_rows=True need row-major results")
    shape = traced.shape_of(sums)
    d: Any = described(FakeTensor(kinds.d.element, shape, kinds.d.layout))
    if hasattr(like, "expand"):
        d = like.expand(*shape)
    elif type(like).__module__ == "numpy":
        import numpy as np

        d = np.broadcast_to(like, shape)

    def another(shape: tuple[int, ...], element: str) -> Any:
        return new_like(like, shape, Type(element or kinds.d.element, "row"))

    made = bound(traced, args, d, sums, another)
    behind = tuple([view_of(t) if hasattr(t, "shape") else t for t in made.operands])
    for i, x in enumerate(found):
        factors = {"A": x.a, "B": x.b} if i else {"A": x.a, "B": x.b, "D": x.d}
        made.check_memory(call, x.d, {f"{n} of matrix {i}": v for n, v in factors.items()})
    more = {"graph": made.graph, "behind": behind, "reduced": tuple(made.reduced)}
    return [x._replace(**more) for x in found], made


def as_batch(found: Sequence[Operands]) -> Operands:
    """Return a batch with the alignment of GEMMs at separate addresses, to choose a kernel.  It must not be read."""
    made: dict[str, ArrayView | None] = {}
    for name in "abcd":
        views: list[ArrayView] = [v for v in (getattr(x, name) for x in found) if v is not None]
        if not views:
            continue
        pointer, (m, n), (row, column) = 0, views[0].shape, views[0].strides
        for v in views:
            pointer |= v.pointer  # The result is aligned like the least aligned matrix.
            row, column = (_least_aligned(a, b) for a, b in zip((row, column), v.strides))
        step = -(-max(m * row, n * column, 1) // 16) * 16
        made[name] = views[0]._replace(
            pointer=pointer, shape=(len(found), m, n), strides=(step, row, column), keep=None
        )
    return found[0]._replace(**made)


def _least_aligned(a: int, b: int) -> int:
    """Return the stride that is divisible by the smaller power of two."""
    return a if (a & -a or 1 << 62) <= (b & -b or 1 << 62) else b


class Numbers(NamedTuple):
    """Alpha per GEMM, and beta for all."""

    host: Sequence[float]  # alpha of each GEMM
    device: ArrayView | None = None  # alpha as an f32 array on a GPU
    beta: float = 0.0

    @property
    def plain(self) -> bool:
        """True if every alpha is 1."""
        return self.device is None and all([x == 1.0 for x in self.host])


def numbers_of(call: str, alpha: object, beta: float, count: int, on_cpu: bool) -> Numbers:
    """Return the numbers of a call.  ``alpha`` is a number, a list of numbers or an array of shape (G,).

    Raises ShapeError, DeviceError, LayoutError.
    """
    if isinstance(alpha, int | float) and not isinstance(alpha, bool):
        return Numbers([float(alpha)] * count, None, beta)
    given: Any = alpha
    if isinstance(alpha, list | tuple):
        values = cast("Sequence[object]", alpha)
        if len(values) == count and all(isinstance(x, int | float) for x in values):
            return Numbers([float(cast(float, x)) for x in values], None, beta)
    try:
        view = view_of(given)
    except NotAnArray:
        view = None
    if view is None or (view.shape, view.dtype) != ((count,), "f32"):
        got = repr(given) if view is None else f"{view.dtype} of {view.shape}"
        raise ShapeError(
            f"{call}: alpha is {got}; it must be a number, a list of {count} numbers, or an f32 array of ({count},)"
        )
    if view.device < 0:
        return Numbers([float(x) for x in given.tolist()], None, beta)
    if on_cpu:
        raise DeviceError(f'{call}: alpha is on GPU {view.device}; with device="cpu" it must be in CPU memory')
    if view.strides != (1,) and count > 1:
        raise LayoutError(f"{call}: alpha has strides {view.strides}; it must be contiguous")
    return Numbers([1.0] * count, view._replace(strides=(1,)), beta)


def check_places(call: str, found: Sequence[Operands]) -> None:
    """Raise DeviceError if GEMMs have arrays of several libraries or devices."""
    first = found[0].d
    for i, x in enumerate(found):
        places = [(v.library, v.device) for v in (first, x.d) if v.library != "address"]
        if len(set(places)) > 1:
            first_one, this = [
                f"a {library} array on {'the CPU' if device < 0 else f'GPU {device}'}" for library, device in places
            ]
            raise DeviceError(
                f"{call}: D of problem {i} is {this}, but that of problem 0 is {first_one}; use one library and device"
            )


def problems_of(
    call: str, kinds: Kinds, A: object, B: object, C: object, D: object, *, beta: float = 0.0, bias: object = None,
    sizes: Sequence[Sequence[int]] | None = None, on_cpu: bool | None = False,
) -> tuple[list[Operands], list[Any]]:  # fmt: skip
    """Return the checked operands of GEMMs of any sizes, and their results, which are allocated if absent.

    Args:
        A, B, C, D: lists of arrays, or of addresses, which need ``sizes``.
        sizes: (M, N, K) of each GEMM.
        on_cpu: True or False if the arrays must be in CPU or GPU memory, None for either.

    Raises:
        OpError: if an operand does not fit.
    """
    if not isinstance(A, list | tuple):
        raise ShapeError(f"{call}: A is a {type(A).__name__}; pass a list with one matrix per problem")
    count = len(cast("Sequence[object]", A)) if sizes is None else len(sizes)
    if count == 0:
        raise ShapeError(f"{call}: the lists are empty; pass at least one problem")
    coords = [None] * count if sizes is None else [(size[0], size[1], size[2]) for size in sizes]
    operands = cast("Sequence[object]", (A, B, C, D))
    lists = [_each(call, n, x, count, coords, kinds) for n, x in zip("ABCD", operands)]
    biases = [None] * count if bias is None else _each_bias(call, bias, count)
    found: list[Operands] = []
    results: list[Any] = []
    for i, (a, b, c, d) in enumerate(zip(*lists)):
        try:
            x, made = planned_operands(
                call, kinds, a, b, c, d, beta=beta, bias=biases[i], problem=coords[i], on_cpu=on_cpu
            )
        except (NotAnArray, ShapeError, LayoutError) as e:
            raise type(e)(f"{e} (problem {i})") from None
        if len(x.d.shape) != 2:
            raise ShapeError(f"{call}: a list must hold matrices, got a batch of shape {x.d.shape} (problem {i})")
        found.append(x)
        results.append(made)
    for what in ("along", "bias"):
        first = getattr(found[0], what)
        for i, x in enumerate(found):
            one = getattr(x, what)
            if what == "along" and one != first:
                raise ShapeError(
                    f"{call}: the bias of problem {i} is along {one}, but that of problem 0 along {first}; "
                    "use one direction for all"
                )
            if what == "bias" and first is not None and one is not None and one.dtype != first.dtype:
                raise EpilogueError(
                    f"{call}: the biases have dtypes {first.dtype} and {one.dtype}; all must have the same dtype"
                )
    return found, results


def _each(
    call: str, name: str, given: object, count: int, sizes: Sequence[Extents | None], kinds: Kinds
) -> list[object]:
    """Return one operand of each GEMM.  Raises ShapeError."""
    if given is None:
        return [None] * count
    items: list[object] = (
        list(cast("list[object]", given)) if isinstance(given, list | tuple) else cast(Any, given).tolist()
    )
    if len(items) != count:
        raise ShapeError(f"{call}: {name} has {len(items)} matrices; pass {count}, one per problem")
    return [each_matrix(call, name, [x], 1, size, kinds)[0] for x, size in zip(items, sizes)]


def _each_bias(call: str, bias: object, count: int) -> list[object]:
    """Return the bias of each GEMM, from a list or one for all.  Raises ShapeError."""
    if not isinstance(bias, list | tuple):
        return [bias] * count
    found = list(cast("Sequence[object]", bias))
    missing = sum([x is None for x in found])
    if len(found) != count or missing:
        more = f", {missing} of them None" * (missing > 0)
        raise ShapeError(f"{call}: bias has {len(found)} arrays{more}; pass {count}, one per problem")
    return found


def each_matrix(call: str, name: str, given: object, batch: int, size: Extents | None, kinds: Kinds) -> list[object]:
    """Return the matrices of an operand that is a list of arrays, or of addresses (integers in a list or an array).

    Matrices at addresses have the shapes of ``size`` and the operation's layouts.  Raises ShapeError, DtypeError.
    """
    if given is None:
        return [None] * batch
    items: list[object] = (
        list(cast("list[object]", given)) if isinstance(given, list | tuple) else cast(Any, given).tolist()
    )
    if len(items) != batch:
        raise ShapeError(f"{call}: {name} has {len(items)} matrices, but batch is {batch}; they must be equal")
    kind = {"A": kinds.a, "B": kinds.b, "C": kinds.c or kinds.d, "D": kinds.d}[name]
    found: list[object] = []
    for item in items:
        if not isinstance(item, int):
            found.append(item)
            continue
        if size is None:
            raise ShapeError(f"{call}: {name} has addresses, which need problem_size; pass (M, N, K)")
        m, n, k = size
        rows, columns = {"A": (m, k), "B": (k, n)}.get(name, (m, n))
        strides = (columns, 1) if kind.layout == "row" else (1, rows)
        element = "f32" if kind.element == "tf32" else kind.element
        device = device_of(item)
        found.append(ArrayView(item, (rows, columns), strides, element, device, "address", None))
    return found


def device_of(address: int) -> int:
    """Return the GPU number of an address, -1 for the CPU."""
    from cute_dialect.runtime.driver import NoGpuError, driver

    try:
        found = driver().pointer_device(address)
    except NoGpuError:
        return -1
    return -1 if found is None else found


class Laid(NamedTuple):
    """Operands as flat arrays that begin at the lowest address, and the table of GEMMs."""

    a: ArrayView
    b: ArrayView
    d: ArrayView
    c: ArrayView | None
    bias: ArrayView | None
    table: NDArray[int64]


def extents_of(x: Operands, *, flipped: bool = False) -> tuple[int, int, int]:
    """Return M, N and K as the kernel sees them; K is 0 if alpha is 0."""
    m, n = x.d.shape
    k = x.a.shape[1] if x.alpha != 0.0 else 0
    return (n, m, k) if flipped else (m, n, k)


def _matrices(x: Operands, *, flipped: bool) -> tuple[ArrayView, ArrayView, ArrayView, ArrayView | None]:
    """Return A (M, K), B (N, K), D and C as the kernel sees them."""
    a, b, d, c, *_ = x.transposed() if flipped else x
    return a, b.transposed(), d, c


def copied_at_once(call: str, config: ListedConfig, x: Operands, *, flipped: bool, most: int = 16) -> int:
    """Return the bytes that one copy of a GEMM's operands may move, 1 for single elements.

    Addresses, line strides and line lengths must be multiples of it.  Raises AlignmentError for an address that is
    not a multiple of the element size.
    """
    units = [most]
    a, b, d, _ = _matrices(x, flipped=flipped)
    matrices = [("D", d, False, config.stores_vectors)]
    if extents_of(x)[2]:
        matrices += [("A", a, not config.by_k[0], True), ("B", b, not config.by_k[1], True)]
    for name, view, columns, vectors in matrices:
        item = SIZES[view.dtype]
        if view.pointer % item:
            raise AlignmentError(
                f"{call}: the address of {name} is {view.pointer % item} mod {item}; it must be a multiple of the "
                "element size"
            )
        if vectors:
            line, step = (0, 1) if columns else (1, 0)
            units += [view.pointer, view.shape[line] * item, view.strides[step] * item]
    found = gcd(*units)
    return next((size for size in (16, 8, 4) if found % size == 0 and config.takes(size)), 1)


def sizes_of(call: str, config: ListedConfig, found: Sequence[Operands], *, flipped: bool, most: int) -> list[int]:
    """Return the bytes per copy for each GEMM: 16, or a common smaller size for all others; 0 for empty GEMMs."""
    each = [copied_at_once(call, config, x, flipped=flipped, most=most) if all(x.d.shape) else 0 for x in found]
    others = [size for size in each if 0 < size < 16]
    least = next(size for size in (16, 8, 4, 1) if config.takes(size) and gcd(size, *others) == size)
    return [min(size, least) if 0 < size < 16 else size for size in each]


def laid_flat(config: ListedConfig, found: Sequence[Operands], *, flipped: bool) -> Laid:
    """Return GEMMs as the kernel takes them.  Empty ones may have any layout."""
    table = np.zeros((len(found), len(COLUMNS)), np.int64)
    each: dict[str, list[tuple[int, ArrayView, int]]] = {name: [] for name in ("a", "b", "c", "source", "bias")}
    for i, x in enumerate(found):
        table[i, :3] = m, n, k = extents_of(x, flipped=flipped)
        if m == 0 or n == 0:
            continue
        a, b, d, c = _matrices(x, flipped=flipped)
        if k:
            each["a"].append((i, a, a.strides[0 if config.by_k[0] else 1]))
            each["b"].append((i, b, b.strides[0 if config.by_k[1] else 1]))
        each["c"].append((i, d, d.strides[0]))
        if c is not None:
            each["source"].append((i, c, c.strides[0]))
        if x.bias is not None:
            each["bias"].append((i, x.bias, 0))
    flat: dict[str, ArrayView] = {}
    for name, given in each.items():
        if not given:
            continue
        flat[name] = one = _flat([view for _, view, _ in given])
        which = [i for i, _, _ in given]
        item = SIZES[one.dtype]
        table[which, COLUMNS.index(name)] = [(view.pointer - one.pointer) // item for _, view, _ in given]
        if name != "bias":
            table[which, COLUMNS.index(f"ld{name}")] = [line for _, _, line in given]
    first = next(x for x in found if 0 not in x.d.shape)
    # If K is 0 in all GEMMs, A and B are not read, so any memory will do.
    a, b, _, _ = _matrices(first, flipped=flipped)
    spare = flat["c"]._replace(shape=(0,))
    laid_a, laid_b = (flat.get(n, spare._replace(dtype=v.dtype)) for n, v in (("a", a), ("b", b)))
    return Laid(laid_a, laid_b, flat["c"], flat.get("source"), flat.get("bias"), table)


def _flat(views: Sequence[ArrayView]) -> ArrayView:
    """Return the memory of matrices, from the lowest address to the highest, as elements."""
    first = views[0]
    low = min([v.pointer for v in views])
    if first.device < 0:  # Host matrices are all in one allocation; take the part of it that they use.
        memory: Any = first.keep
        high = max([sum(span(v)) for v in views])
        at = low - memory.ctypes.data
        keep, size = memory[at : at + high - low], (high - low) // SIZES[first.dtype]
    else:
        keep, size = tuple([v.keep for v in views]), MAX_EXTENT_I32
    return first._replace(pointer=low, shape=(size,), strides=(1,), keep=keep)


def tiles_of(extents: Sequence[tuple[int, int, int]], tile: tuple[int, int]) -> NDArray[int64]:
    """Return the number of tiles of each GEMM."""
    sizes = np.array(extents, np.int64).reshape(-1, 3)
    return -(-sizes[:, 0] // tile[0]) * -(-sizes[:, 1] // tile[1])


def turns_of(extents: Sequence[tuple[int, int, int]], tile: tuple[int, int]) -> NDArray[int32]:
    """Return the GEMM and the tile of each block, by descending K, so that the last tiles are short."""
    tiles = tiles_of(extents, tile)
    order = np.argsort([-k for _, _, k in extents], kind="stable")
    products = np.repeat(order, tiles[order])
    before = np.repeat(np.cumsum(tiles[order]) - tiles[order], tiles[order])
    return np.stack([products, np.arange(len(products)) - before], axis=1).astype(np.int32)
