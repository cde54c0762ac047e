llvm.func @sregs() {
  %0 = nvvm.read.ptx.sreg.tid.x : i32
  %1 = nvvm.read.ptx.sreg.tid.y range <i32, 0, 1024> : i32
  %2 = nvvm.read.ptx.sreg.tid.z : i32
  %3 = nvvm.read.ptx.sreg.ntid.x : i32
  %4 = nvvm.read.ptx.sreg.ctaid.x : i32
  %5 = nvvm.read.ptx.sreg.nctaid.y : i32
  %6 = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
  %7 = nvvm.read.ptx.sreg.clusterid.x : i32
  %8 = nvvm.read.ptx.sreg.nclusterid.x : i32
  %9 = nvvm.read.ptx.sreg.cluster.ctaid.x : i32
  %10 = nvvm.read.ptx.sreg.cluster.nctaid.x : i32
  %11 = nvvm.read.ptx.sreg.cluster.ctarank : i32
  %12 = nvvm.read.ptx.sreg.cluster.nctarank : i32
  %13 = nvvm.read.ptx.sreg.smid : i32
  %14 = nvvm.read.ptx.sreg.clock : i32
  %15 = nvvm.read.ptx.sreg.clock64 : i64
  %16 = nvvm.read.ptx.sreg.lanemask.lt : i32
  %17 = nvvm.read.ptx.sreg.globaltimer : i64
  %18 = nvvm.read.ptx.sreg.nsmid : i32
  llvm.return
}

// -----
llvm.func @warp(%m: i32, %v: f32, %i: i32, %p: i1) {
  %0 = nvvm.shfl.sync bfly %m, %v, %i, %i : f32 -> f32
  %1 = nvvm.shfl.sync idx %m, %i, %i, %i : i32 -> i32
  %2 = nvvm.shfl.sync up %m, %v, %i, %i : f32 -> f32
  %3 = nvvm.shfl.sync down %m, %v, %i, %i {return_value_and_is_valid} : f32 -> !llvm.struct<(f32, i1)>
  %4 = nvvm.vote.sync ballot %m, %p -> i32
  %5 = nvvm.vote.sync any %m, %p -> i1
  %6 = nvvm.vote.sync all %m, %p -> i1
  %7 = nvvm.vote.sync uni %m, %p -> i1
  %8 = nvvm.redux.sync add %i, %m : i32 -> i32
  %9 = nvvm.redux.sync umax %i, %m : i32 -> i32
  %10 = nvvm.redux.sync fmin %v, %m {abs = true, nan = true} : f32 -> f32
  %11 = nvvm.match.sync any %m, %i : i32 -> i32
  %12 = nvvm.elect.sync -> i1
  %13 = nvvm.elect.sync %m -> i1
  nvvm.bar.warp.sync %m : i32
  %14 = nvvm.rcp.approx.ftz.f %v : f32
  %16 = nvvm.prmt <f4e> %i, %i, %i : i32
  llvm.return
}

// -----
llvm.func @barriers(%i: i32, %p: !llvm.ptr, %w: i32) {
  nvvm.barrier0
  nvvm.barrier
  nvvm.barrier id = %i
  nvvm.barrier id = %i number_of_threads = %w
  %0 = nvvm.barrier #nvvm.reduction<popc> %i -> i32
  nvvm.barrier.arrive number_of_threads = %w
  nvvm.barrier.arrive id = %i number_of_threads = %w
  nvvm.cluster.arrive
  nvvm.cluster.arrive {aligned}
  nvvm.cluster.arrive.relaxed {aligned}
  nvvm.cluster.wait {aligned}
  nvvm.fence.mbarrier.init
  nvvm.fence.sc.cluster
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  nvvm.fence.proxy.acquire <gpu> %p, %i
  nvvm.fence.proxy.acquire <sys> %p, %i from_proxy = <generic> to_proxy = <tensormap>
  nvvm.fence.proxy.release <cluster>
  nvvm.memory.barrier <cta>
  nvvm.memory.barrier <gpu>
  nvvm.griddepcontrol wait
  nvvm.griddepcontrol launch_dependents
  nvvm.setmaxregister increase 240
  nvvm.setmaxregister decrease 40
  nvvm.nanosleep %i
  nvvm.exit
  llvm.return
}

// -----
llvm.func @mbarrier(%b: !llvm.ptr<3>, %n: i32, %p: i1, %c: !llvm.ptr<7>, %s: i64) {
  nvvm.mbarrier.init %b, %n : !llvm.ptr<3>, i32
  nvvm.mbarrier.init %b, %n, predicate = %p : !llvm.ptr<3>, i32, i1
  nvvm.mbarrier.inval %b : !llvm.ptr<3>
  nvvm.mbarrier.arrive %b : !llvm.ptr<3>
  nvvm.mbarrier.arrive %b, %n : !llvm.ptr<3>
  %0 = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
  nvvm.mbarrier.arrive %c {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
  %1 = nvvm.mbarrier.arrive.nocomplete %b, %n : !llvm.ptr<3>, i32 -> i64
  nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
  %2 = nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32 -> i64
  nvvm.mbarrier.arrive.expect_tx %b, %n, predicate = %p : !llvm.ptr<3>, i32, i1
  nvvm.mbarrier.arrive.expect_tx %c, %n {relaxed = true, scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>, i32
  nvvm.mbarrier.arrive_drop %b : !llvm.ptr<3>
  nvvm.mbarrier.expect_tx %b, %n : !llvm.ptr<3>, i32
  nvvm.mbarrier.complete_tx %b, %n : !llvm.ptr<3>, i32
  %3 = nvvm.mbarrier.test.wait %b, %n : !llvm.ptr<3>, i32 -> i1
  %4 = nvvm.mbarrier.try_wait %b, %n : !llvm.ptr<3>, i32 -> i1
  %5 = nvvm.mbarrier.try_wait %b, %s : !llvm.ptr<3>, i64 -> i1
  %6 = nvvm.mbarrier.try_wait %b, %n, %n : !llvm.ptr<3>, i32, i32 -> i1
  nvvm.mbarrier.try_wait.parity %b, %n, %n : !llvm.ptr<3>, i32, i32
  %7 = nvvm.mapa %b, %n : !llvm.ptr<3> -> !llvm.ptr<7>
  llvm.return
}

// -----
llvm.func @async(%d: !llvm.ptr<3>, %s: !llvm.ptr<1>, %n: i32, %c: !llvm.ptr<7>, %b: !llvm.ptr<3>, %h: i64, %k: i16, %t: !llvm.ptr, %p: i1) {
  nvvm.cp.async.shared.global %d, %s, 16, cache =  cg : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.shared.global %d, %s, 4, cache =  ca, %n : !llvm.ptr<3>, !llvm.ptr<1>, i32
  nvvm.cp.async.commit.group
  nvvm.cp.async.wait.group 2
  nvvm.cp.async.mbarrier.arrive %b : !llvm.ptr<3>
  nvvm.cp.async.mbarrier.arrive %b {noinc = true} : !llvm.ptr<3>
  nvvm.cp.async.bulk.commit.group
  nvvm.cp.async.bulk.wait_group 0
  nvvm.cp.async.bulk.wait_group 1 {read}
  nvvm.cp.async.bulk.shared.cluster.global %c, %s, %b, %n : !llvm.ptr<7>, <1>
  nvvm.cp.async.bulk.shared.cluster.global %c, %s, %b, %n multicast_mask = %k l2_cache_hint = %h : !llvm.ptr<7>, <1>
  nvvm.cp.async.bulk.global.shared.cta %s, %d, %n : <1>, <3>
  nvvm.cp.async.bulk.shared.cluster.shared.cta %c, %d, %b, %n : <7>, <3>
  nvvm.cp.async.bulk.prefetch %s, %n : <1>
  nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %t, %b, box[%n] : !llvm.ptr<7>, !llvm.ptr
  nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %t, %b, box[%n, %n] multicast_mask = %k : !llvm.ptr<7>, !llvm.ptr
  nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %t, %b, box[%n, %n, %n] multicast_mask = %k l2_cache_hint = %h : !llvm.ptr<7>, !llvm.ptr
  nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %t, %b, box[%n, %n, %n, %n] im2col[%k, %k] {mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr<7>, !llvm.ptr
  nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %t, %b, box[%n, %n] predicate = %p : !llvm.ptr<7>, !llvm.ptr
  nvvm.cp.async.bulk.tensor.shared.cluster.global %d, %t, %b, box[%n, %n] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
  nvvm.cp.async.bulk.tensor.global.shared.cta %t, %d, box[%n, %n] : !llvm.ptr, <3>
  nvvm.cp.async.bulk.tensor.global.shared.cta %t, %d, box[%n, %n] l2_cache_hint = %h : !llvm.ptr, <3>
  nvvm.cp.async.bulk.tensor.global.shared.cta %t, %d, box[%n, %n], predicate = %p : !llvm.ptr, <3>
  nvvm.cp.async.bulk.tensor.prefetch %t, box[%n, %n] : !llvm.ptr
  nvvm.cp.async.bulk.tensor.reduce %t, %d, box[%n, %n] {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, <3>
  nvvm.prefetch tensormap, %t : !llvm.ptr
  nvvm.prefetch level = L1, %t : !llvm.ptr
  nvvm.prefetch level = L2, evict_priority = evict_last, %s : !llvm.ptr<1>
  nvvm.prefetch level = L1 uniform, %t : !llvm.ptr
  llvm.return
}

// -----
llvm.func @matrix(%p: !llvm.ptr<3>, %a: i32, %h: vector<2xf16>, %f: f32, %d: f64) {
  %0 = nvvm.ldmatrix %p {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  %1 = nvvm.ldmatrix %p {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 1 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> i32
  nvvm.stmatrix %p, %a, %a {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32
  %2 = nvvm.mma.sync A[%h, %h, %h, %h] B[%h, %h] C[%f, %f, %f, %f] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %3 = nvvm.mma.sync A[%h, %h, %h, %h] B[%h, %h] C[%h, %h] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
  %4 = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%f, %f, %f, %f] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %5 = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%a, %a, %a, %a] {intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>, layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<s8>, shape = #nvvm.shape<m = 16, n = 8, k = 32>} : (i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
  %6 = nvvm.mma.sync A[%d] B[%d] C[%d, %d] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 8, n = 8, k = 4>} : (f64, f64, f64) -> !llvm.struct<(f64, f64)>
  llvm.return
}

// -----
llvm.func @wgmma(%s: !llvm.struct<(f32, f32, f32, f32)>, %a: i64, %b: i64) {
  nvvm.wgmma.fence.aligned
  %0 = nvvm.wgmma.mma_async %a, %b, %s, <m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<f16>, <one>, <row>], B [<f16>, <neg>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
  %1 = nvvm.wgmma.mma_async %a, %b, %s, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<zero>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <col>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <row>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
  nvvm.wgmma.commit.group.sync.aligned
  nvvm.wgmma.wait.group.sync.aligned 0
  nvvm.wgmma.wait.group.sync.aligned 1
  llvm.return
}

// -----
llvm.func @ptx(%p: !llvm.ptr<1>, %i: i32, %l: i64, %q: i1) {
  nvvm.inline_ptx "membar.cta;"
  %0 = nvvm.inline_ptx "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;" -> i64
  %1:4 = nvvm.inline_ptx "ld.global.nc.v4.b32 {$0,$1,$2,$3}, [$4];" ro(%p : !llvm.ptr<1>) -> i32, i32, i32, i32
  nvvm.inline_ptx "st.global.b32 [$0], $1;" ro(%p, %i : !llvm.ptr<1>, i32), predicate = %q
  nvvm.inline_ptx "{ mov.b32 $0, 1; }" rw(%i : i32)
  llvm.return
}

// -----
llvm.func @convert(%a: f32, %b: f32, %h: vector<2xf16>, %e: vector<2xi8>, %g: vector<2xbf16>) {
  %0 = nvvm.convert.float.to.tf32 %a {rnd = #nvvm.fp_rnd_mode<rna>}
  %1 = nvvm.convert.f32x2.to.f8x2 %a, %b {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN)
  %2 = nvvm.convert.f32x2.to.f16x2 %a, %b {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xf16>
  %3 = nvvm.convert.f32x2.to.bf16x2 %a, %b {rnd = #nvvm.fp_rnd_mode<rz>} : vector<2xbf16>
  %4 = nvvm.convert.f16x2.to.f8x2 %h : vector<2xf16> -> i16 (f8E5M2)
  %5 = nvvm.convert.f8x2.to.f16x2 %e : vector<2xi8> (f8E4M3FN) -> vector<2xf16>
  %6 = nvvm.convert.bf16x2.to.f8x2 %g {rnd = #nvvm.fp_rnd_mode<rp>, sat = #nvvm.sat_mode<satfinite>} : vector<2xbf16> -> i16 (f8E8M0FNU)
  llvm.return
}

// -----
llvm.func @generic_only(%d: i32) {
  %0 = "nvvm.read.ptx.sreg.envreg3"() : () -> i32
  "nvvm.pmevent"() <{eventId = 3 : i32}> : () -> ()
  "nvvm.breakpoint"() : () -> ()
  llvm.return
}
