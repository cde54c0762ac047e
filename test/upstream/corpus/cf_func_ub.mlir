func.func private @extern(i32, f32) -> i64
func.func @two(%a: i32) -> (i32, i32) {
  return %a, %a : i32, i32
}
func.func @call(%a: i32, %f: f32) -> i64 attributes {llvm.emit_c_interface} {
  %0:2 = call @two(%a) : (i32) -> (i32, i32)
  %1 = call @extern(%0#0, %f) : (i32, f32) -> i64
  return %1 : i64
}
func.func @attrs(%a: memref<?xf32> {llvm.noalias}, %b: i32 {llvm.signext}) -> (i32 {llvm.zeroext}) {
  return %b : i32
}
func.func @indirect(%a: i32) -> i32 {
  %f = constant @id : (i32) -> i32
  %0 = call_indirect %f(%a) : (i32) -> i32
  return %0 : i32
}
func.func private @id(%a: i32) -> i32 {
  return %a : i32
}

// -----
func.func @cf(%p: i1, %a: i32, %b: f32) -> i32 {
  cf.assert %p, "must hold"
  cf.cond_br %p, ^bb1(%a : i32), ^bb2(%a, %b : i32, f32)
^bb1(%x: i32):
  cf.br ^bb3(%x : i32)
^bb2(%y: i32, %z: f32):
  cf.br ^bb4
^bb4:
  cf.br ^bb3(%y : i32)
^bb3(%r: i32):
  return %r : i32
}

// -----
func.func @switch(%flag: i32, %a: i32) {
  cf.switch %flag : i32, [
    default: ^bb1(%a : i32),
    42: ^bb2(%a : i32),
    43: ^bb3
  ]
^bb1(%0: i32):
  return
^bb2(%1: i32):
  return
^bb3:
  return
}

// -----
func.func @cond_br_weights(%p: i1) {
  cf.cond_br %p weights([1, 3]), ^bb1, ^bb2
^bb1:
  return
^bb2:
  return
}

// -----
func.func @ub() -> (i32, vector<4xf32>) {
  %0 = ub.poison : i32
  %1 = ub.poison : vector<4xf32>
  return %0, %1 : i32, vector<4xf32>
}

// -----
func.func @unreachable() {
  ub.unreachable
}

// -----
func.func @index(%a: index, %b: index, %i: i32) {
  %0 = index.add %a, %b
  %1 = index.sub %a, %b
  %2 = index.mul %a, %b
  %3 = index.divs %a, %b
  %4 = index.divu %a, %b
  %5 = index.ceildivs %a, %b
  %6 = index.floordivs %a, %b
  %7 = index.rems %a, %b
  %8 = index.remu %a, %b
  %9 = index.maxs %a, %b
  %10 = index.minu %a, %b
  %11 = index.shl %a, %b
  %12 = index.shrs %a, %b
  %13 = index.and %a, %b
  %14 = index.xor %a, %b
  %15 = index.casts %a : index to i32
  %16 = index.castu %i : i32 to index
  %17 = index.cmp slt(%a, %b)
  %18 = index.constant 42
  %19 = index.bool.constant true
  %20 = index.sizeof
  return
}
