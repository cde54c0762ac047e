"""Tiled copies: a copy atom distributed over threads and values, and one thread's partition of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.inverses import left_inverse
from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.make_layouts import make_layout
from cute_dialect.algebra.tiled_copy import make_layout_tv
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.algebra.values import layout_modes, raw_layout
from cute_dialect.lang.machine.atoms import CopyAtom, refuse
from cute_dialect.lang.machine.tiled_mma import Tiled, TiledMma, partition_view, static_payload, thread_coord
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import op_class
from cute_dialect.lang.values.indexing import check_part
from cute_dialect.lang.values.layouts import Layout

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from cute_dialect.lang.values.signature_types import Int, LayoutLike, Tiler, Value
    from cute_dialect.lang.values.tensors import Tensor


class TiledCopy(Tiled):
    """A copy of tiles by many threads: an atom, the assignment of values to threads, and the tile that they cover.

    ``get_slice(tid)`` returns one thread's slice.
    """

    __slots__ = ()
    making = "cute.make_tiled_copy"

    atom: CopyAtom

    def __init__(self, type: Attribute, atom: CopyAtom):
        self.type = type
        self.atom = atom

    def fixed(self) -> tuple[object, ...]:
        return (self.type,)

    def parts(self) -> tuple[object, ...]:
        return (self.atom,)

    @classmethod
    def remade(cls, fixed: tuple[Any, ...], parts: Sequence[Any]) -> TiledCopy:
        return cls(*fixed, *parts)

    @property
    def name(self) -> str:
        return f"a tiled copy of {self.atom.op.name}"

    @property
    def value_type(self) -> Any:
        """The element type."""
        return self.atom.value_type

    @property
    def layout_tv_tiled(self) -> Any:
        """Layout (thread, value) -> column-major index in the tile."""
        return Layout(self.type.data.layout_tv)

    layout_tv = layout_tv_tiled
    layout_src_tv = property(lambda self: self.atom.layout_src_tv)
    layout_dst_tv = property(lambda self: self.atom.layout_dst_tv)

    @property
    def tiler_mn(self) -> Any:
        """The extents of the tile that all threads cover together."""
        from cute_dialect.dialect.tile_copies import tile_extents  # late: start-up

        return tile_extents(self.type.data.tiler)

    @property
    def size(self) -> int:
        return int(size(layout_modes(self.type.data.layout_tv)[0]))

    def set(self, field: str, value: Value) -> None:
        """Set a field of the atom's run-time state; see :class:`CopyAtom`."""
        self.atom.set(field, value)

    def get_slice(self, thr_idx: Int) -> ThrCopy:
        """Return one thread's slice of the copy."""
        return ThrCopy(self.type, self.atom, thr_idx)

    def retile(self, src: Tensor) -> Tensor:
        """Return a fragment of another partition (of a tiled MMA) in the order in which the copy moves its values."""
        return partition_view("cute.tiled.copy.retile", self.ssa, src, (), f"retile by {self.name}", "fragment")

    def describe(self) -> str:
        """Describe the instruction, the thread-value layout and the tile."""
        lines = [
            f"atom      {self.atom.type}",
            f"threads   {self.size}, values of {self.value_type!r}",
            f"tile      {self.tiler_mn}",
            f"layout_tv {self.layout_tv_tiled}",
        ]
        return "\n".join(lines)


class ThrCopy(TiledCopy):
    """One thread's slice of a tiled copy."""

    __slots__ = ("thr_idx",)

    thr_idx: Any

    def __init__(self, type: Attribute, atom: CopyAtom, thr_idx: Any):
        super().__init__(type, atom)
        self.thr_idx = thr_idx

    def parts(self) -> tuple[object, ...]:
        return (self.atom, self.thr_idx)

    def partition_S(self, src: Tensor) -> Tensor:
        """Return the thread's partition ``((v,rest_v), RestM, …)`` of a source; ``v`` are the values of one atom."""
        return self._partition("S", src)

    def partition_D(self, dst: Tensor) -> Tensor:
        """Return the thread's partition of a destination; see :meth:`partition_S`."""
        return self._partition("D", dst)

    def _partition(self, side: str, tensor: Tensor) -> Tensor:
        name = f"cute.tiled.copy.partition_{side}"
        what = f"partition_{side} by {self.name}"
        made = partition_view(name, self.ssa, tensor, (thread_coord(self.thr_idx),), what, "tensor")
        check_part(made, tensor, self.thr_idx, self.size, lambda: self.size, "threads' parts")
        return made

    def retile_S(self, src: Tensor) -> Tensor:
        """Return a fragment in the order in which the copy reads its values; see :meth:`TiledCopy.retile`."""
        return self.retile(src)

    def retile_D(self, dst: Tensor) -> Tensor:
        """Return a fragment in the order in which the copy writes its values; see :meth:`TiledCopy.retile`."""
        return self.retile(dst)


def copy_atom_of(x: Any, what: str) -> CopyAtom:
    """Return a copy atom, or that of a tiled copy.  Raises F250 for anything else."""
    if isinstance(x, TiledCopy):
        return x.atom
    if not isinstance(x, CopyAtom):
        raise KernelTypeError(
            "F250", f"{what}: atom must be a copy atom, got {x!r}", hint="use cute.make_copy_atom(op, dtype)"
        )
    return x


def _tiled(atom: Any, what: str, layout_tv: LayoutPayload, extents: Any) -> TiledCopy:
    from cute_dialect.dialect.tile_copies import made_copy  # late: start-up

    found = copy_atom_of(atom, what)
    try:
        return TiledCopy(made_copy(found.type, layout_tv, extents), found)
    except AlgebraError as e:
        refuse("F251", what, e)


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: LayoutLike, val_layout: LayoutLike) -> TiledCopy:
    """Create a tiled copy from a thread layout and a layout of each thread's values.

    For example, ``(4,32):(32,1)`` threads with ``(4,4):(4,1)`` values each cover a tile of 16 x 128.
    """
    what = "cute.make_tiled_copy_tv"
    threads, values = (
        static_payload(thr_layout, f"{what}: thr_layout"),
        static_payload(val_layout, f"{what}: val_layout"),
    )
    try:
        extents, layout_tv = make_layout_tv(threads, values)
    except AlgebraError as e:
        refuse("F251", what, e)
    return _tiled(atom, what, layout_tv, extents)


def make_tiled_copy(atom: CopyAtom, layout_tv: LayoutLike, tiler_mn: Tiler) -> TiledCopy:
    """Create a tiled copy from a layout (thread, value) -> column-major index in a tile of extents ``tiler_mn``."""
    what = "cute.make_tiled_copy"
    return _tiled(atom, what, static_payload(layout_tv, f"{what}: layout_tv"), _extents(tiler_mn, what))


def _extents(tiler: Any, what: str) -> Any:
    """Return the extents of a tiler: integers, or layouts that cover each mode from its start."""
    if isinstance(tiler, tuple | list):
        return tuple([_extents(t, what) for t in tiler])
    if isinstance(tiler, int):
        return tiler
    payload = static_payload(tiler, f"{what}: tiler_mn")
    n = int(size(payload))
    if str(coalesce(payload)) != f"{n}:1":
        raise KernelTypeError("F251", f"{what}: tiler_mn must cover contiguous ranges, got {payload}")
    return n


def _of_mma(operand: str, atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

    what = f"cute.make_tiled_copy_{operand}"
    if not isinstance(tiled_mma, TiledMma):
        raise KernelTypeError("F251", f"{what}: tiled_mma must be a tiled MMA, got {tiled_mma!r}")
    found = copy_atom_of(atom, what)
    try:
        (made,) = infer_types_memo(op_class(what), [found.type, tiled_mma.type], {})
    except AlgebraError as e:
        refuse("F251", what, e)
    return TiledCopy(made, found)


def make_tiled_copy_A(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Create the tiled copy for the fragments of A of a tiled MMA."""
    return _of_mma("A", atom, tiled_mma)


def make_tiled_copy_B(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Create the tiled copy for the fragments of B of a tiled MMA."""
    return _of_mma("B", atom, tiled_mma)


def make_tiled_copy_C(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Create the tiled copy for the accumulators of a tiled MMA."""
    return _of_mma("C", atom, tiled_mma)


def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Create a tiled copy with the threads, values and tile of another, for use on its source side."""
    return _tiled(atom, "cute.make_tiled_copy_S", tiled_copy.type.data.layout_tv, tiled_copy.tiler_mn)


def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Create a tiled copy with the threads, values and tile of another, for use on its destination side."""
    return _tiled(atom, "cute.make_tiled_copy_D", tiled_copy.type.data.layout_tv, tiled_copy.tiler_mn)


def make_tiled_copy_C_atom(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Create the smallest tiled copy that moves accumulators of a tiled MMA: one instruction per warp.

    Its tile extends along N as far as one atom needs, over consecutive accumulator values.
    """
    what = "cute.make_tiled_copy_C_atom"
    whole = make_tiled_copy_C(atom, tiled_mma)
    threads, values = layout_modes(whole.type.data.layout_tv)
    first = make_layout(threads, compose(values, raw_layout(whole.atom.type.values(), 1)))
    rows = whole.tiler_mn[0]
    extents = _covered(first, rows, what)
    if extents[0] != rows:
        first = compose(left_inverse(raw_layout(extents, (1, rows))), first)
    return _tiled(atom, what, first, extents)


def _covered(layout_tv: LayoutPayload, rows: int, what: str) -> tuple[int, int]:
    """Return the extents covered by a layout (thread, value) -> m + rows * n.  Raises F251 if it has gaps."""
    places = {int(evaluate(i, layout_tv)) for i in range(int(size(layout_tv)))}  # pyright: ignore[reportArgumentType]
    m, n = 1 + max(i % rows for i in places), 1 + max(i // rows for i in places)
    if len(places) != m * n:
        raise KernelTypeError("F251", f"{what}: the values of one atom leave gaps in the {m} x {n} tile: {layout_tv}")
    return m, n


def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: LayoutLike, data_layout: LayoutLike) -> TiledCopy:
    """Create a tiled copy from a layout (thread, value) -> offset in ``data_layout``."""
    what = "cute.make_cotiled_copy"
    data = static_payload(data_layout, f"{what}: data_layout")
    try:
        layout_tv = compose(left_inverse(data), static_payload(atom_layout_tv, f"{what}: atom_layout_tv"))
    except AlgebraError as e:
        refuse("F251", what, e)
    return _tiled(atom, what, layout_tv, data.shape)
