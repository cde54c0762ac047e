// Every arith op that kernels use, with its flags.
func.func @int(%a: i32, %b: i32, %p: i1, %i: index, %l: i64) {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %a, %b overflow<nsw> : i32
  %2 = arith.subi %a, %b overflow<nsw, nuw> : i32
  %3 = arith.muli %a, %b overflow<nuw> : i32
  %4 = arith.shli %a, %b overflow<nsw> : i32
  %5 = arith.divsi %a, %b : i32
  %6 = arith.divui %a, %b : i32
  %7 = arith.remsi %a, %b : i32
  %8 = arith.remui %a, %b : i32
  %9 = arith.ceildivsi %a, %b : i32
  %10 = arith.ceildivui %a, %b : i32
  %11 = arith.floordivsi %a, %b : i32
  %12 = arith.andi %a, %b : i32
  %13 = arith.ori %a, %b : i32
  %14 = arith.xori %a, %b : i32
  %15 = arith.shrsi %a, %b : i32
  %16 = arith.shrui %a, %b : i32
  %17 = arith.minsi %a, %b : i32
  %18 = arith.maxsi %a, %b : i32
  %19 = arith.minui %a, %b : i32
  %20 = arith.maxui %a, %b : i32
  %21 = arith.cmpi slt, %a, %b : i32
  %22 = arith.cmpi uge, %l, %l : i64
  %23 = arith.select %p, %a, %b : i32
  %24 = arith.extsi %a : i32 to i64
  %25 = arith.extui %p : i1 to i32
  %26 = arith.trunci %l : i64 to i32
  %27 = arith.trunci %l overflow<nsw> : i64 to i32
  %28 = arith.index_cast %i : index to i32
  %29 = arith.index_castui %a : i32 to index
  %30:2 = arith.addui_extended %a, %b : i32, i1
  %31:2 = arith.mulsi_extended %a, %b : i32
  %32:2 = arith.mului_extended %a, %b : i32
  %33 = arith.divsi %a, %b exact : i32
  %34 = arith.shrui %a, %b exact : i32
  %35 = arith.divui %a, %b exact : i32
  %36 = arith.shrsi %a, %b exact : i32
  %38:2 = arith.addui_extended %i, %i : index, i1
  %37 = arith.muli %i, %i overflow<nsw> : index
  return
}

// -----
func.func @float(%a: f32, %b: f32, %h: f16, %d: f64, %i: i32, %p: i1) {
  %0 = arith.addf %a, %b : f32
  %1 = arith.addf %a, %b fastmath<fast> : f32
  %2 = arith.subf %a, %b fastmath<nnan,ninf> : f32
  %3 = arith.mulf %a, %b fastmath<contract> : f32
  %4 = arith.divf %a, %b : f32
  %5 = arith.remf %a, %b : f32
  %6 = arith.negf %a : f32
  %7 = arith.negf %a fastmath<fast> : f32
  %8 = arith.maximumf %a, %b : f32
  %9 = arith.minimumf %a, %b : f32
  %10 = arith.maxnumf %a, %b : f32
  %11 = arith.minnumf %a, %b fastmath<nnan> : f32
  %12 = arith.cmpf olt, %a, %b : f32
  %13 = arith.cmpf une, %a, %b fastmath<fast> : f32
  %14 = arith.extf %h : f16 to f32
  %15 = arith.truncf %a : f32 to f16
  %16 = arith.truncf %a to_nearest_even : f32 to bf16
  %17 = arith.sitofp %i : i32 to f32
  %18 = arith.uitofp %i : i32 to f32
  %19 = arith.fptosi %a : f32 to i32
  %20 = arith.fptoui %a : f32 to i32
  %21 = arith.bitcast %a : f32 to i32
  %22 = arith.select %p, %a, %b : f32
  %23 = arith.truncf %d fastmath<fast> : f64 to f32
  return
}

// -----
func.func @constant() {
  %0 = arith.constant 42 : i32
  %1 = arith.constant -7 : i64
  %2 = arith.constant 3 : index
  %3 = arith.constant true
  %4 = arith.constant false
  %5 = arith.constant 1.000000e+00 : f32
  %6 = arith.constant 1.500000e-01 : f16
  %7 = arith.constant 0xFF800000 : f32
  %8 = arith.constant dense<0.000000e+00> : vector<4xf32>
  %9 = arith.constant dense<[1, 2, 3, 4]> : vector<4xi32>
  %10 = arith.constant dense<[[1, 2], [3, 4]]> : vector<2x2xi64>
  %11 = arith.constant dense<true> : vector<2xi1>
  %12 = arith.constant 2.500000e+00 : bf16
  %13 = arith.constant 1.000000e-10 : f64
  %14 = arith.constant 3.14159274 : f32
  %15 = arith.constant 1 : i8
  %16 = arith.constant 0x7FC0 : bf16
  %17 = arith.constant dense<[1.000000e+00, -2.000000e+00]> : vector<2xf16>
  return
}

// -----
func.func @vector(%a: vector<4xi32>, %f: vector<2xf16>, %p: vector<4xi1>, %q: i1) {
  %0 = arith.addi %a, %a : vector<4xi32>
  %1 = arith.mulf %f, %f : vector<2xf16>
  %2 = arith.cmpi eq, %a, %a : vector<4xi32>
  %3 = arith.select %p, %a, %a : vector<4xi1>, vector<4xi32>
  %4 = arith.select %q, %a, %a : vector<4xi32>
  %5 = arith.extf %f : vector<2xf16> to vector<2xf32>
  %6 = arith.trunci %a : vector<4xi32> to vector<4xi8>
  %7 = arith.bitcast %f : vector<2xf16> to vector<2xi16>
  return
}
