"""Ops and attributes of the nvgpu dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
    ("device_async_copy", "dst%0 dstIndices*:index src%0 srcIndices*:index srcElements?:index", "asyncToken:!nvgpu.device.async.token", "dstElements:index bypassL1?:unit", "traits=o", "$src `[` $srcIndices `]` `,` $dst `[` $dstIndices `]` `,` $dstElements (`,` $srcElements^)? attr-dict `:` type($src) `to` type($dst)"),
    ("device_async_create_group", "inputTokens*:!nvgpu.device.async.token", "asyncToken:!nvgpu.device.async.token", "", "", "$inputTokens attr-dict"),
    ("device_async_wait", "asyncDependencies:!nvgpu.device.async.token", "", "numGroups?:i32", "", "$asyncDependencies attr-dict"),
    ("ldmatrix", "srcMemref%0 indices*:index", "res%1", "transpose:bool numTiles:i32", "", "$srcMemref`[` $indices `]` attr-dict `:` type($srcMemref) `->` type($res)"),
    ("mbarrier.arrive", "barriers:nvgpu.mbarrier.group^%2 mbarId:index", "token:!nvgpu.mbarrier.token", "", "", "$barriers `[` $mbarId `]` attr-dict `:` type($barriers) `->` type($token)"),
    ("mbarrier.arrive.expect_tx", "barriers:nvgpu.mbarrier.group^%2 txcount:index mbarId:index predicate?:i1", "", "", "", "$barriers `[` $mbarId `]` `,` $txcount (`,` `predicate` `=` $predicate^)? attr-dict `:` type($barriers)"),
    ("mbarrier.arrive.nocomplete", "barriers:nvgpu.mbarrier.group^%2 mbarId:index count:index", "token:!nvgpu.mbarrier.token", "", "", "$barriers `[` $mbarId `]` `,` $count attr-dict `:` type($barriers) `->` type($token)"),
    ("mbarrier.create", "", "barriers:nvgpu.mbarrier.group^%2", "", "", "attr-dict `->` type($barriers)"),
    ("mbarrier.get", "barriers:nvgpu.mbarrier.group^%2 mbarId:index", "mbarrierPointer%3", "", "", "$barriers `[` $mbarId `]` attr-dict `:` type($barriers) `->` type($mbarrierPointer)"),
    ("mbarrier.init", "barriers:nvgpu.mbarrier.group^%2 count:index mbarId:index predicate?:i1", "", "", "", "$barriers `[` $mbarId `]` `,` $count (`,` `predicate` `=` $predicate^)? attr-dict `:` type($barriers)"),
    ("mbarrier.test.wait", "barriers:nvgpu.mbarrier.group^%2 token:!nvgpu.mbarrier.token mbarId:index", "waitComplete:i1", "", "", "$barriers `[` $mbarId `]` `,` $token attr-dict `:` type($barriers) `,` type($token)"),
    ("mbarrier.try_wait.parity", "barriers:nvgpu.mbarrier.group^%2 phaseParity:i1 ticks:index mbarId:index", "", "", "", "$barriers `[` $mbarId `]` `,` $phaseParity `,` $ticks attr-dict `:` type($barriers)"),
    ("mma.sp.sync", "matrixA%1 matrixB%1 matrixC%1 sparseMetadata:vector<2xi16>", "res%1", "mmaShape:array sparsitySelector:i32=0 tf32Enabled?:unit", "traits=P", "`(` $matrixA`,` $matrixB`,` $matrixC `)` `metadata` `(` $sparseMetadata `)` attr-dict `:` `(` type($matrixA) `,` type($matrixB) `,` type($matrixC) `)` `->` type($res)"),
    ("mma.sync", "matrixA%1 matrixB%1 matrixC%1", "res%1", "mmaShape:array tf32Enabled?:unit", "traits=P", "`(` $matrixA`,` $matrixB`,` $matrixC `)` attr-dict `:` `(` type($matrixA) `,` type($matrixB) `,` type($matrixC) `)` `->` type($res)"),
    ("rcp", "in%4", "out%4", "rounding:@nvgpu.rcp_rounding_mode=approx ftz?:unit", "traits=P same=everything()", "$in `{` `rounding` `=` $rounding (`,` `ftz` $ftz^)? `}` attr-dict `:` type($out)"),
    ("tma.async.load", "dst%0 barriers:nvgpu.mbarrier.group^%2 tensorMapDescriptor:nvgpu.tensormap.descriptor^%5 coordinates*:index mbarId:index multicastMask?:i16 predicate?:i1", "", "", "traits=o", "$tensorMapDescriptor `[` $coordinates `]` `,` $barriers `[` $mbarId `]` `to` $dst (`multicast_mask` `=` $multicastMask^ )? (`,` `predicate` `=` $predicate^)? attr-dict `:` type($tensorMapDescriptor) `,` type($barriers) `->` type($dst)"),
    ("tma.async.store", "src%0 tensorMapDescriptor:nvgpu.tensormap.descriptor^%5 coordinates*:index predicate?:i1", "", "", "traits=o", "$src `to` $tensorMapDescriptor `[` $coordinates `]` (`,` `predicate` `=` $predicate^)? attr-dict `:` type($src) `->` type($tensorMapDescriptor)"),
    ("tma.create.descriptor", "tensor%6 boxDimensions*:index", "tensorMap:nvgpu.tensormap.descriptor^%5", "", "", "$tensor `box` `[` $boxDimensions `]` attr-dict `:` type($tensor) `->` type($tensorMap)"),
    ("tma.fence.descriptor", "tensorMapDescriptor:nvgpu.tensormap.descriptor^%5", "", "", "", "$tensorMapDescriptor attr-dict `:` type($tensorMapDescriptor)"),
    ("tma.prefetch.descriptor", "tensorMapDescriptor:nvgpu.tensormap.descriptor^%5 predicate?:i1", "", "", "", "$tensorMapDescriptor (`,` `predicate` `=` $predicate^)? attr-dict `:` type($tensorMapDescriptor)"),
    ("warpgroup.generate.descriptor", "tensor%0 tensorMap:nvgpu.tensormap.descriptor^%5", "descriptor:nvgpu.warpgroup.descriptor^%7", "", "", "$tensor `,` $tensorMap attr-dict `:` type($tensor) `,` type($tensorMap) `->` type($descriptor)"),
    ("warpgroup.mma", "descriptorA:nvgpu.warpgroup.descriptor^%7 descriptorB:nvgpu.warpgroup.descriptor^%7 matrixC:nvgpu.warpgroup.accumulator^", "matrixD:nvgpu.warpgroup.accumulator^", "waitGroup?:i64=1 transposeA?:unit transposeB?:unit", "", "$descriptorA`,` $descriptorB`,` $matrixC attr-dict `:` type($descriptorA) `,` type($descriptorB) `,` type($matrixC) `->` type($matrixD)"),
    ("warpgroup.mma.init.accumulator", "", "matrixC:nvgpu.warpgroup.accumulator^", "", "", "attr-dict `->` type($matrixC)"),
    ("warpgroup.mma.store", "matrixD:nvgpu.warpgroup.accumulator^ dstMemref%0", "", "", "", "$matrixD `,` $dstMemref attr-dict `:` type($matrixD) `to` type($dstMemref)"),
)
ATTRS = (
    ("interleave", "bare", "none interleave_16b interleave_32b"),
    ("l2promo", "bare", "none l2promo_64b l2promo_128b l2promo_256b"),
    ("oob", "bare", "zero nan"),
    ("rcp_rounding_mode", "bare", "approx rn rz rm rp"),
    ("swizzle", "bare", "none swizzle_32b swizzle_64b swizzle_128b"),
)
ENUMS = {
}
CONSTRAINTS = (
    "memref of any type values",
    "vector of any type values",
    "mbarrier barrier type",
    "32-bit signless integer or 64-bit signless integer",
    "vector of 32-bit float values",
    "TensorMap descriptor",
    "unranked.memref of any type values",
    "Warpgroup matrix descriptor type",
)
