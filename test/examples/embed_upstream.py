"""cute inside a compiler that is written with upstream MLIR's own Python package.

    python test/examples/embed_upstream.py

The module mixes ops of upstream with cute ops, which upstream carries in generic form.  It is lowered twice: by a
function, and in place by an upstream PassManager in which the cute passes are one step among upstream's own.
"""

import mlir.ir as ir
from mlir.passmanager import PassManager

from cute_dialect.pipelines.embed import EmbedError, as_upstream_pass, lower

# The offset of (i, j) in a matrix of n rows of 8 elements, and how many elements it has.
TEXT = """
func.func @offset(%i: i32, %j: i32, %n: i32) -> (i32, i32) {
  %shape = "cute.make_shape"(%n) : (i32) -> !cute.shape<"(?,8)">
  %order = "cute.static"() : () -> !cute.int_tuple<"(1,0)">
  %rows = "cute.make_ordered_layout"(%shape, %order)
    : (!cute.shape<"(?,8)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"(?,8):(8,1)">
  %at = "cute.make_coord"(%i, %j) : (i32, i32) -> !cute.coord<"(?,?)">
  %offset = "cute.layout_eval"(%at, %rows)
    : (!cute.coord<"(?,?)">, !cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?">
  %size = "cute.size"(%rows) : (!cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?">
  %a = "cute.get_scalars"(%offset) : (!cute.int_tuple<"?">) -> i32
  %b = "cute.get_scalars"(%size) : (!cute.int_tuple<"?">) -> i32
  func.return %a, %b : i32, i32
}
"""


def main() -> None:
    """Lower the module in both ways, then show what an error looks like."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    module = ir.Module.parse(TEXT, context)

    print("// one function: the module comes back lowered, the given one stays as it is")
    print(lower(module, "base"))

    passes = PassManager("builtin.module", context)
    passes.add(as_upstream_pass("base", context), name="cute")
    passes.add("canonicalize,cse,convert-to-llvm,reconcile-unrealized-casts")
    passes.run(module.operation)
    print("// a step of an upstream PassManager, in place, then on to LLVM")
    print(module)

    wrong = ir.Module.parse(TEXT.replace('"cute.size"(%rows)', '"cute.size"(%rows) {mode = array<i32: 5>}'), context)
    try:
        lower(wrong)
    except EmbedError as e:
        print(f"// line {e.line}, column {e.col}: {e.message}")


if __name__ == "__main__":
    main()
