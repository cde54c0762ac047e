// Syntax errors in trees, layouts, tiles and swizzles, reported at the character.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{invalid swizzle 'S<-1,4,3>': expected the bits of a swizzle >= 0, got -1 at offset 2}}
func.func private @f(!cute.swizzle<"S<-1,4,3>">)
//                                    ^

// -----

// expected-error @below {{invalid swizzle 'S<3,4,x>': expected the shift of a swizzle, got 'x' at offset 6}}
func.func private @f(!cute.swizzle<"S<3,4,x>">)
//                                        ^

// -----

// expected-error @below {{invalid swizzle 'S<3,4,2>': expected |shift| >= bits in a swizzle, got S<3,4,2> at offset 0}}
func.func private @f(!cute.swizzle<"S<3,4,2>">)
//                                  ^

// -----

// expected-error @below {{invalid swizzle 'S<3>': expected ',', got '>' at offset 3}}
func.func private @f(!cute.swizzle<"S<3>">)
//                                     ^

// -----

// expected-error @below {{invalid shape '(4,1@0)': expected ',' or ')', got '@' at offset 4}}
func.func private @f(!cute.shape<"(4,1@0)">)
//                                    ^

// -----

// expected-error @below {{invalid shape '(4,_)': expected an integer, '?' or '(', got '_' at offset 3}}
func.func private @f(!cute.shape<"(4,_)">)
//                                   ^

// -----

// expected-error @below {{invalid int_tuple '(4,99999999999999999999)': expected an integer that fits in 64 bits, got 20 digits at offset 3}}
func.func private @f(!cute.int_tuple<"(4,99999999999999999999)">)
//                                       ^

// -----

// expected-error @below {{invalid int_tuple '(4,9223372036854775808)': expected an integer that fits in 64 bits, got 9223372036854775808 at offset 3}}
func.func private @f(!cute.int_tuple<"(4,9223372036854775808)">)
//                                       ^

// -----

// expected-error @below {{invalid int_tuple '4 4': expected the end, got '4' at offset 2}}
func.func private @f(!cute.int_tuple<"4 4">)
//                                      ^

// -----

// expected-error @below {{invalid stride '1@0@1@2@3@4@5@6@7@8@9@10@11@12@13@14@15@16@17@18@19@20@21@22@23@24@25@26@27@28@29@30@31@32@33@34@35@36@37@38@39@40@41@42@43@44@45@46@47@48@49@50@51@52@53@54@55@56@57@58@59@60@61@62@63@64@65': expected at most 64 mode indices at offset 186}}
func.func private @f(!cute.stride<"1@0@1@2@3@4@5@6@7@8@9@10@11@12@13@14@15@16@17@18@19@20@21@22@23@24@25@26@27@28@29@30@31@32@33@34@35@36@37@38@39@40@41@42@43@44@45@46@47@48@49@50@51@52@53@54@55@56@57@58@59@60@61@62@63@64@65">)
//                                                                                                                                                                                                                           ^

// -----

// expected-error @below {{invalid stride '1@-1': expected a mode index in [0, 1023], got -1 at offset 2}}
func.func private @f(!cute.stride<"1@-1">)
//                                   ^

// -----

// expected-error @below {{invalid stride '1@?': expected a mode index, got '?' at offset 2}}
func.func private @f(!cute.stride<"1@?">)
//                                   ^

// -----

// expected-error @below {{invalid tile '[4:1;8:1': expected ';' or ']', got the end at offset 8}}
func.func private @f(!cute.tile<"[4:1;8:1">)
//                                       ^

// -----

// expected-error @below {{invalid tile '[4:1,8:1]': expected ';' or ']', got ',' at offset 4}}
func.func private @f(!cute.tile<"[4:1,8:1]">)
//                                   ^

// -----

// expected-error @below {{invalid tile '[4:?{div=0}]': expected a divisor >= 1, got 0 at offset 9}}
func.func private @f(!cute.tile<"[4:?{div=0}]">)
//                                        ^

// -----

// expected-error @below {{invalid layout '(4,9223372036854775807,4)': expected a result that fits in 64 bits, got 36893488147419103228 at offset 0}}
func.func private @f(!cute.layout<"(4,9223372036854775807,4)">)
//                                 ^

// -----

// expected-error @below {{invalid layout '(4,8):(1,4': expected ',' or ')', got the end at offset 10}}
func.func private @f(!cute.layout<"(4,8):(1,4">)
//                                           ^

// -----

// expected-error @below {{invalid layout '(4,8):1': expected a stride congruent with the shape (4,8), got 1}}
func.func private @f(!cute.layout<"(4,8):1">)
//                                ^

// -----

// expected-error @below {{invalid layout '_:1': expected an integer, '?' or '(', got '_' at offset 0}}
func.func private @f(!cute.layout<"_:1">)
//                                 ^

// -----

// expected-error @below {{invalid layout '(4,8):(1@0,4)': expected integer strides or basis elements, got both 4 and 1@0}}
func.func private @f(!cute.layout<"(4,8):(1@0,4)">)
//                                ^

// -----

// expected-error @below {{invalid composed_layout 'S<1,2,3> o (4,8):(1,4)': expected a second 'o' before the outer layout, got the end at offset 22}}
func.func private @f(!cute.composed_layout<"S<1,2,3> o (4,8):(1,4)">)
//                                                                ^

// -----

// expected-error @below {{invalid composed_layout 'S<1,2,3> o 0 o (4,8):(1@0,1@1)': expected an integer index for the swizzle, got the arithmetic tuple (0,0)}}
func.func private @f(!cute.composed_layout<"S<1,2,3> o 0 o (4,8):(1@0,1@1)">)
//                                         ^

// -----

// expected-error @below {{invalid composed_layout '4:1 o (0,0) o (4,8):(1@0,1@1)': indices of the form (0,0) are not coordinates of the inner layout 4:1}}
func.func private @f(!cute.composed_layout<"4:1 o (0,0) o (4,8):(1@0,1@1)">)
//                                         ^

// -----

// expected-error @below {{invalid composed_layout '(4,8):(1,4) o _ o (4,8):(1,4)': expected an integer, '?' or '(', got '_' at offset 14}}
func.func private @f(!cute.composed_layout<"(4,8):(1,4) o _ o (4,8):(1,4)">)
//                                                        ^

// -----

// expected-error @below {{invalid coord '?{div=-4}': expected a divisor >= 1, got -4 at offset 6}}
func.func private @f(!cute.coord<"?{div=-4}">)
//                                      ^

// -----

// expected-error @below {{invalid coord '?{div=9223372036854775808}': expected an integer that fits in 64 bits, got 9223372036854775808 at offset 6}}
func.func private @f(!cute.coord<"?{div=9223372036854775808}">)
//                                      ^

// -----

// expected-error @below {{invalid coord '?{i33}': expected a width (i1 i8 i16 i32 i64), 'div=' or '}', got 'i' at offset 2}}
func.func private @f(!cute.coord<"?{i33}">)
//                                  ^

// -----

// expected-error @below {{invalid coord '?{foo=3}': expected a width (i1 i8 i16 i32 i64), 'div=' or '}', got 'f' at offset 2}}
func.func private @f(!cute.coord<"?{foo=3}">)
//                                  ^

// -----

// expected-error @below {{string literal expected in cute.coord}}
func.func private @f(!cute.coord<4>)
//                               ^

// -----

// expected-error @below {{Expected '>' in cute.coord}}
func.func private @f(!cute.coord<"4")
//                                  ^

// -----

// expected-error @below {{invalid int_tuple '((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((4))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))': expected at most 64 nested tuples at offset 64}}
func.func private @f(!cute.int_tuple<"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((4))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))">)
//                                                                                                    ^

// -----

// expected-error @below {{invalid tile '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[4:1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]': expected at most 64 nested brackets at offset 64}}
func.func private @f(!cute.tile<"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[4:1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]">)
//                                                                                               ^
