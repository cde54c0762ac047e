"""Atoms: what one copy or matrix-multiply instruction does, as data.

An atom is a frozen record that checks itself when it is built.  Its layouts are functions:

* MMA: ``A: (thread, value) -> m + M*k``, ``B: -> n + N*k``, ``C: -> m + M*n`` (D is as C); where A is sparse, k counts
  the elements of a row that are kept, and E says which they are (:class:`Metadata`);
* copy: ``src, dst: (thread, value) -> bit`` of the abstract array of bits that one instruction moves; ``ref`` is the
  one of the two that a thread-value layout of the user refers to.

``thr_id`` maps the logical thread to the thread within the group that executes the instruction together.

>>> from cute_dialect.arch import ATOMS
>>> mma = ATOMS["SM80_16x8x16_F32F16F16F32_TN"]
>>> mma.layout_a
Layout("((4,8),(2,2,2)):((32,1),(16,8,128))")
>>> mma.layout_a(5, 3) == (1 + 8) + 16 * (2 * 1 + 1)  # lane 5, value 3: row 9, column 3
True
>>> mma.ptx
'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 $d, $a, $b, $c;'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cute_dialect.algebra.trees import product, tree_leaves
from cute_dialect.algebra.values import IntTuple, Layout, Stride, layout_modes, raw_layout
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import AtomError

_CONSTRAINT = {"b16": "h", "b32": "r", "s32": "r", "b64": "l", "f32": "f", "f64": "d"}
_REGISTER_BITS = {"b16": 16, "b32": 32, "s32": 32, "b64": 64, "f32": 32, "f64": 64}


@dataclass(frozen=True, slots=True)
class Registers:
    """How one thread holds an operand: ``count`` PTX registers of ``type``, ``values`` elements in each, in order.

    ``mlir`` is the type of one of them as an operand of the upstream op or intrinsic.  ``spare``: bits of a register
    that hold nothing.
    """

    type: str
    count: int
    values: int
    mlir: str
    spare: int = 0

    @property
    def constraint(self) -> str:
        """Letter of the register class in inline assembly (LLVM NVPTX): h r l f d."""
        return _CONSTRAINT[self.type]

    @property
    def bits(self) -> int:
        """Width of one register."""
        return _REGISTER_BITS[self.type]


@dataclass(frozen=True, slots=True)
class Emit:
    """How an atom becomes an instruction.

    ``kind``: the lowering that knows it (mma_sync, wgmma, ldmatrix …).  ``mnemonic``: the PTX instruction up to its
    operands.  ``nvvm``: the upstream op that carries it in MLIR 22, "" if none does.  ``intrinsic``: the LLVM 22
    intrinsic, "" if there is none.  ``pieces``: what the lowering must know, by name.
    """

    kind: str
    mnemonic: str
    nvvm: str = ""
    intrinsic: str = ""
    pieces: tuple[tuple[str, int | str | bool], ...] = ()

    def __getitem__(self, name: str) -> int | str | bool:
        for key, value in self.pieces:
            if key == name:
                return value
        raise KeyError(name)

    @property
    def route(self) -> str:
        """``op``, ``intrinsic`` or ``asm``: the first of them that can carry the instruction in upstream MLIR 22."""
        return "op" if self.nvvm else "intrinsic" if self.intrinsic else "asm"


_KEPT: Mapping[int, Mapping[int, tuple[int, ...]]] = {
    2: {0b0100: (0,), 0b1110: (1,)},
    4: {i | j << 2: (i, j) for j in range(4) for i in range(j)},
    8: {i | j << 2: (2 * i, 2 * i + 1, 2 * j, 2 * j + 1) for j in range(4) for i in range(j)},
}


@dataclass(frozen=True, slots=True)
class Metadata:
    """The operand E of a sparse product: which elements of A are there.

    Each row of A is cut into groups of ``group`` elements, of which half are kept; 4 bits name them: 0100 and 1110 the
    first and the second of two; two indices in rising order, the first lowest, of two of four; two such indices of
    pairs of eight.  An ``element`` of E, i16 or i32, holds the bits of 4 or 8 groups that follow each other in a row,
    the first lowest: E is a matrix ``(M, K / columns)``.  ``layout``: ``(thread, value) -> m + M*column of E``.

    Of each four threads only those are asked whose ``lane % 4`` is, divided by ``4 / selectors``, the sparsity selector
    of the instruction; in the layout the others hold the same, so that each selector from 0 to ``selectors - 1`` will
    do.

    >>> from cute_dialect.arch import mma_atom
    >>> held = mma_atom("SM80_SPARSE_16x8x32_F32F16F16F32_TN").metadata
    >>> held.element, held.layout, held.columns, held.selectors
    ('i16', Layout("((2,2,8),2):((16,0,1),8)"), 16, 2)
    """

    element: str
    layout: Layout
    registers: Registers
    group: int
    selectors: int

    @property
    def groups(self) -> int:
        """Groups in an element of E."""
        return bits_of(self.element) // 4

    @property
    def columns(self) -> int:
        """Elements of a row of A that one element of E speaks of."""
        return self.groups * self.group

    @property
    def kept(self) -> Mapping[int, tuple[int, ...]]:
        """The 4 bits of a group -> the elements of the group that are kept, in order.  Other bits mean nothing.

        >>> from cute_dialect.arch import mma_atom
        >>> mma_atom("SM80_SPARSE_16x8x32_F32F16F16F32_TN").metadata.kept[0b1101]  # 01 and 11
        (1, 3)
        """
        return _KEPT[self.group]

    def group_layout(self, m: int) -> Layout:
        """Return ``(thread, (group, value)) -> m + M*group of the row``: who holds the 4 bits of which group, for
        ``m`` rows.

        >>> from cute_dialect.arch import mma_atom
        >>> mma_atom("SM80_SPARSE_16x8x32_F32F16F16F32_TN").metadata.group_layout(16)
        Layout("((2,2,8),(4,2)):((64,0,1),(16,8))")
        """

        def scale(d: Stride) -> Stride:
            if isinstance(d, tuple):
                return tuple([scale(x) for x in d])
            assert isinstance(d, int)
            return d if d < m else d * self.groups

        threads, values = layout_modes(self.layout)
        return raw_layout(
            (threads.shape, (self.groups, values.shape)), (scale(threads.stride), (m, scale(values.stride)))
        )


@dataclass(frozen=True, slots=True)
class MmaAtom:
    """One matrix multiply ``D = A * B + C`` of ``shape_mnk``.

    ``arch``: the first GPU that has it (``sm_80``; ``sm_90a``: that one only).  ``d a b c``: element types as in MLIR.
    ``major_a``, ``major_b``: "k" or "mn", which index is contiguous in memory (in the sense of the instruction's
    ``.row``/``.col`` or transpose bits).  ``source_a``: "rmem" or "smem" (a matrix descriptor); B is in smem iff the
    atom's family is wgmma or wgmma_sp.  ``ptx``: the instruction with ``$d $a $b $c`` (and ``$scale_d …``) for the
    operands.  ``isa``: section of the PTX ISA 9.0 that defines the fragments; ``ptx_version``: first version that has
    it.  ``metadata``: of a sparse A, of which an atom takes the kept half: ``(M, K/2)``.
    """

    name: str
    arch: str
    family: str
    shape_mnk: tuple[int, int, int]
    d: str
    a: str
    b: str
    c: str
    thr_id: Layout
    layout_a: Layout
    layout_b: Layout
    layout_c: Layout
    registers_d: Registers
    registers_a: Registers
    registers_b: Registers
    registers_c: Registers
    major_a: str
    major_b: str
    emit: Emit
    ptx: str
    isa: str
    ptx_version: str
    source_a: str = "rmem"
    source_b: str = "rmem"
    metadata: Metadata | None = None

    def __post_init__(self) -> None:
        m, n, k = self.shape_mnk
        half = 1 if self.metadata is None else 2
        threads = product(self.thr_id.shape)
        _expect(self, self.d == self.c or self.family == "fma", f"expected D and C of one type, got {self.d}, {self.c}")
        for what, major in (("A", self.major_a), ("B", self.major_b)):
            _expect(self, major in ("k", "mn"), f"expected 'k' or 'mn' as the major of {what}, got {major!r}")
        for what, layout, tile, held, elt, source in (
            ("A", self.layout_a, m * k // half, self.registers_a, self.a, self.source_a),
            ("B", self.layout_b, n * k, self.registers_b, self.b, self.source_b),
            ("C", self.layout_c, m * n, self.registers_c, self.c, "rmem"),
            ("D", self.layout_c, m * n, self.registers_d, self.d, "rmem"),
        ):
            have, values = _thread_value(self, what, layout)
            _expect(self, have == threads, f"expected {threads} threads in the layout of {what}, got {have}")
            if source == "smem":
                # Every thread sees the whole tile through the descriptor: the thread mode stands still.
                still = not any(int_leaves(layout_modes(layout)[0].stride))
                _expect(self, still, f"expected thread stride 0 in the layout of {what} in shared memory, got {layout}")
                _expect_covers(self, what, layout, tile, tile)
                _expect(self, held.type == "b64" and held.count == 1, f"expected one 64-bit descriptor for {what}")
            else:
                _expect_covers(self, what, layout, tile, have * values)
                _expect_registers(self, what, held, values, bits_of(elt))
        if self.metadata is not None:
            self._check_metadata(self.metadata)

    def _check_metadata(self, held: Metadata) -> None:
        m, _, k = self.shape_mnk
        _expect(self, held.group in _KEPT, f"expected groups of {', '.join(map(str, _KEPT))}, got {held.group}")
        _expect(self, held.selectors in (1, 2, 4), f"expected 1, 2 or 4 selectors, got {held.selectors}")
        _expect(self, k % held.columns == 0, f"expected a multiple of {held.columns} columns of A, got {k}")
        threads, values = _thread_value(self, "E", held.layout)
        _expect(self, threads == self.threads, f"expected {self.threads} threads in the layout of E, got {threads}")
        tile, covered = m * k // held.columns, _covered(self, "E", held.layout)
        _expect(self, covered == tile, f"expected E to cover its tile of {tile}, got {covered} by {held.layout}")
        wanted = tile * held.selectors
        _expect(
            self,
            threads * values == wanted,
            f"expected E to be held once for each of {held.selectors} selectors, {wanted} in all, got "
            f"{threads * values}",
        )
        _expect_registers(self, "E", held.registers, values, bits_of(held.element))

    @property
    def threads(self) -> int:
        """Number of threads that execute it together."""
        return product(self.thr_id.shape)  # type: ignore[return-value]

    def layout(self, operand: str) -> Layout:
        """Return the thread-value layout of operand A, B, C or D; E of a sparse product.

        >>> from cute_dialect.arch import ATOMS
        >>> ATOMS["SM80_16x8x16_F32F16F16F32_TN"].layout("B")
        Layout("((4,8),(2,2)):((16,1),(8,64))")
        """
        if operand == "E":
            return self._held().layout
        return {"A": self.layout_a, "B": self.layout_b, "C": self.layout_c, "D": self.layout_c}[operand]

    def element(self, operand: str) -> str:
        """Return the element type of operand A, B, C or D; E of a sparse product."""
        if operand == "E":
            return self._held().element
        return {"A": self.a, "B": self.b, "C": self.c, "D": self.d}[operand]

    def registers(self, operand: str) -> Registers:
        """Return the registers in which one thread holds operand A, B, C or D; E of a sparse product."""
        if operand == "E":
            return self._held().registers
        return {"A": self.registers_a, "B": self.registers_b, "C": self.registers_c, "D": self.registers_d}[operand]

    def tile(self, operand: str) -> tuple[int, int]:
        """Shape of the tile of an operand: A ``(M,K)``, B ``(N,K)``, C and D ``(M,N)``; sparse A, E: their words."""
        m, n, k = self.shape_mnk
        if operand == "E":
            return m, k // self._held().columns
        return {"A": (m, k if self.metadata is None else k // 2), "B": (n, k), "C": (m, n), "D": (m, n)}[operand]

    def _held(self) -> Metadata:
        if self.metadata is None:
            raise AtomError("expected a sparse atom, which has an operand E, got a dense one", self.name)
        return self.metadata


@dataclass(frozen=True, slots=True)
class CopyAtom:
    """One copy instruction.

    ``element``: the type that the instruction speaks of (b8 … b128).  ``src_space``, ``dst_space``: gmem, smem, rmem,
    cluster (shared memory of the cluster), tensor (a tensor map over global memory), cache; "any" for plain accesses.
    ``src_align``, ``dst_align``: bytes that an address must be a multiple of (0: no address).  ``ref_side``: "src" or
    "dst".  ``registers``: of the side in registers.  ``sizes``: "" if the instruction always moves the bits of its
    layouts; else what it may move, and the layouts stand for the smallest unit.
    """

    name: str
    arch: str
    family: str
    element: str
    src_space: str
    dst_space: str
    thr_id: Layout
    src: Layout
    dst: Layout
    ref_side: str
    emit: Emit
    ptx: str
    isa: str
    ptx_version: str
    registers: Registers | None = None
    src_align: int = 0
    dst_align: int = 0
    sizes: str = ""

    def __post_init__(self) -> None:
        threads = product(self.thr_id.shape)
        _expect(self, self.ref_side in ("src", "dst"), f"expected 'src' or 'dst' as reference, got {self.ref_side!r}")
        total: dict[str, int] = {}
        for what, layout, space in (("src", self.src, self.src_space), ("dst", self.dst, self.dst_space)):
            have, values = _thread_value(self, what, layout)
            _expect(self, have == threads, f"expected {threads} threads in the layout {what}, got {have}")
            total[what] = _covered(self, what, layout)
            if self.registers is not None and space == "rmem":
                held = self.registers.count * self.registers.bits
                _expect(self, values == held, f"expected {held} bits in registers in the layout {what}, got {values}")
        # A broadcast reads less than it writes; everything else moves each bit once.
        _expect(
            self,
            total["src"] == total["dst"] or self.family == "shuffle",
            f"expected as many bits at the source as at the destination, got {total['src']} and {total['dst']}",
        )

    @property
    def threads(self) -> int:
        """Number of threads that execute it together."""
        return product(self.thr_id.shape)  # type: ignore[return-value]

    @property
    def ref(self) -> Layout:
        """The side that a thread-value layout of the user refers to."""
        return self.src if self.ref_side == "src" else self.dst

    @property
    def bits(self) -> int:
        """Bits that one instruction delivers."""
        return _covered(self, "dst", self.dst)

    def in_elements(self, side: str, bits: int) -> Layout:
        """Side "src", "dst" or "ref" in units of elements of that many bits.  Raises AlgebraError where it cannot be.

        >>> from cute_dialect.arch import ATOMS
        >>> ATOMS["SM75_U32x4_LDSM_N"].in_elements("dst", 16)
        Layout("(32,(2,4)):(2,(1,64))")
        """
        from cute_dialect.algebra.layout import recast_layout

        return recast_layout({"src": self.src, "dst": self.dst, "ref": self.ref}[side], bits, 1)


Atom = MmaAtom | CopyAtom

# --------------------------------------------------------------------------------------------------------- checks


def _expect(atom: Atom, condition: bool, message: str) -> None:
    if not condition:
        raise AtomError(message, atom.name)


def _thread_value(atom: Atom, what: str, layout: Layout) -> tuple[int, int]:
    shape = layout.shape
    if type(shape) is not tuple or len(shape) != 2:
        raise AtomError(f"expected a layout (thread, value) for {what}, got {layout}", atom.name)
    return product(shape[0]), product(shape[1])  # type: ignore[return-value]


def int_leaves(tree: IntTuple | Stride) -> list[int]:
    """Return the leaves of a static tree of integers, from left to right.

    >>> int_leaves((4, (2, 3)))
    [4, 2, 3]
    """
    return tree_leaves(tree)  # type: ignore[return-value]


def compact_size(layout: Layout) -> int | None:
    """Size of ``[0, n)`` if the layout maps onto it, each number once up to modes of stride 0; None if it does not.

    Sorted by stride each mode must go on where the ones before it end.

    >>> compact_size(Layout("((4,8),(2,2)):((32,1),(16,8))")), compact_size(Layout("((8,4),2):((2,0),1)"))
    (128, 16)
    >>> compact_size(Layout("(4,4):(1,5)")) is None
    True
    """
    modes = sorted((d, s) for s, d in zip(int_leaves(layout.shape), int_leaves(layout.stride)) if d != 0 and s != 1)
    covered = 1
    for d, s in modes:
        if d != covered:
            return None
        covered *= s
    return covered


def _covered(atom: Atom, what: str, layout: Layout) -> int:
    covered = compact_size(layout)
    if covered is None:
        raise AtomError(f"expected a layout without gap or overlap for {what}, got {layout}", atom.name)
    return covered


def _expect_covers(atom: Atom, what: str, layout: Layout, tile: int, held: int) -> None:
    covered = _covered(atom, what, layout)
    _expect(atom, covered == tile, f"expected {what} to cover its tile of {tile}, got {covered} by {layout}")
    _expect(atom, held == tile, f"expected each element of {what} to be held once, got {held} for {tile}")


def _expect_registers(atom: Atom, what: str, held: Registers, values: int, bits: int) -> None:
    _expect(
        atom,
        held.count * held.values == values,
        f"expected {values} values of {what} a thread, got {held.count} registers of {held.values}",
    )
    _expect(
        atom,
        held.values * bits + held.spare == held.bits,
        f"expected {held.bits} bits in a {held.type} register of {what}, got {held.values} values of {bits}",
    )


__all__ = ["Atom", "CopyAtom", "Emit", "Metadata", "MmaAtom", "Registers", "compact_size", "int_leaves"]
