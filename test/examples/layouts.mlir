// Layout algebra with a dynamic extent: a row-major matrix of %rows × 64 elements is divided into tiles of 16 × 8; where
// does element %i of tile %t lie?
func.func @element(%i: i32, %t: i32, %rows: i32) -> i32 {
  %shape = cute.make_shape(%rows) : (i32) -> !cute.shape<"(?,64)">
  %order = cute.static : !cute.int_tuple<"(1,0)">
  %matrix = cute.make_ordered_layout(%shape, %order) : (!cute.shape<"(?,64)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"(?,64):(64,1)">
  %tiler = cute.static : !cute.shape<"(16,8)">
  %tiles = cute.zipped_divide(%matrix, %tiler) : (!cute.layout<"(?,64):(64,1)">, !cute.shape<"(16,8)">) -> !cute.layout<"((16,8),(?,8)):((64,1),(1024,8))">
  %coord = cute.make_coord(%i, %t) : (i32, i32) -> !cute.coord<"(?,?)">
  %offset = cute.layout_eval(%coord, %tiles) : (!cute.coord<"(?,?)">, !cute.layout<"((16,8),(?,8)):((64,1),(1024,8))">) -> !cute.int_tuple<"?">
  %r = cute.get_scalars(%offset) : !cute.int_tuple<"?">
  return %r : i32
}

// cute-run test/examples/layouts.mlir --host
func.func @main() {
  %i = arith.constant 37 : i32
  %t = arith.constant 5 : i32
  %rows = arith.constant 48 : i32
  %r = func.call @element(%i, %t, %rows) : (i32, i32, i32) -> i32
  %o = cute.make_int_tuple(%r) : (i32) -> !cute.int_tuple<"?">
  cute.print(%o) : !cute.int_tuple<"?">
  return
}
