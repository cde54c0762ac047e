"""MMA of tensor memory: atom type, ``cute_nvgpu.arch.tcgen05_mma`` on views of one atom's operands, commit and fence.

One thread issues the instructions, and an mbarrier signals their completion::

    cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = false, atom = …} : …
    cute_nvgpu.arch.tcgen05_commit(%bar) : (!cute.ptr<i64, smem>) -> ()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, VectorType, i1, i8, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_attr_definition, operand_def, opt_prop_def, prop_def, var_operand_def

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.layout import coalesce, flat_modes, recast_layout
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import Layout, Swizzle, raw_layout
from cute_dialect.arch.descriptors import TCGEN05, derive, derive_48_bytes, expect_depth
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.targets import TCGEN05 as CHIPS
from cute_dialect.arch.tcgen05 import accumulator_layout, find_tcgen05, fragment_layout, source_layout
from cute_dialect.arch.tcgen05_descriptors import InstructionDescriptor, matrix_bits
from cute_dialect.arch.tcgen05_kinds import COLLECTORS, kind_of, kind_of_types
from cute_dialect.arch.tcgen05_sparse import ALIGNED_COLUMNS
from cute_dialect.arch.tcgen05_ws import BUFFERS
from cute_dialect.arch.tcgen05_ws import accumulator_layout as ws_accumulator_layout
from cute_dialect.arch.tmem import LANES, strides
from cute_dialect.cute_nvgpu.gemm import check_one_atom, descriptor_of
from cute_dialect.cute_nvgpu.sync import Row, Words, i32_value, op_class
from cute_dialect.cute_nvgpu.tiled_mma import MmaAtomType, MmaKey
from cute_dialect.cute_nvgpu.tmem import CTA_GROUP
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRef, MemRefType, PtrType, element_bits, ptr
from cute_dialect.dialect.typed_values import payload_text
from cute_dialect.dialect.views import InstructionOp, expect, expect_operands
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.arch.atom import MmaAtom


class Tcgen05AtomType(MmaAtomType):
    """Base of the atoms of ``tcgen05.mma``, whose accumulator is in tensor memory."""

    ASYNCHRONOUS: ClassVar[bool] = True
    OPTIONS: ClassVar[frozenset[str]] = frozenset(
        {"A", "major", "saturate", "negate", "cta_group", "kind", "sf", "vec"}
    )
    SOURCES: ClassVar[tuple[AddressSpace, ...]] = (AddressSpace.smem, AddressSpace.tmem)

    @classmethod
    def find(cls, key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        d, a, b, c = names
        if c != d:
            raise AtomError(f"C has elements {c}; they must be those of D, {d}")
        types, form = (d, a, b), "sp" if cls.SPARSE else "ws" if key.ws else ""
        if key.kind or key.sf or key.vec:
            found = [f"A = {key.source_a}"] if key.source_a != AddressSpace.smem else []
            found += [f"major = ({', '.join(key.majors)})"] if key.majors != ("k", "k") else []
            found += ["saturate"] if key.saturate else []
            found += ["ws"] if key.ws else []
            if found:
                raise AtomError(
                    f"an MMA with block scales cannot have {' and '.join(found)}; A must be in shared memory, both "
                    "operands k-major, and saturate and ws are not available"
                )
            kind, factor = kind_of(key.kind, scaled=True), (key.sf, key.vec) if key.sf or key.vec else None
            return find_tcgen05(kind.name, key.cta_group, key.shape, types, form=form, factor=factor)
        kind = kind_of_types(types)
        if key.negate and not kind.negates:
            raise AtomError(f"negated operands must be floating-point, got {a} and {b}")
        return find_tcgen05(
            kind.name, key.cta_group, key.shape, types, key.source_a, key.majors, key.saturate, form=form
        )

    def accepts_element(self, operand: str, element: Attribute) -> bool:
        """Return True if a tensor's elements have an operand's type. Unpacked 4-bit and 6-bit elements are i8."""
        return element == i8 if self.is_unpacked(operand) else super().accepts_element(operand, element)

    def wanted_element(self, operand: str) -> str:
        if self.is_unpacked(operand):
            return f"i8, 16 bytes for 16 elements of {self.element(operand)}"
        return super().wanted_element(operand)

    @property
    def is_packed(self) -> bool:
        """True if a byte of shared memory holds two elements."""
        return self.data.kind in ("mxf4", "mxf4nvf4")

    @property
    def is_wide(self) -> bool:
        """True if K is 96, which sm_103a has."""
        return self.is_packed and self.row.shape_mnk[2] == 96

    def is_unpacked(self, operand: str) -> bool:
        """True if shared memory holds 16 elements of an operand, of 4 or 6 bits, in 16 bytes."""
        return element_bits(self.element(operand)) < 8 and not self.is_packed

    def descriptor(self, operand: str, layout: Layout, element: Attribute, swizzle: Swizzle | None) -> int:
        major, bits = self.data.majors["AB".index(operand)], element_bits(element)
        if bits < 8:
            layout, bits = recast_layout(layout, 8, bits), 8
        if self.is_wide:
            return matrix_bits(derive_48_bytes(layout, swizzle))
        view = derive(layout, bits, major, pointer_swizzle=swizzle, rules=TCGEN05)
        if self.SPARSE and operand == "B":
            expect_depth(view, 2, bits)
        return matrix_bits(view.descriptor)

    def instruction(self, sf_a: int = 0, sf_b: int = 0, selector: int = 0) -> int:
        """Return the 32-bit instruction descriptor.

        ``sf_a`` and ``sf_b`` are the bytes that hold the scale factors of A and of B, ``selector`` is the sparsity
        selector.
        """
        row, key = self.row, self.data
        m, n, _ = row.shape_mnk
        return InstructionDescriptor(
            str(row.emit["kind"]),
            row.d,
            row.a,
            row.b,
            m,
            n,
            row.major_a,
            row.major_b,
            negate_a="A" in key.negate,
            negate_b="B" in key.negate,
            saturate=key.saturate,
            sparse=self.SPARSE,
            selector=selector,
            scale=row.scales.element if row.scales is not None else "",
            sf_a=sf_a,
            sf_b=sf_b,
            k96=self.is_wide,
        ).bits

    def tmem_layout(self, operand: str) -> Layout:
        """Return the layout of one instruction's tile of D, or of A, in tensor memory, in elements."""
        row = self.row
        layout = source_layout(row) if operand == "A" else self._accumulator
        lane, column = self._strides(operand)
        return compose(raw_layout((LANES, 1 << 16), (lane, column)), layout)

    @property
    def _accumulator(self) -> Layout:
        """Position of the accumulator in tensor memory, (row, column) -> lane + 128*column."""
        return ws_accumulator_layout(self.row) if self.data.ws else accumulator_layout(self.row)

    def _strides(self, operand: str) -> tuple[int, int]:
        """Return the distances of two lanes and of two columns of a tile, in elements. Elements of A are packed."""
        lane, column = strides(max(8, element_bits(self.element(operand))))
        return lane, 1 if operand == "A" else column

    def tmem_fragment(self, operand: str, part: Layout) -> MemRefType:
        element = self.element(operand)
        held: Attribute = i8 if self.is_unpacked(operand) else element
        lane, column = self._strides(operand)
        assert isinstance(part.shape, tuple)
        tile = source_layout(self.row) if operand == "A" else self._accumulator
        layout = fragment_layout(self.row, tile, part.shape[1:], lane, column)
        return MemRefType(MemRef(ptr(held, AddressSpace.tmem, 4), layout))

    def factors_of(self, operand: str) -> tuple[int, int]:
        """Return the rows of SFA or SFB that one block holds, and their factors along K, of one instruction."""
        rows, factors = self.row.tile(operand)
        return (rows // self.row.threads if operand == "SFA" else rows), factors

    def factor_layout(self, operand: str, rows: int) -> Layout:
        """Return the layout (row, factor) of scale factors in tensor memory, in bytes, without their copies.

        32 rows are in consecutive lanes, and further rows in further columns. A column holds 4 factors of each row.
        """
        lane, column = strides(8)
        return raw_layout(((32, -(-rows // 32)), self.factors_of(operand)[1]), ((lane, column), 1))

    def _check_factors(self, operand: str, t: MemRefType, values: Layout) -> None:
        """Raise AlgebraError unless mode V of a tensor of scale factors is that of the instruction."""
        rows, factors = self.factors_of(operand)
        if self.is_wide:
            raise AlgebraError(
                f"the {factors} factors of a row that {self} reads lie in two columns, which no layout expresses; use "
                "cute_nvgpu.arch.tcgen05_scaled_mma"
            )
        kept = [(s, d) for s, d in zip(*flat_modes(values)) if d != 0]
        given = coalesce(raw_layout(tuple([s for s, _ in kept]), tuple([d for _, d in kept])))
        held = size(given)
        assert isinstance(held, int)
        found = held // factors
        if found < rows or coalesce(self.factor_layout(operand, found)) != given:
            raise AlgebraError(
                f"mode V of {operand} is {payload_text(values)} of {t}; {self} needs "
                f"{payload_text(self.factor_layout(operand, -(-rows // 128) * 128))}, or more rows, with modes of "
                "stride 0 in any place"
            )

    def check_tmem_operand(self, operand: str, t: MemRefType, values: Layout) -> None:
        if operand in ("SFA", "SFB"):
            self._check_factors(operand, t, values)
            return
        wanted = self.tmem_layout(operand)
        if coalesce(values) != coalesce(wanted):
            raise AlgebraError(
                f"the tile of {operand} in tensor memory is {payload_text(values)} of {t}; {self} needs "
                f"{payload_text(wanted)}"
            )


@irdl_attr_definition
class Tcgen05MmaType(Tcgen05AtomType):
    """``!cute_nvgpu.atom.tcgen05_mma<MxNxK, (D,A,B,C), A = smem|tmem, major = (k|mn, k|mn) [, saturate] [, cta_group =
    2] [, ws] [, negate_a] [, negate_b] [, kind = K, sf = S, vec = V]>``

    ``A`` and ``major`` are optional; the defaults are A in shared memory, and k-major for both operands. D is in tensor
    memory. With ``cta_group = 2`` a pair of blocks computes D, and M and N are those of the pair. Operands of 4 and 6
    bits are tensors of i8: of each 16 bytes, the first 8 or 12 hold 16 elements.

    ``ws`` is the MMA that keeps B in a buffer (weight stationary), with M of 32, 64 or 128, and N of 64, 128 or 256.

    ``kind`` is mxf8f6f4, mxf4 or mxf4nvf4, with scale factors of type ``sf`` (f8E8M0FNU or ue4m3) for ``vec`` elements
    along K each. Operands of mxf4 and mxf4nvf4 are tensors of f4E2M1FN; ``tcgen05_scaled_mma`` also takes tensors of i8
    of two elements. K of these kinds is 64, or 96 on sm_103a.
    """

    name = "cute_nvgpu.atom.tcgen05_mma"
    OPTIONS: ClassVar[frozenset[str]] = Tcgen05AtomType.OPTIONS | {"ws"}


ATTRS: list[type[Attribute]] = [Tcgen05MmaType]

ROWS: tuple[Row, ...] = (
    Row(
        "tcgen05_commit",
        "Arrives at an mbarrier when all earlier ``tcgen05_mma`` of the thread are complete. With ``mask`` it arrives "
        "at the same offset in each block of the mask. One thread executes it.",
        '"tcgen05.commit"',
        ("bar:bar", "mask:mask?"),
        properties=(CTA_GROUP,),
        arch=CHIPS,
    ),
    Row(
        "tcgen05_fence",
        "Carries the order of tcgen05 instructions to other threads: ``before`` a thread signals, and ``after`` it has "
        "waited.",
        '"tcgen05.fence"',
        properties=(Words("kind", ("before", "after")),),
        arch=CHIPS,
        example='() {kind = "after"} : () -> ()',
    ),
)
"""The ops without atoms."""


class Tcgen05InstructionOp(InstructionOp):
    """Base of the MMAs of tensor memory: the operands D, A, B, pointers to tensor memory, a mask, and a flag."""

    WRITES = "none"
    ATOM_FORM: ClassVar[str] = ""
    """Atoms that the op takes: "ws", "scaled" (block scales), or "" for others."""
    REFUSAL: ClassVar[str] = (
        "operand #{fixed} is {first} and accumulate is {accumulate}; a flag is i1, and needs accumulate = true"
    )
    """Error for further operands that do not fit."""

    def pointers(self, atom: Tcgen05AtomType) -> Sequence[str]:
        """Return the names of the operands after B that point to tensor memory."""
        return ("SFA", "SFB") if atom.has_scales else ()

    def mask_type(self, atom: Tcgen05AtomType) -> Attribute | None:
        """Return the type of the optional mask, or None if the op has none."""
        return None

    def numbers(self, atom: Tcgen05AtomType) -> Mapping[str, tuple[Sequence[int], str]]:
        """Return the integer properties of the op: name -> allowed values, and the error for others."""
        return _scale_bytes(atom) if atom.has_scales else {}

    def check_types(self) -> None:
        """Raise AlgebraError unless the operands and properties match the atom."""
        atom, accumulate = self.properties["atom"], self.properties["accumulate"]
        assert isinstance(atom, Tcgen05AtomType) and isinstance(accumulate, IntegerAttr)
        _check_form(self, atom)
        types, pointers, mask = self.operand_types, self.pointers(atom), self.mask_type(atom)
        fixed = 3 + len(pointers)
        expect_operands(types, fixed, fixed + (1 if mask is None else 2))
        for i, operand in enumerate("DAB"):
            t = types[i]
            expect(t, MemRefType, i, f"a !cute.memref, operand {operand}")
            assert isinstance(t, MemRefType)
            if atom.is_packed and operand != "D" and t.element == i8:
                check_packed(atom, operand, t)
            else:
                check_one_atom(atom, operand, t)
        for i, operand in enumerate(pointers, 3):
            _check_pointer(i, operand, types[i])
        rest = list(types[fixed:])
        if mask is not None and rest and rest[0] == mask:
            rest.pop(0)
        accumulates = bool(accumulate.value.data)
        if rest and (rest != [i1] or not accumulates):
            if rest == [i1] and mask is not None:
                raise AlgebraError("accumulate must be true if there is a flag operand, got false")
            given, word = ", ".join(map(str, types[fixed:])), str(accumulates).lower()
            raise AlgebraError(
                self.REFUSAL.format(fixed=fixed, first=types[fixed], given=given, accumulate=word, mask=mask)
            )
        for name, (allowed, refusal) in self.numbers(atom).items():
            given = self.properties.get(name, IntegerAttr(0, i32))
            n = i32_value(given)
            if n not in allowed:
                raise AlgebraError(f"property {name} is {refusal.format(given=given, n=n)}")
        collector = self.properties.get("collector")
        if collector is not None and not (isinstance(collector, StringAttr) and collector.data in COLLECTORS):
            known = ", ".join(f'"{c}"' for c in COLLECTORS)
            raise AlgebraError(f"property collector is {collector}; use one of {known}")


def _check_form(op: Tcgen05InstructionOp, atom: Tcgen05AtomType) -> None:
    """Raise AlgebraError unless the op is the one for the form of an atom."""
    form = "ws" if atom.data.ws else "scaled" if atom.has_scales else ""
    if atom.SPARSE or form == op.ATOM_FORM:
        return
    if form == "scaled":
        raise AlgebraError(f"the atom {atom} has scale factors; use cute_nvgpu.arch.tcgen05_scaled_mma")
    if form == "ws":
        raise AlgebraError(f"the atom {atom} keeps B in a buffer; use cute_nvgpu.arch.tcgen05_mma_ws")
    if op.ATOM_FORM == "ws":
        raise AlgebraError(f"the atom {atom} keeps B in no buffer; use cute_nvgpu.arch.tcgen05_mma, or write ws")
    raise AlgebraError(f"the atom {atom} has no scale factors; use cute_nvgpu.arch.tcgen05_mma")


def _check_pointer(i: int, operand: str, p: Attribute) -> None:
    """Raise AlgebraError unless an operand points to tensor memory, and metadata begin at an aligned column."""
    if not (isinstance(p, PtrType) and p.data.space == AddressSpace.tmem):
        raise AlgebraError(f"operand #{i}, {operand}, must be a pointer to tmem, got {p}")
    least = 4 * ALIGNED_COLUMNS
    if operand == "E" and p.data.alignment < least:
        raise AlgebraError(
            f"operand #{i}, E, is aligned to {p.data.alignment} bytes ({p}); it must be aligned to {least} bytes, "
            f"{ALIGNED_COLUMNS} columns"
        )


def _scale_bytes(atom: Tcgen05AtomType) -> Mapping[str, tuple[Sequence[int], str]]:
    """Return the properties ``sf_a`` and ``sf_b``, the bytes that an atom with block scales can begin at."""
    scales = atom.row.scales
    assert scales is not None
    factors = atom.row.shape_mnk[2] // scales.vector
    first_bytes = range(0, 4, {3: 1, 6: 2}.get(factors, factors))
    allowed = ", ".join(map(str, first_bytes))
    refusal = f"{{n}}; an MMA with K / vec = {factors} needs one of {allowed}"
    return {"sf_a": (first_bytes, refusal), "sf_b": (first_bytes, refusal)}


@cute_op
class Tcgen05MmaOp(Tcgen05InstructionOp):
    """Issues one ``tcgen05.mma``: ``D = A * B + D`` if it accumulates, otherwise ``D = A * B``.

    Syntax: ``cute_nvgpu.arch.tcgen05_mma(%D, %A, %B [, %lanes] [, %accumulate]) {accumulate = true, scale_d = 0 : i32,
    collector = "discard", atom = ATOM} : (D, A, B [, vector<4xi32>] [, i1]) -> ()``

    One thread issues it. D is in tensor memory, and B in shared memory. ``%accumulate`` selects between the two forms
    at run time; ``accumulate`` must then be true. ``scale_d`` multiplies D by ``2^-scale_d`` first (f16 and tf32 only).
    A set bit of ``%lanes`` leaves that lane of D unchanged; a pair of blocks needs ``vector<8xi32>``. ``collector``
    specifies how the buffer of A is used: ``fill`` keeps A for ``use`` and ``lastuse``.

    Example:
        cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tcgen05_mma"
    REFUSAL = (
        "the operands after B are {given}; use a mask of lanes ({mask}) and a flag (i1), each optional, in this order"
    )
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    rest = var_operand_def()
    atom = prop_def(Tcgen05MmaType)
    accumulate = prop_def(BoolAttr)
    scale_d = opt_prop_def(IntegerAttr)
    collector = opt_prop_def(StringAttr)

    def mask_type(self, atom: Tcgen05AtomType) -> Attribute:
        return VectorType(i32, [4 * atom.data.cta_group])

    def numbers(self, atom: Tcgen05AtomType) -> Mapping[str, tuple[Sequence[int], str]]:
        kind = str(atom.row.emit["kind"])
        n = i32_value(self.properties.get("scale_d", IntegerAttr(0, i32)))
        if n in range(16) and kind not in ("f16", "tf32"):
            return {"scale_d": ((0,), f"{{n}}; kind {kind} does not scale D, use 0")}
        return {"scale_d": (range(16), "{given}; use 0 to 15 (i32)")}


@cute_op
class Tcgen05MmaWsOp(Tcgen05InstructionOp):
    """Issues one ``tcgen05.mma.ws``, which keeps B in a buffer: ``D = A * B + D`` if it accumulates, else ``D = A *
    B``.

    Syntax: ``cute_nvgpu.arch.tcgen05_mma_ws(%D, %A, %B [, %mask] [, %accumulate]) {accumulate = true, buffer = 0 : i32,
    collector = "discard", atom = ATOM} : (D, A, B [, i64] [, i1]) -> ()``

    One thread issues it. ``collector`` specifies how collector buffer ``buffer``, 0 to 3, is used: ``fill`` keeps B for
    ``use`` and ``lastuse``. ``%mask`` selects columns of B that count as zeros; with 0, none do.

    Example:
        cute_nvgpu.arch.tcgen05_mma_ws(%d, %a, %b) {accumulate = false, buffer = 1 : i32, collector = "fill", atom = !cute_nvgpu.atom.tcgen05_mma<32x64x16, (f32,f16,f16,f32), A = smem, major = (k, k), ws>} : (!cute.memref<f32, tmem, "(32,(16,4)):(65536,(1,2097152))">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(32,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tcgen05_mma_ws"
    ATOM_FORM = "ws"
    REFUSAL = (
        "the operands after B are {given} and accumulate is {accumulate}; use a mask of columns ({mask}) and a flag "
        "(i1), each optional, in this order; a flag needs accumulate = true"
    )
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    rest = var_operand_def()
    atom = prop_def(Tcgen05MmaType)
    accumulate = prop_def(BoolAttr)
    buffer = opt_prop_def(IntegerAttr)
    collector = opt_prop_def(StringAttr)

    def mask_type(self, atom: Tcgen05AtomType) -> Attribute:
        return i64

    def numbers(self, atom: Tcgen05AtomType) -> Mapping[str, tuple[Sequence[int], str]]:
        return {"buffer": (range(BUFFERS), f"{{given}}; use 0 to {BUFFERS - 1} (i32)")}


@cute_op
class Tcgen05ScaledMmaOp(Tcgen05InstructionOp):
    """Issues one ``tcgen05.mma`` with block scales: ``D = (A * SFA) * (B * SFB) + D`` if it accumulates.

    Syntax: ``cute_nvgpu.arch.tcgen05_scaled_mma(%D, %A, %B, %SFA, %SFB [, %accumulate]) {accumulate = true, sf_a = 0 :
    i32, sf_b = 0 : i32, atom = ATOM} : (D, A, B, SFA, SFB [, i1]) -> ()``

    One thread issues it. ``%SFA`` and ``%SFB`` point to the columns of the scale factors, which ``tmem_copy`` writes:
    4 columns for 128 rows, of 4 bytes per lane. ``sf_a`` and ``sf_b`` are the first bytes that the instruction reads:
    0 to 3 for one factor along K, 0 or 2 for two, and 0 for four. With K of 96 they are 0 to 3 for three factors, and 0
    or 2 for six, which continue in the next columns; operands in shared memory must not be swizzled.

    Example:
        cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %sfa, %sfb) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">, !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">, !cute.ptr<f32, tmem, align<16>>, !cute.ptr<f32, tmem, align<16>>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tcgen05_scaled_mma"
    ATOM_FORM = "scaled"
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    sfa = operand_def(PtrType)
    sfb = operand_def(PtrType)
    rest = var_operand_def()
    atom = prop_def(Tcgen05MmaType)
    accumulate = prop_def(BoolAttr)
    sf_a = opt_prop_def(IntegerAttr)
    sf_b = opt_prop_def(IntegerAttr)


def check_packed(atom: Tcgen05AtomType, operand: str, t: MemRefType) -> None:
    """Raise AlgebraError unless a tensor of bytes of two elements holds one atom's operand of 4 bits."""
    rows, columns = atom.row.tile(operand)
    wanted = rows // atom.row.threads, columns // 2
    if t.space != AddressSpace.smem or not isinstance(t.layout, Layout):
        raise AlgebraError(f"operand {operand} is {t}; pass a tensor in smem")
    if size(t.layout) != wanted[0] * wanted[1]:
        raise AlgebraError(
            f"operand {operand} has {payload_text(t.layout.shape)} bytes; {atom} needs ({wanted[0]},{wanted[1]})"
        )
    descriptor_of(atom, operand, t, t.layout)


OPS: list[type[Operation]] = [*(op_class(row, __name__) for row in ROWS), *ops_of(__name__)]
