// Passes are flags; one dash and two mean the same; they run in the order given.
// RUN: cute-opt %s -cse | filecheck %s --check-prefix=CSE
// RUN: cute-opt %s --cse --canonicalize | filecheck %s --check-prefix=BOTH
// RUN: cute-opt %s --pass-pipeline='builtin.module(func.func(cse))' | filecheck %s --check-prefix=CSE
// RUN: cute-opt %s --canonicalize --mlir-print-ir-before=canonicalize --mlir-print-ir-after-all 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: cute-opt %s -cse --mlir-timing 2>&1 >%t.timed | filecheck %s --check-prefix=TIME

// CSE-LABEL: func.func @twice
// CSE-NEXT:    %[[S:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CSE-NEXT:    arith.addi %[[S]], %[[S]] : i32
// CSE-NEXT:    %[[Z:.*]] = arith.constant 0
// CSE-NEXT:    arith.addi
// BOTH-LABEL: func.func @twice
// BOTH-NEXT:    %[[S:.*]] = arith.addi
// BOTH-NEXT:    %[[T:.*]] = arith.addi %[[S]], %[[S]] : i32
// BOTH-NEXT:    return %[[T]] : i32
func.func @twice(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %a, %b : i32
  %2 = arith.addi %0, %1 : i32
  %z = arith.constant 0 : i32
  %3 = arith.addi %2, %z : i32
  return %3 : i32
}

// DUMP: IR Dump Before canonicalize
// DUMP: arith.constant 0
// DUMP: IR Dump After canonicalize
// DUMP-NOT: arith.constant
// DUMP: module {

// TIME: execution time report
// TIME: import
// TIME: parse
// TIME: verify
// TIME: cse
// TIME: print
// TIME: 100.0%  total
