"""The ``cute-viz`` program: draw a layout, a thread-value layout, a swizzle, a division or an instruction.

cute-viz "(4,32):(32,1)" -o x.svg
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cute_dialect.tools.command_line import new_parser
from cute_dialect.viz.cells import DrawingError
from cute_dialect.viz.drawing import THEMES, Drawing

EPILOG = """\
examples:
  cute-viz "(4,8):(8,1)" -o x.svg               offsets: mode 0 down, mode 1 right, one panel per further index
  cute-viz "((2,2),(2,4)):((1,4),(2,8))" -o x.svg   heavier lines separate nested modes
  cute-viz "(4,8)" -o x.svg                     a shape: compact, column-major
  cute-viz "(m,8):(ld,1)" -o x.svg              dynamic values are written as names or '?'
  cute-viz "(m,8):(ld,1)" --size m=4 --size ld=12 -o x.svg
  cute-viz "S<2,0,2> o 0 o (4,4):(4,1)" -o x.svg    a swizzled layout; colours show the units that it permutes
  cute-viz "S<3,4,3>" -o x.svg                  a swizzle
  cute-viz "((4,8),(2,2)):((32,1),(16,8))" --tv 16,8 -o x.svg
                                                threads and values over a tile: (thread, value) -> index
  cute-viz "(9,(4,8)):(59,(13,1))" --divide "(3:3,(2,4):(1,8))" -o x.svg
                                                a division into tiles: extents, or a layout per mode
  cute-viz "(32,64):(64,1)" --banks "(32,8):(1,32)" --bits 16 -o x.svg
                                                bank conflicts of the accesses of a thread-value layout
  cute-viz SM80_16x8x16_F32F16F16F32_TN -o x.svg    an instruction (python -m cute_dialect.arch lists them)

-o x.svg, x.png (extra 'viz'), x.html (with details of each cell) or x.tex; '-o -' prints the SVG.
Without -o a layout is printed as a text table.
"""


def build_parser() -> argparse.ArgumentParser:
    p = new_parser(
        "cute-viz",
        "Draw a layout, a swizzle, threads and values, tiles, bank conflicts or an instruction.",
        EPILOG,
        allow_abbrev=True,
    )
    p.add_argument("what", help="a layout '(4,32):(32,1)', a swizzle 'S<3,4,3>', or the name of an instruction")
    p.add_argument("-o", "--output", metavar="FILE", help="x.svg, x.png, x.html or x.tex; '-' prints the SVG")
    kinds = p.add_mutually_exclusive_group()
    kinds.add_argument("--tv", metavar="M,N", help="draw WHAT as a thread-value layout of this tile")
    kinds.add_argument("--divide", metavar="TILER", help="divide WHAT: '(2,4)', or a layout per mode '(2:2,4:1)'")
    kinds.add_argument("--swizzle", action="store_true", help="draw WHAT without and with its swizzle")
    kinds.add_argument("--banks", metavar="TV", help="draw bank conflicts when this thread-value layout accesses WHAT")
    p.add_argument("--tiler", metavar="M,N", help="alias of --tv")
    p.add_argument("--bits", type=int, metavar="N", help="element size in bits, for --banks and --swizzle")
    p.add_argument("--values", type=int, default=1, metavar="N", help="elements per access, for --banks (default: 1)")
    p.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help="value of a name in WHAT; may be repeated"
    )
    p.add_argument("--theme", choices=THEMES, default="auto", help="colour theme (default: auto, that of the page)")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-viz`` and return the exit status."""
    parser = build_parser()
    options = parser.parse_args(argv)
    if options.tiler is not None and (options.tv or options.divide or options.banks or options.swizzle):
        parser.error("--tiler is an alias of --tv; give one of --tv, --divide, --swizzle, --banks")
    try:
        return _run(options)
    except DrawingError as e:
        print(f"cute-viz: error: {e}", file=sys.stderr)
    except OSError as e:
        print(f"cute-viz: error: {options.output}: {e.strerror}", file=sys.stderr)
    return 1


def _run(options: argparse.Namespace) -> int:
    sizes = _sizes(options.size)
    if options.output is None:
        return _table(options, sizes)
    drawing = _drawing(options, sizes).with_theme(options.theme)
    if options.output == "-":
        sys.stdout.write(drawing.svg)
    else:
        drawing.save(options.output)
    return 0


def _drawing(options: argparse.Namespace, sizes: dict[str, int] | None) -> Drawing:
    from cute_dialect import viz  # late: start-up

    tile = options.tv or options.tiler
    if tile is not None:
        return viz.draw_tv(options.what, tile, sizes=sizes)
    if options.divide is not None:
        return viz.draw_divide(options.what, options.divide, sizes=sizes)
    if options.banks is not None:
        return viz.draw_banks(options.what, options.banks, bits=options.bits, values=options.values, sizes=sizes)
    if options.swizzle:
        return viz.draw_swizzle(options.what, bits=options.bits, sizes=sizes)
    return viz.draw(options.what, sizes=sizes)


def _table(options: argparse.Namespace, sizes: dict[str, int] | None) -> int:
    """Print a layout, or a thread-value layout over a tile, as a text table."""
    from cute_dialect.algebra.layout_pictures import layout_table, thread_value_table  # late: start-up
    from cute_dialect.algebra.leaf import AlgebraError  # late: start-up
    from cute_dialect.algebra.values import Layout  # late: start-up
    from cute_dialect.viz.subjects import static_given, swizzle_given  # late: start-up
    from cute_dialect.viz.threads import tile_of  # late: start-up

    tile = options.tv or options.tiler
    if options.divide is not None or options.banks is not None or options.swizzle or options.what.startswith("SM"):
        raise DrawingError("only layouts are printed as text; add -o FILE")
    if swizzle_given(options.what) is not None:
        raise DrawingError("a swizzle cannot be printed as text; add -o FILE")
    layout = static_given(options.what, sizes, "a table of text")
    try:
        if tile is not None and isinstance(layout, Layout):
            print(thread_value_table(layout, tile_of(tile)))
        else:
            print(layout_table(layout))
    except AlgebraError as e:
        raise DrawingError(str(e)) from None
    return 0


def _sizes(given: Sequence[str]) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for one in given:
        name, equals, number = one.partition("=")
        if not equals or not name.isidentifier() or not (number.isascii() and number.isdigit()):
            raise DrawingError(f"--size: expected NAME=NUMBER such as m=8, got '{one}'")
        if found.setdefault(name, int(number)) != int(number):
            raise DrawingError(f"--size: expected one number for {name}, got {found[name]} and {number}")
    return found or None


if __name__ == "__main__":
    sys.exit(main())
