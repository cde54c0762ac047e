"""Files that stress compilers: integers with thousands of digits, exponential aliases, deep nesting, great length.

:func:`shape` returns one as ``(name, text)`` from a random generator. Sizes range from small ones that must be accepted
to absurd ones that must be refused, so both sides of every limit are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

_WRAPPERS = (
    "func.func @f({0}) {{\n  return\n}}\n",
    "func.func private @f({0})\n",
    "gpu.module @m {{\n  gpu.func @f({0}) kernel {{\n    gpu.return\n  }}\n}}\n",
)


def _function(rng: Random, arguments: str = "", body: str = "") -> str:
    if body:
        return f"func.func @f({arguments}) {{\n{body}\n  return\n}}\n"
    return rng.choice(_WRAPPERS).format(arguments)


def _size(rng: Random, largest: int) -> int:
    """Return a size from 0 to ``largest``, uniform on a logarithmic scale."""
    return min(largest, int(2 ** (rng.random() * (largest.bit_length() + 1))))


def long_number(rng: Random) -> str:
    """Return a file with a number of up to 20,000 digits."""
    number = rng.choice(["9", "1", "0"]) * _size(rng, 20_000)
    number = rng.choice(["", "", "", "-", "0x"]) + number
    place = rng.choice(
        [
            ('%a: !cute.layout<"{0}:1">', ""),
            ('%a: !cute.layout<"({0},{0}):(1,{0})">', ""),
            ('%a: !cute.int_tuple<"?{{div={0}}}">', ""),
            ('%a: !cute.swizzle<"S<{0},4,3>">', ""),
            ('%a: !cute.memref<f32, gmem, align<{0}>, "4:1">', ""),
            ("%a: tensor<{0}xi32>", ""),
            ("%a: tensor<4x{0}xi32>", ""),
            ("%a: vector<{0}xf32>", ""),
            ("%a: memref<{0}xf32>", ""),
            ("%a: memref<4xf32, {0}>", ""),
            ("%a: memref<4xf32, strided<[{0}], offset: {0}>>", ""),
            ("%a: i{0}", ""),
            ("%a: !llvm.ptr<{0}>", ""),
            ("%a: !llvm.array<{0} x i8>", ""),
            ("", "  %c = arith.constant {0} : i32"),
            ("", "  %c = arith.constant {0} : i60000"),
            ("", "  %c = arith.constant {0} : index"),
            ("", "  %c = arith.constant {0} : f32"),
            ("", "  %c = arith.constant {0}.0 : f64"),
            ("", "  %c = arith.constant 1.0e{0} : f16"),
            ("", "  %c = arith.constant dense<{0}> : vector<4xi32>"),
            ("", "  %c = arith.constant dense<[{0}]> : vector<1xi64>"),
            ("", "  %c = arith.constant dense<{0}> : vector<1xf16>"),
            ("", '  %c = cute.static : !cute.int_tuple<"{0}">'),
            ("%a: i32", "  %b = arith.addi %a#{0}, %a : i32"),
            ("", '  %b:{0} = "x.y"() : () -> i32'),
            ("", '  "x.y"() {{a = array<i64: {0}>}} : () -> ()'),
            ("", '  "x.y"() {{a = affine_map<(d0) -> (d0 + {0})>}} : () -> ()'),
            ("", '  "x.y"() {{a = {0} : i64}} : () -> () loc("f":{0}:1)'),
            ("", '  "x.y"() : () -> () loc("f":1:{0})'),
        ]
    )
    return _function(rng, place[0].format(number), place[1].format(number))


def aliases(rng: Random) -> str:
    """Return aliases that each use the previous one up to three times: defined before or after use, or in a cycle."""
    n, fan = _size(rng, 3000), rng.choice([1, 2, 2, 3])
    kind = rng.choice(["tuple", "struct", "function", "array", "dict", "callsite", "fused", "name"])
    first, pattern, mark = {
        "tuple": ("i32", "tuple<{0}>", "!"),
        "struct": ("i32", "!llvm.struct<({0})>", "!"),
        "function": ("i32", "({0}) -> ({0})", "!"),
        "array": ("1", "[{0}]", "#"),
        "dict": ("1", "{{a = [{0}]}}", "#"),
        "callsite": ('loc("f":1:1)', "loc(callsite({0} at unknown))", "#"),
        "fused": ('loc("f":1:1)', "loc(fused[{0}])", "#"),
        "name": ('loc("f":1:1)', 'loc(fused["a"({0})])', "#"),
    }[kind]
    location = mark == "#" and kind in ("callsite", "fused", "name")
    if kind in ("callsite", "name") and fan > 1:
        pattern, fan = "loc(fused[callsite({0} at {0}), {0}])".replace("{0}", "{0}"), 1
    lines = [f"{mark}a0 = {first}"]
    for i in range(1, n + 1):
        lines.append(f"{mark}a{i} = " + pattern.format(", ".join([f"{mark}a{i - 1}"] * fan)))
    use = f"{mark}a{n}"
    if location:
        if rng.random() < 0.2:
            lines[0] = f"#a0 = loc(callsite(#a{rng.randrange(n + 1)} at unknown))"
        text = f"func.func @f(%a: i32 loc({use})) {{\n  return loc({use})\n}} loc({use})\n"
    elif mark == "!":
        text = f"func.func @f(%a: {use}, %b: {use}) {{\n  return\n}}\n" * rng.choice([0, 1, 1])
    else:
        text = f"func.func private @f() attributes {{a = {use}, b = {use}}}\n"
    if location and rng.random() < 0.5:
        rng.shuffle(lines)
        return text + "\n".join(lines) + "\n"
    return "\n".join(lines) + "\n" + text


def nested(rng: Random) -> str:
    """Return types, attributes, locations, regions or layouts nested up to 10,000 deep."""
    n = _size(rng, 10_000)
    opening, inner, closing, where = rng.choice(
        [
            ("tuple<", "i32", ">", "%a: {0}"),
            ("!llvm.struct<(", "i32", ")>", "%a: {0}"),
            ("!llvm.array<1 x ", "i32", ">", "%a: {0}"),
            ("vector<", "4xi32", ">", "%a: {0}"),
            ("() -> ", "i32", "", "%a: {0}"),
            ("(", "4", ")", '%a: !cute.layout<"{0}:{0}">'),
            ("(2,", "4", ")", '%a: !cute.layout<"{0}:{0}">'),
            ("(2,", "4", ")", '%a: !cute.int_tuple<"{0}">'),
            ("(", "?", ")", '%a: !cute.coord<"{0}">'),
            ("[2:1;", "4:1", "]", '%a: !cute.tile<"{0}">'),
            ("[", "", "]", "attribute"),
            ("{a = ", "1", "}", "attribute"),
            ("[{a = ", "1", "}]", "attribute"),
            ("affine_map<(d0) -> (" + "(", "d0", ")" + ")>", "attribute"),
            ("dense<[", "1", "]> : tensor<1xi32>", "attribute"),
            ("callsite(", '"f":1:1', ' at "g":1:1)', "location"),
            ('callsite("g":1:1 at ', '"f":1:1', ")", "location"),
            ("fused[", '"f":1:1', "]", "location"),
            ('"a"(', '"f":1:1', ")", "location"),
            ("module {\n", "", "}\n", ""),
            ('"builtin.module"() ({\n', "", "}) : () -> ()\n", ""),
            ("gpu.module @m {\n", "", "}\n", ""),
            ("scf.if %c {\n", "", "}\n", "body"),
            ("scf.if %c {\n} else {\n", "", "}\n", "body"),
            ("scf.for %i = %n to %n step %n {\n", "", "}\n", "body"),
            ("scf.execute_region {\n", "", "scf.yield\n}\n", "body"),
            ("x.y {", "", "}", "body"),
        ]
    )
    text = opening * n + inner + closing * max(0, n + rng.choice([0, 0, 0, 0, -1, 1]))
    if where == "attribute":
        return f"func.func private @f() attributes {{a = {text}}}\n"
    if where == "location":
        return f"func.func @f(%a: i32 loc({text})) {{\n  return loc({text})\n}}\n"
    if where == "body":
        return _function(rng, "%c: i1, %n: index", text)
    return _function(rng, where.format(text)) if where else text


def many(rng: Random) -> str:
    """Return many constants, arguments, results, chained ops, functions, blocks or attributes, on one line or more."""
    n = _size(rng, 3000)
    i32s = ", ".join(["i32"] * n)
    text = rng.choice(
        [
            "func.func @f() {\n" + "".join(f"  %c{i} = arith.constant {i} : i32\n" for i in range(n)) + "  return\n}\n",
            "func.func @f() {\n" + "  %c = arith.constant 7 : i32\n" + "  return\n}\n",
            "func.func @f(" + ", ".join(f"%a{i}: i32" for i in range(n)) + ") {\n  return\n}\n",
            "func.func @f(%x0: i32) -> i32 {\n"
            + "".join(f"  %x{i + 1} = arith.addi %x{i}, %x{i} : i32\n" for i in range(n))
            + f"  return %x{n} : i32\n}}\n",
            'func.func @f(%x0: !cute.int_tuple<"?">) {\n'
            + "".join(
                f'  %x{i + 1} = cute.tuple_add(%x{i}, %x{i}) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> '
                '!cute.int_tuple<"?">\n'
                for i in range(n)
            )
            + "  return\n}\n",
            "".join(f"func.func @f{i}() {{\n  return\n}}\n" for i in range(n)),
            "func.func @f() {\n  cf.br ^b0\n"
            + "".join(f"^b{i}:\n  cf.br ^b{i + 1}\n" for i in range(n))
            + f"^b{n}:\n  return\n}}\n",
            f'%0:{n} = "x.y"() : () -> ({i32s})\n',
            f"func.func private @f({i32s}) -> ({i32s})\n",
            f"func.func @f(%a: !llvm.struct<({i32s})>) {{\n  return\n}}\n",
            "func.func private @f() attributes {" + ", ".join(f"a{i}" for i in range(n)) + "}\n",
            "func.func private @f() attributes {a = [" + ", ".join(["1"] * n) + "]}\n",
            "// -----\n".join(["func.func private @f()\n"] * n),
            "// -----\n" * n,
            "\n" * n,
            "//" * n,
            "func.func private @f() loc(#a)\n"
            + "".join(f'#a{i} = loc("f":1:1)\n' for i in range(n))
            + "#a = loc(#a0)\n",
        ]
    )
    return text.replace("\n", " ") if rng.random() < 0.2 and "//" not in text else text


def elements(rng: Random) -> str:
    """Return constants, register tensors and copies of up to 2^70 elements."""
    n = 1 << rng.randrange(71)
    n += rng.choice([0, 0, -1, 1])
    t = f'!cute.memref<f32, gmem, align<16>, "{n}:1">'
    copy = "!cute_nvgpu.atom.universal_copy<f32>"
    return rng.choice(
        [
            _function(rng, "", f"  %c = arith.constant dense<0> : vector<{n}xi32>"),
            _function(rng, "", f"  %c = arith.constant dense<1.0> : tensor<{n}x4xf32>"),
            _function(rng, "", f'  %c = arith.constant dense<"0x00000000"> : tensor<{n}xf32>'),
            _function(rng, "", f"  %c = arith.constant dense<> : vector<{n}xi8>"),
            _function(rng, f"%a: !llvm.array<{n} x i8>, %b: vector<{n}xf32>, %c: memref<{n}x{n}xf32>"),
            _function(rng, "", f'  %r = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "{n}:1">'),
            _function(
                rng,
                "%v: f32",
                f'  %r = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "{n}:1">\n'
                f'  cute.memref.fill(%r, %v) : !cute.memref<f32, rmem, align<16>, "{n}:1">, f32',
            ),
            _function(
                rng,
                f"%s: {t}, %d: {t}",
                f"  %a = cute.atom() : {copy}\n  cute.copy(%a, %s, %d) : ({copy}, {t}, {t}) -> ()",
            ),
            _function(
                rng,
                f"%s: {t}",
                f'  %r = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "{n}:1">\n'
                f"  %a = cute.atom() : {copy}\n"
                f'  cute.copy(%a, %s, %r) : ({copy}, {t}, !cute.memref<f32, rmem, align<16>, "{n}:1">) -> ()',
            ),
        ]
    )


SHAPES: Mapping[str, Callable[[Random], str]] = {
    "long number": long_number,
    "aliases": aliases,
    "nested": nested,
    "many": many,
    "elements": elements,
}


def shape(rng: Random) -> str:
    """Return a file with one of the shapes."""
    return rng.choice(list(SHAPES.values()))(rng)
