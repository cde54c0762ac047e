"""Atoms: records that describe one copy or matrix-multiply instruction.

An atom is a frozen record that validates itself on construction.  Its layouts are functions:

* MMA: ``A: (thread, value) -> m + M*k``, ``B: -> n + N*k``, ``C: -> m + M*n``; D has the layout of C.  If A is sparse,
  k counts the elements of a row that are kept, and the operand E identifies them (:class:`Metadata`);
* copy: ``src, dst: (thread, value) -> bit`` of the abstract bit array that one instruction moves.  ``ref`` is the one
  of the two to which a user's thread-value layout refers.

``thr_id`` maps the logical thread to the thread within the group that executes the instruction.

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

from cute_dialect.algebra.layout import recast_layout
from cute_dialect.algebra.trees import product, tree_leaves
from cute_dialect.algebra.values import IntTuple, Layout, Stride, layout_modes, raw_layout
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import AtomError
from cute_dialect.spaces import AddressSpace

_CONSTRAINT = {"b16": "h", "b32": "r", "s32": "r", "b64": "l", "f32": "f", "f64": "d"}
_REGISTER_BITS = {"b16": 16, "b32": 32, "s32": 32, "b64": 64, "f32": 32, "f64": 64}


@dataclass(frozen=True, slots=True)
class Registers:
    """The registers in which one thread holds an operand."""

    type: str
    """PTX type of a register."""

    count: int
    """Number of registers."""

    values: int
    """Elements per register, the first in the lowest bits."""

    mlir: str
    """Type of a register as an operand of the upstream op or intrinsic."""

    spare: int = 0
    """Unused bits of a register."""

    @property
    def constraint(self) -> str:
        """Register class in inline assembly (LLVM NVPTX): h, r, l, f or d."""
        return _CONSTRAINT[self.type]

    @property
    def bits(self) -> int:
        """Width of one register in bits."""
        return _REGISTER_BITS[self.type]


@dataclass(frozen=True, slots=True)
class Emit:
    """The lowering of an atom: its PTX instruction, and the MLIR op and LLVM intrinsic, if any."""

    kind: str
    """Name of the lowering: mma_sync, wgmma, ldmatrix …"""

    mnemonic: str
    """PTX instruction without its operands."""

    nvvm: str = ""
    """Upstream op of MLIR 22, or "" if there is none."""

    intrinsic: str = ""
    """Intrinsic of LLVM 22, or "" if there is none."""

    pieces: tuple[tuple[str, int | str | bool], ...] = ()
    """Named parameters of the lowering."""

    def __getitem__(self, name: str) -> int | str | bool:
        for key, value in self.pieces:
            if key == name:
                return value
        raise KeyError(name)

    @property
    def route(self) -> str:
        """``op``, ``intrinsic`` or ``asm``: the first of these that upstream MLIR 22 has for the instruction."""
        return "op" if self.nvvm else "intrinsic" if self.intrinsic else "asm"


_KEPT: Mapping[int, Mapping[int, tuple[int, ...]]] = {
    2: {0b0100: (0,), 0b1110: (1,)},
    4: {i | j << 2: (i, j) for j in range(4) for i in range(j)},
    8: {i | j << 2: (2 * i, 2 * i + 1, 2 * j, 2 * j + 1) for j in range(4) for i in range(j)},
}


@dataclass(frozen=True, slots=True)
class Metadata:
    """The operand E of a sparse MMA, which selects the elements of A that are kept.

    Each row of A is divided into groups of ``group`` elements, half of which are kept.  Four bits select them:

    * 1 of 2 elements: 0100 keeps the first and 1110 the second;
    * 2 of 4 elements: two indices in ascending order, the first in the lowest bits;
    * 2 of 4 pairs of elements: two such indices of pairs.

    An element of E holds the bits of 4 (i16) or 8 (i32) consecutive groups of a row, the first in the lowest bits.  E
    is therefore a matrix ``(M, K / columns)``.

    The instruction reads E only from those of four consecutive threads for which ``lane % 4``, divided by
    ``4 / selectors``, equals its sparsity selector.  In the layout the other threads hold copies, so any selector from
    0 to ``selectors - 1`` can be used.

    >>> from cute_dialect.arch import mma_atom
    >>> held = mma_atom("SM80_SPARSE_16x8x32_F32F16F16F32_TN").metadata
    >>> held.element, held.layout, held.columns, held.selectors
    ('i16', Layout("((2,2,8),2):((16,0,1),8)"), 16, 2)
    """

    element: str
    """Type of an element of E: i16 or i32."""

    layout: Layout
    """``(thread, value) -> m + M*column of E``."""

    registers: Registers
    """Registers in which a thread holds E."""

    group: int
    """Elements of A per group."""

    selectors: int
    """Number of sparsity selectors."""

    @property
    def groups(self) -> int:
        """Groups per element of E."""
        return bits_of(self.element) // 4

    @property
    def columns(self) -> int:
        """Elements of a row of A, kept or not, that one element of E describes."""
        return self.groups * self.group

    @property
    def kept(self) -> Mapping[int, tuple[int, ...]]:
        """Map from the metadata bits of a group to its kept elements, in order.  Other bit patterns are invalid.

        >>> from cute_dialect.arch import mma_atom
        >>> mma_atom("SM80_SPARSE_16x8x32_F32F16F16F32_TN").metadata.kept[0b1101]  # 01 and 11
        (1, 3)
        """
        return _KEPT[self.group]

    def group_layout(self, m: int) -> Layout:
        """Return the thread-value layout of the groups: ``(thread, (group, value)) -> row + m * (group of the row)``.

        ``m`` is the number of rows.

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
class Scales:
    """The operands SFA and SFB of a block-scaled MMA: one factor per row and block of ``vector`` elements along K.

    SFA is a matrix ``(M, K / vector)`` and SFB a matrix ``(N, K / vector)``.  The instruction reads a row of SFA from
    one pair of the four lanes of a group, and a row of SFB from one of the four.  In the layouts all of these lanes
    hold copies, so any choice of lanes is valid.

    >>> from cute_dialect.arch import mma_atom
    >>> held = mma_atom("SM120_16x8x64_F32E2M1E2M1F32_TN_VS16_UE4M3").scales
    >>> held.element, held.vector, held.layout_a, held.layout_b
    ('ue4m3', 16, Layout("((2,2,8),4):((8,0,1),16)"), Layout("((4,8),4):((0,1),8)"))
    """

    element: str
    """Element type: f8E8M0FNU or ue4m3."""

    vector: int
    """Elements along K that share a factor."""

    layout_a: Layout
    """``(thread, value) -> m + M*(block of K)``; likewise ``layout_b``."""

    layout_b: Layout

    @property
    def registers(self) -> Registers:
        """The register of one thread: a factor per byte, the first in the lowest."""
        n: int = product(layout_modes(self.layout_a)[1].shape)  # type: ignore[assignment]
        return Registers("b32", 1, n, "i32", spare=32 - 8 * n)


@dataclass(frozen=True, slots=True)
class MmaAtom:
    """A matrix-multiply instruction ``D = A * B + C`` of shape ``shape_mnk``."""

    name: str
    """Name, as in CuTe."""

    arch: str
    """The first GPU with the instruction (``sm_80``), or the only one (``sm_90a``)."""

    family: str
    """Instruction family: fma, mma_sync, mma_sp, wgmma, wgmma_sp …"""

    shape_mnk: tuple[int, int, int]
    """Shape ``(M, N, K)``."""

    d: str
    """Element type of D, as in MLIR; likewise ``a``, ``b`` and ``c``."""

    a: str
    b: str
    c: str
    thr_id: Layout
    """Logical thread -> thread of the group."""

    layout_a: Layout
    """Thread-value layout of A; likewise ``layout_b``, and ``layout_c`` for C and D.  A sparse A is ``(M, K/2)``."""

    layout_b: Layout
    layout_c: Layout
    registers_d: Registers
    """Registers of one thread's fragment of D; likewise the other operands."""

    registers_a: Registers
    registers_b: Registers
    registers_c: Registers
    major_a: str
    """Contiguous index of A: "k" or "mn", as in ``.row``/``.col`` or the transpose bits; likewise ``major_b``."""

    major_b: str
    emit: Emit
    """The form in the generated code."""

    ptx: str
    """The instruction, with ``$d $a $b $c`` (and ``$scale_d …``) for the operands."""

    isa: str
    """Section of the PTX ISA 9.0 that defines the fragments."""

    ptx_version: str
    """The first PTX version with the instruction."""

    source_a: str = "rmem"
    """Memory of A: "rmem" (registers), "smem" (a matrix descriptor) or "tmem" (an address); likewise ``source_b``."""

    source_b: str = "rmem"
    source_c: str = "rmem"
    """Memory of C and D: "rmem", or "tmem" (an address)."""

    metadata: Metadata | None = None
    """The operand E of a sparse A."""

    scales: Scales | None = None
    """The operands SFA and SFB of a block-scaled MMA."""

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
            ("C", self.layout_c, m * n, self.registers_c, self.c, self.source_c),
            ("D", self.layout_c, m * n, self.registers_d, self.d, self.source_c),
        ):
            have, values = _thread_value(self, what, layout)
            _expect(self, have == threads, f"expected {threads} threads in the layout of {what}, got {have}")
            if self.family == "tcgen05":
                # The threads are the blocks of a pair.  Each has its own rows of the operand.
                _expect_covers(self, what, layout, tile, have * values)
                register = "b64" if source == AddressSpace.smem else "b32"
                _expect(self, (held.type, held.count) == (register, 1), f"expected one {register} register for {what}")
            elif source == AddressSpace.smem:
                # Every thread accesses the whole tile through the descriptor, so the thread mode has stride 0.
                still = not any(int_leaves(layout_modes(layout)[0].stride))
                _expect(self, still, f"expected thread stride 0 in the layout of {what} in shared memory, got {layout}")
                _expect_covers(self, what, layout, tile, tile)
                _expect(self, held.type == "b64" and held.count == 1, f"expected one 64-bit descriptor for {what}")
            else:
                _expect_covers(self, what, layout, tile, have * values)
                _expect_registers(self, what, held, values, bits_of(elt))
        if self.metadata is not None:
            self._check_metadata(self.metadata)
        if self.scales is not None:
            self._check_scales(self.scales)

    def _check_scales(self, held: Scales) -> None:
        m, n, k = self.shape_mnk
        _expect(self, k % held.vector == 0, f"expected K to be a multiple of {held.vector}, got {k}")
        for what, layout, extent in (("SFA", held.layout_a, m), ("SFB", held.layout_b, n)):
            threads, _ = _thread_value(self, what, layout)
            _expect(self, threads == self.threads, f"expected {self.threads} threads in the layout of {what}")
            tile, covered = extent * k // held.vector, _covered(self, what, layout)
            _expect(self, covered == tile, f"expected {tile} factors in the layout of {what}, got {covered}: {layout}")

    def _check_metadata(self, held: Metadata) -> None:
        m, _, k = self.shape_mnk
        _expect(self, held.group in _KEPT, f"expected groups of {', '.join(map(str, _KEPT))}, got {held.group}")
        _expect(self, held.selectors in (1, 2, 4), f"expected 1, 2 or 4 selectors, got {held.selectors}")
        _expect(self, k % held.columns == 0, f"expected a multiple of {held.columns} columns of A, got {k}")
        threads, values = _thread_value(self, "E", held.layout)
        _expect(self, threads == self.threads, f"expected {self.threads} threads in the layout of E, got {threads}")
        tile, covered = m * k // held.columns, _covered(self, "E", held.layout)
        _expect(
            self, covered == tile, f"expected the layout of E to cover {tile} elements, got {covered}: {held.layout}"
        )
        wanted = tile * held.selectors
        _expect(
            self,
            threads * values == wanted,
            f"expected E to be held once for each of {held.selectors} selectors, {wanted} in all, got "
            f"{threads * values}",
        )
        if self.family != "tcgen05":  # There E is in tensor memory.
            _expect_registers(self, "E", held.registers, values, bits_of(held.element))

    @property
    def threads(self) -> int:
        """Number of threads that execute the instruction together."""
        return product(self.thr_id.shape)  # type: ignore[return-value]

    def layout(self, operand: str) -> Layout:
        """Return the thread-value layout of operand A, B, C or D, of E, or of SFA or SFB.

        >>> from cute_dialect.arch import ATOMS
        >>> ATOMS["SM80_16x8x16_F32F16F16F32_TN"].layout("B")
        Layout("((4,8),(2,2)):((16,1),(8,64))")
        """
        if operand == "E":
            return self._held().layout
        if operand in ("SFA", "SFB"):
            return self._scales().layout_a if operand == "SFA" else self._scales().layout_b
        return {"A": self.layout_a, "B": self.layout_b, "C": self.layout_c, "D": self.layout_c}[operand]

    def element(self, operand: str) -> str:
        """Return the element type of operand A, B, C or D, of E, or of SFA or SFB."""
        if operand == "E":
            return self._held().element
        if operand in ("SFA", "SFB"):
            return self._scales().element
        return {"A": self.a, "B": self.b, "C": self.c, "D": self.d}[operand]

    def registers(self, operand: str) -> Registers:
        """Return the registers of one thread's fragment of operand A, B, C or D, of E, or of SFA or SFB."""
        if operand == "E":
            return self._held().registers
        if operand in ("SFA", "SFB"):
            return self._scales().registers
        return {"A": self.registers_a, "B": self.registers_b, "C": self.registers_c, "D": self.registers_d}[operand]

    def tile(self, operand: str) -> tuple[int, int]:
        """Return the tile shape of an operand: A ``(M,K)``, B ``(N,K)``, C and D ``(M,N)``.

        A sparse A is ``(M,K/2)``, E is ``(M,K/columns)``, SFA ``(M,K/vector)`` and SFB ``(N,K/vector)``.
        """
        m, n, k = self.shape_mnk
        if operand == "E":
            return m, k // self._held().columns
        if operand in ("SFA", "SFB"):
            return m if operand == "SFA" else n, k // self._scales().vector
        return {"A": (m, k if self.metadata is None else k // 2), "B": (n, k), "C": (m, n), "D": (m, n)}[operand]

    def _scales(self) -> Scales:
        if self.scales is None:
            raise AtomError("expected a block-scaled MMA, but the atom has no operands SFA and SFB", self.name)
        return self.scales

    def _held(self) -> Metadata:
        if self.metadata is None:
            raise AtomError("expected a sparse atom, which has an operand E, got a dense one", self.name)
        return self.metadata


@dataclass(frozen=True, slots=True)
class CopyAtom:
    """A copy instruction."""

    name: str
    """Name, as in CuTe."""

    arch: str
    """The first GPU with the instruction."""

    family: str
    """Instruction family: universal, cp_async, ldmatrix, tma_load …"""

    element: str
    """Unit of the instruction: b8 … b128."""

    src_space: str
    """Memory of the source: gmem, smem, rmem, cluster, tensor, cache or any; likewise ``dst_space``.

    ``cluster`` is the shared memory of the cluster, ``tensor`` is global memory behind a tensor map, and ``any`` is the
    memory of a plain access.
    """

    dst_space: str
    thr_id: Layout
    """Logical thread -> thread of the group."""

    src: Layout
    """``(thread, value) -> bit`` of the source; likewise ``dst``."""

    dst: Layout
    ref_side: str
    """The side to which thread-value layouts refer: "src" or "dst"."""

    emit: Emit
    """The form in the generated code."""

    ptx: str
    """The instruction, with placeholders for the operands."""

    isa: str
    """Section of the PTX ISA 9.0 that defines the instruction."""

    ptx_version: str
    """The first PTX version with the instruction."""

    registers: Registers | None = None
    """Registers of the side that is in registers."""

    src_align: int = 0
    """Alignment of the source address in bytes, or 0 if there is no address; likewise ``dst_align``."""

    dst_align: int = 0
    sizes: str = ""
    """Sizes that the instruction can move, or "" if the layouts fix the size.  Else they describe the smallest unit."""

    def __post_init__(self) -> None:
        threads = product(self.thr_id.shape)
        _expect(self, self.ref_side in ("src", "dst"), f"expected 'src' or 'dst' as reference, got {self.ref_side!r}")
        total: dict[str, int] = {}
        for what, layout, space in (("src", self.src, self.src_space), ("dst", self.dst, self.dst_space)):
            have, values = _thread_value(self, what, layout)
            _expect(self, have == threads, f"expected {threads} threads in the layout {what}, got {have}")
            total[what] = _covered(self, what, layout)
            if self.registers is not None and space == AddressSpace.rmem:
                held = self.registers.count * self.registers.bits
                _expect(self, values == held, f"expected {held} bits in registers in the layout {what}, got {values}")
        # A broadcast reads fewer bits than it writes.  All other copies move each bit once.
        _expect(
            self,
            total["src"] == total["dst"] or self.family == "shuffle",
            f"expected as many bits at the source as at the destination, got {total['src']} and {total['dst']}",
        )

    @property
    def threads(self) -> int:
        """Number of threads that execute the instruction together."""
        return product(self.thr_id.shape)  # type: ignore[return-value]

    @property
    def ref(self) -> Layout:
        """The side to which a user's thread-value layout refers."""
        return self.src if self.ref_side == "src" else self.dst

    @property
    def bits(self) -> int:
        """Number of bits that one instruction writes."""
        return _covered(self, "dst", self.dst)

    def in_elements(self, side: str, bits: int) -> Layout:
        """Return the layout of side "src", "dst" or "ref" in units of elements of ``bits`` bits.

        Raises AlgebraError if the layout cannot be recast to that width.

        >>> from cute_dialect.arch import ATOMS
        >>> ATOMS["SM75_U32x4_LDSM_N"].in_elements("dst", 16)
        Layout("(32,(2,4)):(2,(1,64))")
        """
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
    """Return ``n`` if the layout maps onto ``[0, n)`` without gaps or overlap, ignoring modes of stride 0; else None.

    In order of stride, each mode must start where the modes before it end.

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
        raise AtomError(f"expected a layout without gaps or overlap for {what}, got {layout}", atom.name)
    return covered


def _expect_covers(atom: Atom, what: str, layout: Layout, tile: int, held: int) -> None:
    covered = _covered(atom, what, layout)
    _expect(atom, covered == tile, f"expected the layout of {what} to cover {tile} elements, got {covered}: {layout}")
    _expect(atom, held == tile, f"expected each of {tile} elements of {what} to be held once, got {held} values")


def _expect_registers(atom: Atom, what: str, held: Registers, values: int, bits: int) -> None:
    _expect(
        atom,
        held.count * held.values == values,
        f"expected {values} values of {what} per thread, got {held.count} registers of {held.values}",
    )
    _expect(
        atom,
        held.values * bits + held.spare == held.bits,
        f"expected {held.bits} bits in a {held.type} register of {what}, got {held.values} values of {bits}",
    )
