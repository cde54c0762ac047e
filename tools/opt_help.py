"""Help texts of ``cute-opt``: ``--help``, ``--version`` and the lists of passes and pipelines."""

from __future__ import annotations

from cute_dialect.passes.outside import PassTable
from cute_dialect.pipelines.registry import DEFAULT, PIPELINES
from cute_dialect.tools.opt_options import GROUPS, ROWS, CommandLineError, Row

_INTRO = """\
usage: cute-opt [FILE|-] [options]

Reads MLIR with cute ops, runs passes on it and prints the result. -option and --option are equivalent.

  cute-opt layout.mlir                                    parse, verify, print
  cute-opt layout.mlir --cute-fold-static --cse           passes, in the order given
  cute-opt gemm.mlir --pipeline --emit=ptx -o gemm.ptx    compile to PTX (sm_90a, +ptx83)
  cute-opt gemm.mlir --pipeline=nvptx=chip=sm_90a,features=+ptx86 --emit=cubin -o gemm.cubin
  cute-opt k.mlir --attach-nvvm-target=chip=sm_90a opt-level=3
  cute-opt k.mlir --pass-pipeline='builtin.module(cute-fold-static,gpu.module(cse))'
  cute-opt k.mlir --pipeline=base --mlir-print-ir-after-all     print the IR after each pass
  cute-opt k.mlir --load=./my_passes.py --count-ops       run a pass from a Python file
  cute-opt --help cute-to-base                            describe a pass and its options
"""


def help_text(passes: PassTable) -> str:
    out = [_INTRO]
    for group in GROUPS:
        out.append(f"{group.title}:")
        if group.title == "Passes to run":
            out.append(_line("--PASS[=key=value …]", "run a pass (listed below) with its options"))
        out += [_option(row) for row in group.rows]
        out.append("")
    out.append("Passes:")
    out += [_line(f"--{row.name}", row.summary) for row in passes.rows()]
    out += [
        "",
        "Exit status: 0 on success, 1 on error. Errors are printed to standard error as FILE:LINE:COL: error: ….",
        "",
    ]
    return "\n".join(out)


def pass_help(name: str, passes: PassTable) -> str:
    """Return the description and options of a pass, or the description of an option.

    Raises:
        CommandLineError: ``name`` is neither a pass nor an option.
    """
    if name in ROWS:
        return _option(ROWS[name]) + "\n"
    row = passes.get(name)
    if row is None:
        raise CommandLineError(passes.unknown(name))
    summary, anchor = row.summary, row.anchor
    if row.upstream:
        text = "Runs in upstream MLIR, as do all passes after it."
        names = row.options
    else:
        cls = passes.load(row)
        text, summary, anchor = cls.help_text(), summary or cls.summary, anchor or cls.anchor
        names = cls.Options.names()
    out = [f"--{row.name}: {summary}", "", text]
    if names:
        out += ["", "Options: " + ", ".join(names)]
    if anchor:
        out += ["", "Runs on: " + ", ".join(anchor)]
    if row.origin:
        out += ["", f"Comes from: {row.origin}"]
    return "\n".join([*out, ""])


def _option(row: Row) -> str:
    dash = "-" if len(row.name) == 1 else "--"
    metavar = "|".join(row.choices) or row.metavar
    shown = {
        "flag": "",
        "optional": f"[={metavar}]",
        "value": f" {metavar}" if row.name == "o" else f"={metavar}",
    }
    return _line(f"{dash}{row.name}{shown[row.kind]}", row.help)


def _line(left: str, right: str) -> str:
    return f"  {left:<40} {right}" if len(left) <= 40 else f"  {left}\n{'':<42} {right}"


def versions_text() -> str:
    from importlib.metadata import PackageNotFoundError, version

    out: list[str] = []
    for what, packages in (
        ("cute-opt", ("cute-dialect",)),
        ("xDSL", ("xdsl",)),
        ("upstream MLIR", ("xtc-mlir-python-bindings", "mlir-python-bindings", "mlir")),
    ):
        found = "not installed"
        for package in packages:
            try:
                found = version(package)
                break
            except PackageNotFoundError:
                continue
        out.append(f"{what} {found}")
    return "\n".join([*out, ""])


def passes_text(passes: PassTable) -> str:
    return "".join(f"{row.name:<28} {row.summary}\n" for row in passes.rows())


def pipelines_text() -> str:
    out: list[str] = []
    for row in PIPELINES.values():
        out.append(f"{row.name:<28} {row.summary}")
        out += [f"  {key + '=' + o.default:<26} {o.help}" for key, o in row.options.items()]
        out.append(f"  {row.text()}")
    out.append(f"--pipeline alone means {DEFAULT}.")
    return "\n".join([*out, ""])
