// Attention for sm_100: the instructions of each role occur once, and one UTCHMMA per MMA.
// REQUIRES: slow, ptxas
// RUN: %python -c "from cute_dialect.kernels.attention.sm100 import Sm100Attention as C, sm100_attention_text as t; print(t(C(head=64)))" > %t.64.mlir
// RUN: cute-opt %t.64.mlir --pipeline=nvptx=chip=sm_100a --emit=ptx -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx --check-prefix=ROLES
// RUN: FileCheck %s --input-file=%t.ptx --check-prefix=MMA
// RUN: FileCheck %s --input-file=%t.ptx --check-prefix=LOAD
// RUN: FileCheck %s --input-file=%t.ptx --check-prefix=EXP
// RUN: cute-opt %t.64.mlir --pipeline=nvptx=chip=sm_100a --emit=cubin -o %t.64 && %python %S/../../support/machine_code.py %t.64 UTCHMMA=12 UTCBAR=4 LDTM=6 STTM=4 UTMALDG=4 UTMASTG=2 USETMAXREG=3 UTCATOMSWS=3 FADD2=64 F2FP=96 VOTE=1
// RUN: %python -c "from cute_dialect.kernels.attention.sm100 import Sm100Attention as C, sm100_attention_text as t; print(t(C(mask='right', lse=True, chip='sm_103a')))" > %t.128.mlir
// RUN: cute-opt %t.128.mlir --pipeline=nvptx=chip=sm_103a --emit=cubin -o %t.128 && %python %S/../../support/machine_code.py %t.128 UTCHMMA=16 UTCBAR=4 LDTM=10 STTM=6 UTMALDG=8 UTMASTG=4 USETMAXREG=3 UTCATOMSWS=3 FADD2=64 F2FP=128 VOTE=1 STG=1
// RUN: %python -c "from cute_dialect.kernels.attention.sm100 import Sm100Attention as C, sm100_attention_text as t; print(t(C('f16', chip='sm_110a')))" > %t.110.mlir
// RUN: cute-opt %t.110.mlir --pipeline=nvptx=chip=sm_110a --emit=cubin -o %t.110 && %python %S/../../support/machine_code.py %t.110 UTCHMMA=16 UTCBAR=4 LDTM=10 STTM=6 UTMALDG=8 UTMASTG=4 USETMAXREG=3 UTCATOMSWS=3 F2FP=128 VOTE=1

// ROLES-DAG:   setmaxnreg.dec.sync.aligned.u32 {{.*}}80;
// ROLES-DAG:   setmaxnreg.inc.sync.aligned.u32 {{.*}}176;
// ROLES-DAG:   tcgen05.alloc.cta_group::1
// ROLES-DAG:   tcgen05.relinquish_alloc_permit.cta_group::1
// ROLES:       tcgen05.dealloc.cta_group::1

// MMA-COUNT-12: tcgen05.mma.cta_group::1.kind::f16
// MMA-NOT:      tcgen05.mma

// LOAD-COUNT-2: tcgen05.ld.sync.aligned.32x32b.x64.b32
// LOAD-NOT:     32x32b.x64

// EXP-COUNT-129: ex2.approx.ftz.f32
// EXP-NOT:       ex2.approx
