// Types: the canonical text of each kind, and attributes of the same text on any op.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s

// CHECK-LABEL: @types(
func.func @types(
  // CHECK-SAME: !cute.shape<"(6,(2,5))">
  %a0: !cute.shape<"( 6 , ( 2,5 ) )">,
  // CHECK-SAME: !cute.shape<"?{i64}">
  %a1: !cute.shape<"?{ i64 }">,
  // CHECK-SAME: !cute.shape<"?">
  %a2: !cute.shape<"?{i32}">,
  // CHECK-SAME: !cute.shape<"?">
  %a3: !cute.shape<"?{}">,
  // CHECK-SAME: !cute.shape<"?{i64}">
  %a4: !cute.shape<"?{i8 i64}">,
  // CHECK-SAME: !cute.shape<"(7)">
  %a5: !cute.shape<"(7,)">,
  // CHECK-SAME: !cute.shape<"(-7,0)">
  %a6: !cute.shape<"(-007,0)">,
  // CHECK-SAME: !cute.shape<"()">
  %a7: !cute.shape<"()">,
  // CHECK-SAME: !cute.shape<"9223372036854775807">
  %a8: !cute.shape<"9223372036854775807">,
  // CHECK-SAME: !cute.int_tuple<"(?{i1},?{i8},?{i16})">
  %a9: !cute.int_tuple<"(?{i1},?{i8},?{i16})">,
  // CHECK-SAME: !cute.int_tuple<"?">
  %a10: !cute.int_tuple<"?{div=1}">,
  // CHECK-SAME: !cute.int_tuple<"?{i64 div=16}">
  %a11: !cute.int_tuple<"?{div=16,i64}">,
  // CHECK-SAME: !cute.int_tuple<"?{div=8}">
  %a12: !cute.int_tuple<"?{ i32 div = 8 }">,
  // CHECK-SAME: !cute.coord<"(_,(2,?))">
  %a13: !cute.coord<"( _ , (2, ?))">,
  // CHECK-SAME: !cute.stride<"(1@0,2@1)">
  %a14: !cute.stride<"( 1@0 , 2 @ 1 )">,
  // CHECK-SAME: !cute.stride<"(0,(1@0@1,?{i64}@1@1))">
  %a15: !cute.stride<"(0,(1@0@1,?{i64}@1@1))">,
  // CHECK-SAME: !cute.layout<"6:1">
  %a16: !cute.layout<"6">,
  // CHECK-SAME: !cute.layout<"(6,1,5):(1,0,6)">
  %a17: !cute.layout<"(6,1,5)">,
  // CHECK-SAME: !cute.layout<"((2,5),3):((1,2),10)">
  %a18: !cute.layout<"((2,5),3)">,
  // CHECK-SAME: !cute.layout<"(6,?,5):(1,6,?)">
  %a19: !cute.layout<"(6,?,5)">,
  // CHECK-SAME: !cute.layout<"(?{i64},9):(1,?{i64})">
  %a20: !cute.layout<"(?{i64},9)">,
  // CHECK-SAME: !cute.layout<"(6,5):(5,1)">
  %a21: !cute.layout<"( 6,5 ) : ( 5 ,1)">,
  // CHECK-SAME: !cute.layout<"20:2">
  %a22: !cute.layout<"20:2">,
  // CHECK-SAME: !cute.layout<"(20):(2)">
  %a23: !cute.layout<"(20):(2)">,
  // CHECK-SAME: !cute.layout<"():()">
  %a24: !cute.layout<"():()">,
  // CHECK-SAME: !cute.layout<"(4,2):(-1,0)">
  %a25: !cute.layout<"(4,2):(-1,0)">,
  // CHECK-SAME: !cute.tile<"[6:1;_]">
  %a26: !cute.tile<"[ 6 ; _ ]">,
  // CHECK-SAME: !cute.tile<"6:1">
  %a27: !cute.tile<"6">,
  // CHECK-SAME: !cute.tile<"[4:1;8:1]">
  %a28: !cute.tile<"[4;8]">,
  // CHECK-SAME: !cute.tile<"[4:1]">
  %a29: !cute.tile<"[4:1]">,
  // CHECK-SAME: !cute.tile<"_">
  %a30: !cute.tile<"_">,
  // CHECK-SAME: !cute.tile<"{{\[\[}}2:1;_];(3,4):(4,1)]">
  %a31: !cute.tile<"[[2:1;_];(3,4):(4,1)]">,
  // CHECK-SAME: !cute.composed_layout<"S<2,3,3> o 5 o (8,8):(1,8)">
  %a32: !cute.composed_layout<"S< 2 , 3 , 3 >o 5 o(8,8)">,
  // CHECK-SAME: !cute.composed_layout<"(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)">
  %a33: !cute.composed_layout<"(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)">,
  // CHECK-SAME: !cute.swizzle<"S<3,4,3>">
  %a34: !cute.swizzle<"S<3,4,3>">,
  // CHECK-SAME: !cute.swizzle<"S<2,0,-2>">
  %a35: !cute.swizzle<"S<2,0,-2>">,
  // CHECK-SAME: !cute.swizzle<"S<0,4,3>">
  %a36: !cute.swizzle<"S<0,4,3>">
) {
  return
}

// CHECK-LABEL: @attributes(
func.func @attributes() {
  // CHECK: {a = #cute.shape<"(6,(2,5))">}
  %0 = cute.static {a = #cute.shape<"( 6 , ( 2,5 ) )">} : !cute.shape<"8">
  // CHECK: {a = #cute.shape<"?{i64}">}
  %1 = cute.static {a = #cute.shape<"?{ i64 }">} : !cute.shape<"8">
  // CHECK: {a = #cute.shape<"?">}
  %2 = cute.static {a = #cute.shape<"?{i32}">} : !cute.shape<"8">
  // CHECK: {a = #cute.shape<"?">}
  %3 = cute.static {a = #cute.shape<"?{}">} : !cute.shape<"8">
  // CHECK: {a = #cute.shape<"?{i64}">}
  %4 = cute.static {a = #cute.shape<"?{i8 i64}">} : !cute.shape<"8">
  // CHECK: {a = #cute.shape<"(7)">}
  %5 = cute.static {a = #cute.shape<"(7,)">} : !cute.shape<"8">
  // CHECK: {a = #cute.shape<"(-7,0)">}
  %6 = cute.static {a = #cute.shape<"(-007,0)">} : !cute.shape<"8">
  // CHECK: {a = #cute.shape<"()">}
  %7 = cute.static {a = #cute.shape<"()">} : !cute.shape<"8">
  // CHECK: {a = #cute.shape<"9223372036854775807">}
  %8 = cute.static {a = #cute.shape<"9223372036854775807">} : !cute.shape<"8">
  // CHECK: {a = #cute.int_tuple<"(?{i1},?{i8},?{i16})">}
  %9 = cute.static {a = #cute.int_tuple<"(?{i1},?{i8},?{i16})">} : !cute.shape<"8">
  // CHECK: {a = #cute.int_tuple<"?">}
  %10 = cute.static {a = #cute.int_tuple<"?{div=1}">} : !cute.shape<"8">
  // CHECK: {a = #cute.int_tuple<"?{i64 div=16}">}
  %11 = cute.static {a = #cute.int_tuple<"?{div=16,i64}">} : !cute.shape<"8">
  // CHECK: {a = #cute.int_tuple<"?{div=8}">}
  %12 = cute.static {a = #cute.int_tuple<"?{ i32 div = 8 }">} : !cute.shape<"8">
  // CHECK: {a = #cute.coord<"(_,(2,?))">}
  %13 = cute.static {a = #cute.coord<"( _ , (2, ?))">} : !cute.shape<"8">
  // CHECK: {a = #cute.stride<"(1@0,2@1)">}
  %14 = cute.static {a = #cute.stride<"( 1@0 , 2 @ 1 )">} : !cute.shape<"8">
  // CHECK: {a = #cute.stride<"(0,(1@0@1,?{i64}@1@1))">}
  %15 = cute.static {a = #cute.stride<"(0,(1@0@1,?{i64}@1@1))">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"6:1">}
  %16 = cute.static {a = #cute.layout<"6">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"(6,1,5):(1,0,6)">}
  %17 = cute.static {a = #cute.layout<"(6,1,5)">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"((2,5),3):((1,2),10)">}
  %18 = cute.static {a = #cute.layout<"((2,5),3)">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"(6,?,5):(1,6,?)">}
  %19 = cute.static {a = #cute.layout<"(6,?,5)">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"(?{i64},9):(1,?{i64})">}
  %20 = cute.static {a = #cute.layout<"(?{i64},9)">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"(6,5):(5,1)">}
  %21 = cute.static {a = #cute.layout<"( 6,5 ) : ( 5 ,1)">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"20:2">}
  %22 = cute.static {a = #cute.layout<"20:2">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"(20):(2)">}
  %23 = cute.static {a = #cute.layout<"(20):(2)">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"():()">}
  %24 = cute.static {a = #cute.layout<"():()">} : !cute.shape<"8">
  // CHECK: {a = #cute.layout<"(4,2):(-1,0)">}
  %25 = cute.static {a = #cute.layout<"(4,2):(-1,0)">} : !cute.shape<"8">
  // CHECK: {a = #cute.tile<"[6:1;_]">}
  %26 = cute.static {a = #cute.tile<"[ 6 ; _ ]">} : !cute.shape<"8">
  // CHECK: {a = #cute.tile<"6:1">}
  %27 = cute.static {a = #cute.tile<"6">} : !cute.shape<"8">
  // CHECK: {a = #cute.tile<"[4:1;8:1]">}
  %28 = cute.static {a = #cute.tile<"[4;8]">} : !cute.shape<"8">
  // CHECK: {a = #cute.tile<"[4:1]">}
  %29 = cute.static {a = #cute.tile<"[4:1]">} : !cute.shape<"8">
  // CHECK: {a = #cute.tile<"_">}
  %30 = cute.static {a = #cute.tile<"_">} : !cute.shape<"8">
  // CHECK: {a = #cute.tile<"{{\[\[}}2:1;_];(3,4):(4,1)]">}
  %31 = cute.static {a = #cute.tile<"[[2:1;_];(3,4):(4,1)]">} : !cute.shape<"8">
  // CHECK: {a = #cute.composed_layout<"S<2,3,3> o 5 o (8,8):(1,8)">}
  %32 = cute.static {a = #cute.composed_layout<"S< 2 , 3 , 3 >o 5 o(8,8)">} : !cute.shape<"8">
  // CHECK: {a = #cute.composed_layout<"(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)">}
  %33 = cute.static {a = #cute.composed_layout<"(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)">} : !cute.shape<"8">
  // CHECK: {a = #cute.swizzle<"S<3,4,3>">}
  %34 = cute.static {a = #cute.swizzle<"S<3,4,3>">} : !cute.shape<"8">
  // CHECK: {a = #cute.swizzle<"S<2,0,-2>">}
  %35 = cute.static {a = #cute.swizzle<"S<2,0,-2>">} : !cute.shape<"8">
  // CHECK: {a = #cute.swizzle<"S<0,4,3>">}
  %36 = cute.static {a = #cute.swizzle<"S<0,4,3>">} : !cute.shape<"8">
  return
}
