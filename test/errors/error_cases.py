"""Invalid input other than module texts: command lines, pass pipelines, and calls of constructors and other functions.

Each case specifies words of its error message.  ``error_sites`` runs the cases together with the files below
``test/errors``.  Each case imports the modules that it needs, because the error sites must be instrumented first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

COMMANDS: Sequence[tuple[Sequence[str], str]] = (
    (["--cute-to-base=deep=1"], "pass 'cute-to-base' has no option 'deep' (its options: arch-dialect, chip)"),
    (["--cute-to-base=arch-dialect=amd"], "option 'arch-dialect' of pass 'cute-to-base': expected nvvm or nvgpu"),
    (["--cute-to-base=chip=sm_12"], "option 'chip' of pass 'cute-to-base': expected one of sm_50, sm_52"),
    (["--pass-pipeline=builtin.module(cse"], "expected ')' to close this list of passes"),
    (["--pass-pipeline=builtin.module(cse))"], "unexpected ')' in the pass pipeline"),
    (["--pass-pipeline=builtin.module(,)"], "expected the name of a pass or of an op, got ','"),
    (["--pass-pipeline=gpu.module"], "expected '(' after the op name 'gpu.module'"),
    (["--pass-pipeline=builtin.module(cse{a=1)"], "expected '}' to close these options"),
    (["--pass-pipeline=builtin.module(cse{+})"], "expected the name of an option, got '+'"),
    (["--pass-pipeline=builtin.module(cse{a=1 a=2})"], "option 'a' is given twice"),
    (["--cute-to-base=arch-dialect='nvvm"], "this quote is not closed"),
)
"""Arguments of ``cute-opt`` for an empty module, and the expected error."""


def _memref() -> None:
    from xdsl.dialects.builtin import f32

    from cute_dialect.algebra.values import Basis, Layout
    from cute_dialect.dialect.memory_types import MemRef, MemRefType, ptr

    MemRefType(MemRef(ptr(f32, "gmem"), Layout(4, Basis(1, (0,)))))


def _coord_tensor() -> None:
    from cute_dialect.algebra.values import Basis, Layout
    from cute_dialect.dialect.memory_types import CoordTensor, CoordTensorType

    CoordTensorType(CoordTensor(5, Layout((4, 8), (Basis(1, (0,)), Basis(1, (1,))))))


def _tma_atom() -> None:
    from xdsl.dialects.builtin import f16

    from cute_dialect.cute_nvgpu.tma_types import TmaLoadType, TmaMap

    TmaLoadType(TmaMap(f16, (264, 8)))


def _im2col_atom() -> None:
    from xdsl.dialects.builtin import f16

    from cute_dialect.cute_nvgpu.tma_types import Im2colMap, TmaLoadIm2colType

    TmaLoadIm2colType(Im2colMap(f16, channels=64, pixels=64, lower=(0, 0, 0, 0), upper=(0, 0, 0, 0)))


def _bulk_atom() -> None:
    from xdsl.dialects.builtin import f16

    from cute_dialect.cute_nvgpu.bulk import BulkCopy, BulkCopyType

    BulkCopyType(BulkCopy(f16, 24))


def _static_type() -> None:
    from cute_dialect.algebra.values import raw_layout
    from cute_dialect.dialect.types import LayoutType

    LayoutType(raw_layout((4, 8), 1))


def _make_arch_op() -> None:
    from cute_dialect.cute_nvgpu.sync import make

    make("mbarrier")


def _make_arch_op_wrong() -> None:
    from cute_dialect.cute_nvgpu.sync import make

    make("cp_async_wait_group", n=-1)


def _build_inferred() -> None:
    from xdsl.dialects.test import TestOp

    from cute_dialect.dialect.sizes import SizeOp
    from cute_dialect.dialect.types import CoordType

    SizeOp(TestOp(result_types=[CoordType(3)]).results[0])


def _kinds() -> None:
    from xdsl.dialects.builtin import i32
    from xdsl.irdl import VerificationContext

    from cute_dialect.dialect.typed_values import SHAPE

    SHAPE.verify(i32, VerificationContext())


def _scalar_int() -> None:
    from xdsl.dialects.builtin import f32
    from xdsl.irdl import VerificationContext

    from cute_dialect.dialect.make import ScalarInt

    ScalarInt().verify(f32, VerificationContext())


def _fragment_without_element() -> None:
    from cute_dialect.algebra.values import Basis, Layout
    from cute_dialect.dialect.memory import fragment_like
    from cute_dialect.dialect.memory_types import CoordTensor, CoordTensorType

    fragment_like(CoordTensorType(CoordTensor((0,), Layout((4,), (Basis(1, (0,)),)))))


def _raise_first(module: ModuleOp) -> None:
    """Raise the first error that the verifier reports."""
    from cute_dialect.ir.diagnostics import DiagnosticEngine
    from cute_dialect.ir.verifier import verify

    engine = DiagnosticEngine()
    verify(module, engine)
    if engine.seen:
        raise ValueError(engine.seen[0].message)


def _erased_operand() -> None:
    from xdsl.dialects.builtin import ModuleOp, i32
    from xdsl.dialects.test import TestOp

    made = TestOp(result_types=[i32])
    user = TestOp([made.results[0]])
    made.results[0].erase(safe_erase=False)
    _raise_first(ModuleOp([user]))


def _operand_of_no_block() -> None:
    from xdsl.dialects.builtin import ModuleOp, i32
    from xdsl.dialects.test import TestOp

    _raise_first(ModuleOp([TestOp([TestOp(result_types=[i32]).results[0]])]))


def _operand_of_another_region() -> None:
    from xdsl.dialects.builtin import ModuleOp, i32
    from xdsl.dialects.test import TestOp

    made = TestOp(result_types=[i32])
    inner = ModuleOp([made])
    _raise_first(ModuleOp([inner, TestOp([made.results[0]])]))


def _branch_to_another_region() -> None:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.test import TestTermOp
    from xdsl.ir import Block

    _raise_first(ModuleOp([TestTermOp(successors=[Block()])]))


def _nested_deep() -> None:
    from cute_dialect.ir.context import make_context
    from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
    from cute_dialect.ir.parsing import parse_module

    engine = DiagnosticEngine()
    parse_module(make_context("all"), Source("f", "module {" * 5000 + "}" * 5000), engine)
    raise ValueError(engine.seen[0].message)


def _limit_of(error: Exception) -> None:
    from cute_dialect.ir.diagnostics import limit_message

    raise ValueError(limit_message(error))


def _no_memory() -> None:
    _limit_of(MemoryError())


def _many_digits() -> None:
    _limit_of(ValueError("Exceeds the limit (4300 digits) for integer string conversion"))


def _many_elements() -> None:
    _limit_of(OverflowError("cannot fit 'int' into an index-sized integer"))


def _verified_nested_deep() -> None:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.ir.diagnostics import DiagnosticEngine
    from cute_dialect.ir.verifier import verify

    module = ModuleOp([])
    for _ in range(2000):
        module = ModuleOp([module])
    engine = DiagnosticEngine()
    verify(module, engine)
    raise ValueError(engine.seen[0].message)


def _option_of_another_type() -> None:
    from dataclasses import dataclass

    from cute_dialect.passes.base import PassOptions

    @dataclass(frozen=True)
    class Options(PassOptions):
        deep: bool = False

    Options.from_text({"deep": "maybe"}, "a-pass")


def _pass_of_xdsl(text: str) -> None:
    from cute_dialect.ir.context import make_context
    from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
    from cute_dialect.ir.parsing import parse_module
    from cute_dialect.passes.base import as_module_pass
    from cute_dialect.passes.to_base import ToBasePass

    context = make_context("all")
    module = parse_module(context, Source("f", text), DiagnosticEngine())
    assert module is not None
    as_module_pass(ToBasePass)().apply(context, module)


def _pass_in_xdsl() -> None:
    size = 'cute.size(%s) : (!cute.shape<"?">) -> !cute.int_tuple<"?">'
    _pass_of_xdsl(f'func.func @f(%s: !cute.shape<"?">) {{ %n = {size} return }}')


def _pass_that_reports() -> None:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from cute_dialect.ir.context import make_context
    from cute_dialect.passes.base import Pass, PassContext, as_module_pass

    class Reports(Pass):
        name = "reports"
        summary = "reports an error"

        def run(self, op: Operation, ctx: PassContext) -> None:
            message = "expected an empty module"
            ctx.error(message, op)

    as_module_pass(Reports)().apply(make_context("all"), ModuleOp([]))


def _result_of_none() -> None:
    from cute_dialect.upstream import nvvm

    nvvm.OPS["barrier0"](result_types=[]).result  # noqa: B018


def _target(chip: str, features: str) -> Callable[[], object]:
    def call() -> None:
        from cute_dialect.arch.targets import find_target

        find_target(chip, features)

    return call


def _pass_target() -> None:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.passes.base import PassContext
    from cute_dialect.passes.check_target import CheckTargetPass

    CheckTargetPass.from_text({"chip": "sm_1"}).run(ModuleOp([]), PassContext(Context()))


def _algebra(name: str, *arguments: object) -> Callable[[], object]:
    def call() -> object:
        from cute_dialect import algebra

        return getattr(algebra, name)(*arguments)

    return call


_CHIPS = (
    "chip: expected one of sm_50, sm_52, sm_53, sm_60, sm_61, sm_62, sm_70, sm_72, sm_75, sm_80, sm_86, sm_87, sm_88, "
    "sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_100f, sm_103, sm_103a, sm_103f, sm_110, "
    "sm_110a, sm_110f, sm_120, sm_120a, sm_120f, sm_121, sm_121a, sm_121f, got 'sm_1'"
)


def _infer(op: str, types: str, **properties: str) -> Callable[[], object]:
    """Return a function that infers the result types of an op from its operand types."""

    def call() -> object:
        from xdsl.parser import Parser

        from cute_dialect.dialect.inference import infer_types_memo
        from cute_dialect.ir.context import make_context

        context = make_context("all")
        found = context.get_op(op)
        given = {name: Parser(context, text).parse_attribute() for name, text in properties.items()}
        return infer_types_memo(found, [Parser(context, t).parse_type() for t in types.split()], given)

    return call


CALLS: Sequence[tuple[Callable[[], object], str]] = (
    (_algebra("size", None), "size: expected a layout, a tree of integers or a tile as argument 0, got None"),
    (_infer("arith.addi", "i32"), "'arith.addi' op expected 2 operands, got 1"),
    (
        _infer("arith.addi", "i32 i64"),
        "'arith.addi' op operand 'rhs': attribute i32 expected from variable 'T', but got i64",
    ),
    (_infer("arith.addi", "i32 i32", overflowFlags="1 : i32"), "'arith.addi' op"),
    (_infer("arith.divsi", "i32"), "'arith.divsi' expects 2 operands, got 1"),
    (_infer("arith.divsi", "i32 i64"), "'arith.divsi' op expected one type for lhs, rhs, result, got i32, i64"),
    (_algebra("size", 1, 2), "size: expected the arguments (value), got (1, 2)"),
    (_algebra("Swizzle", 1, 2, "3"), "expected three integers for a swizzle, got 1, 2, '3'"),
    (
        _algebra("composition", "8:1", "S<2,3,3> o 0 o (8,8):(8,1)"),
        "cannot compose 8:1 with S<2,3,3> o 0 o (8,8):(8,1): if the right layout is composed, the left "
        "must be plain and the inner layout must not be a swizzle",
    ),
    (
        _algebra("right_inverse", "S<2,3,3> o 0 o (8,8):(8,1)"),
        "right_inverse: expected a layout as argument 0, got 'S<2,3,3> o 0 o (8,8):(8,1)'",
    ),
    (_algebra("idx2crd", (1, 2), "(4,8):(8,1)"), "expected an integer and a plain layout, got (1,2) and (4,8):(8,1)"),
    (
        _algebra("idx2crd", 3, "(4,?):(8,1)"),
        "expected a static layout with integer strides to invert, got (4,?):(8,1)",
    ),
    (
        _algebra("idx2crd", 9, "(4,8):(16,1)"),
        "the index 9 is not an index of (4,8):(16,1), or its modes overlap",
    ),
    (_algebra("crd2idx", 24, (0, 0)), "expected extents other than 0 for a linear coordinate, got (0,0)"),
    (
        _algebra("local_tile", "(8,8):(8,1)", (2, 2), 1, (1, 1)),
        "expected a tiler and a coordinate with the same rank as the projection (1,1), got 1",
    ),
    (_target("sm_1", ""), _CHIPS),
    (_pass_target, _CHIPS),
    (_target("sm_120", "+ptx83"), "features: sm_120 needs +ptx87 or later, got '+ptx83'"),
    (_target("sm_90", "-ptx83"), "features: expected one of +ptx40, +ptx41, "),
    (_target("sm_90", "+ptx83,+real"), "+ptx86, +ptx87, +ptx88, +ptx90, got '+real'"),
    (_memref, "expected integer strides in a memref (basis strides make a cute.coord_tensor), got 4:1@0"),
    (_coord_tensor, "the iterator 5 does not fit the layout (4,8):(1@0,1@1)"),
    (_tma_atom, "dimension 0: expected 1 to 256 elements in the box, got 264"),
    (_im2col_atom, "the lower corner has 4 numbers; write 1 to 3 (W, H, D)"),
    (_bulk_atom, "; use a multiple of 128 bits"),
    (_static_type, "expected a stride congruent with the shape (4,8), got 1"),
    (_make_arch_op, "'mbarrier' is not the name of a machine-level op; write one of those in docs/nvgpu.md"),
    (_make_arch_op_wrong, "property n is -1 : i32; use a number of groups from 0 on (i32)"),
    (_build_inferred, "'cute.size' op operand #0: expected !cute.int_tuple"),
    (_kinds, "expected !cute.shape, got i32"),
    (_scalar_int, "expected i32, i64 or a scalar !cute.int_tuple, got f32"),
    (_fragment_without_element, "expected an element type for the fragment of a coordinate tensor"),
    (_erased_operand, "operand #0 was erased"),
    (_operand_of_no_block, "operand #0 is defined by an op outside any block"),
    (_operand_of_another_region, "operand #0 is defined in a region that does not contain this use"),
    (_branch_to_another_region, "branches to a block of another region"),
    (_nested_deep, "the IR is nested too deeply, while parsing"),
    (_verified_nested_deep, "the IR is nested too deeply, while verifying"),
    (_no_memory, "the IR needs more memory than is available"),
    (_many_digits, "the IR contains an integer with too many digits"),
    (_many_elements, "the IR has more elements than fit in memory"),
    (_option_of_another_type, "option 'deep' of pass 'a-pass': expected bool, got 'maybe'"),
    (_pass_in_xdsl, "'cute.size' cannot be lowered here; run the earlier cute passes first"),
    (_pass_that_reports, "expected an empty module"),
    (_result_of_none, "'nvvm.barrier0' has 0 results, not one; use 'results'"),
)
"""Calls with invalid arguments, and the expected error."""


# ------------------------------------------------------------------------------------------------- algebra and atoms

MODULES = {
    "algebra": (
        "arithmetic", "complements", "compose", "evaluation", "inverses", "layout", "layout_pictures", "leaf",
        "text", "tiled_copy", "tiled_mma", "tiling", "trees", "values", "verify",
    ),
    "arch": ("descriptors", "elements", "sm90", "table", "tcgen05_descriptors", "tensor_map"),
}  # fmt: skip
"""Modules that the expressions below use by name; ``L`` parses a layout, ``UNDERSCORE`` is ``_``."""

EXPRESSIONS: Sequence[tuple[str, str]] = (
    (
        "arithmetic.arithmetic_add((1, 2), 3)",
        "cannot add the scalar 3 to the arithmetic tuple (1,2)",
    ),
    (
        'complements.bounded_complement(L("2:1"), (0, 4))',
        "expected a cotarget with extents >= 1, got (0,4)",
    ),
    (
        'compose.compose(L("(4,8):(8,1)"), L("(?,2):(1@0,1@1)"))',
        "the extent of a mode with the basis stride 1@0 must be static, got ?",
    ),
    (
        'compose.compose(L("(4,8):(8,1)"), L("2:1@5"))',
        "the basis strides of 2:1@5 refer to modes beyond the 2 of (4,8):(8,1)",
    ),
    (
        'compose.compose(L("():()"), L("2:1"))',
        "cannot compose the empty layout ():() with 2:1",
    ),
    (
        'compose.compose(L("(6,8,2):(8,1,?)"), L("7:1"))',
        "expected an extent divisible by 6, got 7: a step of 1 covers 6 elements of mode 0 of (6,8,2):(8,1,?)",
    ),
    (
        'compose.compose(L("(6,8,2):(8,1,3)"), L("8:9"))',
        "expected a step that divides or is a multiple of extent 6 of mode 0 of (6,8,2):(8,1,3), got a step of 9",
    ),
    (
        'evaluation.evaluate((1, 2), text.parse_composed_layout("S<1,2,3> o 0 o (4,8):(1@0,1@1)"))',
        "expected an integer index for the swizzle, got the arithmetic tuple (1,2)",
    ),
    (
        'inverses.right_inverse(L("(2,?):(1,2)"))',
        "expected static extents to invert, got (2,?):(1,2)",
    ),
    (
        'inverses.left_inverse(L("(2,?):(1,2)"))',
        "expected a static layout to invert, got (2,?):(1,2)",
    ),
    (
        'layout.recast_layout(text.parse_composed_layout("S<1,2,3> o 0 o (4,8):(1,4)"), 48, 16)',
        "recasting a swizzled layout needs element widths whose ratio is a power of two, got 3",
    ),
    (
        'layout.recast_layout(text.parse_composed_layout("S<1,2,3> o ? o (4,8):(1,4)"), 8, 16)',
        "expected a static integer offset to recast, got ?",
    ),
    (
        'layout.recast_layout(L("4:1@0"), 16, 16)',
        "expected integer strides to recast, got the basis element 1@0",
    ),
    (
        'layout.append_to_rank(L("4:1"), 3, 3)',
        "expected a layout as the padding of a layout, got 3",
    ),
    (
        "leaf.div(4, 0)",
        "division by zero",
    ),
    (
        "leaf.mod(4, 0)",
        "remainder of a division by zero",
    ),
    (
        'layout.make_layout(L("4:1"), 3)',
        "expected only layouts, or a shape and a stride, got 2 operands of mixed kinds",
    ),
    (
        "values.Swizzle(-1, 2, 3)",
        "expected bits and base of a swizzle to be >= 0, got S<-1,2,3>",
    ),
    (
        'layout_pictures.layout_table(L("(4,?):(1,4)"))',
        "expected a static layout to draw, got (4,?):(1,4)",
    ),
    (
        'layout_pictures.layout_table(L("(4,2,2):(1,4,8)"))',
        "expected rank 1 or 2 to draw, got rank 3; group the modes first",
    ),
    (
        'layout_pictures.layout_table(L("(4000,4000):(1,4000)"))',
        "expected at most 65536 elements to draw, got 16000000",
    ),
    (
        'layout_pictures.thread_value_table(L("(4,2):(2,1)"), (2, 2, 2))',
        "expected a thread-value layout over a tile (M, N), got (4,2):(2,1) over (2,2,2)",
    ),
    (
        'layout_pictures.thread_value_table(L("(4,2):(2,1)"), (2, 2))',
        "expected indices in [0, 4) of the tile, got 4",
    ),
    (
        'tiled_copy.make_layout_tv(L("(4,?):(1,4)"), L("(4,2):(1,4)"))',
        "expected static layouts, got (4,?):(1,4) and (4,2):(1,4)",
    ),
    (
        'tiled_copy.retile(L("(4,2):(1,4)"), 8, L("(?,2):(2,1)"), 1)',
        "expected static values and threads, got (4,2):(1,4) and (?,2):(2,1)",
    ),
    (
        'tiled_copy.retile(L("8:0"), 24, L("(4,8):(8,1)"), 0)',
        "a copy atom of 0 values; an atom has at least one",
    ),
    (
        'tiling.ceil_div((8, 8), text.parse_tile("[2:1;3:1;4:1]"))',
        "expected a tiler of rank at most 2 for (8,8), got rank 3",
    ),
    (
        "trees.shape_to_tile((4, 0))",
        "expected extents >= 1 in a tiler, got 0",
    ),
    (
        "verify.verify_shape((4, UNDERSCORE))",
        "expected integers in the shape, got _",
    ),
    (
        "verify.verify_coord((4, values.Basis(1, (0,))))",
        "expected integers or '_' in the coord, got 1@0",
    ),
    (
        "verify.verify_layout((4, 2))",
        "expected a layout, got (4,2)",
    ),
    (
        "verify.verify_stride((4, UNDERSCORE))",
        "expected integers or basis elements in the stride, got _",
    ),
    (
        "verify.verify_swizzle((4, 2))",
        "expected a swizzle, got (4,2)",
    ),
    (
        "verify.verify_tile((4, values.Basis(1, (0,))))",
        "expected layouts or '_' in the tile, got 4",
    ),
    (
        'tiled_mma.TiledMma((16, 8, 16), L("32:1"), L("(?,2,1):(1,2,0)"))',
        "expected a static atom layout, got ?:32",
    ),
    (
        'descriptors.MatrixDescriptor("k", 128, 8, 16)',
        "LBO: expected a multiple of 16 bytes, got 8",
    ),
    (
        'descriptors.derive(L("((8,2,3),(8,2)):((8,64,100),(1,512))"), 16, x=16)',
        "RestX: expected address steps that are multiples of 16 bytes, got 100 elements in 3:100",
    ),
    (
        'elements.by_ptx("e9")',
        "expected the PTX name of an element type, got 'e9'",
    ),
    (
        "descriptors.element_swizzle(128, 64)",
        "element: expected elements of 8, 16 or 32 bits, got 64",
    ),
    (
        'descriptors.plain_atom("row", 128, 16)',
        "major: expected 'k' or 'mn', got 'row'",
    ),
    (
        "leaf.shr(leaf.Dyn(), 99)",
        "expected a shift in [0, 32) for an i32, got 99",
    ),
    (
        'sm90.wgmma("x", 7, ("f32", "f16", "f16"), "smem", "kk", False)',
        "x: expected an N that wgmma supports for these types, got 7",
    ),
    (
        'descriptors.MatrixDescriptor("k", 128, 16, 16, base_offset=9)',
        "base offset: expected 0 to 7, got 9",
    ),
    (
        'compose.compose(L("(6,?):(8,1)"), L("4:9"))',
        "expected a step that divides or is a multiple of extent 6 of mode 0 of (6,?):(8,1), got a step of 9 in 4:9",
    ),
    (
        'tiling.tiled_product(L("(4,4):(1@0,2@0)"), L("2:1"))',
        "expected an injective layout, got (4,4):(1@0,2@0): stride 2 is less than 4, the range that smaller "
        "strides cover",
    ),
    (
        'table.find_mma_sync((16, 8, 16), ("f32", "f16", "f16", "f32")).tile("SFA")',
        "expected a block-scaled MMA, but the atom has no operands SFA and SFB",
    ),
    (
        "table.find_matrix_copy(4, transposed=True, bits=8)",
        "expected 1 or 2 matrices of transposed bytes, got 4",
    ),
    (
        'tcgen05_descriptors.InstructionDescriptor("mxf4", "f32", *("f4E2M1FN",) * 2, 128, 64, scale="f32")',
        "scale factors: expected one of ue4m3, f8E8M0FNU, got f32",
    ),
    (
        'tcgen05_descriptors.InstructionDescriptor.of_bits(0x08400490, "f64")',
        "kind: expected one of f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4, got 'f64'",
    ),
    (
        'tcgen05_descriptors.InstructionDescriptor.of_bits(0x084004D0, "f16")',
        "instruction descriptor: reserved bit 6 is set in 0x084004d0",
    ),
    (
        'tcgen05_descriptors.InstructionDescriptor.of_bits(0x084004B0, "f16")',
        "type of D: expected one of the codes 0, 1, 2, got 3",
    ),
    (
        'tensor_map.TensorMapSpec("f4E2M1FN", (tensor_map.TensorDim(65, 1, 64),))',
        "dimension 0: expected an even number of elements of 4 bits, got 65",
    ),
)
"""Expressions that must fail, and the expected error."""


def namespace() -> dict[str, object]:
    """Return the names that the expressions may use."""
    from importlib import import_module

    names: dict[str, object] = {
        name: import_module(f"cute_dialect.{folder}.{name}") for folder, found in MODULES.items() for name in found
    }
    from cute_dialect.algebra.text import parse_layout
    from cute_dialect.algebra.values import UNDERSCORE

    return {**names, "L": parse_layout, "UNDERSCORE": UNDERSCORE}
