"""Ops and attributes of the memref dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
    ("alloc", "dynamicSizes*:index symbolOperands*:index", "memref%0", "alignment?:i64", "traits=o", "`(`$dynamicSizes`)` (`` `[` $symbolOperands^ `]`)? attr-dict `:` type($memref)"),
    ("alloca", "dynamicSizes*:index symbolOperands*:index", "memref%0", "alignment?:i64", "traits=o", "`(`$dynamicSizes`)` (`` `[` $symbolOperands^ `]`)? attr-dict `:` type($memref)"),
    ("alloca_scope", "", "results*", "", "regions=bodyRegion1", "custom"),
    ("alloca_scope.return", "results*", "", "", "traits=PT", "attr-dict ($results^ `:` type($results))?"),
    ("assume_alignment", "memref%0", "result%0", "alignment:i32", "traits=P same=everything()", "$memref `,` $alignment attr-dict `:` type($memref)"),
    ("atomic_rmw", "value%1 memref%2 indices*:index", "result%1", "kind:enum.i64.AtomicRMWKindAttr", "same=all(value,result);element(memref,value)", "$kind $value `,` $memref `[` $indices `]` attr-dict `:` `(` type($value) `,` type($memref) `)` `->` type($result)"),
    ("atomic_yield", "result", "", "", "traits=PT", "$result attr-dict `:` type($result)"),
    ("cast", "source%3", "dest%3", "", "traits=P", "$source attr-dict `:` type($source) `to` type($dest)"),
    ("collapse_shape", "src%4", "result%4", "reassociation:array", "traits=P", "$src $reassociation attr-dict `:` type($src) `into` type($result)"),
    ("copy", "source%3 target%3", "", "", "", "$source `,` $target attr-dict `:` type($source) `to` type($target)"),
    ("dealloc", "memref%3", "", "", "", "$memref attr-dict `:` type($memref)"),
    ("dim", "source%5 index:index", "result:index", "", "traits=E", "attr-dict $source `,` $index `:` type($source)"),
    ("distinct_objects", "operands*%0", "results*%0", "", "traits=P", "$operands attr-dict `:` type($operands)"),
    ("dma_start", "operands*", "", "", "", "custom"),
    ("dma_wait", "tagMemRef%0 tagIndices*:index numElements:index", "", "", "", "$tagMemRef `[` $tagIndices `]` `,` $numElements attr-dict `:` type($tagMemRef)"),
    ("expand_shape", "src%4 output_shape*:index", "result%4", "reassociation:array static_output_shape:dense.i64", "traits=P", "$src $reassociation `output_shape` custom<DynamicIndexList>($output_shape, $static_output_shape) attr-dict `:` type($src) `into` type($result)"),
    ("extract_aligned_pointer_as_index", "source%3", "aligned_pointer:index", "", "traits=P", "$source `:` type($source) `->` type(results) attr-dict"),
    ("extract_strided_metadata", "source%4", "base_buffer%6 offset:index sizes*:index strides*:index", "", "traits=P", "$source `:` type($source) `->` type(results) attr-dict"),
    ("generic_atomic_rmw", "memref%2 indices*:index", "result%1", "", "regions=atomic_body same=element(memref,result)", "custom"),
    ("get_global", "", "result%7", "name:ref", "traits=P", "$name `:` type($result) attr-dict"),
    ("global", "", "", "sym_name:sym sym_visibility?:str type:type initial_value?:any constant?:unit alignment?:i64", "traits=S", "($sym_visibility^)? (`constant` $constant^)? $sym_name `:` custom<GlobalMemrefOpTypeAndInitialValue>($type, $initial_value) attr-dict"),
    ("load", "memref%0 indices*:index", "result", "nontemporal?:bool=false alignment?:i64", "same=element(memref,result)", "$memref `[` $indices `]` attr-dict `:` type($memref)"),
    ("memory_space_cast", "source%3", "dest%3", "", "traits=P", "$source attr-dict `:` type($source) `to` type($dest)"),
    ("prefetch", "memref%0 indices*:index", "", "isWrite:bool localityHint:i32 isDataCache:bool", "", "custom"),
    ("rank", "memref%3", "res0:index", "", "traits=P", "$memref attr-dict `:` type($memref)"),
    ("realloc", "source%8 dynamicResultSize?:index", "res0%8", "alignment?:i64", "", "$source (`(` $dynamicResultSize^ `)`)? attr-dict `:` type($source) `to` type(results)"),
    ("reinterpret_cast", "source%3 offsets*:index sizes*:index strides*:index", "result%4", "static_offsets:dense.i64 static_sizes:dense.i64 static_strides:dense.i64", "traits=oP", "$source `to` `offset` `` `:` custom<DynamicIndexList>($offsets, $static_offsets) `` `,` `sizes` `` `:` custom<DynamicIndexList>($sizes, $static_sizes) `` `,` `strides` `` `:` custom<DynamicIndexList>($strides, $static_strides) attr-dict `:` type($source) `to` type($result)"),
    ("reshape", "source%3 shape%9", "result%3", "", "traits=P", "$source `(` $shape `)` attr-dict `:` functional-type(operands, results)"),
    ("store", "value memref%0 indices*:index", "", "nontemporal?:bool=false alignment?:i64", "same=element(memref,value)", "$value `,` $memref `[` $indices `]` attr-dict `:` type($memref)"),
    ("subview", "source%0 offsets*:index sizes*:index strides*:index", "result%0", "static_offsets:dense.i64 static_sizes:dense.i64 static_strides:dense.i64", "traits=oP", "$source `` custom<DynamicIndexList>($offsets, $static_offsets) custom<DynamicIndexList>($sizes, $static_sizes) custom<DynamicIndexList>($strides, $static_strides) attr-dict `:` type($source) `to` type($result)"),
    ("transpose", "in%4", "res0%4", "permutation:map", "traits=P", "custom"),
    ("view", "source%10 byte_shift:index sizes*:index", "res0%0", "", "traits=P", "$source `[` $byte_shift `]` `` `[` $sizes `]` attr-dict `:` type($source) `to` type(results)"),
)
ATTRS = (
)
ENUMS = {
    "AtomicRMWKindAttr": "addf=0 addi=1 andi=2 assign=3 maximumf=4 maxnumf=5 maxs=6 maxu=7 minimumf=8 minnumf=9 mins=10 minu=11 mulf=12 muli=13 ori=14 xori=15",
}
CONSTRAINTS = (
    "memref of any type values",
    "signless integer or floating-point",
    "memref of signless integer or floating-point values",
    "ranked or unranked memref of any type values",
    "strided memref of any type values",
    "unranked.memref of any type values or non-0-ranked.memref of any type values",
    "strided memref of any type values of rank 0",
    "statically shaped memref of any type values",
    "1D memref of any type values",
    "1D memref of signless integer or index values",
    "1D memref of 8-bit signless integer values",
)
