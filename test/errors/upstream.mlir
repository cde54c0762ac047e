// Errors that the parsers and verifiers of upstream ops report.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge, got 'less'}}
  %0 = llvm.icmp "less" %a, %a : i32
//               ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'condition' of 'arith.select': expected bool-like, got i32}}
  %0 = arith.select %a, %a, %a : i32, i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'condition' of 'arith.select': expected bool-like, got i32}}
  %0 = "arith.select"(%a, %a, %a) : (i32, i32, i32) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'arith.select': expected one type for true_value, false_value, result, got f32, i32}}
  %0 = "arith.select"(%b, %a, %f) : (i1, i32, f32) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected three operands and at most two types, got 3 and 3}}
  %0 = arith.select %b, %a, %a : i1, i32, i32
//                               ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'llvm.extractvalue' op element [1] of !llvm.struct<(i32, f32)> is f32, got i32}}
  %0 = "llvm.extractvalue"(%s) <{position = array<i64: 1>}> : (!llvm.struct<(i32, f32)>) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{!llvm.struct<(i32, f32)> has no element at [2]}}
  %0 = llvm.extractvalue %s[2] : !llvm.struct<(i32, f32)>
//                       ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{operand bundles are not supported in the custom form, write the op in generic form}}
  llvm.call @f(%a) ["x"(%a : i32)] : (i32) -> ()
//                 ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected '(' and the types of the operands}}
  llvm.call @f(%a) : i32 -> ()
//                   ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{operand bundles are not supported in the custom form, write the op in generic form}}
  llvm.call_intrinsic "llvm.x"(%a) ["x"(%a : i32)] : (i32) -> ()
//                                 ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.shfl.sync' requires attribute 'kind'}}
  %0 = "nvvm.shfl.sync"(%a, %f, %a, %a) : (i32, f32, i32, i32) -> f32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'pred' of 'nvvm.vote.sync': expected type i1, got i32}}
  %0 = "nvvm.vote.sync"(%a, %a) <{kind = #nvvm<vote_sync_kind any>}> : (i32, i32) -> i1
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.vote.sync' op attribute 'kind' of 'nvvm.vote.sync': expected #nvvm.vote_sync_kind, got 3 : i32}}
  %0 = "nvvm.vote.sync"(%a, %b) <{kind = 3 : i32}> : (i32, i1) -> i1
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'addr' of 'llvm.load': expected LLVM pointer type, got i32}}
  %0 = "llvm.load"(%a) : (i32) -> f32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'llvm.add': expected one type for lhs, rhs, res, got i32, i64}}
  %0 = "llvm.add"(%a, %a) : (i32, i32) -> i64
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'rhs' of 'llvm.add': expected signless integer or LLVM dialect-compatible vector of signless integer, got f32}}
  %0 = "llvm.add"(%a, %f) : (i32, f32) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.barrier' requires attribute 'operandSegmentSizes'}}
  "nvvm.barrier"(%a) : (i32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.barrier' expects 3 segment sizes with sum 1 for its operands, got [1, 1]}}
  "nvvm.barrier"(%a) <{operandSegmentSizes = array<i32: 1, 1>}> : (i32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.barrier' expects 3 segment sizes with sum 3 for its operands, got [2, 1]}}
  "nvvm.barrier"(%a, %a, %a) <{operandSegmentSizes = array<i32: 2, 1>}> : (i32, i32, i32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.barrier0' expects 0 operands, got 1}}
  "nvvm.barrier0"(%a) : (i32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.cp.async.wait.group' op attribute 'n' of 'nvvm.cp.async.wait.group': expected an attribute of type i32, got 2 : i64}}
  "nvvm.cp.async.wait.group"() <{n = 2 : i64}> : () -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.cp.async.wait.group' requires attribute 'n'}}
  "nvvm.cp.async.wait.group"() : () -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'lhs' of 'arith.cmpf': expected floating-point-like, got i32}}
  %0 = arith.cmpf olt, %a, %a : i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of alias, async, async.global, async.shared, tensormap, generic for '#nvvm.proxy_kind'}}
  "nvvm.fence.proxy"() <{kind = #nvvm.proxy_kind<quantum>}> : () -> ()
//                                               ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{Expected '<' after '#nvvm.proxy_kind'}}
  "nvvm.fence.proxy"() <{kind = #nvvm.proxy_kind}> : () -> ()
//                                              ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of bfly, up, down, idx for attribute 'kind'}}
  nvvm.shfl.sync sideways %a, %f, %a, %a : f32 -> f32
//               ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of bfly, up, down, idx for attribute 'kind'}}
  nvvm.shfl.sync "sideways" %a, %f, %a, %a : f32 -> f32
//               ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected ','}}
  nvvm.shfl.sync bfly %a %f, %a, %a : f32 -> f32
//                       ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected i32 for attribute 'n'}}
  nvvm.cp.async.wait.group %a
//                         ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{the custom form of 'nvvm.mma.block_scale' is not supported, write it in generic form: "nvvm.mma.block_scale"(…) …}}
  nvvm.mma.block_scale A[%a]
//                     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'vector.shuffle' needs result_types: the type of 'vector' cannot be inferred}}
  %0 = vector.shuffle %a, %a [0, 1] : i32, i32
//                    ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected a vector type and a ranked memref or tensor type, got i32 and f32}}
  %0 = vector.transfer_read %m[], %f : i32, f32
//                                     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected an integer or an operand as index}}
  %0 = llvm.getelementptr %p[f32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
//                           ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected the types of A, B and C, got 2 types}}
  %0 = nvvm.mma.sync A[%a] B[%a] C[%a] {} : (i32, i32) -> i32
//                                          ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'vector.shuffle' needs result_types: the type of 'vector' cannot be inferred}}
  %0 = vector.shuffle %a, %f [0, 1] : i32, f32
//                    ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'nvvm.cp.async.bulk.commit.group' expects 0 operands, got 1}}
  "nvvm.cp.async.bulk.commit.group"(%a) : (i32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'addr' of 'llvm.store': expected LLVM pointer type, got f32}}
  "llvm.store"(%a, %f) : (i32, f32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'indices' of 'memref.load': expected type index, got i32}}
  %0 = "memref.load"(%m, %a) : (memref<f32>, i32) -> f32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'memref.load': expected f32 for 'result', got i32}}
  %0 = "memref.load"(%m) : (memref<f32>) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'result' of 'arith.cmpi': expected bool-like, got i32}}
  %0 = "arith.cmpi"(%a, %a) <{predicate = 0 : i64}> : (i32, i32) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'res' of 'llvm.icmp': expected 1-bit signless integer or LLVM dialect-compatible vector of 1-bit signless integer, got i32}}
  %0 = "llvm.icmp"(%a, %a) <{predicate = 0 : i64}> : (i32, i32) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'gpu.launch_func' expects 13 segment sizes with sum 1 for its operands, got [0, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]}}
  "gpu.launch_func"(%a) <{kernel = @m::@k, operandSegmentSizes = array<i32: 0, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> : (i32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'gpu.launch_func' expects 13 segment sizes with sum 6 for its operands, got [0, 2, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0]}}
  "gpu.launch_func"(%a, %a, %a, %a, %a, %a) <{kernel = @m::@k, operandSegmentSizes = array<i32: 0, 2, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> : (i32, i32, i32, i32, i32, i32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of add, and, max, min, or, umax, umin, xor, fmin, fmax for attribute 'kind'}}
  %0 = nvvm.redux.sync foo %a, %a : i32 -> i32
//                     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of xor, up, down, idx for attribute 'mode'}}
  %0 = gpu.shuffle foo %f, %a, %a : f32
//                 ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'llvm.intr.memcpy' op attribute 'isVolatile' of 'llvm.intr.memcpy': expected an attribute of type i1, got 3 : i32}}
  "llvm.intr.memcpy"(%p, %p, %a) <{isVolatile = 3 : i32}> : (!llvm.ptr<1>, !llvm.ptr<1>, i32) -> ()
//^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{Expected `nsw`, or `nuw`.}}
  %0 = arith.addi %a, %a overflow<foo> : i32
//                                ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of row, col for '#nvvm.mma_layout'}}
  %0 = nvvm.ldmatrix %p {num = 4 : i32, layout = #nvvm.mma_layout<diagonal>} : (!llvm.ptr<1>) -> i32
//                                                                ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected '->'}}
  %0, %1 = nvvm.elect.sync %a, %b -> i1
//                           ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  gpu.barrier %a
  // expected-error @below {{Expected '=' after operation result list}}
  llvm.return
//^
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{attribute 'mask': Integer value 99999999999999999999 is out of range for type i64 which supports values in the range [-9223372036854775808, 18446744073709551616)}}
  %0 = vector.shuffle %v, %v [99999999999999999999, 1] : vector<2xf32>, vector<2xf32>
//                           ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{attribute 'position': Integer value 99999999999999999999 is out of range for type i64 which supports values in the range [-9223372036854775808, 18446744073709551616)}}
  %0 = llvm.extractvalue %s[99999999999999999999] : !llvm.struct<(i32, f32)>
//                         ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'vector.shuffle' needs result_types: the type of 'vector' cannot be inferred}}
  %0 = vector.shuffle %f, %f [1, 2] : f32, f32
//                    ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{operand 'value' of 'gpu.all_reduce' expected}}
  %0 = gpu.all_reduce foo %f {} : (f32) -> f32
//                    ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{operand 'value' of 'gpu.all_reduce' expected}}
  %0 = gpu.all_reduce "foo" %f {} : (f32) -> f32
//                    ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of add, mul, minui, minsi, minnumf, maxui, maxsi, maxnumf, and, or, xor, maximumf, minimumf for '#vector.kind'}}
  %0 = vector.reduction <foo>, %f : f32 into f32
//                       ^
  llvm.return
}

// -----

// expected-note @below {{prior use here}}
llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{use of value '%a' expects different type than prior uses: 'f32' vs 'i32'}}
  %0 = llvm.insertvalue %a, %s[1] : !llvm.struct<(i32, f32)>
//                      ^
  llvm.return
}

// -----

// expected-note @below {{prior use here}}
llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{use of value '%m' expects different type than prior uses: 'memref<4xf32>' vs 'memref<f32>'}}
  %0 = memref.load %m[%a] : memref<4xf32>
//                 ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{attribute 'mode' is given twice}}
  %0 = gpu.shuffle xor %f, %a, %a {mode = #gpu<shuffle_mode xor>} : f32
//                                ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'source' of 'vector.extract': expected vector of any type values, got i32}}
  %0 = vector.extract %a[0] : i32 from i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'vector' of 'vector.broadcast': expected vector of any type values, got i32}}
  %0 = vector.broadcast %f : f32 to i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected ']'}}
  nvvm.cp.async.bulk.tensor.prefetch %p, box[%a : !llvm.ptr<1>
//                                              ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected ':'}}
  %0 = llvm.bitcast %a, %a : i32 to f32
//                    ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'llvm.intr.fma' expects 3 operands, got 2}}
  %0 = llvm.intr.fma(%f, %f) : (f32, f32) -> f32
//                             ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'llvm.intr.fma' has 3 operands, but 2 types are given}}
  %0 = llvm.intr.fma(%f, %f, %f) : (f32, f32) -> f32
//                                 ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  %0 = nvvm.vote.sync any %a, %b
  // expected-error @below {{expected '->'}}
  llvm.return
//^
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  nvvm.barrier0 {a = 1 : i32, a = 2 : i32}
  // expected-error @below {{Duplicate key 'a' in dictionary attribute}}
  llvm.return
//^
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected i64 for attribute 'group'}}
  nvvm.wgmma.wait.group.sync.aligned row
//                                   ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected 1 operand types, got 2}}
  %0:2 = scf.while (%x = %a) : (i32, i32) -> i32 { scf.condition(%b) %x : i32 } do { ^y(%z: i32): scf.yield %z : i32 }
//                             ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'scf.while' op expected the arguments of the second region to have the result types (i32), got ()}}
  %0 = scf.while (%x = %a) : (i32) -> i32 { scf.condition(%b) %x : i32 } do { ^y: scf.yield %a : i32 }
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'scf.while' op expected the arguments of the first region to have the operand types (i32), got ()}}
  %0 = "scf.while"(%a) ({ ^x: "scf.condition"(%b, %a) : (i1, i32) -> () }, { ^y(%z: i32): "scf.yield"(%z) : (i32) -> () }) : (i32) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected three dimensions, got 2 ids and 2 sizes}}
  gpu.launch blocks(%x, %y) in (%u = %a, %v = %a) threads(%t, %r, %q) in (%c = %a, %d = %a, %e = %a) { gpu.terminator }
//                             ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected one of x, y, z for attribute 'dimension'}}
  %0 = gpu.thread_id w
//                   ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{expected ','}}
  gpu.launch_func @m::@k blocks in (%a, %a) threads in (%a, %a, %a) : i32
//                                        ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{the custom form of 'llvm.intr.ctlz' is not supported, write it in generic form: "llvm.intr.ctlz"(…) …}}
  %0 = llvm.intr.ctlz(%a) <{is_zero_poison}> : (i32) -> i32
//                   ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'gpu.all_reduce' expects 1 regions, got 0}}
  %0 = "gpu.all_reduce"(%f) : (f32) -> f32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{Expected ','}}
  %0 = math.fma %f, %f : f32
//                     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'llvm.intr.umax' expects 2 operands, got 1}}
  %0 = "llvm.intr.umax"(%a) : (i32) -> i32
//     ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'llvm.br' op is a terminator, so it must be the last op of its block}}
  "llvm.br"(%a) : (i32) -> ()
//^
  llvm.return
}

// -----

// expected-note @below {{prior use here}}
llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{use of value '%a' expects different type than prior uses: 'index' vs 'i32'}}
  %0 = index.add %a, %a
//               ^
  llvm.return
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  %0 = ub.poison
  // expected-error @below {{Expected ':'}}
  llvm.return
//^
}

// -----

llvm.func @t(%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>, %v: vector<2xf32>) {
  // expected-error @below {{'llvm.mlir.constant' requires attribute 'value'}}
  %0 = "llvm.mlir.constant"() : () -> i32
//     ^
  llvm.return
}

// -----

  // expected-error @below {{expected at most one result, got 2}}
  llvm.func @t(i32) -> (i32, i32)
//            ^

// -----

  llvm.func @t(%a: i32)
  // expected-error @below {{expected '{' and the body of the function}}
  llvm.func @u()
//^

// -----

  llvm.mlir.global internal @g(1 : i32)
  // expected-error @below {{expected ':' and the type of the global}}
  llvm.func @u()
//^

// -----

  // expected-error @below {{'...' must be the last argument}}
  llvm.func @t(..., i32)
//                  ^

// -----

  // expected-error @below {{expected either all arguments with names or none}}
  llvm.func @t(%a: i32, i32) { llvm.return }
//                      ^

// -----

gpu.module @m {
  // expected-error @below {{expected either all arguments with names or none}}
  gpu.func @k(%a: i32, ...) { gpu.return }
//                     ^
}

// -----

  // expected-error @below {{expected three dimensions, got 2 ids and 2 sizes}}
  gpu.launch blocks(%x, %y) in (%u = %a, %v = %a) threads(%t) in (%c = %a) { gpu.terminator }
//                             ^

// -----

// expected-error @below {{expected '<' after '!llvm.struct'}}
func.func private @f(!llvm.struct)
//                               ^

// -----

// expected-error @below {{expected '<' after '!llvm.target'}}
func.func private @f(!llvm.target)
//                               ^

// -----

// expected-error @below {{expected '<' after '!nvgpu.tensormap.descriptor'}}
func.func private @f(!nvgpu.tensormap.descriptor)
//                                              ^

// -----

// expected-error @below {{attribute '#dlti.dl_spec' belongs to the unregistered dialect 'dlti' (known here: arith, builtin, cf, cute, cute_nvgpu, func, gpu, index, llvm, math, memref, nvgpu, nvvm, scf, ub, vector)}}
func.func private @f() attributes {a = #dlti.dl_spec}
//                                     ^

// -----

// expected-error @below {{expected '<' after '#llvm.constant_range'}}
func.func private @f() attributes {a = #llvm.constant_range}
//                                                         ^

// -----

// expected-error @below {{'}' expected}}
func.func private @f() attributes {a = #nvvm.target x}
//                                                  ^

// -----

  // expected-error @below {{'gpu.module' expects 1 regions, got 0}}
  "gpu.module"() <{sym_name = "m"}> : () -> ()
//^

// -----

module {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op the enclosing module must have the attribute 'gpu.container_module'}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32)
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected a kernel of a gpu.module, got @kernel::@k: no gpu.module is called @kernel}}
    gpu.launch_func @kernel::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32)
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected a kernel of a gpu.module, got @launch::@k: no gpu.module is called @launch}}
    gpu.launch_func @launch::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32)
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected a kernel of @kernels (@k, @k3), got @kernels}}
    gpu.launch_func @kernels blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32)
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected a kernel of @kernels (@k, @k3), got @kernels::@nope}}
    gpu.launch_func @kernels::@nope blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32)
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected a kernel, got @kernels::@f, a function without the attribute 'gpu.kernel'}}
    gpu.launch_func @kernels::@f blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32)
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected 2 arguments for @kernels::@k, got 1}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32)
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected argument 0 of @k of type f32, got i32}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%n : i32, %n : i32)
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected a kernel of @kernels (@k, @k3), got @kernels::@k4}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32) {cute.variants = [@kernels::@k4]}
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected 3 arguments for @kernels::@k3, got 2}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32) {cute.variants = [@kernels::@k3]}
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op attribute 'cute.variants' must contain symbols of kernels, got 3 : i32}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32) {cute.variants = [3 : i32]}
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
    gpu.func @k3(%a: f32, %b: i32, %c: i32) kernel {
      gpu.return
    }
    gpu.func @f(%a: f32, %b: i32) {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op attribute 'cute.variants' must be an array of symbols of kernels, got @kernels::@k}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32) {cute.variants = @kernels::@k}
//  ^
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: f32, %b: i32) kernel {
      gpu.return
    }
  }
  func.func @launch(%x: f32, %n: i32) {
    // expected-error @below {{'gpu.launch_func' op expected 'cute.pdl' without a value, got true}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%x : f32, %n : i32) {cute.pdl = true}
//  ^
    return
  }
}

// -----

llvm.func @t() {
  // expected-error @below {{'llvm.br' expects 1 successors, got 0}}
  "llvm.br"() : () -> ()
//^
}

// -----

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: i32) kernel {
      gpu.return
    }
  }
  func.func @launch(%n: i32) {
    // expected-error @below {{'cute.args' must be an array of strings, one type for each argument; got [3 : i32]}}
    gpu.launch_func @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%n : i32) {cute.args = [3 : i32]}
//  ^
    return
  }
}
