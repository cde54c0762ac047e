"""Ops and attributes of the scf dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
    ("condition", "condition:i1 args*", "", "", "traits=PT", "`(` $condition `)` attr-dict ($args^ `:` type($args))?"),
    ("execute_region", "", "res0*", "no_inline?:unit", "regions=region", "custom"),
    ("for", "lowerBound%0 upperBound%0 step%0 initArgs*", "results*", "unsignedCmp?:unit", "regions=region1 same=all(lowerBound,upperBound,step)", "custom"),
    ("forall", "dynamicLowerBound*:index dynamicUpperBound*:index dynamicStep*:index outputs*%1", "results*", "staticLowerBound:dense.i64 staticUpperBound:dense.i64 staticStep:dense.i64 mapping?:array", "regions=region1 traits=o", "custom"),
    ("forall.in_parallel", "", "", "", "regions=region1 traits=PTN", "custom"),
    ("if", "condition:i1", "results*", "", "regions=thenRegion1,elseRegion", "custom"),
    ("index_switch", "arg:index", "results*", "cases:dense.i64", "regions=defaultRegion1,caseRegions*", "$arg attr-dict (`->` type($results)^)? custom<SwitchCases>($cases, $caseRegions) `\\n` `` `default` $defaultRegion"),
    ("parallel", "lowerBound*:index upperBound*:index step*:index initVals*", "results*", "", "regions=region1 traits=o", "custom"),
    ("reduce", "operands*", "", "", "regions=reductions* traits=T", "(`(` $operands^ `:` type($operands) `)`)? $reductions attr-dict"),
    ("reduce.return", "result", "", "", "traits=PT", "$result attr-dict `:` type($result)"),
    ("while", "inits*", "results*", "", "regions=before1,after1", "custom"),
    ("yield", "results*", "", "", "traits=PT", "attr-dict ($results^ `:` type($results))?"),
)
ATTRS = (
)
ENUMS = {
}
CONSTRAINTS = (
    "signless integer or index",
    "ranked tensor of any type values",
)
