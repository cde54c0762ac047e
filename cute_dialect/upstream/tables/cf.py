"""Ops and attributes of the cf dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
    ("assert", "arg:i1", "", "msg:str", "", "$arg `,` $msg attr-dict"),
    ("br", "destOperands*", "", "", "succ=dest traits=PT", "$dest (`(` $destOperands^ `:` type($destOperands) `)`)? attr-dict"),
    ("cond_br", "condition:i1 trueDestOperands* falseDestOperands*", "", "branch_weights?:dense.i32", "succ=trueDest,falseDest traits=oPT", "$condition (`weights` `(` $branch_weights^ `)` )? `,` $trueDest (`(` $trueDestOperands^ `:` type($trueDestOperands) `)`)? `,` $falseDest (`(` $falseDestOperands^ `:` type($falseDestOperands) `)`)? attr-dict"),
    ("switch", "flag%0 defaultOperands* caseOperands**", "", "case_values?:any case_operand_segments:dense.i32", "succ=defaultDestination,caseDestinations* traits=oPT", "$flag `:` type($flag) `,` `[` `\\n` custom<SwitchOpCases>(ref(type($flag)),$defaultDestination, $defaultOperands, type($defaultOperands), $case_values, $caseDestinations, $caseOperands, type($caseOperands)) `]` attr-dict"),
)
ATTRS = (
)
ENUMS = {
}
CONSTRAINTS = (
    "integer",
)
