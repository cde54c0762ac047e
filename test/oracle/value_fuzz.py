"""Scalar PTX instructions of the interpreter on corner values and random bits, compared with `value_reference`.

    python test/oracle/value_fuzz.py --count 1000 --seed 7     1000 inputs for each of some 3000 opcodes

Every row of `cute_dialect.interp.instructions.ptx.SCALAR_ROWS` is expanded to all its opcodes. The program prints wrong
results and the number of results compared. The exit status is 1 if one was wrong.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence

import numpy as np
from value_reference import LAYOUTS, SIZES, accepts

from cute_dialect.interp import run_function
from cute_dialect.interp.instructions.ptx import SCALAR_ROWS
from cute_dialect.interp.instructions.ptx_text import Row, Words, expand
from cute_dialect.ir.context import make_context


def corners(name: str) -> list[int]:
    """Return the bits of zeros, subnormals, infinities, NaN, extreme numbers, ones and halves."""
    base = name.removesuffix("x2")
    if base == "pred":
        return [0, 1]
    if base in ("e2m1", "e2m3", "e3m2", "ue8m0"):
        return list(range({"e2m1": 16, "ue8m0": 256}.get(base, 64)))
    if base not in LAYOUTS:
        n = SIZES[base]
        return sorted(
            {
                v % (1 << n)
                for v in (
                    0,
                    1,
                    2,
                    3,
                    7,
                    31,
                    32,
                    33,
                    64,
                    255,
                    -1,
                    -2,
                    1 << (n - 1),
                    (1 << (n - 1)) - 1,
                    0x5A5A5A5A5A5A5A5A,
                )
            }
        )
    layout = LAYOUTS["f32" if base == "tf32" else base]
    f, top = layout.fraction, (1 << layout.exponent) - 1
    one = layout.bias << f
    sizes = [0, 1, 2, (1 << f) - 1, 1 << f, (1 << f) + 1, one, one + 1, one - 1, one - (1 << f), one + (1 << f)]
    sizes += [one + (1 << (f - 1)), one + (3 << (f - 1)), (top << f) - 1, top << f, (top << f) + (1 << (f - 1))]
    sizes += [(layout.bias + 30) % top << f, (layout.bias + 31) % top << f, (layout.bias + 63) % top << f]
    sizes += [(layout.bias + 9) % top << f | 3 << (f - 2), (layout.bias + 16) % top << f, (layout.bias - 20) % top << f]
    if layout.extra:
        sizes += [(top << f) + (1 << f) - 1, (top << f) + (1 << f) - 2]
    sizes = [s for s in sizes if s < 1 << (layout.exponent + f)]
    sign = 1 << (layout.exponent + f)
    return [*sizes, *(s | sign for s in sizes)]


def ties(rng: random.Random, name: str) -> int:
    """Return a number half-way between two numbers of a narrower format, or one bit away from that."""
    layout = LAYOUTS[name]
    drop = rng.choice([d for d in (13, 16, 29, 42, 45, 20, 3, 2) if d < layout.fraction] or [1])
    body = rng.getrandbits(layout.fraction) >> drop << drop | 1 << (drop - 1)
    body += rng.choice([0, 0, 1, -1])
    e = rng.randrange(1, (1 << layout.exponent) - 1) if rng.random() < 0.5 else layout.bias + rng.randrange(-30, 31)
    e = min(max(e, 1), (1 << layout.exponent) - 2)
    return (
        rng.getrandbits(1) << (layout.exponent + layout.fraction) | e << layout.fraction | body % (1 << layout.fraction)
    )


def value(rng: random.Random, name: str) -> int:
    """Return random bits of an operand of this type."""
    base = name.removesuffix("x2")
    if base != name:
        half = SIZES[name] // 2
        return value(rng, base) << half | value(rng, base)
    kind = rng.random()
    if base in ("u32", "b32", "s32") and kind < 0.3:
        return rng.randrange(0, 70)
    if kind < 0.5:
        return rng.choice(corners(base))
    if base in ("e2m3", "e3m2"):
        return rng.getrandbits(6)
    if base in ("f32", "f16", "bf16", "f64") and kind < 0.75:
        return ties(rng, base)
    return rng.getrandbits(SIZES[base])


def inputs(rng: random.Random, opcode: str, sources: Sequence[str], count: int) -> list[tuple[int, ...]]:
    """Return `count` rows of operands. One-operand opcodes start with all corner values; some sums nearly cancel."""
    words = opcode.split(".")
    rows: list[tuple[int, ...]] = (
        [(v,) for v in corners(sources[0])] if len(sources) == 1 and "x2" not in sources[0] else []
    )
    rows = rows[:count]
    while len(rows) < count:
        row = [value(rng, t) for t in sources]
        if words[0] in ("fma", "mad") and sources[2] in ("f32", "f64") and rng.random() < 0.5:
            row[2] = _near(rng, sources[2], row)
        if words[0] in ("div", "rem") and sources[1] not in LAYOUTS and row[1] == 0:
            row[1] = 3
        if words[0] in ("bfe", "bfi") and SIZES[sources[0]] == 64:
            row[-2:] = [n & 255 for n in row[-2:]]
        if words[0] == "lop3":
            row[3] = 0xCA
        rows.append(tuple(row))
    return rows


def _near(rng: random.Random, name: str, row: Sequence[int]) -> int:
    """Return the negated, rounded product of the first two operands, possibly one bit off or scaled."""
    dtype, raw = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}[name]
    with np.errstate(all="ignore"):
        a, b = (np.array([v], raw).view(dtype)[0] for v in row[:2])
        c = dtype(-(a * b)) * dtype(rng.choice([1, 1, 2.0**-24, 2.0**-53, 2.0**24]))
    bits = int(np.array([c], dtype).view(raw)[0])
    return min(max(bits + rng.choice([0, 0, 1, -1]), 0), (1 << SIZES[name]) - 1)


def opcodes() -> Iterator[tuple[Row, str]]:
    """Yield every opcode of every row."""
    for row in SCALAR_ROWS:
        for opcode in expand(row.syntax):
            yield row, opcode


def register(kind: str) -> str:
    """Return the IR type of a register that holds a PTX type. 8-bit integers are in 32 bits, e2m1x2 in 16 bits."""
    if kind == "e2m1x2":
        return "i16"
    return f"i{max(SIZES[kind], 16) if SIZES[kind] not in (1, 8) else {1: 1, 8: 32}[SIZES[kind]]}"


def instruction(opcode: str, left: str, right: Sequence[str]) -> str:
    """Return the text of an instruction. Four numbers are braced, and pairs of 4-bit floats are in 8-bit registers."""
    if opcode.endswith("x4.f32"):
        right = ["{" + ", ".join(right[:4]) + "}", right[4]]
    if opcode.endswith(".e2m1x2"):
        return f"{{ .reg .b8 %lo, %hi; mov.b16 {{%lo, %hi}}, {right[0]}; {opcode} {left}, %lo; }}"
    if ".e2m1x2." in opcode:
        return f"{{ .reg .b8 %lo; {opcode} %lo, {', '.join(right)}; mov.b16 {left}, {{%lo, %lo}}; }}"
    return f"{opcode} {left}, {', '.join(right)};"


def function(name: str, row: Row, opcode: str) -> str:
    """Return a function that executes one instruction."""
    results, sources = row.kinds(Words(opcode))
    types = [register(k) for k in sources]
    shown = opcode.startswith("lop3")
    args = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    used = list(range(len(types)))[: -1 if shown else None]
    outs = [register(k) for k in results]
    left = "|".join(f"${i}" for i in range(len(outs)))
    text = instruction(opcode, left, [f"${len(outs) + i}" for i in used] + ["0xCA"] * shown)
    given = ", ".join(f"%a{i}" for i in used)
    kinds = ", ".join(types[i] for i in used)
    names = ", ".join(f"%r{i}" for i in range(len(outs)))
    return (
        f"func.func @{name}({args}) -> ({', '.join(outs)}) {{\n"
        f'  {names} = nvvm.inline_ptx "{text}" ro({given} : {kinds}) -> {", ".join(outs)}\n'
        f"  func.return {names} : {', '.join(outs)}\n}}\n"
    )


def column(values: Sequence[int], kind: str) -> np.ndarray:
    """Convert bits to the interpreter's representation of a register."""
    width = int(register(kind)[1:])
    if width == 1:
        return np.array(values, np.bool_)
    if kind == "s8":
        values = [v - 256 if v > 127 else v for v in values]
    return np.array([v % (1 << width) for v in values], np.dtype(f"u{width // 8}")).view(np.dtype(f"i{width // 8}"))


def results(
    module: object, name: str, kinds: Sequence[str], sources: Sequence[str], rows: Sequence[tuple[int, ...]]
) -> list[list[int]]:
    """Run the rows of operands on the interpreter and return the bits of each result."""
    given = [column([r[i] for r in rows], k) for i, k in enumerate(sources)]
    got = run_function(module, name, given)  # type: ignore[arg-type]
    return [
        [int(x) % (1 << SIZES[k]) for x in np.broadcast_to(np.asarray(v), (len(rows),))] for v, k in zip(got, kinds)
    ]


def differences(count: int, seed: int, only: str = "") -> tuple[int, list[str]]:
    """Return the number of results compared and a description of each wrong one."""
    from xdsl.parser import Parser

    compared = 0
    wrong: list[str] = []
    for row in SCALAR_ROWS:
        if not row.syntax.startswith(only):
            continue
        codes = list(expand(row.syntax))
        for part in (codes[i : i + 16] for i in range(0, len(codes), 16)):
            text = "".join(function(f"f{i}", row, opcode) for i, opcode in enumerate(part))
            module = Parser(make_context("base"), text, "values.mlir").parse_module()
            for i, opcode in enumerate(part):
                kinds, sources = row.kinds(Words(opcode))
                given = inputs(random.Random(f"{seed} {opcode}"), opcode, sources, count)
                for n, (kind, got) in enumerate(zip(kinds, results(module, f"f{i}", kinds, sources, given))):
                    compared += len(given)
                    wrong.extend(
                        f"{opcode} {' '.join(f'{v:#x}' for v in operands)}: result {n} is {bits:#x}"
                        for operands, bits in zip(given, got)
                        if not accepts(opcode, kind, operands, bits, n)
                    )
    return compared, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="inputs an opcode")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="rows whose syntax begins so")
    options = parser.parse_args()
    compared, wrong = differences(options.count, options.seed, options.only)
    for line in wrong[:50]:
        print(line)
    print(f"{compared} results of {len(list(opcodes()))} opcodes, {len(wrong)} wrong")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
