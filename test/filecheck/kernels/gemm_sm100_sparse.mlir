// Machine code of the GEMMs of sm_100 with a 2:4 sparse A: one UTCHMMA per MMA of a stage, and one UTCCP per stage.
// REQUIRES: slow, ptxas
// RUN: %python -c "from cute_dialect.kernels.gemm.sm100 import Sm100Config as C; from cute_dialect.kernels.gemm.sparse_sm100 import SparseSm100Config as S, sparse_sm100_text as t; print(t(S(C(tile=(128, 192), stages=3))))" > %t.mlir
// RUN: cute-opt %t.mlir --pipeline=nvptx=chip=sm_100a --emit=cubin -o %t.cubin && %python %S/../../support/machine_code.py %t.cubin UTCHMMA=4 UTCCP=1 UTCBAR=2 UTMALDG=4 LDTM=6 UTCATOMSWS=3
// RUN: %python -c "from cute_dialect.kernels.gemm.sm100 import Sm100Config as C; from cute_dialect.kernels.gemm.sparse_sm100 import SparseSm100Config as S, sparse_sm100_text as t; print(t(S(C('bf16', 'bf16', tile=(256, 192), stages=5, chip='sm_103a'))))" > %t.pair.mlir
// RUN: cute-opt %t.pair.mlir --pipeline=nvptx=chip=sm_103a --emit=cubin -o %t.pair && %python %S/../../support/machine_code.py %t.pair UTCHMMA=4 UTCCP=1 UTCBAR=2 UTMALDG=4 LDTM=6
