// Types: what does not parse and what does not verify, both at the literal.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"4,4">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"(4,4">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"(4,4))">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"(4,,4)">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"(,4)">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"+4">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"9223372036854775808">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"-9223372036854775809">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"?{u32}">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"?{i32">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"?{div=0}">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"1@0">)

// -----

// expected-error @below {{invalid shape}}
func.func private @f(!cute.shape<"_">)

// -----

// expected-error @below {{}}
func.func private @f(!cute.shape<32>)

// -----

// expected-error @below {{}}
func.func private @f(!cute.shape)

// -----

// expected-error @below {{}}
func.func private @f(!cute.shape<>)

// -----

// expected-error @below {{}}
func.func private @f(!cute.shape<"4", "4">)

// -----

// expected-error @below {{invalid int_tuple}}
func.func private @f(!cute.int_tuple<"_">)

// -----

// expected-error @below {{invalid int_tuple}}
func.func private @f(!cute.int_tuple<"1/2">)

// -----

// expected-error @below {{invalid stride}}
func.func private @f(!cute.stride<"1@">)

// -----

// expected-error @below {{invalid stride}}
func.func private @f(!cute.stride<"1@?">)

// -----

// expected-error @below {{invalid stride}}
func.func private @f(!cute.stride<"1/2">)

// -----

// expected-error @below {{invalid coord}}
func.func private @f(!cute.coord<"1@0">)

// -----

// expected-error @below {{invalid tile}}
func.func private @f(!cute.tile<"[4:1,4:1]">)

// -----

// expected-error @below {{invalid tile}}
func.func private @f(!cute.tile<"[4:1;">)

// -----

// expected-error @below {{invalid swizzle}}
func.func private @f(!cute.swizzle<"S<3,4>">)

// -----

// expected-error @below {{invalid swizzle}}
func.func private @f(!cute.swizzle<"S<3,4,2>">)

// -----

// expected-error @below {{invalid swizzle}}
func.func private @f(!cute.swizzle<"S<-1,4,3>">)

// -----

// expected-error @below {{invalid swizzle}}
func.func private @f(!cute.swizzle<"S<8,16,16>">)

// -----

// expected-error @below {{invalid swizzle}}
func.func private @f(!cute.swizzle<"s<3,4,3>">)

// -----

// expected-error @below {{invalid layout}}
func.func private @f(!cute.layout<"(4,4):(1,4):(1,1)">)

// -----

// expected-error @below {{invalid layout}}
func.func private @f(!cute.layout<"(4,4:(1,4)">)

// -----

// expected-error @below {{invalid composed_layout}}
func.func private @f(!cute.composed_layout<"S<2,3,3> o 0">)

// -----

// expected-error @below {{invalid composed_layout}}
func.func private @f(!cute.composed_layout<"S<2,3,3> o _ o 8:1">)

// -----

// expected-error @below {{congruent}}
func.func private @f(!cute.layout<"(4,4):(1,(4))">)

// -----

// expected-error @below {{congruent}}
func.func private @f(!cute.layout<"(4,4):(1,4,5)">)

// -----

// expected-error @below {{extents}}
func.func private @f(!cute.layout<"(4,0):(1,4)">)

// -----

// expected-error @below {{extents}}
func.func private @f(!cute.layout<"-4:1">)

// -----

// expected-error @below {{basis}}
func.func private @f(!cute.layout<"(4,4):(1,1@0)">)

// -----

// expected-error @below {{basis}}
func.func private @f(!cute.stride<"(2,1@0)">)

// -----

// expected-error @below {{basis}}
func.func private @f(!cute.stride<"(?,?@0)">)

// -----

// expected-error @below {{distinct modes}}
func.func private @f(!cute.stride<"(1@0,1@0@0)">)

// -----

// expected-error @below {{distinct modes}}
func.func private @f(!cute.stride<"(1@1@0,1@0)">)

// -----

// expected-error @below {{distinct modes}}
func.func private @f(!cute.stride<"((1@0@0,1@0@1),1@1)">)

// -----

// expected-error @below {{basis}}
func.func private @f(!cute.tile<"[(4,4):(2,1@0)]">)

// -----

// expected-error @below {{plain}}
func.func private @f(!cute.composed_layout<"(8,8):(8,1)">)

// -----

// expected-error @below {{identity swizzle}}
func.func private @f(!cute.composed_layout<"S<0,4,3> o 0 o (8,8):(8,1)">)

// -----

// expected-error @below {{swizzle}}
func.func private @f(!cute.composed_layout<"S<2,3,3> o 0 o (8,8):(1@0,1@1)">)

// -----

// expected-error @below {{offset}}
func.func private @f(!cute.composed_layout<"(6,4):(4,1) o 2 o (2,2):(2@0,1@1)">)

// -----

// expected-error @below {{coordinate}}
func.func private @f(!cute.composed_layout<"(6,4):(4,1) o (0,0,0) o (2,2):(2@0,1@1)">)

// -----

// expected-error @below {{extents}}
func.func private @f(!cute.composed_layout<"(6,4):(4,1) o 0 o (0,5):(1,1)">)

// -----

// expected-error @below {{extents}}
func.func private @f(!cute.composed_layout<"(6,0):(4,1) o 0 o (5):(1)">)

// -----

// expected-error @below {{congruent}}
func.func private @f(!cute.composed_layout<"S<2,3,3> o 0 o (8,8):(8,(1))">)
