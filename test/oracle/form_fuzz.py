"""Malformed ops in generic form for ``cute-opt``: registered ops with parts missing, duplicated or replaced.

    python test/oracle/form_fuzz.py --count 100000 --seed 0

A case takes one registered op and a form it has in the project's test files, or a random form if it has none. It drops,
duplicates or replaces operands, results, regions, successors and properties, and writes the op in generic form.

For any form, ``cute-opt`` must print the module or report an error at the op. An internal error is a failure. Ops are
used in rotation, so a ``--count`` of a few thousand covers every op several times.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

import file_fuzz

RUNS: Sequence[Sequence[str]] = (
    (),
    ("--mlir-print-op-generic",),
    ("--verify-each=false",),
    ("--verify-roundtrip",),
    ("--pipeline=base",),
    ("--canonicalize", "--cse"),
    ("--cute-fold-static", "--cute-expand-ops", "--verify-each=false"),
)

TYPES = (
    "i1", "i32", "i64", "f32", "f16", "index", "none", "vector<4xi32>", "vector<2x2xf16>", "vector<[4]xf32>",
    "tensor<4xf32>", "memref<4xf32>", "memref<?x4xi32, strided<[?, 1]>>", "() -> ()", "(i32) -> f32", "tuple<i32>",
    "!llvm.ptr", "!llvm.ptr<3>", "!llvm.struct<(i32, f32)>", "!llvm.array<4 x i32>", "!llvm.void", "!gpu.async.token",
    '!cute.layout<"(4,8):(8,1)">', '!cute.layout<"?:?">', '!cute.int_tuple<"(?,4)">', '!cute.coord<"?">',
    '!cute.shape<"(4,(2,2))">', '!cute.memref<f32, gmem, "(4,8):(8,1)">', '!cute.memref<f16, rmem, "4:1">',
    "!cute.ptr<f32, smem, align<16>>",
)  # fmt: skip
"""Valid value types of every dialect."""

ATTRIBUTES = (
    "unit", "true", "0 : i32", "-1 : i64", "3 : index", "1.5 : f32", '"x"', "@f", "@f::@g", "[]", "[3 : i32]", "{}",
    "{a = 1 : i32}", "i32", "() -> ()", "(i32) -> i32", "array<i32>", "array<i32: 1, 1>", "array<i32: -1, 2, 7>",
    "array<i64: 0>", "dense<1> : vector<4xi32>", "affine_map<(d0) -> (d0)>", "!llvm.ptr", "9223372036854775807 : i64",
    "array<i1: true>",
)  # fmt: skip


@dataclass(frozen=True)
class Form:
    """The parts of an op in generic form, as text."""

    operands: tuple[str, ...] = ()
    """Types of the operands."""
    results: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    """Each region with its braces."""
    successors: int = 0
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def op_names() -> tuple[str, ...]:
    """Return every registered op of every dialect, sorted."""
    from cute_dialect.ir.context import make_context
    from cute_dialect.upstream.registry import BASE_DIALECTS

    context = make_context("all")
    for name in ("cute", "cute_nvgpu", *BASE_DIALECTS):
        if name in context.dialect_factories:
            context.load_registered_dialect(name)
    return tuple(sorted({op.name for op in context.loaded_ops}))


@cache
def known_forms() -> Mapping[str, Sequence[Form]]:
    """Return the forms of ops in the project's test files, at most eight per op."""
    from xdsl.ir import Operation

    from cute_dialect.ir.context import make_context
    from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
    from cute_dialect.ir.parsing import parse_module

    found: dict[str, list[Form]] = defaultdict(list)

    def form(op: Operation) -> Form:
        regions = tuple(
            "{\n^bb0" + (f"({arguments})" if arguments else "") + ":\n" + "}"
            for region in op.regions
            for arguments in [", ".join(f"%r{i}: {a.type}" for i, a in enumerate(region.blocks[0].args))
                              if region.blocks else ""]
        )  # fmt: skip
        return Form(
            tuple(str(value.type) for value in op.operands),
            tuple(str(value.type) for value in op.results),
            regions,
            len(op.successors),
            {name: str(value) for name, value in op.properties.items()},
            {name: str(value) for name, value in op.attributes.items()},
        )

    for piece in file_fuzz.corpus():
        module = parse_module(make_context("all"), Source("piece", piece), DiagnosticEngine())
        for op in module.walk() if module is not None else ():
            if len(found[op.name]) < 8:
                found[op.name].append(form(op))
    return found


def _region(rng: Random, names: Sequence[str]) -> str:
    """Return a region: empty, with an empty block, with arguments, without a valid terminator, or with two blocks."""
    arguments = ", ".join(f"%r{i}: {rng.choice(TYPES)}" for i in range(rng.choice([0, 0, 1, 2, 4])))
    label = f"^bb0({arguments}):\n" if arguments else "^bb0:\n"
    ends = ['"func.return"() : () -> ()', '"scf.yield"() : () -> ()', '"llvm.unreachable"() : () -> ()',
            '"gpu.return"() : () -> ()', f'"{rng.choice(names)}"() : () -> ()']  # fmt: skip
    end = rng.choice(ends)
    return rng.choice(["{\n}", "{\n" + label + "}", "{\n" + label + end + "\n}", "{\n" + label + end + "\n^bb1:\n}",
                       "{\n" + label + end + "\n^bb1:\n" + end + "\n}"])  # fmt: skip


def random_form(rng: Random, names: Sequence[str]) -> Form:
    """Return a random form, which may fit no op."""
    return Form(
        tuple(rng.choice(TYPES) for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 6]))),
        tuple(rng.choice(TYPES) for _ in range(rng.choice([0, 0, 1, 1, 2, 5]))),
        tuple(_region(rng, names) for _ in range(rng.choice([0, 0, 0, 1, 2]))),
        rng.choice([0, 0, 0, 1, 2, 3]),
    )


def _items(rng: Random, items: Sequence[str], new: str) -> tuple[str, ...]:
    """Drop, duplicate, replace, move or add one item, or drop all."""
    at = rng.randrange(len(items)) if items else 0
    before, here, after = tuple(items[:at]), tuple(items[at : at + 1]), tuple(items[at + 1 :])
    return rng.choice(
        [before + after, before + after, before + here * 2 + after, (*before, new, *after), (*items, new),
         after + here + before, ()]
    )  # fmt: skip


def damaged(rng: Random, form: Form, names: Sequence[str], attribute_names: Sequence[str]) -> Form:
    """Change one part of a form."""
    part = rng.choice(["operands", "results", "regions", "successors", "properties", "properties", "attributes"])
    if part == "operands":
        return replace(form, operands=_items(rng, form.operands, rng.choice(TYPES)))
    if part == "results":
        return replace(form, results=_items(rng, form.results, rng.choice(TYPES)))
    if part == "regions":
        return replace(form, regions=_items(rng, form.regions, _region(rng, names)))
    if part == "successors":
        return replace(form, successors=rng.choice([0, 1, 2, 3]))
    changed = dict(form.properties if part == "properties" else form.attributes)
    if changed and rng.random() < 0.6:
        name = rng.choice(sorted(changed))
        if rng.random() < 0.5:
            del changed[name]
        else:
            changed[name] = rng.choice(ATTRIBUTES)
    else:
        changed[rng.choice(attribute_names)] = rng.choice(ATTRIBUTES)
    return replace(form, **{part: changed})


@cache
def _attribute_names(name: str) -> tuple[str, ...]:
    """Return the properties that an op declares, and some that many tools read."""
    from xdsl.irdl import IRDLOperation

    from cute_dialect.ir.context import make_context
    from cute_dialect.upstream.op import TableOp

    context = make_context("all")
    op = context.get_optional_op(name)
    own: list[str] = []
    if op is not None and issubclass(op, TableOp):
        own = list(op.spec().attrs)
    elif op is not None and issubclass(op, IRDLOperation):
        definition = op.get_irdl_definition()
        own = [*definition.properties, *definition.attributes]
    return (*own, *own, "operandSegmentSizes", "resultSegmentSizes", "sym_name", "function_type", "cute.args", "value")


@cache
def _terminates(name: str) -> bool:
    from xdsl.traits import IsTerminator

    from cute_dialect.ir.context import make_context

    op = make_context("all").get_optional_op(name)
    return op is not None and op.has_trait(IsTerminator, value_if_unregistered=False)


def _dictionary(items: Mapping[str, str]) -> str:
    return ", ".join(name if value == "unit" else f"{name} = {value}" for name, value in items.items())


PLACES: Mapping[str, tuple[str, str, str]] = {
    "function": ("func.func @f() {\n", "return", "}\n"),
    "llvm function": ("llvm.func @f() {\n", "llvm.return", "}\n"),
    "kernel": ("gpu.module @m {\ngpu.func @k() kernel {\n", "gpu.return", "}\n}\n"),
    "if": (
        'func.func @f() {\n%c = "arith.constant"() <{value = true}> : () -> i1\nscf.if %c {\n',
        "scf.yield",
        "}\nreturn\n}\n",
    ),
    "module": ("", "", ""),
}
"""Surroundings of an op: the text before it, the terminator of its block, the text after."""


def written(name: str, form: Form, place: str, *, terminated: bool) -> str:
    """Return a module with the op in generic form. Its block ends with a terminator if ``terminated``."""
    casts = [f"%a{i} = builtin.unrealized_conversion_cast to {kind}" for i, kind in enumerate(form.operands)]
    head = f"%res:{len(form.results)} = " if form.results else ""
    targets = "[" + ", ".join(f"^bb{i + 8}" for i in range(form.successors)) + "]" if form.successors else ""
    properties = f" <{{{_dictionary(form.properties)}}}>" if form.properties else ""
    regions = " (" + ", ".join(form.regions) + ")" if form.regions else ""
    attributes = f" {{{_dictionary(form.attributes)}}}" if form.attributes else ""
    operands = ", ".join(f"%a{i}" for i in range(len(form.operands)))
    signature = f"({', '.join(form.operands)}) -> ({', '.join(form.results)})"
    op = f'{head}"{name}"({operands}){targets}{properties}{regions}{attributes} : {signature}'
    before, end, after = PLACES[place]
    lines = [*casts, op, *([end] if terminated and end else [])]
    for i in range(form.successors):
        lines += [f"^bb{i + 8}:", end or '"func.return"() : () -> ()']
    return before + "\n".join(lines) + "\n" + after


def case(seed: int) -> tuple[str, Sequence[str]]:
    """Return the file and the options of a seed."""
    rng = Random(seed)
    names = op_names()
    name = names[seed % len(names)]
    forms = known_forms().get(name)
    form = rng.choice(forms) if forms and rng.random() < 0.85 else random_form(rng, names)
    for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 3])):
        form = damaged(rng, form, names, _attribute_names(name))
    place = rng.choice(["function", "function", "llvm function", "kernel", "module", "if"])
    terminated = rng.random() < (0.1 if _terminates(name) else 0.95)
    return written(name, form, place, terminated=terminated), rng.choice(RUNS)


def check(seed: int) -> str | None:
    """Run the case of a seed. Return the failure, or None."""
    text, options = case(seed)
    return file_fuzz.failure("cute-opt", text.encode(), options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case; each case has its own")
    options = parser.parse_args()
    os.environ["CUTE_CACHE"] = "0"
    failures = 0
    for seed in range(options.seed, options.seed + options.count):
        wrong = check(seed)
        if wrong is not None:
            failures += 1
            text, words = case(seed)
            print(f"seed {seed}: {wrong}\n  cute-opt {' '.join(words)}\n{text}", flush=True)
    print(f"{options.count} forms of {len(op_names())} ops: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
