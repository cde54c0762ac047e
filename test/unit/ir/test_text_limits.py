"""Resource limits of the parser: long numbers, exponential aliases, deep nesting, huge dense constants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cute_dialect.ir.diagnostics import Diagnostic, Position, Source, render
from cute_dialect.tools.cute_opt import main

Told = Callable[..., str]


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Return the first line of the error of ``cute-opt`` for a text."""

    def run(text: str | bytes, *options: str) -> str:
        path = tmp_path / "in.mlir"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert main([str(path), *options]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        return err.split("\n", 1)[0].removeprefix(f"{tmp_path}/")

    return run


@pytest.fixture
def accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return the output of ``cute-opt`` for a valid text."""

    def run(text: str | bytes, *options: str) -> str:
        path = tmp_path / "in.mlir"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        status = main([str(path), *options])
        out, err = capsys.readouterr()
        assert (status, err) == (0, "")
        return out

    return run


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("func.func private @f() attributes {a = #}", "1:40"),
        ("func.func private @f(i32, tensor<#xi32>)", "1:34"),
        ("func.func private @f(vector<4x#xi32>)", "1:31"),
        ("func.func private @f(memref<4xi32, #>)", "1:36"),
        ("func.func private @f(memref<4xi32, strided<[#]>>)", "1:45"),
        ("func.func private @f(!llvm.ptr<#>)", "1:32"),
        ("func.func private @f(!llvm.array<# x i8>)", "1:34"),
        ('func.func private @f() loc("f":#:1)', "1:32"),
        ('func.func private @f() loc("f":1:#)', "1:34"),
        ('%a:# = "x.y"() : () -> i32', "1:4"),
        ("func.func private @f() attributes {a = affine_map<(d) -> (d + #)>}", "1:63"),
        ("func.func private @f() attributes {a = array<i64: #>}", "1:51"),
        ("func.func private @f() attributes {a = dense<#> : vector<4xi8>}", "1:46"),
        ("func.func @f(%a: i32) {\n  %b = arith.addi %a#, %a : i32\n  return\n}", None),
    ],
)
def test_long_numbers_are_reported_with_their_position(text: str, place: str | None, told: Told) -> None:
    if place is None:
        said = told(text.replace("#", "#" + LONG))
        assert said == "in.mlir:2:21: error: expected a number of at most 600 digits, got 5000"
    else:
        assert (
            told(text.replace("#", LONG))
            == f"in.mlir:{place}: error: expected a number of at most 600 digits, got 5000"
        )


def test_a_hexadecimal_number_may_not_be_longer_either(told: Told) -> None:
    text = f"func.func private @f() attributes {{a = 0x{'f' * 5000} : i60000}}"
    assert told(text) == "in.mlir:1:40: error: expected a number of at most 600 digits, got 5002"


def test_numbers_of_600_digits_round_trip(accepted: Callable[..., str]) -> None:
    number = "8" * 600
    text = f"func.func private @f() attributes {{a = {number} : i3000}}\n"
    assert number in accepted(text, "--verify-roundtrip", "--mlir-print-op-generic", "--mlir-print-debuginfo")


def test_long_numbers_in_options_are_rejected(told: Told) -> None:
    text = "func.func private @f()"
    assert told(text, f"--validate=samples={LONG}", "--cse").startswith(
        "cute-opt: error: option '--validate': expected "
    )
    assert told(text, f"--cute-to-base=index-bits={LONG}").startswith("cute-opt: error: ")
    assert told(text, f"--pass-pipeline=builtin.module(cute-to-base{{index-bits={LONG}}})").startswith(
        "<--pass-pipeline>:1:16: error: "
    )


@pytest.mark.parametrize(
    ("first", "pattern", "use"),
    [
        ("!a0 = i32", "!a{0} = tuple<!a{1}, !a{1}>", "func.func private @f(!a40)"),
        ("!a0 = i32", "!a{0} = (!a{1}) -> !a{1}", "func.func private @f(!a40)"),
        ("!a0 = i32", "!a{0} = !llvm.struct<(!a{1}, !a{1})>", "func.func private @f(!a40)"),
        ("#a0 = 1", "#a{0} = [#a{1}, #a{1}]", "func.func private @f() attributes {a = #a40}"),
        ("#a0 = 1", "#a{0} = {{x = #a{1}, y = #a{1}}}", "func.func private @f() attributes {a = #a40}"),
        ('#a0 = loc("f":1:1)', "#a{0} = loc(callsite(#a{1} at #a{1}))", "func.func private @f() loc(#a40)"),
        ('#a0 = loc("f":1:1)', "#a{0} = loc(fused[#a{1}, #a{1}])", "func.func private @f() loc(#a40)"),
    ],
)
@pytest.mark.parametrize("forward", [True, False])
def test_doubling_aliases_are_rejected(first: str, pattern: str, use: str, forward: bool, told: Told) -> None:
    lines = [first, *(pattern.format(i, i - 1) for i in range(1, 41))]
    text = "\n".join([*lines, use] if forward else [use, *reversed(lines)])
    if not forward and "loc" not in first:
        assert "undefined symbol alias" in told(text)
    else:
        said = told(text, "--mlir-print-debuginfo")
        assert "error: expected aliases and dense constants that expand to at most 42" in said
        assert "characters and elements in a file of this length, got " in said


def test_exponential_aliases_are_rejected(told: Told) -> None:
    lines = ["!a0 = i32", *(f"!a{i} = tuple<!a{i - 1}, !a{i - 1}>" for i in range(1, 41))]
    assert told("\n".join(lines)) == (
        "in.mlir:18:14: error: expected aliases and dense constants that expand to at most 4257024 characters and "
        "elements in a file of this length, got 6291387 with the alias '!a16' of 2097383"
    )


def test_recursive_locations_are_rejected(told: Told) -> None:
    text = "func.func private @f() loc(#a)\n#a = loc(callsite(#b at unknown))\n#b = loc(callsite(#a at unknown))\n"
    assert told(text) == "in.mlir:2:19: error: the alias '#b' refers to itself"


@pytest.mark.slow
def test_aliases_as_they_are_used_are_accepted(accepted: Callable[..., str]) -> None:
    members = ", ".join(["f32"] * 128)
    text = f"!s = !llvm.struct<({members})>\nfunc.func @f(%a: !s) {{\n"
    text += "  %b = llvm.extractvalue %a[3] : !s\n" * 1 + "".join(
        f"  %c{i} = llvm.insertvalue %b, %a[{i % 128}] : !s\n" for i in range(2000)
    )
    assert accepted(text + "  return\n}\n").count("insertvalue") == 2000
    chain = "".join(f"#a{i} = loc(callsite(#a{i + 1} at unknown))\n" for i in range(100))
    assert accepted("func.func private @f() loc(#a0)\n" + chain + '#a100 = loc("g":1:1)\n', "--mlir-print-debuginfo")


@pytest.mark.parametrize(
    ("constant", "said"),
    [
        (
            "dense<0> : tensor<2147483648xi32>",
            "1:49: error: expected aliases and dense constants that expand to at most ",
        ),
        ("dense<1.0> : vector<65536x65536xf32>", "1:51: error: expected aliases and dense constants that expand to "),
        (
            'dense<"0x00000000"> : tensor<9999999999999999999999xf32>',
            "1:60: error: expected aliases and dense constants ",
        ),
        (
            "dense<0> : vector<4xi128>",
            "1:43: error: expected elements that fit their type, of at most 64 bits, in a dense",
        ),
        (
            "dense<1.0e30> : vector<4xf16>",
            "1:43: error: expected elements that fit their type, of at most 64 bits, in a",
        ),
        ("0xFFFFFFFFFFFF : f32", "1:38: error: hexadecimal float constant out of range for its type"),
    ],
)
def test_oversized_constants_are_rejected(constant: str, said: str, told: Told) -> None:
    assert told(f"func.func @f() {{ %c = arith.constant {constant}\n  return }}").startswith(f"in.mlir:{said}")


def test_constants_with_too_many_elements_are_rejected(told: Told) -> None:
    assert told("func.func @f() { %c = arith.constant dense<0> : tensor<2147483648xi32>\n  return }") == (
        "in.mlir:1:49: error: expected aliases and dense constants that expand to at most 4199488 characters and "
        "elements in a file of this length, got 2147483648 with a dense constant of 2147483648"
    )


NESTED = {
    "tuples": "func.func private @f({})".format("tuple<" * 10_000 + "i32" + ">" * 10_000),
    "structs": "func.func private @f({})".format("!llvm.struct<(" * 10_000 + "i32" + ")>" * 10_000),
    "arrays": "func.func private @f() attributes {{a = {}}}".format("[" * 10_000 + "]" * 10_000),
    "dictionaries": "func.func private @f() attributes {{a = {}}}".format("{a = " * 10_000 + "1" + "}" * 10_000),
    "modules": "module {\n" * 10_000 + "}\n" * 10_000,
    "generic": '"builtin.module"() ({\n' * 10_000 + "}) : () -> ()\n" * 10_000,
    "branches": "func.func @f(%a: i1) {\n" + "scf.if %a {\n" * 10_000 + "}\n" * 10_000 + "return }",
    "locations": "func.func private @f() loc({})".format("fused[" * 10_000 + "unknown" + "]" * 10_000),
    "maps": "func.func private @f() attributes {{a = affine_map<(d) -> ({})>}}".format(
        "(" * 10_000 + "d" + ")" * 10_000
    ),
}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("kind", NESTED)
def test_deep_nesting_is_reported_with_its_position(kind: str, told: Told) -> None:
    said = told(NESTED[kind])
    assert said.startswith("in.mlir:") and said.endswith(": error: the IR is nested too deeply, while parsing")
    assert said != "in.mlir: error: the IR is nested too deeply, while parsing"


def test_deeply_nested_layouts_are_rejected(told: Told) -> None:
    deep = "(" * 10_000 + "4" + ")" * 10_000
    assert told(f'func.func private @f(!cute.int_tuple<"{deep}">)').endswith(
        "expected at most 64 nested tuples at offset 64"
    )


@pytest.mark.parametrize("options", [(), ("--mlir-print-debuginfo",), ("--cse",), ("--verify-roundtrip",)])
def test_locations_200_deep_are_read_and_printed(options: tuple[str, ...], accepted: Callable[..., str]) -> None:
    nested = "callsite(" * 200 + '"f":1:1' + ' at "g":2:2)' * 200
    printed = accepted(f"func.func private @f() loc({nested})\n", *options)
    assert printed.count("callsite(") == (200 if options == ("--mlir-print-debuginfo",) else 0)


@pytest.mark.parametrize(
    "option", ["--mlir-print-op-generic", "--verify-roundtrip", "--cse", "--canonicalize", "--cute-to-base"]
)
def test_nesting_too_deep_for_a_later_step_is_reported_there(option: str, told: Told) -> None:
    aliases = "!a0 = i32\n" + "".join(f"!a{i} = tuple<!a{i - 1}>\n" for i in range(1, 601))
    said = told(aliases + "func.func private @f(!a600)\n", option)
    assert said.startswith("in.mlir") and "error: the IR is nested too deeply, " in said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"func.func private @f() \xff\n", "in.mlir:1:24: error: the input is not UTF-8: byte 0xff"),
        ("func.func private @f()".encode("utf-16"), "in.mlir:1:1: error: the input is not UTF-8: byte 0xff"),
        (b"func.func private @f()\n\0\n", "in.mlir:2:1: error: Unexpected character: \0"),
    ],
)
def test_invalid_text_is_reported_with_its_position(data: bytes, said: str, told: Told) -> None:
    assert told(data) == said


@pytest.mark.sample(every=7)
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\n\n\n",
        b"// nothing",
        b"func.func private @f()",
        b"func.func private @f()\r\n// a comment\r\nfunc.func private @g()\r\n",
        b"func.func private @f() " * 2000,
        b"// -----\n" * 2000,
    ],
)
@pytest.mark.parametrize(
    "options", [(), ("--split-input-file",), ("--cse", "--split-input-file", "--mlir-timing=false")]
)
def test_unusual_valid_files_are_accepted(data: bytes, options: tuple[str, ...], accepted: Callable[..., str]) -> None:
    if data.count(b"@f") > 1 and b"\n" not in data:
        data = b"".join(b"func.func private @f%d() " % i for i in range(2000))
    accepted(data, *options)


def test_long_lines_are_cut_around_the_position() -> None:
    text = "x" * 100_000 + " =" + "y" * 100_000
    shown = render(Diagnostic("error", "no", Position("f", 1, 100_002)), {"f": Source("f", text)})
    first, line, mark, end = shown.split("\n")
    assert (first, end) == ("f:1:100002: error: no", "")
    assert line == "x" * 119 + " =" + "y" * 239
    assert mark == " " * 120 + "^"


@pytest.mark.parametrize("constant", ["dense<[1, 2, 3, 4]> : vector<4xi32>", "1.5 : f32", "dense<1.5> : vector<4xf16>"])
def test_validation_rejects_unsupported_constants(
    constant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.mlir"
    kind = constant.rpartition(" : ")[2]
    path.write_text(f"func.func @f() -> {kind} {{\n  %c = arith.constant {constant}\n  return %c : {kind}\n}}\n")
    assert main([str(path), "--validate", "--cse"]) == 0
    assert capsys.readouterr().err.split("\n")[0] == (f"{path}:1:1: remark: @f is not validated: values of type {kind}")


UPSTREAM = ("--mem2reg", "--base-prepare", "--pipeline=host")


@pytest.mark.parametrize("option", UPSTREAM)
def test_text_parsed_by_upstream_has_the_same_limits(option: str, told: Told) -> None:
    doubling = "!a0 = i32\n" + "".join(f"!a{i} = tuple<!a{i - 1}, !a{i - 1}>\n" for i in range(1, 41))
    said = told(doubling + "func.func private @f(!a40)\n", option)
    assert "error: expected aliases and dense constants that expand to at most " in said
    said = told(f"func.func private @f(tensor<4x{LONG}xi32>)\n", option)
    assert said == "in.mlir:1:31: error: expected a number of at most 600 digits, got 5000"


def test_aliases_in_any_order_and_over_lines_are_read_by_upstream(accepted: Callable[..., str]) -> None:
    text = "!t = tuple<\n  i32,\n  f32>\nfunc.func @f(%a: !t) {\n  return\n} loc(#c)\n"
    text += '#a = loc("f":1:1)\n#b = loc("g)":2:2)  // #b = loc(#c)\n#c = loc(callsite(#b at #a))\n'
    assert "tuple<i32, f32>" in accepted(text, "--sccp")


NO_STACK = "func.func private @f(" + "!llvm.struct<(" * 20_000 + "i32" + ")>" * 20_000 + ")\n"
ASSERTS = "func.func @f(%a: memref<4294967296x4294967296xf32>) {\n  return\n}\n"


@pytest.mark.slow
def test_crashes_of_upstream_are_reported_with_the_step(told: Told) -> None:
    assert told(NO_STACK, "--mem2reg") == (
        "in.mlir: error: the parser of upstream MLIR aborted (signal 11): the stack probably overflowed on "
        "deeply nested IR"
    )
    said = told(ASSERTS, "--base-prepare", "--one-shot-convert-to-llvm")
    assert said.startswith("in.mlir: error: pass 'one-shot-convert-to-llvm' of upstream MLIR aborted (signal 6): ")
    assert "integer overflow in size computation" in said
    said = told(ASSERTS, "--pipeline=host", "--emit=llvm")
    assert said.startswith("in.mlir: error: pass 'one-shot-convert-to-llvm' of upstream MLIR aborted (signal 6): ")


@pytest.mark.end_to_end
def test_chunks_after_a_crash_are_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(f"{ASSERTS}// -----\nfunc.func @g() {{\n  return\n}}\n// -----\n{ASSERTS}")
    assert main([str(path), "--split-input-file", "--base-prepare", "--one-shot-convert-to-llvm"]) == 1
    out, err = capsys.readouterr()
    assert out.count("llvm.func") == 1 and "@g" in out
    assert err.count("integer overflow in size computation") == 2


@pytest.mark.slow
def test_cute_run_reports_crashes_of_upstream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cute_dialect.tools.cute_run import main as cute_run

    path = tmp_path / "in.mlir"
    path.write_text(NO_STACK)
    assert cute_run([str(path), "--device=cpu", "--no-cache", "--list"]) == 1
    assert "error: the IR is nested too deeply, while parsing" in capsys.readouterr().err


def test_cute_run_reports_unsupported_parameter_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cute_dialect.tools.cute_run import main as cute_run

    path = tmp_path / "in.mlir"
    path.write_text("gpu.module @m {\n  gpu.func @k(%a: memref<4xf32>) kernel {\n    gpu.return\n  }\n}\n")
    assert cute_run([str(path), "--device=cpu", "--no-cache", "--list"]) == 1
    assert capsys.readouterr().err == (
        f"{path}: error: kernel @k has a parameter whose type cannot be passed: 'memref' cannot be a kernel "
        "parameter (in 'memref<4xf32>')\n"
    )


FORWARD = """func.func @f() -> i32 {
  cf.br ^b
^a:
  %u = arith.addi %v, %v : i32
  return %u : i32
^b:
  %v = arith.constant 1 : i32
  cf.br ^a
^never:
  %w = arith.addi %u, %u : i32
  cf.br ^never
}
"""


@pytest.mark.parametrize("options", [["--verify-roundtrip"], ["--cute-to-base"], ["--pipeline=host"]])
def test_values_used_in_blocks_before_the_one_that_defines_them_are_right(
    options: list[str], accepted: Callable[..., str]
) -> None:
    printed = accepted(FORWARD, *options)
    assert options == ["--pipeline=host"] or ("arith.addi" in printed and "never" not in printed)


def test_a_name_of_no_results_is_refused(told: Told) -> None:
    text = "func.func private @g() -> (i32, f32)\nfunc.func @f() {\n  %r:0 = func.call @g() : () -> (i32, f32)\n"
    said = "in.mlir:3:6: error: expected at least 1 result per name, got 0"
    assert told(text + "  return\n}\n") == said
    assert told(text + "  %0 = arith.addi %r#0, %r#1 : i32\n  return\n}\n") == said
    assert told("func.func @f() {\n  %r:0 = func.return\n}\n") == said.replace("3:6", "2:6")
