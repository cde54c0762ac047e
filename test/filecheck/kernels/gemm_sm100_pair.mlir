// The stages of test/examples/gemm_sm100_pair.mlir, and the machine code.
// RUN: cute-opt %S/../../examples/gemm_sm100_pair.mlir --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %S/../../examples/gemm_sm100_pair.mlir --pipeline=base --verify-legality | FileCheck %s --check-prefix=BASE
// RUN: %if mlir %{ cute-opt %S/../../examples/gemm_sm100_pair.mlir --pipeline=nvptx=chip=sm_100f --emit=ptx | FileCheck %s --check-prefix=PTX %}
// RUN: %if ptxas %{ cute-opt %S/../../examples/gemm_sm100_pair.mlir --pipeline=nvptx=chip=sm_100a --emit=cubin -o %t.cubin && %python %S/../../support/machine_code.py %t.cubin UTCHMMA=4 UTCBAR=2 UTMALDG=2 LDTM=8 F2FP=128 STG=16 UTCATOMSWS=3 UCGABAR=4 ELECT=4 %}

// ARCH-LABEL: gpu.func @gemm
// ARCH-COUNT-2:   cute_nvgpu.arch.tma_load(
// ARCH-COUNT-4:   cute_nvgpu.arch.tcgen05_mma
// ARCH-COUNT-2:   cute_nvgpu.arch.tcgen05_commit(%{{.*}}, %{{.*}}) {cta_group = 2 : i32}

// The instruction descriptor 0x10400490. The mbarrier of a load is that of the even block: bit 24 of its address is 0.
// BASE-LABEL: llvm.func @gemm
// BASE-SAME:    nvvm.cluster_dim = array<i32: 2, 1, 1>
// BASE:         %[[MASK:.*]] = arith.constant -16777217 : i32
// BASE-NEXT:    %[[EVEN:.*]] = arith.andi %{{.*}}, %[[MASK]] : i32
// BASE-NEXT:    %[[LEADER:.*]] = llvm.inttoptr %[[EVEN]] : i32 to !llvm.ptr<3>
// BASE-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %[[LEADER]], {{.*}}group = #nvvm.cta_group<cta_2>
// BASE:         %{{.*}} = arith.constant 272630928 : i32
// BASE-COUNT-4: llvm.call_intrinsic "llvm.nvvm.tcgen05.mma.shared"
// BASE:         llvm.call_intrinsic "llvm.nvvm.tcgen05.commit.mc.shared.cg2"

// PTX-LABEL:    .entry gemm
// PTX:          .reqnctapercluster 2, 1, 1
// PTX:          tcgen05.alloc.cta_group::2
// PTX:          tcgen05.relinquish_alloc_permit.cta_group::2
// PTX:          and.b{{32|64}} {{.*}}, {{-16777217|4278190079|4278190072}};
// PTX-COUNT-2:  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2
// PTX-COUNT-4:  tcgen05.mma.cta_group::2.kind::f16
// PTX-NOT:      tcgen05.mma
// PTX-COUNT-2:  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
// PTX-COUNT-8:  tcgen05.ld.sync.aligned.32x32b.x32.b32
// PTX:          tcgen05.dealloc.cta_group::2
// PTX-NOT:      cta_group::1
