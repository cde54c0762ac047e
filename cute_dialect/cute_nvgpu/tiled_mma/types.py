"""MMA atom types of ``cute_nvgpu``, and the tiled MMA type.

An atom type is a key into the table of :mod:`cute_dialect.arch`: the instruction, its shape and its element types. The
row of the table (fragments, registers, lowering) is looked up on first use.

* ``!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>``: one multiply-add of one thread;
* ``!cute_nvgpu.atom.dot_product<1x1x4, (i32,i8,i8,i32)>``: ``dp4a`` and ``dp2a`` of one thread;
* ``!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>``: ``mma.sync`` of a warp (of a quad-pair for 8x8x4 on f16);
* ``!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32)>``: ``mma.sp`` of a warp, with a sparse A;
* ``!cute_nvgpu.atom.wgmma<64x128x16, (f32,f16,f16,f32), A = smem, major = (k, mn)>``: ``wgmma`` of a warpgroup;
* ``!cute_nvgpu.atom.wgmma_sp<64x128x32, (f32,f16,f16,f32), A = smem, major = (k, mn)>``: ``wgmma`` with a sparse A.

The element types are those of (D, A, B, C). Single bits are ``i1``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypeVar, cast

from xdsl.dialects.builtin import i1, i16, i32
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.algebra import text
from cute_dialect.algebra.evaluation import cosize, evaluate, size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiled_mma import TiledMma
from cute_dialect.algebra.trees import is_static, product
from cute_dialect.algebra.values import UNDERSCORE, IntTuple, Layout, Tile, Underscore
from cute_dialect.arch.errors import AtomError
from cute_dialect.dialect.atom_types import AtomType, TiledType
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.algebra.tiled_mma import TiledMma
    from cute_dialect.arch.atom import MmaAtom


_Parsed = TypeVar("_Parsed")


_NEGATES = {"negate_a": "A", "negate_b": "B"}


class MmaKey(NamedTuple):
    """Parameters of an MMA atom type.

    Args:
        shape: M, N and K of one instruction.
        types: elements of D, A, B, C.
        source_a: smem or rmem, for wgmma.
        majors: majors of A and B, "k" or "mn".
        bit_op: "xor" or "and", for single bits.
        selector: the sparsity selector of a sparse A.
        negate: operands that are negated, "A", "B" or "AB".
    """

    shape: tuple[int, int, int]
    types: tuple[Attribute, Attribute, Attribute, Attribute]
    source_a: AddressSpace = AddressSpace.rmem
    majors: tuple[str, str] = ("k", "k")
    saturate: bool = False
    bit_op: str = ""
    selector: int = 0
    negate: str = ""


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
    ``negate``.
    """
    ASYNCHRONOUS: ClassVar[bool] = False
    """True if the instruction is executed by a warpgroup, asynchronously."""
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
                find_atom(cls, key)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return key

    @classmethod
    def _parse_option(cls, parser: AttrParser, key: MmaKey) -> MmaKey:
        at = parser.pos
        word = parser.parse_identifier()
        if word == "A" and "A" in cls.OPTIONS:
            parser.parse_punctuation("=")
            return key._replace(source_a=AddressSpace(_parse_word(parser, (AddressSpace.smem, AddressSpace.rmem))))
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
        if word in ("xor", "and") and "bit_op" in cls.OPTIONS:
            return key._replace(bit_op=word)
        if word == "selector" and "selector" in cls.OPTIONS:
            parser.parse_punctuation("=")
            return key._replace(selector=parser.parse_integer(allow_boolean=False))
        if word in _NEGATES and "negate" in cls.OPTIONS:
            return key._replace(negate="".join(sorted({*key.negate, _NEGATES[word]})))
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
        for word, operand in _NEGATES.items():
            if operand in key.negate:
                printer.print_string(f", {word}")
        printer.print_string(">")

    @property
    def row(self) -> MmaAtom:
        """Row of the atom in the table."""
        return find_atom(type(self), self.data)

    @staticmethod
    def find(key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        """Return the row of the table for a key. ``names`` are its element types. Raises AlgebraError if there is
        none.
        """
        raise NotImplementedError

    def element(self, operand: str) -> Attribute:
        """Return the element type of operand A, B, C or D, or of E of a sparse atom."""
        if operand == "E":
            return {"i16": i16, "i32": i32}[self.row.element("E")]
        return self.data.types["DABC".index(operand)]

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
        return AddressSpace({"A": row.source_a, "B": row.source_b}.get(operand, AddressSpace.rmem))

    def in_shared_memory(self, operand: str) -> bool:
        """Return True if the instruction reads the operand from shared memory."""
        return self.operand_space(operand) == AddressSpace.smem


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
    if data.atom.SPARSE and not isinstance(data.permutation[-1], Underscore):
        permutation = text.to_text(cast("Tile", data.permutation))
        raise AlgebraError(f"the permutation of K must be _ for the sparse atom {data.atom}, got {permutation}")
    if not is_static(data.atom_layout) or not all(is_static(p) for p in data.permutation):
        both = f"{text.to_text(data.atom_layout)} and {text.to_text(cast('Tile', data.permutation))}"
        raise AlgebraError(f"the atom layout or the permutation is not static ({both}); use static ones")
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
    if not data.atom.SPARSE or operand not in ("A", "E"):
        return mma
    row = data.atom.row
    m, n, _ = row.shape_mnk
    return TiledMma((m, n, row.tile(operand)[1]), row.thr_id, data.atom_layout, data.permutation)


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
