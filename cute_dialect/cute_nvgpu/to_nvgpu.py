"""``cute-to-base{arch-dialect=nvgpu}``: lowering of instructions to ops of upstream's ``nvgpu`` dialect.

Another MLIR compiler can process the result; upstream's ``convert-nvgpu-to-nvvm`` lowers it to ``nvvm``. The ops of
``nvgpu`` take memrefs, but pointers have already been lowered here. Each access therefore gets a memref of exactly the
elements that it moves, cast from a memref descriptor. ``reconcile-unrealized-casts`` removes the cast::

    %m = builtin.unrealized_conversion_cast %descriptor : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>,
           array<1 x i64>)> to memref<8xf16, #gpu.address_space<workgroup>>
    %a = nvgpu.ldmatrix %m[%c0] {numTiles = 4 : i32, transpose = false} : … -> vector<4x2xf16>
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, …) -> vector<2x2xf32>

Mbarriers (``!nvgpu.mbarrier.group`` of size one) and tensor maps (``!nvgpu.tensormap.descriptor``) are cast from
pointers in the same way. In MLIR 22 the token of ``device_async_wait`` has no effect; only its number of groups
matters. The token is that of the last group in the same block, or a cast from a constant if there is none.

:data:`NOT_CARRIED` lists the ops that are lowered as without ``arch-dialect``, with the reason, which the pass emits as
a remark. The functions :func:`mma_obstacle` and :func:`tma_obstacle` return the reason for ops that ``nvgpu`` supports
only in part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    UnrealizedConversionCastOp,
    VectorType,
    i1,
    i16,
    i32,
    i64,
)
from xdsl.dialects.builtin import MemRefType as BuiltinMemRef
from xdsl.ir import Attribute, Block, Operation, SSAValue

from cute_dialect.arch.atom import MmaAtom, Registers
from cute_dialect.cute_nvgpu.instruction_copy import MatrixCopyType, SimtAsyncCopyType
from cute_dialect.cute_nvgpu.instruction_copy_lowering import memory_address
from cute_dialect.cute_nvgpu.sync import ArchOp
from cute_dialect.cute_nvgpu.sync_lowering import WAIT_HINT
from cute_dialect.cute_nvgpu.tiled_mma import MmaAtomType
from cute_dialect.cute_nvgpu.tma_types import TmaAtomType
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.passes.lowering.folding import constant_of
from cute_dialect.passes.lowering.packed import read_packed, write_packed
from cute_dialect.passes.lowering.types import struct
from cute_dialect.passes.lowering.walk import Handler, Lowering, memory_type
from cute_dialect.upstream import llvm, vector
from cute_dialect.upstream.attrs import attr, opaque_class, opaque_type
from cute_dialect.upstream.op import TableOp, table_dialect

NOT_CARRIED: Mapping[str, str] = {
    "stmatrix": "nvgpu has no stmatrix",
    "movmatrix": "nvgpu has no movmatrix",
    "shuffle": "nvgpu has no warp shuffle",
    "prefetch": "nvgpu prefetches tensor maps only",
    "bulk_copy": "nvgpu has no bulk copy without a tensor map",
    "bulk_reduce": "nvgpu has no bulk reduction",
    "bulk_prefetch": "nvgpu has no bulk prefetch",
    "dot_product": "nvgpu has no dp2a or dp4a",
    "mma_sp": "nvgpu.mma.sp.sync has no ordered metadata",
    "wgmma": "nvgpu.warpgroup.mma multiplies whole tiles, waits for them itself and takes its layout from a tensor map",
    "wgmma_sp": "nvgpu.warpgroup.mma has no sparse operand",
    "wgmma_fence": "nvgpu.warpgroup.mma contains its own fence",
    "wgmma_commit_group": "nvgpu.warpgroup.mma contains its own commit",
    "wgmma_wait_group": "nvgpu.warpgroup.mma contains its own wait",
    "tma_reduce": "nvgpu.tma.async.store cannot reduce",
    "tma_prefetch": "nvgpu has no prefetch of boxes",
    "tma_load_im2col": "nvgpu.tma.async.load has no im2col mode",
    "tma_store_im2col": "nvgpu.tma.async.store has no im2col mode",
    "tma_reduce_im2col": "nvgpu.tma.async.store cannot reduce",
    "tma_prefetch_im2col": "nvgpu has no prefetch of boxes",
    "mbarrier_inval": "nvgpu cannot invalidate an mbarrier",
    "mbarrier_try_wait": "nvgpu.mbarrier.try_wait.parity blocks and returns no result",
    "mbarrier_expect_tx": "nvgpu.mbarrier.arrive.expect_tx always arrives",
    "mbarrier_arrive_cluster": "nvgpu.mbarrier ops reach only the mbarriers of their own block",
    "cp_async_mbarrier_arrive": "nvgpu cannot signal an mbarrier from cp.async",
    "bulk_commit_group": "nvgpu has no groups of bulk stores",
    "bulk_wait_group": "nvgpu has no groups of bulk stores",
    "fence_proxy_async": "nvgpu has no proxy fence",
    "fence_mbarrier_init": "nvgpu has no fence for mbarrier initialization",
    "tmem_load": "nvgpu has no tensor memory",
    "tmem_store": "nvgpu has no tensor memory",
    "tmem_alloc": "nvgpu has no tensor memory",
    "tmem_relinquish": "nvgpu has no tensor memory",
    "tmem_pointer": "nvgpu has no tensor memory",
    "tmem_address": "nvgpu has no tensor memory",
    "tmem_dealloc": "nvgpu has no tensor memory",
    "tmem_wait": "nvgpu has no tensor memory",
    "tcgen05_mma": "nvgpu has no tensor memory",
    "tcgen05_commit": "nvgpu has no tensor memory",
    "tcgen05_fence": "nvgpu has no tensor memory",
}
"""Op of ``cute_nvgpu.arch`` that ``nvgpu`` does not support -> reason."""

Report = Callable[[Operation, str], None]
"""Function that reports an op that is not lowered to ``nvgpu``, with the reason."""


def handlers(base: Callable[[str], Handler | None], report: Report) -> Callable[[str], Handler | None]:
    """Return the lowering of each op of a function: the one of ``base``, unless ``nvgpu`` supports the op.

    ``report`` is called for each op that belongs to an area of ``nvgpu`` but is lowered by ``base``.
    """
    tokens = _Tokens()

    def kept(why: str) -> Handler:
        return unless(lambda _: why, lambda low, op: None)

    def unless(obstacle: Callable[[Operation], str], lower: Handler) -> Handler:
        def handler(low: Lowering, op: Operation) -> None:
            why = obstacle(op)
            if not why:
                lower(low, op)
                return
            report(op, why)
            without = base(op.name)
            assert without is not None
            without(low, op)

        return handler

    own: dict[str, Handler] = {
        "cp_async": tokens.copy,
        "cp_async_commit_group": tokens.commit,
        "cp_async_wait_group": tokens.wait,
        "ldmatrix": unless(_ldmatrix_obstacle, _ldmatrix),
        "mma_sync": unless(lambda op: mma_obstacle(_mma_row(op)), _mma_sync),
        "mbarrier_init": _mbarrier_init,
        "mbarrier_arrive": _mbarrier_arrive,
        "mbarrier_arrive_expect_tx": unless(_expect_tx_obstacle, _mbarrier_expect_tx),
        "mbarrier_wait": _mbarrier_wait,
        "tma_load": unless(_tma_op_obstacle, _tma_load),
        "tma_store": unless(_tma_op_obstacle, _tma_store),
        "prefetch_tensormap": unless(_tma_op_obstacle, _prefetch),
        **{name: kept(why) for name, why in NOT_CARRIED.items()},
    }
    prefix = "cute_nvgpu.arch."
    return lambda name: own.get(name.removeprefix(prefix)) or base(name) if name.startswith(prefix) else base(name)


# -------------------------------------------------------------------------------------------- what nvgpu ops need


def _nvgpu(name: str) -> type[TableOp]:
    return cast("type[TableOp]", table_dialect("nvgpu").find_op(name))


def _cast(low: Lowering, value: SSAValue, t: Attribute) -> SSAValue:
    return low.build.once(("cast", value, t), lambda: UnrealizedConversionCastOp.get([value], [t]))


def _index(low: Lowering, value: SSAValue | int) -> SSAValue:
    """Convert a number to ``index``."""
    known = value if isinstance(value, int) else constant_of(value)
    if known is not None:
        return low.build.constant(known, IndexType())
    assert isinstance(value, SSAValue)
    make = lambda: arith.IndexCastOp.create(operands=[value], result_types=[IndexType()])  # noqa: E731
    return low.build.once(("index", value), make)


def _descriptor(low: Lowering, address: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Build the LLVM descriptor of a compact row-major memref of ``shape`` at ``address``."""
    rank = len(shape)
    numbers = llvm.LLVMArrayType(rank, i64)
    t = struct([address.type, address.type, i64, numbers, numbers])
    build = low.build
    key = ("memref descriptor", t, tuple(shape))
    strides = [1] * rank
    for i in range(rank - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    held = build.once((key, "none"), lambda: _poison(t))
    # Build the fields that do not depend on the address once.
    for path, n in [
        ((2,), 0),
        *(((3, i), n) for i, n in enumerate(shape)),
        *(((4, i), n) for i, n in enumerate(strides)),
    ]:
        number, before = build.constant(n, i64), held
        held = build.once((key, path), lambda x=number, c=before, p=path: _insert(x, c, p))
    for i in range(2):
        held = build.insert(address, held, (i,))
    return held


def _poison(t: Attribute) -> Operation:
    from xdsl.dialects.ub import PoisonOp

    return PoisonOp.create(result_types=[t])


def _insert(value: SSAValue, container: SSAValue, path: Sequence[int]) -> Operation:
    return llvm.InsertValueOp.create(
        operands=[container, value],
        result_types=[container.type],
        properties={"position": DenseArrayBase.from_list(i64, path)},
    )


def _memref(low: Lowering, address: SSAValue, element: Attribute, shape: Sequence[int], space: str) -> SSAValue:
    """Build a memref of the elements at ``address``; ``space`` is ``workgroup`` or ``global``."""
    t = BuiltinMemRef(element, shape, memory_space=attr("gpu.address_space", space))
    key = ("memref", address, t)
    known = low.build.once(key, lambda: UnrealizedConversionCastOp.get([_descriptor(low, address, shape)], [t]))
    return known


# ---------------------------------------------------------------------------------------------- asynchronous copies


class _Tokens:
    """Tokens of the asynchronous copies and of the last group in each block, so far."""

    def __init__(self) -> None:
        self.copies: dict[Block, list[SSAValue]] = {}
        self.groups: dict[Block, SSAValue] = {}

    def copy(self, low: Lowering, op: Operation) -> None:
        """Lower ``cp_async`` to ``nvgpu.device_async_copy``."""
        atom = op.properties["atom"]
        assert isinstance(atom, SimtAsyncCopyType)
        t = op.operands[0].type
        assert isinstance(t, MemRefType)
        element = memory_type(t.element)
        n = atom.data.bits // max(8, element_bits(t.element))
        source = _memref(low, memory_address(low, op.operands[0]), element, [n], "global")
        destination = _memref(low, memory_address(low, op.operands[1]), element, [n], "workgroup")
        zero = _index(low, 0)
        read: SSAValue | None = None
        if len(op.operands) == 3:
            flag, whole = low.value(op.operands[2]), _index(low, n)
            read = low.build.once(("elements", flag, n), lambda: arith.SelectOp(flag, whole, zero))
        bypass = atom.data.cache != "always"
        make = _nvgpu("device_async_copy")(destination, zero, source, zero, read, dstElements=n, bypassL1=bypass)
        self.copies.setdefault(low.build.block, []).append(low.build.emit(make))

    def commit(self, low: Lowering, op: Operation) -> None:
        """Lower ``cp_async_commit_group`` to ``nvgpu.device_async_create_group`` of the copies since the last group."""
        block = low.build.block
        self.groups[block] = low.build.emit(_nvgpu("device_async_create_group")(self.copies.pop(block, [])))

    def wait(self, low: Lowering, op: Operation) -> None:
        """Lower ``cp_async_wait_group`` to ``nvgpu.device_async_wait``."""
        assert isinstance(op, ArchOp)
        token = self.groups.get(low.build.block)
        if token is None:
            token = _cast(low, low.build.constant(0, i32), opaque_type("nvgpu.device.async.token"))
        low.build.add(_nvgpu("device_async_wait")(token, numGroups=op.number("n")))


# ------------------------------------------------------------------------------------------------ ldmatrix, mma.sync


def _ldmatrix_obstacle(op: Operation) -> str:
    atom, t = op.properties["atom"], op.operands[1].type
    assert isinstance(atom, MatrixCopyType) and isinstance(t, MemRefType)
    bits = element_bits(t.element)
    if atom.data.transposed and bits != 16:
        return f"nvgpu.ldmatrix transposes elements of 16 bits only, not {t.element}"
    if bits not in (8, 16, 32):
        return f"nvgpu.ldmatrix loads elements of 8, 16 and 32 bits, not {t.element}"
    return ""


def _ldmatrix(low: Lowering, op: Operation) -> None:
    atom, t = op.properties["atom"], op.operands[1].type
    assert isinstance(atom, MatrixCopyType) and isinstance(t, MemRefType)
    element = memory_type(t.element)
    bits = element_bits(t.element)
    # Each lane passes the address of one row of 16 bytes.
    rows = _memref(low, memory_address(low, op.operands[0]), element, [128 // bits], "workgroup")
    n = atom.data.matrices
    result = VectorType(element, [n, 32 // bits])
    make = _nvgpu("ldmatrix")(rows, _index(low, 0), transpose=atom.data.transposed, numTiles=n, result_types=[result])
    write_packed(low, op.operands[1], _rows(low, low.build.emit(make)))


def _rows(low: Lowering, matrix: SSAValue) -> list[SSAValue]:
    """Return the rows of a two-dimensional vector."""
    t = matrix.type
    assert isinstance(t, VectorType)
    count, width = t.get_shape()
    row = VectorType(cast("VectorType[Attribute]", t).element_type, [width])
    extract = vector.OPS["extract"]
    return [low.build.emit(extract(matrix, [], static_position=(i,), result_types=[row])) for i in range(count)]


def _matrix(low: Lowering, rows: Sequence[SSAValue]) -> SSAValue:
    """Build a two-dimensional vector from its rows, or reuse the vector from which all of them were extracted."""
    t = rows[0].type
    assert isinstance(t, VectorType)
    result = VectorType(cast("VectorType[Attribute]", t).element_type, [len(rows), *t.get_shape()])
    owners = [r.owner for r in rows]
    first = owners[0]
    if isinstance(first, Operation) and first.name == "vector.extract" and first.operands[0].type == result:
        source = first.operands[0]
        if all(
            isinstance(o, Operation)
            and o.name == "vector.extract"
            and o.operands[0] is source
            and o.properties["static_position"] == DenseArrayBase.from_list(i64, [i])
            for i, o in enumerate(owners)
        ):
            return source
    insert = vector.OPS["insert"]
    held = low.build.poison(result)
    for i, r in enumerate(rows):
        held = low.build.emit(insert(r, held, [], static_position=(i,), result_types=[result]))
    return held


_MMA_SHAPES: Mapping[str, tuple[tuple[int, int, int], ...]] = {
    "f16": ((16, 8, 8), (16, 8, 16)),
    "tf32": ((16, 8, 4), (16, 8, 8)),
    "i8": ((8, 8, 16), (16, 8, 16), (16, 8, 32)),
    "f64": ((8, 8, 4),),
}
"""Element type of A and B -> shapes of ``nvgpu.mma.sync`` that MLIR 22 lowers to PTX."""


def mma_obstacle(row: MmaAtom) -> str:
    """Return the reason why ``nvgpu.mma.sync`` does not support an atom, or an empty string.

    >>> from cute_dialect.arch import mma_atom
    >>> mma_obstacle(mma_atom("SM80_16x8x16_F32F16F16F32_TN"))
    ''
    >>> mma_obstacle(mma_atom("SM80_16x8x16_F32BF16BF16F32_TN"))
    'nvgpu.mma.sync of MLIR 22 has no registers for elements bf16'
    """
    if row.a != row.b:
        return f"nvgpu.mma.sync takes A and B of one type, not {row.a} and {row.b}"
    if row.a == "i4":
        return "nvgpu.mma.sync takes vectors of i4, which LLVM packs through local memory"
    shapes = _MMA_SHAPES.get(row.a)
    if shapes is None:
        return f"nvgpu.mma.sync of MLIR 22 has no registers for elements {row.a}"
    if row.shape_mnk not in shapes:
        m, n, k = row.shape_mnk
        return f"nvgpu.mma.sync of MLIR 22 does not lower the shape {m}x{n}x{k} of {row.a}"
    if row.d == "i32" and not row.emit["saturate"]:
        return "nvgpu.mma.sync saturates integer accumulators, but this atom wraps around"
    return ""


def _mma_row(op: Operation) -> MmaAtom:
    atom = op.properties["atom"]
    assert isinstance(atom, MmaAtomType)
    return atom.row


def _operand(low: Lowering, tensor: SSAValue, element: Attribute, width: int) -> SSAValue:
    return _matrix(low, read_packed(low, tensor, None, VectorType(element, [width])))


def _mma_sync(low: Lowering, op: Operation) -> None:
    from xdsl.dialects.builtin import f16, f32, f64, i8

    row = _mma_row(op)
    types: Mapping[str, Attribute] = {"f16": f16, "tf32": f32, "f32": f32, "f64": f64, "i8": i8, "i32": i32}
    d, a, b, c = op.operands
    element = types[row.a]
    width = max(1, 32 // element_bits(element))
    operands = [_operand(low, a, element, width), _operand(low, b, element, width)]
    # An accumulator holds two adjacent columns.
    operands.append(_operand(low, c, types[row.c], 2))
    held: Registers = row.registers_d
    result = VectorType(types[row.d], [held.count * held.values // 2, 2])
    shape = ArrayAttr(IntegerAttr(n, i64) for n in row.shape_mnk)
    make = _nvgpu("mma.sync")(*operands, mmaShape=shape, tf32Enabled=row.a == "tf32", result_types=[result])
    write_packed(low, d, _rows(low, low.build.emit(make)))


# -------------------------------------------------------------------------------------------------------- mbarriers


def _group_type() -> Attribute:
    made = opaque_class("nvgpu.mbarrier.group")
    assert made is not None
    return made("memorySpace = #gpu.address_space<workgroup>")


def _group(low: Lowering, bar: SSAValue) -> SSAValue:
    """Cast the pointer to an mbarrier to a group of one mbarrier."""
    address = low.value(bar)
    t = _group_type()
    return low.build.once(
        ("mbarrier", address), lambda: UnrealizedConversionCastOp.get([_descriptor(low, address, [1])], [t])
    )


def _mbarrier_init(low: Lowering, op: Operation) -> None:
    bar, count = op.operands
    low.build.add(_nvgpu("mbarrier.init")(_group(low, bar), _index(low, low.value(count)), _index(low, 0), None))


def _mbarrier_arrive(low: Lowering, op: Operation) -> None:
    token = opaque_type("nvgpu.mbarrier.token")
    low.build.add(_nvgpu("mbarrier.arrive")(_group(low, op.operands[0]), _index(low, 0), result_types=[token]))


def _expect_tx_obstacle(op: Operation) -> str:
    return "nvgpu expects bytes at mbarriers of the own block only" if len(op.operands) == 3 else ""


def _mbarrier_expect_tx(low: Lowering, op: Operation) -> None:
    bar, size = op.operands
    size_index = _index(low, low.value(size))
    low.build.add(_nvgpu("mbarrier.arrive.expect_tx")(_group(low, bar), size_index, _index(low, 0), None))


def _mbarrier_wait(low: Lowering, op: Operation) -> None:
    bar, parity = op.operands
    number = low.value(parity)
    known = constant_of(number)
    if known is not None:
        bit = low.build.constant(known & 1, i1)
    else:
        bit = low.build.once(("bit", number), lambda: arith.TruncIOp(number, i1))
    ticks = _index(low, WAIT_HINT)
    low.build.add(_nvgpu("mbarrier.try_wait.parity")(_group(low, bar), bit, ticks, _index(low, 0)))


# -------------------------------------------------------------------------------------------------------------- TMA


def tma_obstacle(t: TmaAtomType) -> str:
    """Return the reason why ``nvgpu`` cannot represent a tensor map, or an empty string."""
    m = t.data
    if m.unpack:
        return "nvgpu.tma.async.load does not unpack 4-bit and 6-bit elements"
    inner = m.box[0] * element_bits(m.element) // 8
    if m.swizzle and inner != 128:
        return f"nvgpu.tensormap.descriptor with a swizzle has rows of 128 bytes, not {inner}"
    if any(s != 1 for s in m.strides):
        return "nvgpu.tensormap.descriptor has no element strides"
    if m.mode:
        return f"nvgpu's TMA ops have no mode {m.mode}"
    if m.cta_group == 2:
        return "nvgpu.tma.async.load signals mbarriers of the own block only"
    return ""


def _tma_op_obstacle(op: Operation) -> str:
    t = op.operands[0].type
    assert isinstance(t, TmaAtomType)
    if any(o.type == i64 for o in op.operands):
        return "nvgpu's TMA ops have no cache hint"
    return tma_obstacle(t)


def _map(low: Lowering, op: Operation) -> tuple[SSAValue, Attribute, list[int]]:
    """Return the tensor map as a descriptor, with the element type and the shape of its box."""
    t = op.operands[0].type
    assert isinstance(t, TmaAtomType)
    m = t.data
    element, shape = memory_type(m.element), list(reversed(m.box))
    tensor = BuiltinMemRef(element, shape, memory_space=attr("gpu.address_space", "workgroup"))
    swizzle = f"swizzle_{m.swizzle}b" if m.swizzle else "none"
    l2 = f"l2promo_{m.l2}b" if m.l2 else "none"
    interleave = f"interleave_{m.interleave}b" if m.interleave else "none"
    made = opaque_class("nvgpu.tensormap.descriptor")
    assert made is not None
    words = f"swizzle = {swizzle}, l2promo = {l2}, oob = {m.oob}, interleave = {interleave}"
    return _cast(low, low.value(op.operands[0]), made(f"tensor = {tensor}, {words}")), element, shape


def _tma_parts(low: Lowering, op: Operation) -> tuple[SSAValue, list[SSAValue], SSAValue, list[SSAValue]]:
    """Return the descriptor, the coordinates, the memref of the box and the other operands."""
    t = op.operands[0].type
    assert isinstance(t, TmaAtomType)
    described, element, shape = _map(low, op)
    values = [low.value(o) for o in op.operands[1:]]
    rank = t.data.rank
    coordinates = [_index(low, v) for v in values[:rank]]
    return described, coordinates, _memref(low, values[rank], element, shape, "workgroup"), values[rank + 1 :]


def _tma_load(low: Lowering, op: Operation) -> None:
    described, coordinates, box, _ = _tma_parts(low, op)
    t = op.operands[0].type
    assert isinstance(t, TmaAtomType)
    bar, *rest = op.operands[2 + t.data.rank :]
    mask = next((low.value(o) for o in rest if o.type == i16), None)
    zero = _index(low, 0)
    low.build.add(_nvgpu("tma.async.load")(box, _group(low, bar), described, coordinates, zero, mask, None))


def _tma_store(low: Lowering, op: Operation) -> None:
    described, coordinates, box, _ = _tma_parts(low, op)
    low.build.add(_nvgpu("tma.async.store")(box, described, coordinates, None))


def _prefetch(low: Lowering, op: Operation) -> None:
    described, _, _ = _map(low, op)
    low.build.add(_nvgpu("tma.prefetch.descriptor")(described, None))
