// A tiled copy without flags whose tile does not divide the tensor.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

!atom = !cute_nvgpu.atom.universal_copy<f32>
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>
func.func @partition(%g: !cute.memref<f32, gmem, "(24,128):(?,1)">, %s: !cute.memref<f32, smem, "(24,128):(128,1)">, %k: !cute.coord<"?">) {
  %a = cute.atom() : !atom
  %tc = cute.make_tiled_copy(%a) : !tc
  %tG = cute.tiled.copy.partition_S(%tc, %g, %k) : (!tc, !cute.memref<f32, gmem, "(24,128):(?,1)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,(4,4)),2,1):((0,(1,?)),?,0)">
  %tS = cute.tiled.copy.partition_D(%tc, %s, %k) : (!tc, !cute.memref<f32, smem, "(24,128):(128,1)">, !cute.coord<"?">) -> !cute.memref<f32, smem, "((1,(4,4)),2,1):((0,(1,128)),2048,0)">
  // expected-error @below {{the tile (16,128) of the tiled copy does not divide the source (24,128), so threads access elements past the end of mode 0; pass 'pred =', or set the attribute {partial} if this is intended}}
  cute.copy(%tc, %tG, %tS) : (!tc, !cute.memref<f32, gmem, "((1,(4,4)),2,1):((0,(1,?)),?,0)">, !cute.memref<f32, smem, "((1,(4,4)),2,1):((0,(1,128)),2048,0)">) -> ()
//^
  cute.copy(%tc, %tG, %tS) {partial} : (!tc, !cute.memref<f32, gmem, "((1,(4,4)),2,1):((0,(1,?)),?,0)">, !cute.memref<f32, smem, "((1,(4,4)),2,1):((0,(1,128)),2048,0)">) -> ()
  return
}

// -----

// The tile does not divide the destination.
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(4,2):(2,1)">, tiler_mn = <"[8:1]">>
func.func @f(%tc: !tc, %g: !cute.memref<f32, gmem, "16:1">, %o: !cute.memref<f32, gmem, "12:1">, %k: !cute.coord<"?">) {
  %a = cute.tiled.copy.partition_S(%tc, %g, %k) : (!tc, !cute.memref<f32, gmem, "16:1">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">
  %b = cute.tiled.copy.partition_D(%tc, %o, %k) : (!tc, !cute.memref<f32, gmem, "12:1">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">
  // expected-error @below {{the tile (8) of the tiled copy does not divide the destination 12, so threads access elements past the end of mode 0; pass 'pred =', or set the attribute {partial} if this is intended}}
  cute.copy(%tc, %a, %b) : (!tc, !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">, !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">) -> ()
//^
  return
}

// -----

// The tensor is smaller than the tile.
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(4,2):(2,1)">, tiler_mn = <"[8:1]">>
func.func @f(%tc: !tc, %g: !cute.memref<f32, gmem, "4:1">, %o: !cute.memref<f32, gmem, "8:1">, %k: !cute.coord<"?">) {
  %a = cute.tiled.copy.partition_S(%tc, %g, %k) : (!tc, !cute.memref<f32, gmem, "4:1">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),1):((0,1),0)">
  %b = cute.tiled.copy.partition_D(%tc, %o, %k) : (!tc, !cute.memref<f32, gmem, "8:1">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),1):((0,1),0)">
  // expected-error @below {{the tile (8) of the tiled copy does not divide the source 4, so threads access elements past the end of mode 0; pass 'pred =', or set the attribute {partial} if this is intended}}
  cute.copy(%tc, %a, %b) : (!tc, !cute.memref<f32, gmem, "((1,2),1):((0,1),0)">, !cute.memref<f32, gmem, "((1,2),1):((0,1),0)">) -> ()
//^
  return
}

// -----

// A slice along mode 0, which the tile does not divide, and a slice along mode 1, which it divides.
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(4,2):(2,1)">, tiler_mn = <"[8:1]">>
func.func @f(%tc: !tc, %g: !cute.memref<f32, gmem, "(12,3):(1,12)">, %o: !cute.memref<f32, gmem, "(12,3):(1,12)">, %k: !cute.coord<"?">, %j: !cute.coord<"(_,_,?)">, %i: !cute.coord<"(_,0,_)">) {
  %a = cute.tiled.copy.partition_S(%tc, %g, %k) : (!tc, !cute.memref<f32, gmem, "(12,3):(1,12)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2,3):((0,1),8,12)">
  %b = cute.tiled.copy.partition_D(%tc, %o, %k) : (!tc, !cute.memref<f32, gmem, "(12,3):(1,12)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2,3):((0,1),8,12)">
  %aj = cute.slice(%a, %j) : !cute.memref<f32, gmem, "((1,2),2,3):((0,1),8,12)">, !cute.coord<"(_,_,?)">
  %bj = cute.slice(%b, %j) : !cute.memref<f32, gmem, "((1,2),2,3):((0,1),8,12)">, !cute.coord<"(_,_,?)">
  %ai = cute.slice(%a, %i) : !cute.memref<f32, gmem, "((1,2),2,3):((0,1),8,12)">, !cute.coord<"(_,0,_)">
  %bi = cute.slice(%b, %i) : !cute.memref<f32, gmem, "((1,2),2,3):((0,1),8,12)">, !cute.coord<"(_,0,_)">
  // expected-error @below {{the tile (8) of the tiled copy does not divide the source (12,3), so threads access elements past the end of mode 0; pass 'pred =', or set the attribute {partial} if this is intended}}
  cute.copy(%tc, %aj, %bj) : (!tc, !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">, !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">) -> ()
//^
  cute.copy(%tc, %ai, %bi) : (!tc, !cute.memref<f32, gmem, "((1,2),3):((0,1),12)">, !cute.memref<f32, gmem, "((1,2),3):((0,1),12)">) -> ()
  return
}

// -----

// The tile contains every other element.
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(4,2):(2,1)">, tiler_mn = <"[8:2]">>
func.func @f(%tc: !tc, %g: !cute.memref<f32, gmem, "8:1">, %o: !cute.memref<f32, gmem, "8:1">, %k: !cute.coord<"?">) {
  %a = cute.tiled.copy.partition_S(%tc, %g, %k) : (!tc, !cute.memref<f32, gmem, "8:1">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2):((0,2),1)">
  %b = cute.tiled.copy.partition_D(%tc, %o, %k) : (!tc, !cute.memref<f32, gmem, "8:1">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2):((0,2),1)">
  // expected-error @below {{the tile (8) of the tiled copy does not divide the source 8, so threads access elements past the end of mode 0; pass 'pred =', or set the attribute {partial} if this is intended}}
  cute.copy(%tc, %a, %b) : (!tc, !cute.memref<f32, gmem, "((1,2),2):((0,2),1)">, !cute.memref<f32, gmem, "((1,2),2):((0,2),1)">) -> ()
//^
  return
}

// -----

// Predicated copies, and copies of a mode of stride 0, are valid.
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(4,2):(2,1)">, tiler_mn = <"[8:1]">>
func.func @f(%tc: !tc, %g: !cute.memref<f32, gmem, "12:0">, %o: !cute.memref<f32, gmem, "16:1">, %k: !cute.coord<"?">, %p: !cute.memref<i1, rmem, "((1,2),2):((0,1),2)">, %h: !cute.memref<f32, gmem, "12:1">) {
  %a = cute.tiled.copy.partition_S(%tc, %g, %k) : (!tc, !cute.memref<f32, gmem, "12:0">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2):((0,0),0)">
  %b = cute.tiled.copy.partition_D(%tc, %o, %k) : (!tc, !cute.memref<f32, gmem, "16:1">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">
  %c = cute.tiled.copy.partition_S(%tc, %h, %k) : (!tc, !cute.memref<f32, gmem, "12:1">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">
  cute.copy(%tc, %a, %b) : (!tc, !cute.memref<f32, gmem, "((1,2),2):((0,0),0)">, !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">) -> ()
  cute.copy(%tc, %c, %b, pred = %p) : (!tc, !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">, !cute.memref<f32, gmem, "((1,2),2):((0,1),8)">, !cute.memref<i1, rmem, "((1,2),2):((0,1),2)">) -> ()
  return
}

// -----

// cute.tiled_copy
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(4,2):(2,1)">, tiler_mn = <"[8:1]">>
func.func @f(%tc: !tc, %g: !cute.memref<f32, gmem, "12:1">, %o: !cute.memref<f32, gmem, "12:1">, %k: !cute.coord<"?">) {
  // expected-error @below {{the tile (8) of the tiled copy does not divide the source 12, so threads access elements past the end of mode 0; pass 'pred =', or set the attribute {partial} if this is intended}}
  cute.tiled_copy(%tc, %g, %o, %k) : (!tc, !cute.memref<f32, gmem, "12:1">, !cute.memref<f32, gmem, "12:1">, !cute.coord<"?">) -> ()
//^
  cute.tiled_copy(%tc, %g, %o, %k) {partial} : (!tc, !cute.memref<f32, gmem, "12:1">, !cute.memref<f32, gmem, "12:1">, !cute.coord<"?">) -> ()
  return
}
