// RUN: cute-opt %s --mlir-print-debuginfo --mlir-print-op-generic | filecheck %s
// RUN: cute-opt %s --strip-debuginfo --mlir-print-debuginfo --mlir-print-op-generic | filecheck %s --check-prefix=STRIP
// STRIP-NOT: locations.mlir
// STRIP: loc(unknown)

// CHECK: ^bb0(%{{.*}}: i32 loc("{{.*}}locations.mlir":[[# @LINE + 1]]:14)):
func.func @f(%a: i32) -> i32 {
  // CHECK: "arith.addi"{{.*}} loc("{{.*}}locations.mlir":[[# @LINE + 1]]:8)
  %0 = arith.addi %a, %a : i32
  // CHECK: "arith.muli"{{.*}} loc("elsewhere.py":7:1)
  %1 = arith.muli %0, %a : i32 loc("elsewhere.py":7:1)
  // CHECK: "func.return"{{.*}} loc("{{.*}}locations.mlir":[[# @LINE + 1]]:3)
  "func.return"(%1) : (i32) -> ()
}
// CHECK: loc("{{.*}}locations.mlir":[[# @LINE - 8]]:1)
