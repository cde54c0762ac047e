// Machine code of the block-scaled GEMMs of sm_100: one UTCQMMA (8-bit floats) or UTCOMMA (4-bit floats) per MMA, and one UTCCP
// per block of scale factors.
// REQUIRES: slow, ptxas
// RUN: %python -c "from cute_dialect.kernels.gemm.sm100 import Sm100Config as C, sm100_gemm_text as t; print(t(C('f8E4M3FN', 'bf16', tile=(128, 192), scaling='mx')))" > %t.mx.mlir
// RUN: cute-opt %t.mx.mlir --pipeline=nvptx=chip=sm_100a --emit=cubin -o %t.mx && %python %S/../../support/machine_code.py %t.mx UTCQMMA=4 UTCCP=3 UTCBAR=2 LDTM=6 UTMALDG=5 UTCATOMSWS=3
// RUN: %python -c "from cute_dialect.kernels.gemm.sm100 import Sm100Config as C, sm100_gemm_text as t; print(t(C('f4E2M1FN', 'bf16', tile=(256, 256), scaling='nv')))" > %t.nv.mlir
// RUN: cute-opt %t.nv.mlir --pipeline=nvptx=chip=sm_100a --emit=cubin -o %t.nv && %python %S/../../support/machine_code.py %t.nv UTCOMMA=4 UTCCP=12 UTCBAR=2 LDTM=16 UTMALDG=5 UTCATOMSWS=3
// RUN: %python -c "from cute_dialect.kernels.gemm.sm100 import Sm100Config as C, sm100_gemm_text as t; print(t(C('f4E2M1FN', 'bf16', tile=(128, 128), scaling='mx', chip='sm_110a')))" > %t.110.mlir
// RUN: cute-opt %t.110.mlir --pipeline=nvptx=chip=sm_110a --emit=cubin -o %t.110 && %python %S/../../support/machine_code.py %t.110 UTCOMMA=4 UTCCP=4 UTCBAR=2
