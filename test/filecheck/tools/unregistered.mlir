// With --allow-unregistered-dialect, as in upstream, only dialects that are not known are let through: what a known one does
// not have is an error.

// RUN: cute-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics
// RUN: not cute-opt %s --split-input-file 2>&1 | FileCheck %s
// RUN: echo '"x.y"() {a = #cute.z<"3">} : () -> !cute.spoon<3>' | cute-opt --dialects=base --allow-unregistered-dialect | FileCheck %s --check-prefix=BASE

// CHECK: error: operation 'x.y' belongs to the unregistered dialect 'x'
// BASE:  "x.y"() {a = #cute.z<"3">} : () -> !cute.spoon<3>
%0 = "x.y"() {a = #x.z<3>} : () -> !y.t<"(4,8">

// -----

// expected-error @+1 {{unregistered operation 'cute.statik'; did you mean 'cute.static'?}}
%0 = "cute.statik"() : () -> !cute.shape<"8">

// -----

// expected-error @+1 {{unregistered operation 'arith.oddi'}}
%0 = "arith.oddi"() : () -> i32

// -----

// expected-error @+1 {{unregistered type '!cute.spoon'}}
%0 = "x.y"() : () -> !cute.spoon<3>

// -----

// expected-error @+1 {{unregistered attribute '#cute.z'}}
"x.y"() {a = #cute.z<"3">} : () -> ()
