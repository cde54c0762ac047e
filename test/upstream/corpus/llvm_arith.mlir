llvm.func @int(%a: i32, %b: i32, %p: i1, %l: i64) {
  %0 = llvm.add %a, %b : i32
  %1 = llvm.add %a, %b overflow<nsw> : i32
  %2 = llvm.sub %a, %b overflow<nsw, nuw> : i32
  %3 = llvm.mul %a, %b overflow<nuw> : i32
  %4 = llvm.shl %a, %b overflow<nsw> : i32
  %5 = llvm.sdiv %a, %b : i32
  %6 = llvm.udiv exact %a, %b : i32
  %7 = llvm.srem %a, %b : i32
  %8 = llvm.urem %a, %b : i32
  %9 = llvm.and %a, %b : i32
  %10 = llvm.or %a, %b : i32
  %11 = llvm.or disjoint %a, %b : i32
  %12 = llvm.xor %a, %b : i32
  %13 = llvm.lshr %a, %b : i32
  %14 = llvm.lshr exact %a, %b : i32
  %15 = llvm.ashr %a, %b : i32
  %16 = llvm.icmp "eq" %a, %b : i32
  %17 = llvm.icmp "ult" %l, %l : i64
  %18 = llvm.select %p, %a, %b : i1, i32
  %19 = llvm.zext %a : i32 to i64
  %20 = llvm.zext nneg %a : i32 to i64
  %21 = llvm.sext %a : i32 to i64
  %22 = llvm.trunc %l : i64 to i32
  %23 = llvm.trunc %l overflow<nuw> : i64 to i32
  %24 = llvm.sitofp %a : i32 to f32
  %25 = llvm.uitofp %a : i32 to f32
  %26 = llvm.uitofp nneg %a : i32 to f32
  %27 = llvm.freeze %a : i32
  llvm.return
}

// -----
llvm.func @float(%a: f32, %b: f32, %h: f16, %v: vector<2xf16>, %i: i32, %w: vector<4xf32>, %d: f64) {
  %0 = llvm.fadd %a, %b : f32
  %1 = llvm.fadd %a, %b {fastmathFlags = #llvm.fastmath<fast>} : f32
  %2 = llvm.fsub %a, %b {fastmathFlags = #llvm.fastmath<nnan, ninf>} : f32
  %3 = llvm.fmul %a, %b : f32
  %4 = llvm.fdiv %a, %b : f32
  %5 = llvm.frem %a, %b : f32
  %6 = llvm.fneg %a : f32
  %7 = llvm.fcmp "olt" %a, %b : f32
  %8 = llvm.fcmp "une" %a, %b {fastmathFlags = #llvm.fastmath<contract>} : f32
  %9 = llvm.fpext %h : f16 to f32
  %10 = llvm.fptrunc %a : f32 to f16
  %11 = llvm.fptosi %a : f32 to i32
  %12 = llvm.fptoui %a : f32 to i32
  %13 = llvm.extractelement %v[%i : i32] : vector<2xf16>
  %14 = llvm.insertelement %h, %v[%i : i32] : vector<2xf16>
  %15 = llvm.shufflevector %w, %w [0, 4, 1, 5] : vector<4xf32>
  %16 = llvm.shufflevector %w, %w [0, 1] : vector<4xf32>
  %17 = llvm.intr.fma(%a, %b, %a) : (f32, f32, f32) -> f32
  %18 = llvm.intr.fma(%v, %v, %v) : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> vector<2xf16>
  %19 = llvm.intr.maximum(%a, %b) : (f32, f32) -> f32
  %20 = llvm.intr.maxnum(%a, %b) : (f32, f32) -> f32
  %21 = llvm.intr.minnum(%a, %b) {fastmathFlags = #llvm.fastmath<nnan>} : (f32, f32) -> f32
  %22 = llvm.intr.exp2(%a) : (f32) -> f32
  %23 = llvm.intr.sqrt(%a) : (f32) -> f32
  %24 = llvm.intr.fabs(%a) : (f32) -> f32
  %25 = llvm.intr.smax(%i, %i) : (i32, i32) -> i32
  %26 = llvm.intr.umin(%i, %i) : (i32, i32) -> i32
  %27 = "llvm.intr.ctlz"(%i) <{is_zero_poison = false}> : (i32) -> i32
  %28 = "llvm.intr.abs"(%i) <{is_int_min_poison = false}> : (i32) -> i32
  %29 = llvm.intr.fshl(%i, %i, %i) : (i32, i32, i32) -> i32
  %30 = llvm.intr.ctpop(%i) : (i32) -> i32
  %31 = "llvm.intr.vector.reduce.fadd"(%a, %w) <{reassoc = true}> : (f32, vector<4xf32>) -> f32
  %32 = llvm.intr.vector.reduce.fmax(%w) : (vector<4xf32>) -> f32
  %33 = "llvm.intr.sadd.with.overflow"(%i, %i) : (i32, i32) -> !llvm.struct<(i32, i1)>
  %34 = llvm.intr.copysign(%a, %b) : (f32, f32) -> f32
  %35 = llvm.intr.floor(%a) : (f32) -> f32
  %36 = llvm.intr.roundeven(%d) : (f64) -> f64
  %37 = llvm.intr.bitreverse(%i) : (i32) -> i32
  %38 = llvm.intr.sadd.sat(%i, %i) : (i32, i32) -> i32
  llvm.return
}

// -----
llvm.func @control(%p: i1, %a: i32, %f: f32) -> i32 {
  llvm.cond_br %p, ^bb1(%a : i32), ^bb2
^bb1(%x: i32):
  llvm.cond_br %p weights([1, 3]), ^bb2, ^bb3(%x, %f : i32, f32)
^bb2:
  llvm.switch %a : i32, ^bb4(%a : i32) [
    1: ^bb5,
    42: ^bb4(%a : i32)
  ]
^bb3(%y: i32, %z: f32):
  llvm.br ^bb4(%y : i32)
^bb4(%r: i32):
  llvm.return %r : i32
^bb5:
  llvm.intr.trap
  llvm.unreachable
}

// -----
llvm.func @assume(%p: i1, %a: i32, %q: !llvm.ptr) {
  "llvm.intr.assume"(%p) <{op_bundle_sizes = array<i32>}> : (i1) -> ()
  %0 = llvm.intr.expect %p, %p : i1
  llvm.intr.debugtrap
  %1 = "llvm.intr.is.constant"(%a) : (i32) -> i1
  llvm.return
}

// -----
llvm.func @bundles(%p: i1, %a: i32, %q: !llvm.ptr) {
  llvm.intr.assume %p : i1
  llvm.intr.assume %p ["align"(%q, %a : !llvm.ptr, i32)] : i1
  llvm.return
}
