"""Tiled MMAs: an MMA atom distributed over threads and values, its fragments, ``gemm``, and descriptions of atoms.

:class:`Tiled` is the base class of tiled copies, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.layout import make_layout as make_payload
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static, shape_to_tile
from cute_dialect.algebra.values import UNDERSCORE
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.arch.atom import MmaAtom as MmaRow
from cute_dialect.arch.descriptors import SWIZZLES, plain_atom, smem_tile
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.targets import DEFAULT_CHIP, TARGETS, has_arch
from cute_dialect.lang.machine.atoms import MmaAtom, MmaOp, Record, check_target, make_mma_atom, refuse
from cute_dialect.lang.machine.instructions import in_kernel, tensor_operand
from cute_dialect.lang.machine.threads import issued_by_one
from cute_dialect.lang.machine.wgmma import note_product
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.tracing.tracer import current, op_class, parse_type
from cute_dialect.lang.values.dtypes import NUMBER_TYPES, Boolean, Numeric
from cute_dialect.lang.values.folding import facts_of
from cute_dialect.lang.values.indexing import check_thread, coord_text
from cute_dialect.lang.values.int_tuples import Tree, to_ssa
from cute_dialect.lang.values.layout_functions import filter_zeros
from cute_dialect.lang.values.layouts import Layout, as_layout, from_value, make_layout, of_payload
from cute_dialect.lang.values.numeric import as_number, is_number
from cute_dialect.lang.values.pointers import Pointer, element_class
from cute_dialect.lang.values.tensors import Tensor, make_rmem_tensor, make_tensor
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.signature_types import Condition, Int, LayoutLike, Shape, Tiler

# -------------------------------------------------------------------------------- base class and operands of partitions


class Tiled(Record):
    """Base of tiled copies and tiled MMAs: an atom, and a type that assigns the work to threads."""

    __slots__ = ("atom", "type")

    making: ClassVar[str]
    """The op that creates it from its atom."""
    atom: Any
    type: Attribute
    is_static = True

    @property
    def name(self) -> str:
        """Its name in messages."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of threads."""
        raise NotImplementedError

    @property
    def ssa(self) -> SSAValue:
        """The SSA value, without the state of its atom."""
        return current().at_top(self.making, self.type, [self.atom.ssa])

    @property
    def op(self) -> Any:
        """The descriptor of its atom."""
        return self.atom.op

    def __cute_size__(self, path: Any) -> int:
        if path:
            raise KernelTypeError("F251", f"{self.name} has no modes; cute.size returns its number of threads")
        return self.size

    def __repr__(self) -> str:
        return str(self.type)


def thread_coord(thr_idx: object) -> SSAValue:
    """Return a thread index as a coordinate.  Raises F254 if it is not an integer."""
    number = as_number(thr_idx)
    if not type(number).is_integer:
        raise KernelTypeError("F254", f"the thread index must be an integer, got {number.describe()}")
    return to_ssa(int(number.value) if number.is_static else number, "coord")


def _thread_of(thr_idx: Any, threads: int) -> Any:
    """Return a thread index modulo the threads of a tiled MMA, without an operation if it is known to be below them.

    Source: ``TiledMMA::get_slice`` in CUTLASS (include/cute/atom/mma_atom.hpp) takes the flat coordinate of the index.
    """
    number = as_number(thr_idx) if is_number(thr_idx) else None
    if number is None or not type(number).is_integer:
        return thr_idx
    high = facts_of(number).high
    if (high is not None and high < threads) or (not number.is_static and _is_below(number.ssa, threads)):
        return thr_idx
    return number % threads


def _is_below(index: SSAValue, limit: int) -> bool:
    """Return True if a number is below a limit in all threads that the enclosing conditions let pass."""
    from cute_dialect.lang.control.branches import Branch, regions  # late: start-up
    from cute_dialect.passes.lowering.thread_slices import indices_under  # late: start-up

    tracer = current()
    x, y, z = tracer.launch.block
    if x is None or y is None or z is None:
        return False
    conditions = [(r.condition, r.side == 1) for r in regions(tracer) if isinstance(r, Branch)]
    indices = indices_under(index, conditions, (x, y, z))
    return indices is not None and max(indices, default=0) < limit


def partition_view(name: str, tiled: SSAValue, tensor: Any, more: Sequence[SSAValue], what: str, role: str) -> Any:
    t = tensor_operand(tensor, what, role)
    try:
        made = current().value(name, [tiled, t.ssa, *more])
    except LayoutError as e:
        refuse("F254", what, e, hint=f"the {role} is {t!r}")
    return Tensor.of(made, t.element_type)


# -------------------------------------------------------------------------------------------------- making tiled copies


def static_payload(x: Any, what: str) -> LayoutPayload:
    """Return the payload of a static plain layout, or of the compact layout of a shape.  Raises F251 for others."""
    if isinstance(x, LayoutPayload):
        return x
    found = as_layout(x)
    payload = getattr(found, "payload", None)
    if not isinstance(payload, LayoutPayload) or not is_static(payload):
        raise KernelTypeError("F251", f"{what} must be a static layout, got {found}")
    return payload


# ----------------------------------------------------------------------------------------------------------- tiled MMAs


class _Unsaid:
    """Marks ``accumulate`` as undefined at the start of a loop that changes it."""

    def __repr__(self) -> str:
        return "<set in some turns>"


_UNSAID = _Unsaid()


class TiledMma(Tiled):
    """An MMA of tiles by many threads: an atom, its repetitions along M, N and K, and a permutation of each.

    ``accumulate`` selects whether a ``wgmma`` adds to its accumulators; ``set(Field.ACCUMULATE, x)`` sets it, and None
    means not set.  ``sfa`` and ``sfb`` are the pointers to scale factors in tensor memory that ``set(Field.SFA, p)``
    sets.  ``get_slice(tid)`` returns one thread's slice.
    """

    __slots__ = ("accumulate", "sfa", "sfb")
    making = "cute.make_tiled_mma"
    __cute_places__ = ("accumulate", "sfa", "sfb")
    __cute_unsaid__ = dict.fromkeys(__cute_places__, _UNSAID)

    atom: MmaAtom
    accumulate: Any
    sfa: object
    sfb: object

    def __init__(self, type: Attribute, atom: MmaAtom, accumulate: Any = None, sfa: object = None, sfb: object = None):
        self.type = type
        self.atom = atom
        self.accumulate = accumulate
        self.sfa, self.sfb = sfa, sfb

    def fixed(self) -> tuple[object, ...]:
        return (self.type, self.atom.op)

    def parts(self) -> tuple[object, ...]:
        return (self.accumulate, self.sfa, self.sfb)

    @classmethod
    def remade(cls, fixed: tuple[Any, ...], parts: Sequence[Any]) -> TiledMma:
        type, op = fixed
        return cls(type, MmaAtom(type.data.atom, op), *parts)

    @property
    def name(self) -> str:
        return f"a tiled MMA of {self.atom.type}"

    # --------------------------------------------------------------------------------------------------- what it is

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The shape ``(M, N, K)`` of one instruction."""
        return self.atom.shape_mnk

    @property
    def _tiled(self) -> Any:
        return self.type.tiled

    @property
    def tile_shape_mnk(self) -> tuple[int, int, int]:
        """The extents ``(M, N, K)`` that all threads cover at once."""
        return self._tiled.tile_size

    def get_tile_size(self, mode: int) -> int:
        """Return the extent that all threads cover at once along mode 0 (M), 1 (N) or 2 (K)."""
        return self.tile_shape_mnk[mode]

    @property
    def permutation_mnk(self) -> tuple[Any, ...]:
        """The permutation of each of M, N and K, or None."""
        return tuple(None if p is UNDERSCORE else _tile_value(p) for p in self.type.data.permutation)

    @property
    def thr_layout_vmnk(self) -> Any:
        """Layout (thread of the atom, M, N, K) -> thread."""
        return Layout(self._tiled.threads)

    @property
    def thr_id(self) -> Any:
        """Layout from the instruction's logical threads to the threads of the warp or warpgroup."""
        return self.atom.thr_id

    @property
    def size(self) -> int:
        return int(size(self._tiled.threads.shape))

    def tv_layout(self, operand: str) -> Layout:
        """Return the layout (thread, value) -> column-major index in the whole tile of operand A, B, C or E."""
        if operand == "E" and not self.atom.type.SPARSE:
            raise KernelTypeError("F251", f"{self.name} is dense and has no operand E")
        tiled = self.type.tiling(operand)
        return Layout(tiled.layout_tv(operand, self.atom.type.row.layout(operand)))

    @property
    def tv_layout_A(self) -> Any:
        """The layout of operand A of one instruction: (thread, value) -> m + M * k."""
        return self._atom_layout("A")

    @property
    def tv_layout_B(self) -> Any:
        """The layout of operand B of one instruction: (thread, value) -> n + N * k."""
        return self._atom_layout("B")

    @property
    def tv_layout_C(self) -> Any:
        """The layout of the accumulator of one instruction: (thread, value) -> m + M * n."""
        return self._atom_layout("C")

    def _atom_layout(self, operand: str) -> Any:
        return Layout(self.atom.type.row.layout(operand))

    @property
    def tv_layout_A_tiled(self) -> Any:
        """The layout of operand A of the whole tile; see :meth:`tv_layout`."""
        return self.tv_layout("A")

    @property
    def tv_layout_B_tiled(self) -> Any:
        """The layout of operand B of the whole tile; see :meth:`tv_layout`."""
        return self.tv_layout("B")

    @property
    def tv_layout_C_tiled(self) -> Any:
        """The layout of the accumulator of the whole tile; see :meth:`tv_layout`."""
        return self.tv_layout("C")

    # ------------------------------------------------------------------------------------------------------- state

    def set(self, field: object, value: Condition | Pointer) -> None:
        """Set ``Field.ACCUMULATE`` to a Python bool or a run-time Boolean, or ``Field.SFA`` or ``SFB`` to a pointer."""
        name = self._check_field(field)
        if name != "accumulate":
            setattr(self, name, self._factors_at(name, value))
        elif isinstance(value, Numeric):
            self.accumulate = Boolean(value)
            if self.accumulate.is_static:
                self.accumulate = bool(self.accumulate.value)
        else:
            self.accumulate = None if value is None else bool(value)

    def get(self, field: object) -> Condition | Pointer:
        """Return a field of the state, or None if it has not been set."""
        return getattr(self, self._check_field(field))

    def _factors_at(self, field: str, value: object) -> Pointer | None:
        """Return a pointer to scale factors in tensor memory, or None.  Raises F254 for other values."""
        element = element_class(self.atom.type.element(field.upper()))
        if value is None or (
            isinstance(value, Pointer) and value.memspace == AddressSpace.tmem and value.value_type is element
        ):
            return value
        raise KernelTypeError(
            "F254",
            f"Field.{field.upper()} of {self.name} must be a pointer to {element!r} in tensor memory, got {value!r}",
            hint=f"cute.recast_ptr(pointer, dtype={element!r})",
        )

    def _check_field(self, field: object) -> str:
        """Return the name of a field.  Raises F254 if the MMA does not have it."""
        name = str(getattr(field, "value", field))
        has_factors = in_tensor_memory(self.atom) and self.atom.type.has_scales
        fields = ("accumulate", "sfa", "sfb") if has_factors else ("accumulate",)
        if name not in fields:
            known = ", ".join(f"Field.{x.upper()}" for x in fields)
            raise KernelTypeError("F254", f"{self.name} has no field {field!r}", hint=f"its fields: {known}")
        if not self.atom.is_asynchronous:
            raise KernelTypeError(
                "F254", f"{self.name} has no field ACCUMULATE, which only wgmma and tcgen05 instructions have",
                hint="pass C to gemm, or clear the accumulators",
            )  # fmt: skip
        return name

    # ------------------------------------------------------------------------------------------------- partitioning

    def get_slice(self, thr_idx: Int) -> ThrMma:
        """Return one thread's slice of the tiled MMA. The index is taken modulo the number of threads."""
        return ThrMma(self.type, self.atom, self.accumulate, self.sfa, self.sfb, _thread_of(thr_idx, self.size))

    def _shape(self, operand: str, shape: Any) -> Any:
        from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

        name = f"cute.tiled.mma.partition_shape_{operand}"
        given = Tree(_as_tuple(shape), "shape")
        try:
            (made,) = infer_types_memo(op_class(name), [self.type, given.type], {})
        except AlgebraError as e:
            refuse("F254", f"partition_shape_{operand} by {self.name}", e)
        if given.is_static:
            return of_payload("shape", made.data, ())  # pyright: ignore[reportAttributeAccessIssue]
        return from_value(current().value(name, [self.ssa, given.ssa], [made]))

    def partition_shape_A(self, shape_mk: Shape) -> Shape:
        """Return the shape ``(V, RestM, RestK)`` of a thread's partition of A, for a shape (M, K)."""
        return self._shape("A", shape_mk)

    def partition_shape_B(self, shape_nk: Shape) -> Shape:
        """Return the shape ``(V, RestN, RestK)`` of a thread's partition of B, for a shape (N, K)."""
        return self._shape("B", shape_nk)

    def partition_shape_C(self, shape_mn: Shape) -> Shape:
        """Return the shape ``(V, RestM, RestN)`` of a thread's partition of C, for a shape (M, N)."""
        return self._shape("C", shape_mn)

    def partition_shape_E(self, shape_mk: Shape) -> Shape:
        """Return the shape ``(V, RestM, RestK)`` of a thread's partition of E, for a shape (M, K) in words."""
        return self._shape("E", shape_mk)

    def partition_shape_SFA(self, shape_mk: Shape) -> Shape:
        """Return the shape ``(V, RestM, RestK)`` of a thread's partition of SFA, for a shape (M, K / vec)."""
        return self._shape("SFA", shape_mk)

    def partition_shape_SFB(self, shape_nk: Shape) -> Shape:
        """Return the shape ``(V, RestN, RestK)`` of a thread's partition of SFB, for a shape (N, K / vec)."""
        return self._shape("SFB", shape_nk)

    def _fragment(self, operand: str, source: Any) -> Tensor:
        from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

        what = f"make_fragment_{operand} of {self.name}"
        # An operand in tensor memory has an address only in a kernel, but its layout is also needed on the host.
        tracer = current() if operand in ("C", "E") and in_tensor_memory(self.atom) else in_kernel(what)
        given = source.ssa if isinstance(source, Tensor) else to_ssa(_as_tuple(source), "shape")
        name = f"cute.tiled.mma.make_fragment_{operand}"
        try:
            element: Any = self.atom.type.element(operand)
            if str(element).startswith("ui") and not self.atom.type.in_shared_memory(operand):
                # Memref types are signless, so take the signedness from the atom.
                (type,) = infer_types_memo(op_class(name), [self.type, given.type], {})
                return make_rmem_tensor(type.data.layout, element_class(element))  # pyright: ignore
            made = tracer.value(name, [self.ssa, given])
        except LayoutError as e:
            if isinstance(source, Tensor) and not is_static(source.shape_payload):
                raise KernelTypeError(
                    "F254", f"{what}: the partition has the shape {coord_text(source.shape_payload)}, but registers "
                    "need a static shape", hint="partition a tile of static shape, such as cute.local_tile(…)",
                ) from None  # fmt: skip
            refuse("F254", what, e, hint=f"the partition is {source!r}", arguments=("the tiled MMA", "the partition"))
        return Tensor.of(made, source.element_type if made is given and isinstance(source, Tensor) else None)

    def make_fragment_A(self, source: Tensor | Shape) -> Tensor:
        """Return registers for a partition of A or its shape. If the atom reads A from shared memory, return the
        partition.
        """
        return self._fragment("A", source)

    def make_fragment_B(self, source: Tensor | Shape) -> Tensor:
        """Return registers for a partition of B or its shape. If the atom reads B from shared memory, return the
        partition.
        """
        return self._fragment("B", source)

    def make_fragment_C(self, source: Tensor | Shape) -> Tensor:
        """Return accumulator registers for a partition of C or its shape.

        The accumulators of a ``tcgen05`` MMA are in tensor memory. The result then starts at address 0; put its layout
        on an allocated pointer: ``cute.make_tensor(tmem.retrieve_ptr(cute.Float32), acc.layout)``.
        """
        return self._fragment("C", source)

    def make_fragment_E(self, source: Tensor | Shape) -> Tensor:
        """Return registers for a partition of the sparse metadata E or its shape.

        The metadata of a ``tcgen05`` MMA are in tensor memory. The result then starts at address 0, like that of
        :meth:`make_fragment_C`.
        """
        return self._fragment("E", source)

    def make_fragment_SFA(self, source: Tensor | Shape) -> Tensor:
        """Return registers for a partition of the scale factors of A or its shape."""
        return self._fragment("SFA", source)

    def make_fragment_SFB(self, source: Tensor | Shape) -> Tensor:
        """Return registers for a partition of the scale factors of B or its shape."""
        return self._fragment("SFB", source)

    # ------------------------------------------------------------------------------------------------------ describe

    def describe(self) -> str:
        """Describe the instruction, the operand layouts, and the matrix descriptors of operands in shared memory."""
        return tiled_mma_text(self)


def _as_tuple(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else x


def _tile_value(p: Any) -> Any:
    if isinstance(p, LayoutPayload):
        n = int(size(p))
        return n if str(coalesce(p)) == f"{n}:1" else Layout(p)
    return p


class ThrMma(TiledMma):
    """One thread's slice of a tiled MMA."""

    __slots__ = ("thr_idx",)

    thr_idx: Any

    def __init__(self, type: Attribute, atom: MmaAtom, accumulate: Any, sfa: object, sfb: object, thr_idx: Any):
        super().__init__(type, atom, accumulate, sfa, sfb)
        self.thr_idx = thr_idx

    def parts(self) -> tuple[object, ...]:
        return (*super().parts(), self.thr_idx)

    def _partition(self, operand: str, tensor: Any) -> Tensor:
        what = f"partition_{operand} by {self.name}"
        t = tensor_operand(tensor, what, operand)
        try:
            made = current().value(f"cute.tiled.mma.partition_{operand}", [self.ssa, t.ssa, thread_coord(self.thr_idx)])
        except LayoutError as e:
            refuse("F254", what, e, hint=f"the tensor is {t!r}")
        part = Tensor.of(made, t.element_type)
        check_thread(part, t, self.thr_idx, self.size, self.name)
        return part

    def partition_A(self, tensor: Tensor) -> Tensor:
        """Return the thread's partition ``(V, RestM, RestK, …)`` of A, a tensor (M, K, …)."""
        return self._partition("A", tensor)

    def partition_B(self, tensor: Tensor) -> Tensor:
        """Return the thread's partition ``(V, RestN, RestK, …)`` of B, a tensor (N, K, …)."""
        return self._partition("B", tensor)

    def partition_C(self, tensor: Tensor) -> Tensor:
        """Return the thread's partition ``(V, RestM, RestN, …)`` of C, a tensor (M, N, …) of any element type or of
        coordinates.
        """
        return self._partition("C", tensor)

    def partition_E(self, tensor: Tensor) -> Tensor:
        """Return the thread's partition of the sparse metadata E, a tensor of words (M, K / columns, …)."""
        return self._partition("E", tensor)

    def partition_SFA(self, tensor: Tensor) -> Tensor:
        """Return the thread's partition of the scale factors of A, a tensor (M, K / vec, …)."""
        return self._partition("SFA", tensor)

    def partition_SFB(self, tensor: Tensor) -> Tensor:
        """Return the thread's partition of the scale factors of B, a tensor (N, K / vec, …)."""
        return self._partition("SFB", tensor)


# --------------------------------------------------------------------------------------------------------------- making


def make_tiled_mma(
    op_or_atom: MmaAtom | MmaOp, atom_layout_mnk: LayoutLike = (1, 1, 1), permutation_mnk: Tiler = None
) -> TiledMma:
    """Create a tiled MMA from an atom or a descriptor.

    Args:
        op_or_atom: an MMA atom or descriptor.
        atom_layout_mnk: the number of atoms along M, N and K, or a layout of them.
        permutation_mnk: an extent or a layout for each of M, N and K; None keeps the extent of the atoms.

    For example, ``cute.make_tiled_mma(op, (2, 2, 1))`` has two atoms along M and two along N.
    """
    from cute_dialect.cute_nvgpu.tiled_mma import TiledMmaType  # late: start-up

    what = "cute.make_tiled_mma"
    atom = make_mma_atom(op_or_atom)
    layout = static_payload(_as_tuple(atom_layout_mnk), f"{what}: atom_layout_mnk")
    given = (None, None, None) if permutation_mnk is None else tuple(permutation_mnk)
    if len(given) != 3:
        raise KernelTypeError(
            "F251", f"{what}: permutation_mnk needs an entry for each of M, N and K, got {permutation_mnk!r}"
        )
    permutation: list[Any] = []
    for p in given:
        if p is None:
            permutation.append(UNDERSCORE)
        elif isinstance(p, int):
            permutation.append(shape_to_tile(p))
        else:
            permutation.append(static_payload(p, f"{what}: permutation_mnk"))
    try:
        made = TiledMmaType.of(atom.type, layout, tuple(permutation))  # pyright: ignore
        # The first tcgen05 MMA overwrites, because tensor memory is not initialized.
        return TiledMma(made, atom, False if in_tensor_memory(atom) else None)
    except AlgebraError as e:
        refuse("F251", what, e)


# ------------------------------------------------------------------------------------------------------------- products


def in_tensor_memory(atom: MmaAtom) -> bool:
    """Return True if the accumulator of an MMA is in tensor memory (``tcgen05``)."""
    return atom.type.operand_space("C") == AddressSpace.tmem


def _mma_of(x: object, what: str) -> tuple[MmaAtom, SSAValue]:
    if isinstance(x, TiledMma):
        return x.atom, x.ssa
    if isinstance(x, MmaAtom):
        return x, x.ssa
    if isinstance(x, MmaOp):
        raise KernelTypeError(
            "F250", f"{what}: mma must be a tiled MMA or an MMA atom, got {x!r}", hint="use cute.make_tiled_mma"
        )
    raise KernelTypeError("F250", f"{what}: mma must be a tiled MMA or an MMA atom, got {x!r}")


def gemm(
    mma: TiledMma | MmaAtom,
    d: Tensor,
    a: Tensor | Sequence[Tensor],
    b: Tensor | Sequence[Tensor],
    c: Tensor | None = None,
    *,
    accumulate: Condition | None = None,
    thread: Int | None = None,
) -> None:
    """Compute ``D = A * B + C``, or ``D = A * B`` without C, or ``D = A * B + D`` with ``accumulate``.

    Args:
        mma: a tiled MMA or an MMA atom.
        d, a, b, c: a thread's fragments ``(V, M, N)``, ``(V, M, K)``, ``(V, N, K)`` and ``(V, M, N)``; K, or M and N,
            may be absent. For an MMA with block scales, ``a`` is ``[A, SFA]`` and ``b`` is ``[B, SFB]``. A ``tcgen05``
            MMA also takes A and B alone, of one instruction, if ``Field.SFA`` and ``Field.SFB`` are set.
        accumulate: add to D. For ``wgmma`` and ``tcgen05`` it may be a run-time Boolean, and defaults to
            ``Field.ACCUMULATE`` if set. For ``tcgen05`` the field is False at first, and C must be D or None.
        thread: the thread index, if ``a`` and ``b`` are whole tiles (M, K) and (N, K) in shared memory, which all
            threads of the tiled MMA multiply together.
    """
    what = "cute.gemm"
    atom, value = _mma_of(mma, what)
    if thread is not None:
        _cooperative(mma, atom, d, a, b, accumulate if accumulate is not None else c is not None, thread)
        return
    if atom.type.has_scales:
        _scaled_gemm(mma, d, (a, b), None, c, accumulate)
        return
    operands = _operands(atom, what, d, a, b)
    ssa, ends = _accumulating(mma, atom, value, operands[0], c, accumulate, what)
    _emit_product(
        "cute.gemm", what, atom, [ssa, *(t.ssa for t in operands), *ends], [*operands, *([c] if ends else [])]
    )


def _scaled_gemm(
    mma: TiledMma | MmaAtom,
    d: Tensor,
    pairs: tuple[object, object],
    e: Tensor | None,
    c: Tensor | None,
    accumulate: Condition | None,
) -> None:
    what = "cute.gemm" if e is None else "cute.sparse_gemm"
    atom, value = _mma_of(mma, what)
    parts: list[Sequence[Tensor]] = []
    for name, pair in zip(("a", "b"), pairs):
        if isinstance(pair, Tensor) and in_tensor_memory(atom):
            pair = (pair, _set_factors(mma, atom, f"sf{name}", what))
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise KernelTypeError(
                "F254", f"{what}: {name} must be [{name.upper()}, SF{name.upper()}] for {atom.type}, got {pair!r}"
            )
        values, factors = (getattr(x, "element_type", None) for x in pair)
        if not _fits(atom, name.upper(), values) and _fits(atom, name.upper(), factors):
            raise KernelTypeError(
                "F254", f"{what}: {name} is [SF{name.upper()}, {name.upper()}]; pass [{name.upper()}, SF{name.upper()}]"
            )
        parts.append(pair)
    (a, sfa), (b, sfb) = parts
    if (_recorded_operand(sfa), _recorded_operand(sfb)) == ("SFB", "SFA"):
        raise KernelTypeError("F254", f"{what}: a is [A, SFB] and b is [B, SFA]; pass [A, SFA] and [B, SFB]")
    operands = _operands(atom, what, d, a, b, *([] if e is None else [e]))
    operands += [tensor_operand(_factors(atom, t, n), what, n) for t, n in ((sfa, "SFA"), (sfb, "SFB"))]
    ssa, ends = _accumulating(mma, atom, value, operands[0], c, accumulate, what)
    _emit_product("cute.scaled_gemm", what, atom, [ssa, *(t.ssa for t in operands), *ends], operands)


def _set_factors(mma: TiledMma | MmaAtom, atom: MmaAtom, field: str, what: str) -> Tensor:
    """Return the scale factors of one instruction at the pointer in a field of an MMA.  Raises F254 if it is unset."""
    operand, pointer = field.upper(), getattr(mma, field, None)
    if not isinstance(pointer, Pointer):
        raise KernelTypeError(
            "F254",
            f"{what} by {atom.type}: Field.{operand} is not set here, and {operand[-1]} is given alone",
            hint=f"mma.set(Field.{operand}, pointer), or pass [{operand[-1]}, {operand}]",
        )
    from cute_dialect.cute_nvgpu.tcgen05 import Tcgen05AtomType  # late: start-up

    kind = atom.type
    assert isinstance(kind, Tcgen05AtomType)
    rows, _ = kind.factors_of(operand)
    return make_tensor(pointer, Layout(make_payload(kind.factor_layout(operand, rows))))


def _recorded_operand(factors: object) -> str:
    """Return "SFA" or "SFB" if a tensor of scale factors, or one that it is a slice of, has the layout of one of them.

    Otherwise, and after a loop that changes the tensor, the result is empty.
    """
    recorded: dict[SSAValue, str] = current().state.get("factors", {})
    value = factors.ssa if recorded and isinstance(factors, Tensor) else None
    while value is not None and value not in recorded:
        operands = getattr(value.owner, "operands", ())
        value = next((x for x in operands if x.type.name == "cute.memref"), None)
    return recorded[value] if value is not None else ""


def _fits(atom: MmaAtom, operand: str, element: type[Numeric] | None) -> bool:
    """Return True if tensors of a type may be an operand of an MMA."""
    return element is not None and atom.type.accepts_element(operand, parse_type(element.mlir_type))


def _factors(atom: MmaAtom, tensor: Tensor, operand: str) -> Tensor:
    """Return a tensor of scale factors with one value per block in mode V.

    Programs may give mode V the extent of K instead: factors repeat by modes of stride 0, which are removed.
    """
    if not isinstance(tensor, Tensor) or not is_static(tensor.shape_payload):  # pyright: ignore[reportUnnecessaryIsInstance]
        return tensor
    if in_tensor_memory(atom):
        return tensor
    layout = tensor.layout
    assert isinstance(layout, Layout)
    modes = [layout[i] for i in range(len(layout.shape))] if isinstance(layout.shape, tuple) else [layout]
    k, columns = atom.shape_mnk[2], atom.type.row.tile(operand)[1]
    if size(modes[0].payload.shape) != k or k == columns:
        return tensor
    modes[0] = filter_zeros(modes[0])
    if not isinstance(layout.shape, tuple):
        return tensor.with_layout(modes[0])
    return tensor.with_layout(make_layout(tuple(m.shape for m in modes), stride=tuple(m.stride for m in modes)))


def sparse_gemm(
    mma: TiledMma | MmaAtom, d: Tensor, a: Tensor | Sequence[Tensor], b: Tensor | Sequence[Tensor], e: Tensor,
    c: Tensor | None = None, *, accumulate: Condition | None = None,
) -> None:  # fmt: skip
    """Compute a GEMM with a sparse A; see :func:`gemm`. A holds the kept elements, E the metadata that locates them."""
    what = "cute.sparse_gemm"
    atom, value = _mma_of(mma, what)
    if atom.type.has_scales:
        _scaled_gemm(mma, d, (a, b), e, c, accumulate)
        return
    operands = _operands(atom, what, d, a, b, e)
    ssa, ends = _accumulating(mma, atom, value, operands[0], c, accumulate, what)
    _emit_product("cute.sparse_gemm", what, atom, [ssa, *(t.ssa for t in operands), *ends], operands)


def _operands(atom: MmaAtom, what: str, *tensors: Any) -> list[Any]:
    in_kernel(what)
    check_target(what, atom.type.row.arch)
    return [tensor_operand(t, what, name) for t, name in zip(tensors, ("D", "A", "B", "E"))]


def _accumulating(
    mma: object, atom: MmaAtom, value: SSAValue, d: Any, c: Any, accumulate: Any, what: str
) -> tuple[SSAValue, list[SSAValue]]:
    """Return the MMA with its state, and the operand C if there is one."""
    own = getattr(mma, "accumulate", None)
    said = accumulate if accumulate is not None else own if atom.is_asynchronous else None
    if said is _UNSAID:
        raise KernelTypeError(
            "F254", f"{what}: ACCUMULATE is undefined here, because an iteration of the loop changes its initial value",
            hint="set it in the loop before this gemm with mma.set(Field.ACCUMULATE, …), or pass accumulate=",
        )  # fmt: skip
    if isinstance(said, Numeric):
        said = Boolean(said)
        if said.is_static:
            said = bool(said.value)
    if c is not None:
        tensor_operand(c, what, "C")
    if said is None:
        return value, [] if c is None else [c.ssa]
    if c is not None and c.ssa is not d.ssa:
        raise KernelTypeError("F254", f"{what}: with accumulate=, C must be D itself")
    if not isinstance(said, Numeric):
        return value, [d.ssa] if said else []
    if not atom.is_asynchronous:
        raise KernelTypeError(
            "F254", f"{what}: accumulate must be known at compile time for {atom.type}; only wgmma allows run time",
            hint="clear the accumulators with acc.fill(0) and always accumulate",
        )  # fmt: skip
    from xdsl.dialects.builtin import StringAttr

    field = {"field": StringAttr("accumulate")}
    return current().value("cute.atom.set_value", [value, said.ssa], [value.type], field), []


def _emit_product(name: str, what: str, atom: MmaAtom, operands: list[SSAValue], tensors: Sequence[Any]) -> None:
    tracer = current()
    try:
        if in_tensor_memory(atom):
            issued_by_one(lambda: tracer.op(name, operands))
            return
        if atom.is_asynchronous:
            note_product(tracer, tensors[0])
        tracer.op(name, operands)
    except LayoutError as e:
        shown = ", ".join(f"{n} {t!r}" for n, t in zip(("D", "A", "B"), tensors))
        others = atoms_for(tensors, tracer.chip, sparse=name == "cute.sparse_gemm")
        hint = f"the operands are {shown}" + (f"\n{tracer.chip} has for these elements: {others}" if others else "")
        refuse("F254", f"{what} by {atom.type}", e, hint=hint)


def _cooperative(mma: object, atom: MmaAtom, d: Any, a: Any, b: Any, accumulate: Any, thread: Any) -> None:
    from xdsl.dialects.builtin import BoolAttr

    what = "cute.gemm of whole tiles"
    if not isinstance(mma, TiledMma):
        raise KernelTypeError("F254", f"{what}: mma must be a tiled MMA, got {mma!r}")
    operands = _operands(atom, what, d, a, b)
    if isinstance(accumulate, Numeric) and not accumulate.is_static:
        raise KernelTypeError(
            "F254", f"{what}: accumulate must be known at compile time", hint="clear D and always accumulate"
        )
    properties = {} if accumulate else {"accumulate": BoolAttr.from_bool(False)}
    ssa = [mma.ssa, *(t.ssa for t in operands), thread_coord(_thread_of(thread, mma.size))]
    try:
        current().op("cute.cooperative_gemm", ssa, None, properties)
    except LayoutError as e:
        refuse("F254", what, e)


def mma_atom_call(atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    """Compute the MMA of one instruction; see :func:`gemm`."""
    gemm(atom, d, a, b, c)


# --------------------------------------------------------------------------------------------------------- descriptions


@lru_cache(maxsize=64)
def _products(chip: str, a: str) -> tuple[tuple[str, str], ...]:
    """Return the MMA instructions of a chip for element type ``a`` of A, as (family, description with all shapes)."""
    from cute_dialect.arch.table import ATOMS  # late: start-up

    shapes: dict[tuple[str, str, str, str], list[tuple[int, int, int]]] = {}
    for name in ATOMS:
        if name.startswith(("SM90_64x", "SM90_SPARSE_")):
            continue
        row = ATOMS[name]
        if isinstance(row, MmaRow) and row.a == a and _has(chip, row.arch):
            found = shapes.setdefault((row.family, row.d, row.a, row.b), [])
            if row.shape_mnk not in found:
                found.append(row.shape_mnk)
    lines = [
        (family, f"{family} {', '.join('x'.join(map(str, s)) for s in sorted(found))} ({d},{x},{y},{d})")
        for (family, d, x, y), found in shapes.items()
    ]
    if _has(chip, "sm_90a"):
        from cute_dialect.arch.sm90 import FLOAT_N, INTEGER_N, TYPES  # late: start-up

        for d, x, y in TYPES:
            if x == a:
                n, k = INTEGER_N if d == "i32" else FLOAT_N, 256 // bits_of(x)
                for family, depth in (("wgmma", k), ("wgmma_sp", 2 * k)):
                    lines.append((family, f"{family} 64xNx{depth} ({d},{x},{y},{d}), N from {n[0]} to {n[-1]}"))
    return (*lines, *_tcgen05_products(chip, a))


def _tcgen05_products(chip: str, a: str) -> Iterator[tuple[str, str]]:
    """Yield the MMAs of tensor memory for element type ``a`` of A, one per form, kind and type of D, as `_products`."""
    from cute_dialect.arch.tcgen05_kinds import FORMS, KINDS, SCALED_KINDS, WIDE_ARCH, shapes_of  # late: start-up

    for form in FORMS.values():
        family = f"tcgen05_mma_{form.name}".rstrip("_")
        name = family.removesuffix("_ws")
        for kind in (*KINDS, *(SCALED_KINDS if form.scales else ())):
            arch = (form.name == "sp" and kind.sparse_arch) or kind.arch
            types = [t for t in kind.types if t[1] == a and _has(chip, arch)]
            for wide in (False, True) if kind.wide and not form.name and _has(chip, WIDE_ARCH) else (False,):
                found = [
                    shapes_of(form, kind, group, AddressSpace.smem, m, is_wide=wide)
                    for group, rows in form.rows.items()
                    for m in rows
                ]
                tiles = ", ".join(dict.fromkeys(f"{m}xNx{x.depth}" for x in found for m in x.rows))
                n = sorted({n for x in found for n in x.extents})
                words = (["ws"] if form.name == "ws" else []) + ([f"kind = {kind.name}"] if kind.factors else [])
                for d in dict.fromkeys(t[0] for t in types):
                    y = "|".join(t[2] for t in types if t[0] == d)
                    more = "".join([f", {word}" for word in words])
                    yield family, f"{name} {tiles} ({d},{a},{y},{d}){more}, N from {n[0]} to {n[-1]}"


def _has(chip: str, needed: str) -> bool:
    return chip not in TARGETS or has_arch(chip, needed)


def atoms(chip: str = "", a: type[Numeric] | None = None) -> tuple[str, ...]:
    """Return the MMA instructions of a chip: their shapes and the types of (D, A, B, C).

    Args:
        chip: the architecture, such as ``"sm_80"``; by default the compiler's default.
        a: the element type of A; None lists all.

    Example:
        >>> from cute_dialect.lang.values.dtypes import BFloat16
        >>> atoms("sm_80", BFloat16)[:2]
        ('fma 1x1x1 (bf16,bf16,bf16,bf16)', 'mma_sync 16x8x8, 16x8x16 (f32,bf16,bf16,f32)')
    """
    kinds = sorted({k.mlir_type for k in NUMBER_TYPES.values()}) if a is None else [a.mlir_type]
    return tuple([text for kind in kinds for _, text in _products(chip or DEFAULT_CHIP, kind)])


def atoms_for(tensors: Sequence[Any], chip: str, *, sparse: bool = False) -> str:
    """Return one line with the MMA instructions for the element type of A, given the operands (D, A, B).

    ``sparse`` selects those with a sparse A. Those that keep B in a buffer are left out.
    """
    element = getattr(tensors[1], "element_type", None) if len(tensors) > 1 else None
    if element is None:
        return ""
    found = [
        text
        for family, text in _products(chip, element.mlir_type)
        if family.endswith("_sp") == sparse and not family.endswith("_ws")
    ]
    return "; ".join(found)


def tiled_mma_text(mma: TiledMma) -> str:
    """Describe a tiled MMA: the instruction, threads, tile, operand layouts and matrix descriptors."""
    row = mma.atom.type.row
    lines = [
        f"atom      {mma.atom.type}",
        f"          {row.ptx}",
        f"threads   {mma.size}, (V,M,N,K) -> thread: {mma.thr_layout_vmnk}",
        f"tile      {'x'.join(map(str, mma.tile_shape_mnk))} (M x N x K)",
    ]
    for operand in "ABC":
        lines.append(f"{operand}         {_operand_text(mma, row, operand)}")
    return "\n".join(lines)


def _operand_text(mma: TiledMma, row: Any, operand: str) -> str:
    if mma.atom.type.in_shared_memory(operand):
        major = {"A": row.major_a, "B": row.major_b}[operand]
        return f"in shared memory, {major}-major, by matrix descriptors: {_descriptors(row, operand, major)}"
    held = row.registers(operand)
    layout = mma.tv_layout(operand)
    return f"in {held.count} registers {held.type} of {held.values}, (thread, value) -> index: {layout}"


def _descriptors(row: Any, operand: str, major: str) -> str:
    """Return the leading and stride byte offsets for each swizzle, for one instruction's tile."""
    from cute_dialect.arch.descriptors import derive  # late: start-up

    m, n, k = row.shape_mnk
    x = m if operand == "A" else n
    element = row.element(operand)
    found: list[str] = []
    for width in SWIZZLES:
        try:
            rows, columns = plain_atom(major, width, element).shape  # pyright: ignore
            tile = (-(-x // rows) * rows, -(-k // columns) * columns)  # pyright: ignore
            descriptor = derive(smem_tile(major, width, element, tile), element, x=x).descriptor  # pyright: ignore
            found.append(f"swizzle {width}: LBO {descriptor.lbo}, SBO {descriptor.sbo}")
        except ArchError:
            continue
    return "; ".join(found)
