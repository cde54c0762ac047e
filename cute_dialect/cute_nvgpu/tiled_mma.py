"""MMA atom types, the tiled MMA type, and its ops: partitions and fragments of its operands, and its layouts.

An atom type is a key into the table of :mod:`cute_dialect.arch`: the instruction, its shape and its element types. The
row of the table (fragments, registers, lowering) is looked up on first use.

* ``!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>``: one multiply-add of one thread;
* ``!cute_nvgpu.atom.dot_product<1x1x4, (i32,i8,i8,i32)>``: ``dp4a`` and ``dp2a`` of one thread;
* ``!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>``: ``mma.sync`` of a warp (of a quad-pair for 8x8x4 on f16);
* ``!cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4>``: ``mma.sync`` with block scales;
* ``!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32)>``: ``mma.sp`` of a warp, with a sparse A;
* ``!cute_nvgpu.atom.wgmma<64x128x16, (f32,f16,f16,f32), A = smem, major = (k, mn)>``: ``wgmma`` of a warpgroup;
* ``!cute_nvgpu.atom.wgmma_sp<64x128x32, (f32,f16,f16,f32), A = smem, major = (k, mn)>``: ``wgmma`` with a sparse A;
* ``!cute_nvgpu.atom.tcgen05_mma<128x256x16, (f32,bf16,bf16,f32), A = smem, major = (k, k)>``: ``tcgen05.mma``, of one
  thread.

The element types are those of (D, A, B, C). Single bits are ``i1``.

A tiled MMA repeats an atom over threads and values. ``partition_A``, ``partition_B`` and ``partition_C`` return a
thread's partition ``(V, Rest0, …)`` of an operand tile, where V are the values of one atom. ``cute.gemm`` multiplies
such partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypeVar, cast

from xdsl.dialects.builtin import Float8E4M3FNType, Float8E8M0FNUType, i1, i8, i16, i32
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition, operand_def, result_def, traits_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra import text
from cute_dialect.algebra.evaluation import cosize, evaluate, size
from cute_dialect.algebra.layout import coalesce, flat_modes
from cute_dialect.algebra.leaf import AlgebraError, Leaf
from cute_dialect.algebra.tiled_mma import OPERAND_MODES, TiledMma
from cute_dialect.algebra.trees import depth, is_static, leaves, product
from cute_dialect.algebra.values import (
    UNDERSCORE,
    AnyLayout,
    ComposedLayout,
    IntTuple,
    Layout,
    Payload,
    Stride,
    Swizzle,
    Tile,
    Underscore,
    layout_modes,
    raw_layout,
)
from cute_dialect.arch.errors import AtomError
from cute_dialect.dialect.atom_types import AtomType, CopyAtomType, TiledCopyType, TiledType
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory import rmem_type
from cute_dialect.dialect.memory_types import MemRefType, TensorType, element_bits
from cute_dialect.dialect.tensor_lifting import tensor_with
from cute_dialect.dialect.tile_copies import made_copy
from cute_dialect.dialect.typed_values import Properties, payload_text, tracked
from cute_dialect.dialect.types import CoordType, LayoutType, ShapeType
from cute_dialect.dialect.views import MemoryOp, ResultFormOp, expect, expect_operands
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.arch.atom import MmaAtom


_Parsed = TypeVar("_Parsed")


_NEGATES = {"negate_a": "A", "negate_b": "B"}


class MmaKey(NamedTuple):
    """Parameters of an MMA atom type.

    Args:
        shape: M, N and K of one instruction.
        types: elements of D, A, B, C.
        source_a: smem or rmem for wgmma, smem or tmem for tcgen05.
        majors: majors of A and B, "k" or "mn".
        bit_op: "xor" or "and", for single bits.
        selector: the sparsity selector of a sparse A.
        negate: operands that are negated, "A", "B" or "AB".
        kind: "f8f6f4", "mxf8f6f4", "mxf4" or "mxf4nvf4", for elements of 8 bits and less on sm_120.
        sf: element type of scale factors, "f8E8M0FNU" or "ue4m3".
        vec: elements along K of a dense A that share a factor.
        cta_group: blocks that compute one tcgen05 MMA, 1 or 2.
        ws: the tcgen05 MMA keeps B in a buffer (weight stationary).
    """

    shape: tuple[int, int, int]
    types: tuple[Attribute, Attribute, Attribute, Attribute]
    source_a: AddressSpace = AddressSpace.rmem
    majors: tuple[str, str] = ("k", "k")
    saturate: bool = False
    bit_op: str = ""
    selector: int = 0
    negate: str = ""
    kind: str = ""
    sf: str = ""
    vec: int = 0
    cta_group: int = 1
    ws: bool = False


def element_name(element: Attribute) -> str:
    """Return the name of an element type in the table of atoms.

    >>> element_name(i1)
    'b1'
    """
    return "b1" if element == i1 else str(element)


class MmaAtomType(Data[MmaKey], AtomType):
    """Base of the MMA atom types."""

    OPTIONS: ClassVar[frozenset[str]] = frozenset()
    """Options that may follow the types: a subset of ``A``, ``major``, ``saturate``, ``bit_op``, ``selector``,
    ``negate``, ``kind``, ``sf``, ``vec``, ``cta_group``, ``ws``.
    """
    SOURCES: ClassVar[tuple[AddressSpace, ...]] = (AddressSpace.smem, AddressSpace.rmem)
    """Memories that may hold A."""
    ASYNCHRONOUS: ClassVar[bool] = False
    """True if the instruction is asynchronous and has an accumulate flag."""
    SPARSE: ClassVar[bool] = False
    """True if A is sparse; the instruction then has an operand E."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MmaKey:
        with parser.in_angle_brackets():
            at = parser.pos
            shape = parser.parse_dimension_list()
            if len(shape) != 3:
                parser.raise_error(f"the shape has rank {len(shape)}; write MxNxK", at, parser.pos)
            types = _parse_types(parser)
            key = MmaKey(
                (shape[0], shape[1], shape[2]), types, AddressSpace.smem if "A" in cls.OPTIONS else AddressSpace.rmem
            )
            while parser.parse_optional_punctuation(",") is not None:
                key = cls._parse_option(parser, key)
            try:
                row = find_atom(cls, key)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
            if row.scales is not None:
                sparse = 1 if row.metadata is None else 2
                key = key._replace(sf=row.scales.element, vec=row.scales.vector // sparse)
        return key

    @classmethod
    def _parse_option(cls, parser: AttrParser, key: MmaKey) -> MmaKey:
        at = parser.pos
        word = parser.parse_identifier()
        if word == "A" and "A" in cls.OPTIONS:
            parser.parse_punctuation("=")
            return key._replace(source_a=AddressSpace(_parse_word(parser, cls.SOURCES)))
        if word == "major" and "major" in cls.OPTIONS:
            parser.parse_punctuation("=")
            parser.parse_punctuation("(")
            a = _parse_word(parser, ("k", "mn"))
            parser.parse_punctuation(",")
            b = _parse_word(parser, ("k", "mn"))
            parser.parse_punctuation(")")
            return key._replace(majors=(a, b))
        if word == "saturate" and "saturate" in cls.OPTIONS:
            return key._replace(saturate=True)
        if word == "ws" and "ws" in cls.OPTIONS:
            return key._replace(ws=True)
        if word in ("xor", "and") and "bit_op" in cls.OPTIONS:
            return key._replace(bit_op=word)
        if word == "selector" and "selector" in cls.OPTIONS:
            parser.parse_punctuation("=")
            return key._replace(selector=parser.parse_integer(allow_boolean=False))
        if word == "cta_group" and "cta_group" in cls.OPTIONS:
            parser.parse_punctuation("=")
            return key._replace(cta_group=parser.parse_integer(allow_boolean=False))
        if word in _NEGATES and "negate" in cls.OPTIONS:
            return key._replace(negate="".join(sorted({*key.negate, _NEGATES[word]})))
        if word in ("kind", "sf") and word in cls.OPTIONS:
            parser.parse_punctuation("=")
            name = parser.parse_identifier()
            return key._replace(kind=name) if word == "kind" else key._replace(sf=name)
        if word == "vec" and "vec" in cls.OPTIONS:
            parser.parse_punctuation("=")
            return key._replace(vec=parser.parse_integer(allow_boolean=False))
        several = {"bit_op": ("and", "xor"), "negate": tuple(_NEGATES)}
        known = [w for o in sorted(cls.OPTIONS) for w in several.get(o, (o,))]
        parser.raise_error(
            f"'{word}' is not supported here; write one of {', '.join(known)}" if known else "expected '>'", at
        )

    def print_parameter(self, printer: Printer) -> None:
        key = self.data
        printer.print_string(f"<{'x'.join(map(str, key.shape))}, (")
        printer.print_list(key.types, printer.print_attribute, ",")
        printer.print_string(")")
        if "A" in self.OPTIONS:
            printer.print_string(f", A = {key.source_a}")
        if "A" in self.OPTIONS or key.majors != ("k", "k"):
            printer.print_string(f", major = ({key.majors[0]}, {key.majors[1]})")
        if key.saturate:
            printer.print_string(", saturate")
        if key.bit_op:
            printer.print_string(f", {key.bit_op}")
        if key.selector:
            printer.print_string(f", selector = {key.selector}")
        if key.cta_group != 1:
            printer.print_string(f", cta_group = {key.cta_group}")
        if key.ws:
            printer.print_string(", ws")
        for word, operand in _NEGATES.items():
            if operand in key.negate:
                printer.print_string(f", {word}")
        if key.kind:
            printer.print_string(f", kind = {key.kind}")
        if key.sf:
            printer.print_string(f", sf = {key.sf}, vec = {key.vec}")
        printer.print_string(">")

    @property
    def row(self) -> MmaAtom:
        """Row of the atom in the table."""
        return find_atom(type(self), self.data)

    @classmethod
    def find(cls, key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        """Return the row of the table for a key. ``names`` are its element types. Raises AlgebraError if there is
        none.
        """
        raise NotImplementedError

    def element(self, operand: str) -> Attribute:
        """Return the element type of operand A, B, C or D, of E, or of SFA or SFB.

        Elements of 4 and 6 bits that are alone in a byte are ``i8``.
        """
        if operand == "E":
            return {"i16": i16, "i32": i32}[self.row.element("E")]
        if operand in ("SFA", "SFB"):
            return Float8E8M0FNUType() if self.row.element(operand) == "f8E8M0FNU" else Float8E4M3FNType()
        if operand in ("A", "B") and self.row.registers(operand).spare:
            return i8
        return self.data.types["DABC".index(operand)]

    @property
    def has_scales(self) -> bool:
        """True if the instruction has the operands SFA and SFB."""
        return bool(self.data.sf)

    def accepts_element(self, operand: str, element: Attribute) -> bool:
        """Return True if the elements of a tensor are those of an operand. f32 is accepted for tf32, and i8 for ui8."""
        wanted, got = element_name(self.element(operand)), element_name(element)
        return got == wanted or (wanted, got) == ("tf32", "f32") or wanted == f"u{got}"

    def wanted_element(self, operand: str) -> str:
        """Return the elements that a tensor of an operand must have, in words."""
        return str(self.element(operand))

    def threads(self) -> int:
        """Number of threads that execute the instruction together."""
        return self.row.threads

    def fields(self) -> tuple[str, ...]:
        return ("accumulate",) if self.ASYNCHRONOUS else ()

    def accumulator_registers(self) -> int:
        return self.row.registers_d.count

    def operand_space(self, operand: str) -> AddressSpace:
        """Return the memory space from which the instruction reads the operand."""
        row = self.row
        return AddressSpace({"A": row.source_a, "B": row.source_b}.get(operand, row.source_c))

    def in_shared_memory(self, operand: str) -> bool:
        """Return True if the instruction reads the operand from shared memory."""
        return self.operand_space(operand) == AddressSpace.smem

    def descriptor(self, operand: str, layout: Layout, element: Attribute, swizzle: Swizzle | None) -> int:
        """Return the 64-bit matrix descriptor, for address 0, of the tile that one instruction reads.

        Args:
            operand: "A" or "B".
            layout: static layout of the tile, in elements.
            element: element type of the tile.
            swizzle: swizzle of the pointer, on bytes.

        Raises:
            DescriptorError: no descriptor represents the layout.
        """
        from cute_dialect.arch.descriptors import derive, expect_depth  # late: start-up

        major = self.data.majors["AB".index(operand)]
        view = derive(layout, element_bits(element), major, pointer_swizzle=swizzle)
        if self.SPARSE and operand == "B":
            expect_depth(view, 2)
        return view.descriptor.bits

    def tmem_fragment(self, operand: str, part: Layout) -> MemRefType:
        """Return the type of a fragment in tensor memory with the shape of a partition."""
        raise NotImplementedError(self.name)

    def check_tmem_operand(self, operand: str, t: MemRefType, values: Layout) -> None:
        """Raise AlgebraError unless the values of one instruction lie in tensor memory as it expects them."""
        raise NotImplementedError(self.name)


@lru_cache(maxsize=1024)
def find_atom(cls: type[MmaAtomType], key: MmaKey) -> MmaAtom:
    """Return the row of the table. Raises AlgebraError if there is none."""
    names = tuple(element_name(t) for t in key.types)
    assert len(names) == 4
    try:
        return cls.find(key, names)
    except AtomError as e:
        raise AlgebraError(str(e)) from None


def _parse_types(parser: AttrParser) -> tuple[Attribute, Attribute, Attribute, Attribute]:
    parser.parse_punctuation(",")
    at = parser.pos
    types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    if len(types) != 4:
        parser.raise_error(f"the number of element types is {len(types)}; write those of D, A, B and C", at, parser.pos)
    return types[0], types[1], types[2], types[3]


def _parse_word(parser: AttrParser, words: tuple[str, ...]) -> str:
    at = parser.pos
    word = parser.parse_identifier()
    if word not in words:
        parser.raise_error(f"'{word}' is not supported here; write {' or '.join(words)}", at, parser.pos)
    return word


# ---------------------------------------------------------------------------------------------------------- tiled MMA


class TiledMmaData(NamedTuple):
    """Parameters of a tiled MMA.

    ``atom_layout`` maps the (M, N, K) coordinate of an atom to its index. ``permutation`` has one tile per mode; ``_``
    means the tile that the atoms cover.
    """

    atom: MmaAtomType
    atom_layout: Layout
    permutation: tuple[Tile | IntTuple, ...] = (UNDERSCORE, UNDERSCORE, UNDERSCORE)


@irdl_attr_definition
class TiledMmaType(Data[TiledMmaData], TiledType):
    """``!cute.tiled_mma<ATOM, atom_layout_MNK = <"(2,2,1):(1,2,0)"> [, permutation_MNK = <"[32:1;_;_]">]>``"""

    name = "cute.tiled_mma"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TiledMmaData:
        with parser.in_angle_brackets():
            at = parser.pos
            atom = parser.parse_type()
            if not isinstance(atom, MmaAtomType):
                parser.raise_error(
                    f"{atom} is not an MMA atom type; write one, such as !cute_nvgpu.atom.mma_sync<…>", at, parser.pos
                )
            parser.parse_punctuation(",")
            parser.parse_keyword("atom_layout_MNK")
            layout = _parse_string(parser, text.parse_layout, " layout")
            permutation: tuple[Tile | IntTuple, ...] = (UNDERSCORE,) * 3
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("permutation_MNK")
                tile = _parse_string(parser, text.parse_tile, " tile")
                permutation = tile if isinstance(tile, tuple) else (tile,)
            data = TiledMmaData(atom, layout, permutation)
            try:
                tiled(data)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return data

    def print_parameter(self, printer: Printer) -> None:
        atom, layout, permutation = self.data
        printer.print_string("<")
        printer.print_attribute(atom)
        printer.print_string(f', atom_layout_MNK = <"{text.to_text(layout)}">')
        if not all(isinstance(p, Underscore) for p in permutation):
            tile = text.to_text(cast("Tile", permutation))
            printer.print_string(f', permutation_MNK = <"{tile}">')
        printer.print_string(">")

    @property
    def atom(self) -> MmaAtomType:
        return self.data.atom

    @property
    def tiled(self) -> TiledMma:
        """Partitioning of the operands."""
        return tiled(self.data)

    def block_size(self) -> int:
        return cast("int", cosize(self.tiled.threads))

    def thread_indices(self) -> frozenset[int]:
        threads = self.tiled.threads
        return frozenset([cast("int", evaluate(i, threads)) for i in range(cast("int", size(threads)))])

    def tile_of(self, operand: str) -> tuple[int | Layout, ...]:
        return self.tiling(operand).operand_tile(operand)

    def shared_slice(self, operand: str) -> int:
        return self.atom.threads() if self.atom.in_shared_memory(operand) else 1

    def tiling(self, operand: str) -> TiledMma:
        """Return the partitioning of operand A, B, C or E.

        In contrast to :attr:`tiled`, K counts the kept elements of a sparse A, or the words of E.
        """
        return tiled_operand(self.data, operand)

    @classmethod
    def of(
        cls,
        atom: MmaAtomType,
        atom_layout: Layout,
        permutation: tuple[Tile | IntTuple, ...] = (UNDERSCORE, UNDERSCORE, UNDERSCORE),
    ) -> Self:
        """Return the type after checking it. Raises AlgebraError."""
        data = TiledMmaData(atom, atom_layout, permutation)
        tiled(data)
        return cls(data)


@lru_cache(maxsize=256)
def tiled(data: TiledMmaData) -> TiledMma:
    """Return the partitioning of a tiled MMA. Raises AlgebraError if the atom layout or the permutation is invalid."""
    row = data.atom.row
    if not is_static(data.atom_layout) or not all(is_static(p) for p in data.permutation):
        both = f"{text.to_text(data.atom_layout)} and {text.to_text(cast('Tile', data.permutation))}"
        raise AlgebraError(f"the atom layout or the permutation is not static ({both}); use static ones")
    layout = data.atom_layout
    if any(d == 0 and n not in (0, 1) for n, d in zip(leaves(layout.shape), leaves(layout.stride))):
        raise AlgebraError(
            f"the atom layout {text.to_text(layout)} assigns several atoms to the same threads; use strides other "
            "than 0 in modes of extent above 1, or a permutation"
        )
    for operand in (*(("A", "E") if data.atom.SPARSE else ()), *(("SFA",) if data.atom.has_scales else ())):
        _k_permutation(data, operand)
    mma = TiledMma(row.shape_mnk, row.thr_id, data.atom_layout, data.permutation)
    counts = data.atom_layout.shape
    assert isinstance(counts, tuple)
    for mode, extent, count, covered in zip("MNK", row.shape_mnk, counts, mma.tile_size):
        atoms = product(count)
        assert isinstance(atoms, int) and isinstance(covered, int)
        if covered % (extent * atoms):
            raise AlgebraError(
                f"the permutation of {mode} has extent {covered}; it must be a multiple of {extent * atoms} "
                f"({atoms} atoms of extent {extent})"
            )
    return mma


@lru_cache(maxsize=256)
def tiled_operand(data: TiledMmaData, operand: str) -> TiledMma:
    """Return the partitioning of one operand of a tiled MMA; see :meth:`TiledMmaType.tiling`."""
    mma = tiled(data)
    if not (data.atom.SPARSE and operand in ("A", "E")) and operand not in ("SFA", "SFB"):
        return mma
    row = data.atom.row
    m, n, _ = row.shape_mnk
    permutation = (*data.permutation[:2], _k_permutation(data, operand))
    return TiledMma((m, n, row.tile(operand)[1]), row.thr_id, data.atom_layout, permutation)


def _k_permutation(data: TiledMmaData, operand: str) -> Tile | IntTuple:
    """Return the permutation of K in elements of A or E of a sparse MMA, or in scale factors.

    Raises AlgebraError if it separates elements along K that share one of them.
    """
    row, tile = data.atom.row, data.permutation[-1]
    group = row.shape_mnk[2] // row.tile(operand)[1]
    if not isinstance(tile, Layout):
        return tile
    modes = cast("tuple[tuple[int, ...], tuple[int, ...]]", flat_modes(coalesce(tile)))  # tiled() requires static ones
    (first, *sizes), (step, *strides) = modes
    if step != 1 or any(d % group for d in (first, *strides)):
        raise AlgebraError(
            f"the permutation of K, {text.to_text(tile)}, separates {group} consecutive elements that share one of "
            f"operand {operand} of {data.atom}; use a multiple of {group}:1, or _"
        )
    return raw_layout((first // group, *sizes), (1, *(d // group for d in strides)))


def _parse_string(parser: AttrParser, parse: Callable[[str], _Parsed], what: str) -> _Parsed:
    parser.parse_punctuation("=")
    with parser.in_angle_brackets():
        at = parser.pos
        string = parser.parse_str_literal(what)
        try:
            return parse(string)
        except text.TextError as e:
            parser.raise_error(f"invalid{what} '{string}': {e}", at + 1 + e.position)


ATTRS: list[type[Attribute]] = [TiledMmaType]


MODES = {
    **{"A": ("M", "K"), "B": ("N", "K"), "C": ("M", "N"), "D": ("M", "N"), "E": ("M", "K")},
    **{"SFA": ("M", "K"), "SFB": ("N", "K")},
}
"""Operand -> names of its two modes."""


@cute_op
class MakeTiledMmaOp(ResultFormOp):
    """Builds a tiled MMA of an atom. The result type contains the atom layout and the permutation.

    Syntax: ``%mma = cute.make_tiled_mma(%atom) : !cute.tiled_mma<…>``

    Example:
        %a = cute.atom() : !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
        %mma = cute.make_tiled_mma(%a) : !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
    """  # noqa: E501

    name = "cute.make_tiled_mma"
    atom = operand_def()
    result = result_def(TiledMmaType)
    traits = traits_def(Pure())

    def __init__(self, atom: SSAValue, result_type: TiledMmaType):
        super().__init__(operands=[atom], result_types=[result_type])

    def verify_(self) -> None:
        t = self.result.type
        assert isinstance(t, TiledMmaType)
        if self.atom.type != t.atom:
            raise VerifyException(
                f"'{self.name}' op the atom has type {self.atom.type}; the result type needs {t.atom}"
            )


class OperandOp(MemoryOp):
    """Base of the ops of one operand of a tiled MMA.

    A subclass passes ``operand="A"``, which replaces the ``{}`` in the name of the base class.
    """

    OPERAND: ClassVar[str] = ""

    def __init_subclass__(cls, operand: str = "") -> None:
        if operand:
            cls.OPERAND = operand  # pyright: ignore[reportConstantRedefinition]
            cls.name = cls.name.format(operand)
        super().__init_subclass__()


class TiledMmaOp(OperandOp):
    """Base of the ops whose first operand is a tiled MMA."""

    def __init__(self, mma: SSAValue, *others: SSAValue):
        operands = [mma, *others]
        super().__init__(operands=operands, result_types=self.infer_types([o.type for o in operands], {}))

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, cls.MIN_OPERANDS)
        mma, *others = operand_types
        expect(mma, TiledMmaType, 0, "a !cute.tiled_mma")
        assert isinstance(mma, TiledMmaType)
        if cls.OPERAND == "E" and not mma.atom.SPARSE:
            raise AlgebraError(
                f"operand #0 must be a tiled MMA of a sparse atom; {mma.atom} is dense and has no operand E"
            )
        if cls.OPERAND in ("SFA", "SFB") and not mma.atom.has_scales:
            raise AlgebraError(
                f"operand #0 must be a tiled MMA of an atom with scale factors (kind = mxf8f6f4, mxf4 or mxf4nvf4), "
                f"got {mma}"
            )
        return [cls.answer(mma, others)]

    @classmethod
    def answer(cls, mma: TiledMmaType, others: Sequence[Attribute]) -> Attribute:
        """Return the result type. ``others`` are the types of the operands after the MMA. Raises AlgebraError."""
        raise NotImplementedError(cls.name)


# ----------------------------------------------------------------------------------------------------------- partitions


def atom_layout(atom: MmaAtomType, operand: str) -> Layout:
    """Return the thread-value layout of operand A, B, C, D, E, SFA or SFB of an atom."""
    return atom.row.layout(operand)


def atom_values(atom: MmaAtomType, operand: str) -> int:
    """Return the number of values of an operand per thread in one atom.

    For an operand in shared memory this is the number of elements of the whole tile.

    >>> from xdsl.dialects.builtin import f16, f32
    >>> from cute_dialect.cute_nvgpu.mma import MmaSyncType
    >>> from cute_dialect.cute_nvgpu.tiled_mma import MmaKey
    >>> atom_values(MmaSyncType(MmaKey((16, 8, 16), (f32, f16, f16, f32))), "A")
    8
    """
    n = size(layout_modes(atom_layout(atom, operand))[1])
    assert isinstance(n, int)
    return n


def partition(
    mma: TiledMmaType, operand: str, tensor: TensorType, layout: Payload, tid: Payload
) -> tuple[AnyLayout, IntTuple]:
    """Return a thread's partition of an operand: the layout ``(V, Rest0, Rest1, …)`` and the offset of the thread.

    ``layout`` is the layout of the tensor, possibly with leaves bound to SSA values. Raises AlgebraError.
    """
    atom = mma.atom
    thread = cast("Leaf", tracked(tid))
    if isinstance(layout, ComposedLayout):
        if atom.in_shared_memory(operand):
            raise AlgebraError(
                f"the layout is composed ({payload_text(layout)}); use a plain layout and put a swizzle on the pointer"
            )
        whole = ComposedLayout(layout.inner, layout.offset, tracked(layout.outer))
        return mma.tiling(operand).composed_partition(operand, whole, atom_layout(atom, operand), thread)
    assert isinstance(layout, Layout)
    if isinstance(tensor, MemRefType) and atom.in_shared_memory(operand):
        check_shared_operand(atom, operand, tensor)
    part, offset = mma.tiling(operand).partition(operand, tracked(layout), atom_layout(atom, operand), thread)
    return part, offset


def check_shared_operand(atom: MmaAtomType, operand: str, tensor: MemRefType) -> None:
    """Raise AlgebraError unless the tensor can be an operand that the atom reads from shared memory."""
    if tensor.space != AddressSpace.smem:
        raise AlgebraError(f"operand {operand} of {atom} is in {tensor.space}; it must be in smem")
    check_element(atom, operand, tensor)


def check_element(atom: MmaAtomType, operand: str, tensor: MemRefType) -> None:
    """Raise AlgebraError unless the tensor has elements that the atom accepts for the operand."""
    if not atom.accepts_element(operand, tensor.element):
        raise AlgebraError(
            f"operand {operand} has elements {tensor.element}; the atom {atom} needs {atom.wanted_element(operand)}"
        )


class PartitionOp(TiledMmaOp):
    """Base of ``partition_A``, ``partition_B`` and ``partition_C``."""

    name = "cute.tiled.mma.partition_{}"
    mma = operand_def(TiledMmaType)
    tensor = operand_def()
    tid = operand_def(CoordType)
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def answer(cls, mma: TiledMmaType, others: Sequence[Attribute]) -> Attribute:
        tensor, coord = others
        expect(tensor, TensorType, 1, "a tensor")
        expect(coord, CoordType, 2, "a !cute.coord")
        assert isinstance(tensor, TensorType) and isinstance(coord, CoordType)
        if depth(coord.data) != 0 or coord.data is UNDERSCORE:
            raise AlgebraError(f"operand #2 must be a thread index, got {payload_text(coord.data)}")
        layout, offset = partition(mma, cls.OPERAND, tensor, tensor.layout, coord.data)
        return tensor_with(tensor, layout, offset)


@cute_op
class PartitionAOp(PartitionOp, operand="A"):
    """Returns a thread's partition of operand A of a tiled MMA, a tensor ``(M, K, …)``.

    Syntax: ``%t = cute.tiled.mma.partition_A(%mma, %tensor, %tid) : (TM, T, !cute.coord<"?">) -> T'``

    Inference:
        ``(V, RestM, RestK, …)``. ``V`` are the values of one atom, or the whole ``(M, K)`` tile of one instruction if
        the atom reads A from shared memory. Threads along N get the same partition. A swizzle remains on the pointer.

    Example:
        %t = cute.tiled.mma.partition_A(%mma, %s, %k) : (!cute.tiled_mma<!cute_nvgpu.atom.wgmma<64x128x16, (f32,f16,f16,f32), A = smem, major = (k, k)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, !cute.coord<"?">) -> !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),2,4):((64,1),4096,16)">
    """  # noqa: E501


@cute_op
class PartitionBOp(PartitionOp, operand="B"):
    """Returns a thread's partition of operand B of a tiled MMA, a tensor ``(N, K, …)``; see ``partition_A``.

    Example:
        %t = cute.tiled.mma.partition_B(%mma, %s, %k) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>, !cute.memref<f16, gmem, "(32,16):(?,1)">, !cute.coord<"?">) -> !cute.memref<f16, gmem, "((2,2),2,1):((1,8),?{div=16},0)">
    """  # noqa: E501


@cute_op
class PartitionCOp(PartitionOp, operand="C"):
    """Returns a thread's partition of operand C or D of a tiled MMA: a tensor ``(M, N, …)`` of any element type, or a
    coordinate tensor.

    Syntax: ``%t = cute.tiled.mma.partition_C(%mma, %tensor, %tid) : (TM, T, !cute.coord<"?">) -> T'``

    Example:
        %t = cute.tiled.mma.partition_C(%mma, %c, %k) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>, !cute.memref<f32, gmem, "(64,32):(32,1)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((2,2),2,2):((1,256),1024,16)">
    """  # noqa: E501


def partition_shape(mma: TiledMmaType, operand: str, shape: Payload) -> IntTuple:
    """Return the shape that a partition of a tensor of this shape has. Raises AlgebraError."""
    if not isinstance(shape, tuple) or len(shape) < 2:
        raise AlgebraError(f"the shape is {payload_text(shape)}; use ({','.join(MODES[operand])},…) of rank 2 or more")
    zeros = _zeros(cast("IntTuple", tracked(shape)))
    layout = Layout(cast("IntTuple", tracked(shape)), zeros)
    return mma.tiling(operand).partition(operand, layout, atom_layout(mma.atom, operand), 0)[0].shape


def _zeros(shape: IntTuple) -> Stride:
    return tuple([_zeros(s) for s in shape]) if isinstance(shape, tuple) else 0


class PartitionShapeOp(TiledMmaOp):
    """Base of the ops that return the shape of a partition."""

    name = "cute.tiled.mma.partition_shape_{}"
    mma = operand_def(TiledMmaType)
    shape = operand_def(ShapeType)
    result = result_def(ShapeType)
    traits = traits_def(Pure())

    @classmethod
    def answer(cls, mma: TiledMmaType, others: Sequence[Attribute]) -> Attribute:
        (shape,) = others
        expect(shape, ShapeType, 1, "a !cute.shape")
        assert isinstance(shape, ShapeType)
        return ShapeType(partition_shape(mma, cls.OPERAND, shape.data))


@cute_op
class PartitionShapeAOp(PartitionShapeOp, operand="A"):
    """Returns the shape of the result of ``partition_A`` for a tensor of the given shape.

    Syntax: ``%s = cute.tiled.mma.partition_shape_A(%mma, %shape) : (TM, !cute.shape<"…">) -> !cute.shape<"…">``
    """


@cute_op
class PartitionShapeBOp(PartitionShapeOp, operand="B"):
    """Returns the shape of the result of ``partition_B`` for a tensor of the given shape; see ``partition_shape_A``."""


@cute_op
class PartitionShapeCOp(PartitionShapeOp, operand="C"):
    """Returns the shape of the result of ``partition_C`` for a tensor of the given shape; see ``partition_shape_A``.

    Example:
        %s = cute.tiled.mma.partition_shape_C(%mma, %mn) : (!cute.tiled_mma<!cute_nvgpu.atom.wgmma<64x256x16, (f32,f16,f16,f32), A = smem, major = (k, k)>, atom_layout_MNK = <"(2,1,1):(1,0,0)">>, !cute.shape<"(128,256)">) -> !cute.shape<"((2,2,32),1,1)">
    """  # noqa: E501


# ------------------------------------------------------------------------------------------------------------ fragments


def fragment(mma: TiledMmaType, operand: str, source: Attribute) -> Attribute:
    """Return the type of the fragment of a partition or of its shape: registers, or the view of shared memory for the
    atom.

    Values are in the order of the atom, so that the values of one register are adjacent. Raises AlgebraError.
    """
    atom = mma.atom
    if atom.in_shared_memory(operand):
        expect(source, MemRefType, 1, f"the partition of a tensor in smem ({atom} reads {operand} there)")
        assert isinstance(source, MemRefType)
        check_shared_operand(atom, operand, source)
        _check_values(atom, operand, source.layout)
        return source
    expect(source, (TensorType, ShapeType), 1, "a tensor or a !cute.shape")
    in_registers = atom.operand_space(operand).per_thread
    if isinstance(source, TensorType):
        layout = source.layout
        plain = layout.outer if isinstance(layout, ComposedLayout) else layout
        if operand == "C" or not in_registers:
            plain = Layout(plain.shape, _ones(plain.shape))
    else:
        assert isinstance(source, ShapeType)
        shape = cast("IntTuple", source.data)
        plain = Layout(shape, _ones(shape))
    if not is_static(plain.shape):
        raise AlgebraError(f"the shape is not static ({payload_text(plain.shape)}); use static extents")
    _check_values(atom, operand, plain)
    return rmem_type(atom.element(operand), _compact(plain)) if in_registers else atom.tmem_fragment(operand, plain)


def _check_values(atom: MmaAtomType, operand: str, layout: Payload) -> None:
    shape = (layout.outer if isinstance(layout, ComposedLayout) else cast("Layout", layout)).shape
    values = atom_values(atom, operand)
    have = size(shape[0] if isinstance(shape, tuple) else shape)
    if have != values:
        raise AlgebraError(
            f"{operand} has {payload_text(have)} values in mode 0 of {payload_text(shape)}; the atom {atom} "
            f"needs {values}"
        )


def _ones(shape: IntTuple) -> Stride:
    return tuple([_ones(s) for s in shape]) if isinstance(shape, tuple) else 1


def _compact(layout: Layout) -> Layout:
    """Return the layout with compact column-major strides. Modes of stride 0 or extent 1 get stride 0.

    >>> _compact(Layout("((2,2),4,1):((1,64),0,8)"))
    Layout("((2,2),4,1):((1,2),0,0)")
    """
    step = 1

    def walk(s: IntTuple, d: Stride) -> Stride:
        nonlocal step
        if isinstance(s, tuple):
            assert isinstance(d, tuple)
            return tuple([walk(x, y) for x, y in zip(s, d)])
        if s == 1 or (isinstance(d, int) and d == 0):
            return 0
        here = step
        assert isinstance(s, int)
        step *= s
        return here

    return Layout(layout.shape, walk(layout.shape, layout.stride))


class MakeFragmentOp(TiledMmaOp):
    """Base of the ops that allocate registers for a thread's partition of an operand."""

    name = "cute.tiled.mma.make_fragment_{}"
    mma = operand_def(TiledMmaType)
    source = operand_def()
    result = result_def(MemRefType)
    traits = traits_def(MemoryAllocEffect())

    @classmethod
    def answer(cls, mma: TiledMmaType, others: Sequence[Attribute]) -> Attribute:
        return fragment(mma, cls.OPERAND, others[0])


@cute_op
class MakeFragmentAOp(MakeFragmentOp, operand="A"):
    """Allocates registers for a partition of A or for its shape. If the atom reads A from smem, returns the partition
    itself; if from tmem, a tensor at address 0, whose layout is that of the tiles.

    Syntax: ``%f = cute.tiled.mma.make_fragment_A(%mma, %part) : (TM, T) -> T'``

    Inference:
        A register tensor with the shape of the partition and the element type of the atom. It is compact in the order
        of its modes, so that the values of one register are adjacent.

    Example:
        %f = cute.tiled.mma.make_fragment_A(%mma, %t) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>, !cute.memref<f16, smem, "((2,2,2),2,4):((1,512,8),2048,16)">) -> !cute.memref<f16, rmem, align<32>, "((2,2,2),2,4):((1,2,4),8,16)">
    """  # noqa: E501


@cute_op
class MakeFragmentBOp(MakeFragmentOp, operand="B"):
    """Allocates registers for a partition of B; see ``make_fragment_A``. If the atom reads B from smem, returns the
    partition itself.
    """


@cute_op
class MakeFragmentCOp(MakeFragmentOp, operand="C"):
    """Allocates the accumulators for a partition of C or for its shape: a register tensor of the atom's accumulator
    type. Accumulators in tensor memory are a tensor at address 0: ``cute.make_view`` puts its layout at an address that
    ``tmem_pointer`` returns.

    Syntax: ``%f = cute.tiled.mma.make_fragment_C(%mma, %part) : (TM, T) -> T'``

    Example:
        %f = cute.tiled.mma.make_fragment_C(%mma, %t) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>, !cute.memref<f16, gmem, "((2,2),2,2):((1,256),1024,16)">) -> !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">
    """  # noqa: E501


# -------------------------------------------------------------------------------------------------------------- queries


@cute_op
class ThreadLayoutOp(TiledMmaOp):
    """Returns the thread layout of a tiled MMA: (ThrV, ThrM, ThrN, ThrK) -> thread.

    Example:
        %l = cute.tiled.mma.thr_layout_vmnk(%mma) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>) -> !cute.layout<"(32,2,2,1):(1,32,64,0)">
    """  # noqa: E501

    name = "cute.tiled.mma.thr_layout_vmnk"
    mma = operand_def(TiledMmaType)
    result = result_def(LayoutType)
    traits = traits_def(Pure())

    @classmethod
    def answer(cls, mma: TiledMmaType, others: Sequence[Attribute]) -> Attribute:
        return LayoutType(mma.tiled.threads)


@cute_op
class TileShapeOp(TiledMmaOp):
    """Returns the tile (M, N, K) that all threads of a tiled MMA cover in one step.

    Example:
        %s = cute.tiled.mma.tile_shape_mnk(%mma) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>) -> !cute.shape<"(32,16,16)">
    """  # noqa: E501

    name = "cute.tiled.mma.tile_shape_mnk"
    mma = operand_def(TiledMmaType)
    result = result_def(ShapeType)
    traits = traits_def(Pure())

    @classmethod
    def answer(cls, mma: TiledMmaType, others: Sequence[Attribute]) -> Attribute:
        return ShapeType(mma.tiled.tile_size)


class LayoutTvOp(TiledMmaOp):
    """Base of the ops that return the (thread, value) layout of an operand."""

    name = "cute.tiled.mma.layout_{}_tv"
    mma = operand_def(TiledMmaType)
    result = result_def(LayoutType)
    traits = traits_def(Pure())

    @classmethod
    def answer(cls, mma: TiledMmaType, others: Sequence[Attribute]) -> Attribute:
        return LayoutType(mma.tiling(cls.OPERAND).layout_tv(cls.OPERAND, atom_layout(mma.atom, cls.OPERAND)))


@cute_op
class LayoutAOp(LayoutTvOp, operand="A"):
    """Returns the map (thread, value) -> column-major index in the (M, K) tile of A. A tiled copy with this layout
    loads the fragments of A.
    """


@cute_op
class LayoutBOp(LayoutTvOp, operand="B"):
    """Returns the map (thread, value) -> column-major index in the (N, K) tile of B; see ``layout_A_tv``."""


@cute_op
class LayoutCOp(LayoutTvOp, operand="C"):
    """Returns the map (thread, value) -> column-major index in the (M, N) tile of C; see ``layout_A_tv``.

    Example:
        %l = cute.tiled.mma.layout_C_tv(%mma) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>) -> !cute.layout<"((4,8,2,2),((2,2),(1,1))):((64,1,16,256),((32,8),(32,512)))">
    """  # noqa: E501


# --------------------------------------------------------------------------------------------------------- tiled copies


class _MakeFromMmaOp(OperandOp):
    name = "cute.make_tiled_copy_{}"
    atom = operand_def()
    mma = operand_def()
    result = result_def(TiledCopyType)
    traits = traits_def(Pure())

    def __init__(self, atom: SSAValue, mma: SSAValue):
        self.build_inferred([atom, mma])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        atom, mma = operand_types
        expect(atom, CopyAtomType, 0, "a copy atom")
        expect(mma, TiledMmaType, 1, "a !cute.tiled_mma")
        assert isinstance(atom, CopyAtomType) and isinstance(mma, TiledMmaType)
        element = mma.atom.element(cls.OPERAND)
        # Accumulators may be converted to a narrower type before the copy.
        if cls.OPERAND != "C" and element_bits(atom.element) != element_bits(element):
            raise AlgebraError(
                f"the atom {atom} moves elements of another width than {cls.OPERAND}'s {element}; use one of "
                "the same width"
            )
        row, tiled = mma.atom.row, mma.tiling(cls.OPERAND)
        if not mma.atom.operand_space(cls.OPERAND).per_thread:
            raise AlgebraError(
                f"{mma.atom} does not read operand {cls.OPERAND} from registers, which the copy writes; use "
                "an atom that does"
            )
        i, j = OPERAND_MODES[cls.OPERAND]
        layout = tiled.layout_tv(cls.OPERAND, row.layout(cls.OPERAND))
        return [made_copy(atom, layout, (tiled.tile_size[i], tiled.tile_size[j]))]


@cute_op
class MakeTiledCopyAOp(_MakeFromMmaOp, operand="A"):
    """Builds the tiled copy that moves exactly the fragments of operand A of a tiled MMA.

    Syntax: ``%tc = cute.make_tiled_copy_A(%atom, %mma) : (ATOM, MMA) -> TC``

    Inference:
        The thread-value layout is that of A (``cute.tiled.mma.layout_A_tv``). The tile is that of the MMA in M and K.

    Example:
        %tc = cute.make_tiled_copy_A(%a, %mma) : (!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>) -> !cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8),((2,2,2),(1,1))):((32,1),((16,8,128),(16,256)))">, tiler_mn = <"[16:1;16:1]">>
    """  # noqa: E501


@cute_op
class MakeTiledCopyBOp(_MakeFromMmaOp, operand="B"):
    """Builds the tiled copy that moves exactly the fragments of operand B of a tiled MMA; see ``make_tiled_copy_A``."""


@cute_op
class MakeTiledCopyCOp(_MakeFromMmaOp, operand="C"):
    """Builds the tiled copy that moves exactly the accumulators of a tiled MMA; see ``make_tiled_copy_A``.

    The elements of the atom may be narrower than the accumulators, because results may be converted before the store.
    """


OPS = ops_of(__name__)
