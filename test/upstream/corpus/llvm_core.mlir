llvm.func @printf(!llvm.ptr, ...) -> i32
llvm.func @plain()
llvm.func internal hidden unnamed_addr fastcc @linked(%a: i32 {llvm.noundef}, %b: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64}) -> (i32 {llvm.signext}) attributes {dso_local, passthrough = ["noinline", ["key", "value"]]} {
  llvm.return %a : i32
}
llvm.func @kernel(%p: !llvm.ptr<1>, %t: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 384, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
  llvm.return
}
llvm.func @scaled() vscale_range(1, 4)
llvm.func weak_odr protected local_unnamed_addr @weak() comdat(@any::@weak) {
  llvm.unreachable
}
llvm.comdat @any {
  llvm.comdat_selector @weak any
}
llvm.mlir.global external @dsmem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
llvm.mlir.global internal @bars() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<8 x i64> {
  %0 = llvm.mlir.undef : !llvm.array<8 x i64>
  llvm.return %0 : !llvm.array<8 x i64>
}
llvm.mlir.global internal constant @format("%d\0A\00") {addr_space = 0 : i32}
llvm.mlir.global private unnamed_addr constant @answer(42 : i64) {addr_space = 0 : i32} : i64
llvm.mlir.global external thread_local @tls(0 : i32) {addr_space = 0 : i32, section = "data"} : i32
llvm.mlir.global internal constant @floats(dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>) {addr_space = 4 : i32} : !llvm.array<2 x f32>

// -----
llvm.func @callee(i32, f32) -> i64
llvm.func @printf(!llvm.ptr, ...) -> i32
llvm.func @noinline()
llvm.func @calls(%a: i32, %f: f32, %p: !llvm.ptr) {
  %0 = llvm.call @callee(%a, %f) : (i32, f32) -> i64
  %1 = llvm.call @printf(%p, %a) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32) -> i32
  %2 = llvm.call %p(%a) : !llvm.ptr, (i32) -> i32
  llvm.call @noinline() : () -> ()
  llvm.call fastcc @noinline() : () -> ()
  llvm.call tail @noinline() {no_unwind} : () -> ()
  %3 = llvm.call @callee(%a, %f) {fastmathFlags = #llvm.fastmath<fast>} : (i32 {llvm.noundef}, f32) -> (i64 {llvm.zeroext})
  llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%a) : (i32) -> ()
  %4 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%f) : (f32) -> f32
  %5 = llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%f) {fastmathFlags = #llvm.fastmath<nnan>} : (f32) -> f32
  llvm.inline_asm has_side_effects "bar.sync 0;", "~{memory}" : () -> ()
  %6 = llvm.inline_asm "add.u32 $0, $1, $2;", "=r,r,r" %a, %a : (i32, i32) -> i32
  %7 = llvm.inline_asm has_side_effects asm_dialect = att "mov.b32 {$0, $1}, $2;", "=r,=r,l" %p : (!llvm.ptr) -> !llvm.struct<(i32, i32)>
  %8 = llvm.inline_asm is_align_stack asm_dialect = intel "nop", "=r" : () -> i32
  llvm.return
}

// -----
llvm.func @types(%a: !llvm.struct<(ptr<1>, struct<(i32, i32)>)>, %b: !llvm.struct<packed (i8, i32)>, %c: !llvm.array<4 x vector<4xf32>>,
                 %d: !llvm.struct<"named", (i32, array<2 x struct<(f32, ptr)>>)>, %e: !llvm.ptr, %f: !llvm.array<2 x array<3 x f16>>,
                 %g: !llvm.struct<()>, %h: !llvm.target<"spirv.Event">) {
  %0 = llvm.extractvalue %a[0] : !llvm.struct<(ptr<1>, struct<(i32, i32)>)>
  %1 = llvm.extractvalue %a[1, 0] : !llvm.struct<(ptr<1>, struct<(i32, i32)>)>
  %2 = llvm.extractvalue %a[1] : !llvm.struct<(ptr<1>, struct<(i32, i32)>)>
  %3 = llvm.insertvalue %1, %a[1, 1] : !llvm.struct<(ptr<1>, struct<(i32, i32)>)>
  %4 = llvm.insertvalue %2, %a[1] : !llvm.struct<(ptr<1>, struct<(i32, i32)>)>
  %5 = llvm.extractvalue %c[3] : !llvm.array<4 x vector<4xf32>>
  %6 = llvm.mlir.poison : !llvm.struct<(i32, f32)>
  %7 = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
  %8 = llvm.mlir.zero : !llvm.ptr<3>
  %9 = llvm.mlir.constant(42 : i32) : i32
  %10 = llvm.mlir.constant(dense<0.000000e+00> : vector<4xf32>) : vector<4xf32>
  %11 = llvm.mlir.constant(true) : i1
  %12 = llvm.mlir.constant(1.500000e+00 : f32) : f32
  %13 = llvm.mlir.constant(-1 : i64) : i64
  %14 = llvm.extractvalue %d[1, 1, 0] : !llvm.struct<"named", (i32, array<2 x struct<(f32, ptr)>>)>
  llvm.return
}

// -----
llvm.mlir.global internal @g() {addr_space = 3 : i32} : !llvm.array<16 x f32>
llvm.func @memory(%p: !llvm.ptr<1>, %q: !llvm.ptr, %i: i64, %n: i32, %v: vector<4xf32>, %f: f32) {
  %0 = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  %1 = llvm.getelementptr inbounds %q[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, f32)>
  %2 = llvm.getelementptr inbounds|nuw %q[%i, 2, %n] : (!llvm.ptr, i64, i32) -> !llvm.ptr, !llvm.array<4 x array<8 x f16>>
  %3 = llvm.getelementptr nuw %q[-1] : (!llvm.ptr) -> !llvm.ptr, i8
  %4 = llvm.load %p : !llvm.ptr<1> -> f32
  %5 = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  %6 = llvm.load volatile %q : !llvm.ptr -> i32
  %7 = llvm.load %p invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  %8 = llvm.load %p {nontemporal} : !llvm.ptr<1> -> f32
  %9 = llvm.load %p atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> f32
  %10 = llvm.load %q atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> i32
  %11 = llvm.load %q dereferenceable<bytes = 8> : !llvm.ptr -> !llvm.ptr
  llvm.store %f, %p : f32, !llvm.ptr<1>
  llvm.store %v, %p {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
  llvm.store volatile %f, %q {nontemporal} : f32, !llvm.ptr
  llvm.store %n, %q atomic syncscope("block") release {alignment = 4 : i64} : i32, !llvm.ptr
  %12 = llvm.alloca %n x i32 {alignment = 8 : i64} : (i32) -> !llvm.ptr
  %13 = llvm.alloca %i x !llvm.struct<(i32, f64)> : (i64) -> !llvm.ptr
  %14 = llvm.alloca inalloca %i x i32 : (i64) -> !llvm.ptr
  %15 = llvm.addrspacecast %q : !llvm.ptr to !llvm.ptr<3>
  %16 = llvm.ptrtoint %p : !llvm.ptr<1> to i64
  %17 = llvm.inttoptr %i : i64 to !llvm.ptr<1>
  %18 = llvm.bitcast %v : vector<4xf32> to vector<4xi32>
  %19 = llvm.mlir.addressof @g : !llvm.ptr<3>
  %20 = llvm.mlir.addressof @memory : !llvm.ptr
  llvm.fence acq_rel
  llvm.fence syncscope("device") acq_rel
  llvm.fence syncscope("block") seq_cst
  %21 = llvm.atomicrmw fadd %p, %f monotonic : !llvm.ptr<1>, f32
  %22 = llvm.atomicrmw add %q, %n syncscope("device") acq_rel {alignment = 4 : i64} : !llvm.ptr, i32
  %23 = llvm.atomicrmw volatile xchg %q, %n seq_cst : !llvm.ptr, i32
  %24 = llvm.atomicrmw _and %q, %n release : !llvm.ptr, i32
  %25 = llvm.cmpxchg %q, %n, %n acq_rel monotonic : !llvm.ptr, i32
  %26 = llvm.cmpxchg weak volatile %q, %n, %n syncscope("device") seq_cst acquire {alignment = 4 : i64} : !llvm.ptr, i32
  "llvm.intr.memcpy"(%q, %q, %i) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.intr.lifetime.start %12 : !llvm.ptr
  llvm.intr.lifetime.end %12 : !llvm.ptr
  llvm.return
}
