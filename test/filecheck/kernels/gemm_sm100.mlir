// The stages of test/examples/gemm_sm100.mlir, and the machine code of each chip with tensor memory.
// RUN: cute-opt %S/../../examples/gemm_sm100.mlir --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %S/../../examples/gemm_sm100.mlir --pipeline=base --verify-legality | FileCheck %s --check-prefix=BASE
// RUN: %if mlir %{ cute-opt %S/../../examples/gemm_sm100.mlir --pipeline=nvptx=chip=sm_100f --emit=ptx | FileCheck %s --check-prefix=PTX %}
// RUN: %if ptxas %{ cute-opt %S/../../examples/gemm_sm100.mlir --pipeline=nvptx=chip=sm_100a --emit=cubin -o %t.cubin && %python %S/../../support/machine_code.py %t.cubin UTCHMMA=4 UTCBAR=2 UTMALDG=2 LDTM=8 F2FP=128 STG=16 UTCATOMSWS=3 ELECT=3 %}

// ARCH-LABEL: gpu.func @gemm
// ARCH:         cute_nvgpu.arch.tmem_alloc
// ARCH:         cute_nvgpu.arch.tmem_pointer
// The first step of K adds to the accumulator except in the first iteration.
// ARCH:           cute_nvgpu.arch.tcgen05_mma(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {accumulate = true
// ARCH-COUNT-3:   cute_nvgpu.arch.tcgen05_mma(%{{.*}}, %{{.*}}, %{{.*}}) {accumulate = true
// ARCH:           cute_nvgpu.arch.tcgen05_commit

// The instruction descriptor 0x08400490, and the high word 0x40004040 of the matrix descriptors.
// BASE-LABEL: llvm.func @gemm
// BASE:         arith.constant 4611756662049472512 : i64
// BASE:         arith.constant 138413200 : i32
// BASE-COUNT-4: llvm.call_intrinsic "llvm.nvvm.tcgen05.mma.shared"
// BASE:         llvm.call_intrinsic "llvm.nvvm.tcgen05.ld.32x32b.x32"
// BASE-NEXT:    llvm.call_intrinsic "llvm.nvvm.tcgen05.wait.ld"

// PTX-LABEL:    .entry gemm
// PTX-COUNT-4:  tcgen05.mma.cta_group::1.kind::f16
// PTX-NOT:      tcgen05.mma
// The conversions follow the wait.
// PTX:          tcgen05.ld.sync.aligned.32x32b.x32.b32
// PTX-NOT:      cvt
// PTX:          tcgen05.wait::ld.sync.aligned;
// PTX-COUNT-16: cvt.rn.bf16x2.f32
// PTX:          st.global.v8.b32
// PTX:          tcgen05.dealloc
