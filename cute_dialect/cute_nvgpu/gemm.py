"""``cute.gemm``: the GEMM of a thread's partitions, and the checks of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError, divisibility
from cute_dialect.algebra.trees import is_static, leaves
from cute_dialect.algebra.values import ComposedLayout, Layout, layout_modes
from cute_dialect.arch.errors import DescriptorError
from cute_dialect.cute_nvgpu.tiled_mma import MODES, MmaAtomType, TiledMmaType, atom_values, check_element
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.views import EffectOp, InstructionOp, expect, expect_operands
from cute_dialect.spaces import AddressSpace

_UNIT = Layout(1, 0)
_RANKS = {
    (1, 1, 1): "one atom",
    (1, 1, 2): "outer product of (M) and (N)",
    (2, 2, 2): "(M,K) and (N,K)",
    (2, 2, 3): "(V,M) and (V,N)",
    (3, 3, 3): "(V,M,K) and (V,N,K)",
}
"""Ranks of A, B and D that gemm supports -> description for error messages."""


def gemm_modes(ranks: tuple[int, int, int], operand: str, layout: Layout) -> tuple[Layout, Layout, Layout]:
    """Return a layout as (V, first, second) for the ranks of A, B and D. Missing modes have extent 1.

    >>> gemm_modes((2, 2, 2), "A", Layout("(8,4):(1,8)"))
    (Layout("1:0"), Layout("8:1"), Layout("4:8"))
    """
    modes = list(layout_modes(layout)) if isinstance(layout.shape, tuple) else [layout]
    if ranks in ((1, 1, 2), (2, 2, 2)):
        modes.insert(0, _UNIT)
    modes += [_UNIT] * (3 - len(modes))
    return modes[0], modes[1], modes[2]


def _rank(layout: Layout) -> int:
    return len(layout.shape) if isinstance(layout.shape, tuple) else 1


def gemm_operands(
    types: Sequence[Attribute], *, sparse: bool = False, scaled: bool = False
) -> tuple[MmaAtomType, dict[str, tuple[Layout, Layout, Layout]]]:
    """Return the atom and the layouts (V, first, second) of D, A, B, and C if given, of a gemm.

    Raises AlgebraError, which names both sides and the mode, for operands that do not fit.

    Args:
        types: the types of the MMA, D, A, B and optionally C.
        sparse: True if A must be sparse, False if it must be dense.
        scaled: True if the atom must have scale factors, False if it must have none.
    """
    expect_operands(types, 4, 5)
    mma = types[0]
    expect(mma, (MmaAtomType, TiledMmaType), 0, "an MMA atom or a !cute.tiled_mma")
    atom = mma.atom if isinstance(mma, TiledMmaType) else mma
    assert isinstance(atom, MmaAtomType)
    if sparse != atom.SPARSE:
        is_what = "dense; use cute.gemm" if sparse else "sparse; use cute.sparse_gemm"
        raise AlgebraError(f"operand #0 must be a {'sparse' if sparse else 'dense'} atom; {atom} is {is_what}")
    if scaled != atom.has_scales:
        wanted, got = ("with", "without") if scaled else ("without", "with")
        more = "" if scaled else " (see cute.scaled_gemm)"
        raise AlgebraError(f"operand #0 must be an atom {wanted} scale factors, got one {got} them, {atom}{more}")
    plain: dict[str, Layout] = {}
    for i, (operand, t) in enumerate(zip("DABC", types[1:]), 1):
        expect(t, MemRefType, i, f"a !cute.memref, operand {operand}")
        assert isinstance(t, MemRefType)
        plain[operand] = plain_operand(atom, operand, t)
    ranks = (_rank(plain["A"]), _rank(plain["B"]), _rank(plain["D"]))
    if ranks not in _RANKS:
        known = ", ".join(f"{a} {b} {d}: {what}" for (a, b, d), what in _RANKS.items())
        raise AlgebraError(
            f"A, B and D have ranks {ranks[0]} {ranks[1]} {ranks[2]} "
            f"({', '.join(payload_text(plain[o].shape) for o in 'ABD')}); use one of {known}"
        )
    modes = {o: gemm_modes(ranks, o, layout) for o, layout in plain.items()}
    for operand, (values, _, _) in modes.items():
        wanted, have = atom_values(atom, operand), size(values)
        if have != wanted:
            raise AlgebraError(
                f"{operand} has {payload_text(have)} values in mode V of "
                f"{payload_text(plain[operand].shape)}; the atom {atom} needs {wanted}"
            )
    for mode, one, other in (("M", ("A", 1), ("D", 1)), ("N", ("B", 1), ("D", 2)), ("K", ("A", 2), ("B", 2))):
        x, y = size(modes[one[0]][one[1]]), size(modes[other[0]][other[1]])
        if x != y:
            raise AlgebraError(
                f"mode {mode} of {one[0]} and {other[0]} has extents {payload_text(x)} in "
                f"{payload_text(plain[one[0]].shape)} and {payload_text(y)} in "
                f"{payload_text(plain[other[0]].shape)}; they must be equal"
            )
    if "C" in plain:
        _same_extents(modes["C"], modes["D"], plain)
    for t, operand in zip(types[1:], "DAB"):
        assert isinstance(t, MemRefType)
        if atom.in_shared_memory(operand):
            check_descriptor(atom, operand, t, modes[operand])
        elif t.space == AddressSpace.tmem:
            atom.check_tmem_operand(operand, t, modes[operand][0])
    return atom, modes


def plain_operand(atom: MmaAtomType, operand: str, t: MemRefType) -> Layout:
    """Return the layout of an operand of a gemm. Raises AlgebraError if the atom does not support it."""
    layout = t.layout
    if isinstance(layout, ComposedLayout):
        raise AlgebraError(
            f"the layout of {operand} is not plain ({payload_text(layout)}); use a plain layout and put a "
            "swizzle on the pointer"
        )
    space = atom.operand_space(operand)
    if t.space != space:
        raise AlgebraError(f"{operand} is in {t.space}; the atom {atom} needs it in {space}")
    check_element(atom, operand, t)
    if not is_static(layout.shape) or (space.per_thread and not is_static(layout)):
        raise AlgebraError(
            f"the layout of {operand} is not static ({payload_text(layout)}); use static extents and strides"
        )
    if operand == "D":
        for s, d in _leaf_modes(layout):
            if d == 0 and s != 1:
                raise AlgebraError(
                    f"D has a mode of extent {s} and stride 0 in {payload_text(layout)}; its layout must be injective"
                )
    return layout


def _leaf_modes(layout: Layout) -> list[tuple[int, int]]:
    return list(zip(cast("list[int]", list(leaves(layout.shape))), cast("list[int]", list(leaves(layout.stride)))))


def _same_extents(c: tuple[Layout, Layout, Layout], d: tuple[Layout, Layout, Layout], plain: dict[str, Layout]) -> None:
    for mode, x, y in zip("VMN", c, d):
        if size(x) != size(y) or _rank(plain["C"]) != _rank(plain["D"]):
            raise AlgebraError(
                f"C and D have extents {payload_text(plain['C'].shape)} and {payload_text(plain['D'].shape)}, "
                f"which differ in mode {mode}; they must be equal"
            )


def check_descriptor(atom: MmaAtomType, operand: str, t: MemRefType, modes: tuple[Layout, Layout, Layout]) -> None:
    """Raise AlgebraError unless the tensor core can read the operand from shared memory."""
    bits = element_bits(t.element)
    descriptor_of(atom, operand, t, modes[0])
    if t.alignment < 16:
        raise AlgebraError(
            f"{operand} is aligned to {t.alignment} bytes ({t}); it must be aligned to at least 16 bytes"
        )
    for mode, layout in zip(MODES[operand], modes[1:]):
        for s, d in _leaf_modes(layout):
            if s != 1 and divisibility(d) * bits % 128:
                raise AlgebraError(
                    f"mode Rest{mode} of {operand} has a stride of {payload_text(d)} elements of {bits} bits "
                    f"in {payload_text(t.layout)}; strides must be multiples of 16 bytes"
                )


def descriptor_of(atom: MmaAtomType, operand: str, t: MemRefType, values: Layout) -> int:
    """Return the 64-bit matrix descriptor, for address 0, of mode V of an operand: the tile of one instruction.

    Raises AlgebraError for a layout that no descriptor can represent.
    """
    if not is_static(values):
        raise AlgebraError(
            f"the layout of one instruction's tile of {operand} is not static ({payload_text(values)}); use "
            "static extents and strides"
        )
    try:
        return atom.descriptor(operand, values, t.element, t.data.ptr.swizzle)
    except DescriptorError as e:
        x, k = MODES[operand]
        raise AlgebraError(
            f"operand {operand}, tile ({x},{k}) = {payload_text(values)} of {t}, has no matrix descriptor: {e}"
        ) from None


@cute_op
class GemmOp(EffectOp):
    """Multiplies a thread's partitions of A and B: ``D = A * B + C``, or ``D = A * B`` without C.

    Syntax: ``cute.gemm(%mma, %D, %A, %B [, %C]) : (TM, D, A, B [, C]) -> ()``

    ``%mma`` is a tiled MMA or an MMA atom. Shapes are static. The ranks of A, B and D select the kind of GEMM:

    * ``(V)``, ``(V)``, ``(V)``: one atom;
    * ``(M)``, ``(N)``, ``(M,N)``: an outer product, for atoms with one value per thread;
    * ``(M,K)``, ``(N,K)``, ``(M,N)``: the outer product for each k, accumulated;
    * ``(V,M)``, ``(V,N)``, ``(V,M,N)``: one atom for each pair (m, n);
    * ``(V,M,K)``, ``(V,N,K)``, ``(V,M,N)``: one atom for each pair (m, n) and each k, in the order of k.

    Operands are in registers, except that ``wgmma`` reads A and B from views of shared memory; the matrix descriptors
    are derived from these views. A ``wgmma`` is asynchronous. Separate ops are needed for fence, commit
    and wait (``cute_nvgpu.arch.wgmma_fence``, ``wgmma_commit_group``, ``wgmma_wait_group``).

    Example:
        cute.gemm(%mma, %d, %a, %b, %d) : (!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">, !cute.memref<f16, rmem, align<32>, "((2,2,2),2,4):((1,2,4),8,16)">, !cute.memref<f16, rmem, align<32>, "((2,2),2,4):((1,2),4,8)">, !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">) -> ()
    """  # noqa: E501

    name = "cute.gemm"
    mma = operand_def()
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = opt_operand_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, mma: SSAValue, d: SSAValue, a: SSAValue, b: SSAValue, c: SSAValue | None = None):
        super().__init__(operands=[mma, d, a, b, c])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        gemm_operands(operand_types)
        return []


# --------------------------------------------------------------------------------------------------------- instructions


class MmaInstructionOp(InstructionOp):
    """One instruction ``D = A * B + C``. Each operand holds exactly the values of one atom."""

    WRITES = "first"
    OPERANDS: ClassVar[tuple[str, ...]] = ("D", "A", "B", "C")
    FLAGS: ClassVar[int] = 0
    """Maximum number of trailing operands that are not tensors."""

    def check_types(self) -> None:
        """Raise AlgebraError unless the operands match the atom."""
        atom = self.properties["atom"]
        assert isinstance(atom, MmaAtomType)
        operands = self.OPERANDS + (("SFA", "SFB") if atom.has_scales else ())
        expect_operands(self.operand_types, len(operands), len(operands) + self.FLAGS)
        for i, (operand, t) in enumerate(zip(operands, self.operand_types)):
            expect(t, MemRefType, i, f"a !cute.memref, operand {operand}")
            assert isinstance(t, MemRefType)
            check_one_atom(atom, operand, t)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        return []


def check_one_atom(atom: MmaAtomType, operand: str, t: MemRefType) -> None:
    """Raise AlgebraError unless a tensor holds exactly the values of an operand in one atom."""
    space = atom.operand_space(operand)
    if t.space != space:
        raise AlgebraError(f"{operand} is in {t.space}; the atom {atom} needs it in {space}")
    check_element(atom, operand, t)
    layout = t.layout
    if isinstance(layout, ComposedLayout) or not is_static(layout):
        raise AlgebraError(
            f"the layout of {operand} is not static and plain ({payload_text(layout)}); use static extents "
            "and strides, and no swizzle"
        )
    assert isinstance(layout, Layout)
    wanted = atom_values(atom, operand)
    if size(layout.shape) != wanted:
        raise AlgebraError(
            f"{operand} has {size(layout.shape)} values in {payload_text(layout)}; the atom {atom} needs {wanted}"
        )
    if space == AddressSpace.smem:
        descriptor_of(atom, operand, t, layout)
    elif space == AddressSpace.tmem:
        atom.check_tmem_operand(operand, t, layout)


OPS = ops_of(__name__)
