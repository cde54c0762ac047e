module attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i32, !llvm.ptr = dense<64> : vector<4xi64>>, llvm.target_triple = "nvptx64-nvidia-cuda", llvm.data_layout = "e-i64:64"} {
 func.func @f(%a: index, %m: memref<?xf32>, %x: f32) {
  %c = builtin.unrealized_conversion_cast %a : index to i64
  return
 }
}
// -----
#map = affine_map<(d0) -> (d0 * 2)>
#loop = #llvm.loop_annotation<disableNonforced = true, unroll = #llvm.loop_unroll<disable = true>>
#scope = #llvm.alias_scope<id = distinct[0]<>, domain = <id = distinct[1]<>>>
llvm.func @g(%p: i1, %q: !llvm.ptr) {
  llvm.cond_br %p, ^bb1, ^bb1 {loop_annotation = #loop}
^bb1:
  %0 = llvm.load %q {alias_scopes = [#scope]} : !llvm.ptr -> i32
  llvm.return
}
// -----
llvm.func @named(%a: !llvm.struct<"rec", (ptr, i32)>, %o: !llvm.ptr, %v: vector<[4]xf32>) attributes {memory_effects = #llvm.memory_effects<other = none, argMem = read, inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>, frame_pointer = #llvm.framePointerKind<all>, target_cpu = "sm_90"} {
  llvm.return
}
