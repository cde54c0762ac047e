"""Ops and attributes of the memref dialect of upstream MLIR 22.1.8, made by `upstream/generate.py`."""

# ruff: noqa: E501
OPS = (
    ('alloc', 'dynamicSizes*:index symbolOperands*:index', 'memref', 'alignment?:i64', 'traits=o', '`(`$dynamicSizes`)` (`` `[` $symbolOperands^ `]`)? attr-dict `:` type($memref)'),
    ('alloca', 'dynamicSizes*:index symbolOperands*:index', 'memref', 'alignment?:i64', 'traits=o', '`(`$dynamicSizes`)` (`` `[` $symbolOperands^ `]`)? attr-dict `:` type($memref)'),
    ('alloca_scope', '', 'results*', '', 'regions=bodyRegion', 'custom'),
    ('alloca_scope.return', 'results*', '', '', 'traits=PT', 'attr-dict ($results^ `:` type($results))?'),
    ('assume_alignment', 'memref', 'result', 'alignment:i32', 'traits=P same=everything()', '$memref `,` $alignment attr-dict `:` type($memref)'),
    ('atomic_rmw', 'value memref indices*:index', 'result', 'kind:enum.i64.AtomicRMWKindAttr', 'same=all(value,result);element(memref,value)', '$kind $value `,` $memref `[` $indices `]` attr-dict `:` `(` type($value) `,` type($memref) `)` `->` type($result)'),
    ('atomic_yield', 'result', '', '', 'traits=PT', '$result attr-dict `:` type($result)'),
    ('cast', 'source', 'dest', '', 'traits=P', '$source attr-dict `:` type($source) `to` type($dest)'),
    ('collapse_shape', 'src', 'result', 'reassociation:array', 'traits=P', '$src $reassociation attr-dict `:` type($src) `into` type($result)'),
    ('copy', 'source target', '', '', '', '$source `,` $target attr-dict `:` type($source) `to` type($target)'),
    ('dealloc', 'memref', '', '', '', '$memref attr-dict `:` type($memref)'),
    ('dim', 'source index:index', 'result:index', '', 'traits=E', 'attr-dict $source `,` $index `:` type($source)'),
    ('distinct_objects', 'operands*', 'results*', '', 'traits=P', '$operands attr-dict `:` type($operands)'),
    ('dma_start', 'operands*', '', '', '', 'custom'),
    ('dma_wait', 'tagMemRef tagIndices*:index numElements:index', '', '', '', '$tagMemRef `[` $tagIndices `]` `,` $numElements attr-dict `:` type($tagMemRef)'),
    ('expand_shape', 'src output_shape*:index', 'result', 'reassociation:array static_output_shape:dense.i64', 'traits=P', '$src $reassociation `output_shape` custom<DynamicIndexList>($output_shape, $static_output_shape) attr-dict `:` type($src) `into` type($result)'),
    ('extract_aligned_pointer_as_index', 'source', 'aligned_pointer:index', '', 'traits=P', '$source `:` type($source) `->` type(results) attr-dict'),
    ('extract_strided_metadata', 'source', 'base_buffer offset:index sizes*:index strides*:index', '', 'traits=P', '$source `:` type($source) `->` type(results) attr-dict'),
    ('generic_atomic_rmw', 'memref indices*:index', 'result', '', 'regions=atomic_body same=element(memref,result)', 'custom'),
    ('get_global', '', 'result', 'name:ref', 'traits=P', '$name `:` type($result) attr-dict'),
    ('global', '', '', 'sym_name:sym sym_visibility?:str type:type initial_value?:any constant?:unit alignment?:i64', 'traits=S', '($sym_visibility^)? (`constant` $constant^)? $sym_name `:` custom<GlobalMemrefOpTypeAndInitialValue>($type, $initial_value) attr-dict'),
    ('load', 'memref indices*:index', 'result', 'nontemporal?:bool=false alignment?:i64', 'same=element(memref,result)', '$memref `[` $indices `]` attr-dict `:` type($memref)'),
    ('memory_space_cast', 'source', 'dest', '', 'traits=P', '$source attr-dict `:` type($source) `to` type($dest)'),
    ('prefetch', 'memref indices*:index', '', 'isWrite:bool localityHint:i32 isDataCache:bool', '', 'custom'),
    ('rank', 'memref', 'res0:index', '', 'traits=P', '$memref attr-dict `:` type($memref)'),
    ('realloc', 'source dynamicResultSize?:index', 'res0', 'alignment?:i64', '', '$source (`(` $dynamicResultSize^ `)`)? attr-dict `:` type($source) `to` type(results)'),
    ('reinterpret_cast', 'source offsets*:index sizes*:index strides*:index', 'result', 'static_offsets:dense.i64 static_sizes:dense.i64 static_strides:dense.i64', 'traits=oP', '$source `to` `offset` `` `:` custom<DynamicIndexList>($offsets, $static_offsets) `` `,` `sizes` `` `:` custom<DynamicIndexList>($sizes, $static_sizes) `` `,` `strides` `` `:` custom<DynamicIndexList>($strides, $static_strides) attr-dict `:` type($source) `to` type($result)'),
    ('reshape', 'source shape', 'result', '', 'traits=P', '$source `(` $shape `)` attr-dict `:` functional-type(operands, results)'),
    ('store', 'value memref indices*:index', '', 'nontemporal?:bool=false alignment?:i64', 'same=element(memref,value)', '$value `,` $memref `[` $indices `]` attr-dict `:` type($memref)'),
    ('subview', 'source offsets*:index sizes*:index strides*:index', 'result', 'static_offsets:dense.i64 static_sizes:dense.i64 static_strides:dense.i64', 'traits=oP', '$source `` custom<DynamicIndexList>($offsets, $static_offsets) custom<DynamicIndexList>($sizes, $static_sizes) custom<DynamicIndexList>($strides, $static_strides) attr-dict `:` type($source) `to` type($result)'),
    ('transpose', 'in', 'res0', 'permutation:map', 'traits=P', 'custom'),
    ('view', 'source byte_shift:index sizes*:index', 'res0', '', 'traits=P', '$source `[` $byte_shift `]` `` `[` $sizes `]` attr-dict `:` type($source) `to` type(results)'),
)
ATTRS = (
)
ENUMS = {
    'AtomicRMWKindAttr': 'addf=0 addi=1 andi=2 assign=3 maximumf=4 maxnumf=5 maxs=6 maxu=7 minimumf=8 minnumf=9 mins=10 minu=11 mulf=12 muli=13 ori=14 xori=15',
}
