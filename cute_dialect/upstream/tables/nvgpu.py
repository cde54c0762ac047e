"""Ops and attributes of the nvgpu dialect of upstream MLIR 22.1.8, made by `upstream/generate.py`."""

# ruff: noqa: E501
OPS = (
    ('device_async_copy', 'dst dstIndices*:index src srcIndices*:index srcElements?:index', 'asyncToken:!nvgpu.device.async.token', 'dstElements:index bypassL1?:unit', 'traits=o', '$src `[` $srcIndices `]` `,` $dst `[` $dstIndices `]` `,` $dstElements (`,` $srcElements^)? attr-dict `:` type($src) `to` type($dst)'),
    ('device_async_create_group', 'inputTokens*:!nvgpu.device.async.token', 'asyncToken:!nvgpu.device.async.token', '', '', '$inputTokens attr-dict'),
    ('device_async_wait', 'asyncDependencies:!nvgpu.device.async.token', '', 'numGroups?:i32', '', '$asyncDependencies attr-dict'),
    ('ldmatrix', 'srcMemref indices*:index', 'res', 'transpose:bool numTiles:i32', '', '$srcMemref`[` $indices `]` attr-dict `:` type($srcMemref) `->` type($res)'),
    ('mbarrier.arrive', 'barriers:nvgpu.mbarrier.group^ mbarId:index', 'token:!nvgpu.mbarrier.token', '', '', '$barriers `[` $mbarId `]` attr-dict `:` type($barriers) `->` type($token)'),
    ('mbarrier.arrive.expect_tx', 'barriers:nvgpu.mbarrier.group^ txcount:index mbarId:index predicate?:i1', '', '', '', '$barriers `[` $mbarId `]` `,` $txcount (`,` `predicate` `=` $predicate^)? attr-dict `:` type($barriers)'),
    ('mbarrier.arrive.nocomplete', 'barriers:nvgpu.mbarrier.group^ mbarId:index count:index', 'token:!nvgpu.mbarrier.token', '', '', '$barriers `[` $mbarId `]` `,` $count attr-dict `:` type($barriers) `->` type($token)'),
    ('mbarrier.create', '', 'barriers:nvgpu.mbarrier.group^', '', '', 'attr-dict `->` type($barriers)'),
    ('mbarrier.get', 'barriers:nvgpu.mbarrier.group^ mbarId:index', 'mbarrierPointer', '', '', '$barriers `[` $mbarId `]` attr-dict `:` type($barriers) `->` type($mbarrierPointer)'),
    ('mbarrier.init', 'barriers:nvgpu.mbarrier.group^ count:index mbarId:index predicate?:i1', '', '', '', '$barriers `[` $mbarId `]` `,` $count (`,` `predicate` `=` $predicate^)? attr-dict `:` type($barriers)'),
    ('mbarrier.test.wait', 'barriers:nvgpu.mbarrier.group^ token:!nvgpu.mbarrier.token mbarId:index', 'waitComplete:i1', '', '', '$barriers `[` $mbarId `]` `,` $token attr-dict `:` type($barriers) `,` type($token)'),
    ('mbarrier.try_wait.parity', 'barriers:nvgpu.mbarrier.group^ phaseParity:i1 ticks:index mbarId:index', '', '', '', '$barriers `[` $mbarId `]` `,` $phaseParity `,` $ticks attr-dict `:` type($barriers)'),
    ('mma.sp.sync', 'matrixA matrixB matrixC sparseMetadata:vector<2xi16>', 'res', 'mmaShape:array sparsitySelector:i32=0 tf32Enabled?:unit', 'traits=P', '`(` $matrixA`,` $matrixB`,` $matrixC `)` `metadata` `(` $sparseMetadata `)` attr-dict `:` `(` type($matrixA) `,` type($matrixB) `,` type($matrixC) `)` `->` type($res)'),
    ('mma.sync', 'matrixA matrixB matrixC', 'res', 'mmaShape:array tf32Enabled?:unit', 'traits=P', '`(` $matrixA`,` $matrixB`,` $matrixC `)` attr-dict `:` `(` type($matrixA) `,` type($matrixB) `,` type($matrixC) `)` `->` type($res)'),
    ('rcp', 'in', 'out', 'rounding:@nvgpu.rcp_rounding_mode=approx ftz?:unit', 'traits=P same=everything()', '$in `{` `rounding` `=` $rounding (`,` `ftz` $ftz^)? `}` attr-dict `:` type($out)'),
    ('tma.async.load', 'dst barriers:nvgpu.mbarrier.group^ tensorMapDescriptor:nvgpu.tensormap.descriptor^ coordinates*:index mbarId:index multicastMask?:i16 predicate?:i1', '', '', 'traits=o', '$tensorMapDescriptor `[` $coordinates `]` `,` $barriers `[` $mbarId `]` `to` $dst (`multicast_mask` `=` $multicastMask^ )? (`,` `predicate` `=` $predicate^)? attr-dict `:` type($tensorMapDescriptor) `,` type($barriers) `->` type($dst)'),
    ('tma.async.store', 'src tensorMapDescriptor:nvgpu.tensormap.descriptor^ coordinates*:index predicate?:i1', '', '', 'traits=o', '$src `to` $tensorMapDescriptor `[` $coordinates `]` (`,` `predicate` `=` $predicate^)? attr-dict `:` type($src) `->` type($tensorMapDescriptor)'),
    ('tma.create.descriptor', 'tensor boxDimensions*:index', 'tensorMap:nvgpu.tensormap.descriptor^', '', '', '$tensor `box` `[` $boxDimensions `]` attr-dict `:` type($tensor) `->` type($tensorMap)'),
    ('tma.fence.descriptor', 'tensorMapDescriptor:nvgpu.tensormap.descriptor^', '', '', '', '$tensorMapDescriptor attr-dict `:` type($tensorMapDescriptor)'),
    ('tma.prefetch.descriptor', 'tensorMapDescriptor:nvgpu.tensormap.descriptor^ predicate?:i1', '', '', '', '$tensorMapDescriptor (`,` `predicate` `=` $predicate^)? attr-dict `:` type($tensorMapDescriptor)'),
    ('warpgroup.generate.descriptor', 'tensor tensorMap:nvgpu.tensormap.descriptor^', 'descriptor:nvgpu.warpgroup.descriptor^', '', '', '$tensor `,` $tensorMap attr-dict `:` type($tensor) `,` type($tensorMap) `->` type($descriptor)'),
    ('warpgroup.mma', 'descriptorA:nvgpu.warpgroup.descriptor^ descriptorB:nvgpu.warpgroup.descriptor^ matrixC:nvgpu.warpgroup.accumulator^', 'matrixD:nvgpu.warpgroup.accumulator^', 'waitGroup?:i64=1 transposeA?:unit transposeB?:unit', '', '$descriptorA`,` $descriptorB`,` $matrixC attr-dict `:` type($descriptorA) `,` type($descriptorB) `,` type($matrixC) `->` type($matrixD)'),
    ('warpgroup.mma.init.accumulator', '', 'matrixC:nvgpu.warpgroup.accumulator^', '', '', 'attr-dict `->` type($matrixC)'),
    ('warpgroup.mma.store', 'matrixD:nvgpu.warpgroup.accumulator^ dstMemref', '', '', '', '$matrixD `,` $dstMemref attr-dict `:` type($matrixD) `to` type($dstMemref)'),
)
ATTRS = (
    ('interleave', 'bare', 'none interleave_16b interleave_32b'),
    ('l2promo', 'bare', 'none l2promo_64b l2promo_128b l2promo_256b'),
    ('oob', 'bare', 'zero nan'),
    ('rcp_rounding_mode', 'bare', 'approx rn rz rm rp'),
    ('swizzle', 'bare', 'none swizzle_32b swizzle_64b swizzle_128b'),
)
ENUMS = {
}
