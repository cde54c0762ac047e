"""PTX kernels that execute one atom once, generated from the atom's row in the table.

Each thread loads its operand registers from arrays in global memory, executes the instruction, and stores its result
registers.  Register ``r`` of thread ``t`` is at index ``t * count + r`` of an array.
Operands that WGMMA reads from shared memory are copied there byte by byte from an image.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from cute_dialect.arch import CopyAtom, MmaAtom
from cute_dialect.arch.atom import Registers

_WIDTH = {"b16": "b16", "b32": "b32", "s32": "b32", "f32": "f32", "b64": "b64", "f64": "f64"}


def fill(template: str, operands: dict[str, str]) -> str:
    """Return the PTX text of an atom with its ``$name`` placeholders filled in."""
    return re.sub(r"\$(\w+)", lambda m: operands[m[1]], template)


def find_ptxas() -> str | None:
    """Return the path of ptxas from the installed wheel, or else from PATH."""
    try:
        import nvidia
    except ImportError:
        return shutil.which("ptxas")
    for folder in nvidia.__path__:
        for found in sorted(Path(folder).glob("*/bin/ptxas")):
            return str(found)
    return shutil.which("ptxas")


def assemble(ptx: str, chip: str, out: Path | None = None) -> str:
    """Assemble the PTX and return the messages of ptxas, or "" on success."""
    ptxas = find_ptxas()
    assert ptxas is not None
    run = subprocess.run(
        [ptxas, f"--gpu-name={chip}", "-O1", "-", "-o", str(out) if out else "/dev/null"],
        input=ptx,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


def header(version: str, chip: str) -> str:
    return f".version {version}\n.target {chip}\n.address_size 64\n"


def _names(prefix: str, held: Registers) -> list[str]:
    return [f"%{prefix}{r}" for r in range(held.count)]


def _group(names: list[str], single: bool = False) -> str:
    return names[0] if single and len(names) == 1 else "{" + ", ".join(names) + "}"


def _declare(prefix: str, held: Registers) -> str:
    return f"  .reg .{_WIDTH[held.type]} %{prefix}<{held.count}>;\n"


def _move(prefix: str, held: Registers, store: bool) -> str:
    size = held.bits // 8
    lines = [
        f"  ld.param.u64 %p, [{prefix}];\n  cvta.to.global.u64 %p, %p;\n"
        f"  mad.wide.u32 %p, %t, {size * held.count}, %p;\n"
    ]
    for r, name in enumerate(_names(prefix, held)):
        at = f"[%p+{size * r}]"
        width = _WIDTH[held.type]
        lines.append(f"  st.global.{width} {at}, {name};\n" if store else f"  ld.global.{width} {name}, {at};\n")
    return "".join(lines)


def mma_kernel(
    atom: MmaAtom, name: str = "probe", descriptors: tuple[int, int] = (0, 0), smem: int = 0, selector: int = 0
) -> str:
    """Return a PTX entry ``(d, a, b, c[, e][, image])`` that executes the MMA atom once.

    ``descriptors`` are those of A and B, relative to the start of shared memory.  For a sparse A, ``e`` is the metadata
    and ``selector`` selects the threads that hold it.
    """
    if atom.family == "tcgen05":
        return _tcgen05(atom, name)
    # mma.m8n8k4 on f16 and wgmma take a vector even for one register; scalar instructions take bare registers.
    scalar = atom.family in ("fma", "dp4a", "dp2a")
    shared = atom.family in ("wgmma", "wgmma_sp")
    held_e = atom.metadata.registers if atom.metadata is not None else None
    factors = [] if atom.scales is None else ["sfa", "sfb"]
    params = ["d", "a", "b", "c"] + (["e"] if held_e is not None else []) + factors + (["image"] if shared else [])
    body = [
        f".visible .entry {name}({', '.join(f'.param .u64 {p}' for p in params)})\n.reqntid "
        f"{max(atom.threads, 32 if atom.threads == 8 else atom.threads)}\n{{\n",
        "  .reg .u32 %t;\n  .reg .u64 %p, %q, %base, %da, %db;\n  .reg .pred %go, %acc;\n  .reg .b32 %w, %i;\n",
        "  mov.u32 %t, %tid.x;\n",
    ]
    in_registers = [("c", atom.registers_c)]
    in_registers += [("a", atom.registers_a)] if atom.source_a == "rmem" else []
    in_registers += [("b", atom.registers_b)] if atom.source_b == "rmem" else []
    in_registers += [("e", held_e)] if held_e is not None else []
    in_registers += [(name, atom.scales.registers) for name in factors if atom.scales is not None]
    for prefix, held in (*in_registers, ("d", atom.registers_d)):
        body.append(_declare(prefix, held))
    for prefix, held in in_registers:
        body.append(_move(prefix, held, store=False))
    operands = {
        p: _group(_names(p, h), scalar or p in ("e", *factors)) for p, h in (*in_registers, ("d", atom.registers_d))
    }
    operands |= {"selector": str(selector), "byte_a": "0", "thread_a": "0", "byte_b": "0", "thread_b": "0"}
    if shared:
        body.append(f"  .shared .align 1024 .b8 tile[{max(smem, 1024)}];\n")
        body.append(
            "  ld.param.u64 %p, [image];\n  cvta.to.global.u64 %p, %p;\n  mov.u64 %base, tile;\n"
            "  mul.wide.u32 %q, %t, 4;\n  add.u64 %p, %p, %q;\n  add.u64 %q, %base, %q;\n  mul.lo.u32 %i, %t, 4;\n"
            f"LOOP:\n  setp.lt.u32 %go, %i, {smem};\n  @!%go bra DONE;\n"
            "  ld.global.b32 %w, [%p];\n  st.shared.b32 [%q], %w;\n"
            "  add.u64 %p, %p, 512;\n  add.u64 %q, %q, 512;\n  add.u32 %i, %i, 512;\n  bra LOOP;\nDONE:\n"
            "  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
            "  and.b64 %base, %base, 0x3FFFF;\n  shr.u64 %base, %base, 4;\n"
            f"  add.u64 %da, %base, {descriptors[0]:#x};\n  add.u64 %db, %base, {descriptors[1]:#x};\n"
            "  setp.eq.u32 %acc, %t, %t;\n"
        )
        for c, d in zip(_names("c", atom.registers_c), _names("d", atom.registers_d)):
            body.append(f"  mov.{_WIDTH[atom.registers_d.type]} {d}, {c};\n")
        operands |= {"scale_d": "%acc", "scale_a": "1", "scale_b": "1", "b": "%db"}
        if atom.source_a == "smem":
            operands["a"] = "%da"
        body.append("  wgmma.fence.sync.aligned;\n")
    body.append(f"  {fill(atom.ptx, operands)}\n")
    if shared:
        body.append("  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n")
    body.append(_move("d", atom.registers_d, store=True))
    body.append("  ret;\n}\n")
    return "".join(body)


def _tcgen05(atom: MmaAtom, name: str) -> str:
    operands = {
        "d": "%d",
        "a": "%d" if atom.source_a == "tmem" else "%q",
        "b": "%q",
        "idesc": "%i",
        "accumulate": "%go",
        "e": "%d",
        "sfa": "%d",
        "sfb": "%d",
    }
    return (
        f".visible .entry {name}(.param .u32 d, .param .u64 b)\n{{\n"
        "  .reg .b32 %d, %i;\n  .reg .b64 %q;\n  .reg .pred %go;\n"
        "  ld.param.u32 %d, [d];\n  ld.param.u64 %q, [b];\n  mov.u32 %i, %d;\n  setp.ne.u32 %go, %d, 0;\n"
        f"  {fill(atom.ptx, operands)}\n  ret;\n}}\n"
    )


def _tensor_memory_copy(atom: CopyAtom, name: str) -> str:
    assert atom.registers is not None
    held, loads = atom.registers, atom.dst_space == "rmem"
    group = _group(_names("r", held))
    operands = {"d": group, "a": "%x"} if loads else {"d": "%x", "a": group}
    body = [
        f".visible .entry {name}(.param .u64 r, .param .u32 x)\n.reqntid 32\n{{\n"
        "  .reg .u32 %t, %x;\n  .reg .u64 %p;\n",
        _declare("r", held),
        "  mov.u32 %t, %tid.x;\n  ld.param.u32 %x, [x];\n",
        "" if loads else _move("r", held, store=False),
        f"  {fill(atom.ptx, operands)}\n  tcgen05.wait::{'ld' if loads else 'st'}.sync.aligned;\n",
        _move("r", held, store=True) if loads else "",
        "  ret;\n}\n",
    ]
    return "".join(body)


def copy_kernel(atom: CopyAtom, name: str = "probe") -> str:
    """Return a PTX entry that executes the copy instruction.

    For warp copies the entry moves ``a`` to ``d`` through shared memory.
    """
    if atom.family in ("ldmatrix", "stmatrix", "movmatrix", "shuffle"):
        return _warp_copy(atom, name)
    if atom.family in ("tmem_load", "tmem_store"):
        return _tensor_memory_copy(atom, name)
    operands = {"d": "%s", "a": "%g", "space": ".global", "size": "16", "bar": "%b", "mask": "%m", "map": "%g"}
    operands |= {f"c{i}": "%i" for i in range(5)} | {f"o{i}": "%h" for i in range(3)}
    if atom.family == "universal":
        bits = int(atom.emit["bits"])
        held = _group([f"%w{i}" for i in range(bits // 32)]) if bits > 64 else f"%v{bits}"
        operands |= {"d": held}
    elif atom.family == "prefetch":
        operands |= {"a": "%g"}
    elif atom.family == "cp_async":
        operands |= {"size": "%i"}
    elif atom.src_space == "smem":
        operands |= {"a": "%s", "d": "%g" if atom.dst_space == "gmem" else "%s"}
    elif atom.family == "bulk_prefetch":
        operands |= {"a": "%g"}
    return (
        f".visible .entry {name}(.param .u64 x, .param .u32 n)\n{{\n"
        "  .shared .align 128 .b8 tile[256];\n  .shared .align 8 .b64 bar;\n"
        "  .reg .u64 %p, %g, %v64;\n  .reg .b32 %s, %b, %i, %v32;\n  .reg .b32 %w<8>;\n"
        "  .reg .b16 %m, %h, %v16, %v8;\n"
        "  ld.param.u64 %p, [x];\n  cvta.to.global.u64 %g, %p;\n  ld.param.u32 %i, [n];\n  mov.u32 %s, tile;\n"
        "  mov.u32 %b, bar;\n  mov.b16 %m, 1;\n  mov.b16 %h, 0;\n"
        f"  {fill(atom.ptx, operands)}\n  ret;\n}}\n"
    )


def _warp_copy(atom: CopyAtom, name: str) -> str:
    assert atom.registers is not None
    held = atom.registers
    bytes_ = atom.bits // 8 if atom.dst_space == "smem" or atom.src_space == "smem" else 0
    operands = {"p": "%odd", "x": "%x", "y": "%y"}
    loads = atom.src_space == "rmem"
    stores = atom.dst_space == "rmem"
    body = [
        f".visible .entry {name}(.param .u64 d, .param .u64 a)\n.reqntid 32\n{{\n",
        "  .reg .u32 %t, %row, %s;\n  .reg .u64 %p, %q;\n  .reg .b32 %x, %y, %w;\n  .reg .pred %odd, %in;\n",
        f"  .shared .align 16 .b8 tile[{max(bytes_, 16)}];\n",
        _declare("a", held),
        _declare("d", held),
        "  mov.u32 %t, %tid.x;\n  mov.u32 %s, tile;\n",
    ]
    if loads:
        body.append(_move("a", held, store=False))
    if atom.family == "shuffle":
        if atom.emit.kind == "shuffle_transpose":
            body.append(f"  and.b32 %x, %t, {atom.emit['xor']};\n  setp.ne.u32 %odd, %x, 0;\n")
            operands |= {"a0": "%a0", "a1": "%a1", "d0": "%d0", "d1": "%d1"}
        else:
            operands |= {"a": "%a0", "d": "%d0"}
    elif atom.family == "movmatrix":
        operands |= {"a": "%a0", "d": "%d0"}
    else:
        # Thread t provides the address of row t modulo the number of rows.
        rows = bytes_ // 16
        body.append(f"  rem.u32 %row, %t, {rows};\n")
        if not loads:
            for i in range(0, bytes_, 128):
                body.append(
                    "  ld.param.u64 %p, [a];\n  cvta.to.global.u64 %p, %p;\n  mad.wide.u32 %p, %t, 4, %p;\n"
                    f"  ld.global.b32 %w, [%p+{i}];\n  mad.lo.u32 %y, %t, 4, %s;\n  st.shared.b32 [%y+{i}], %w;\n"
                )
            body.append("  bar.warp.sync -1;\n")
        body.append("  mad.lo.u32 %x, %row, 16, %s;\n")
        operands |= {"a": "%x", "d": _group(_names("d", held)), "s": _group(_names("a", held))}
    body.append(f"  {fill(atom.ptx, operands)}\n")
    if stores:
        body.append(_move("d", held, store=True))
    else:
        body.append("  bar.warp.sync -1;\n")
        for i in range(0, bytes_, 128):
            body.append(
                "  ld.param.u64 %p, [d];\n  cvta.to.global.u64 %p, %p;\n  mad.wide.u32 %p, %t, 4, %p;\n"
                f"  mad.lo.u32 %y, %t, 4, %s;\n  ld.shared.b32 %w, [%y+{i}];\n  st.global.b32 [%p+{i}], %w;\n"
            )
    body.append("  ret;\n}\n")
    return "".join(body)


def transfer_kernel(atom: CopyAtom, moved: int, name: str = "probe") -> str:
    """Return a PTX entry ``(d, a)`` in which one thread moves ``moved`` bytes from ``a`` to ``d`` with the atom.

    If the source or the destination is in shared memory, the thread copies the bytes there or back one by one.
    For a reduction, the old contents of the destination follow the source in ``a``.
    A copy with zero fill copies only the first half.
    """
    load = "  ld.global.b8 %v8, [%g+{0}];\n  st.shared.b8 [%s+{0}], %v8;\n"
    store = "  ld.shared.b8 %v8, [%s+{0}];\n  st.global.b8 [%o+{0}], %v8;\n"
    through = {"d": "%s", "a": "%g", "size": str(moved), "bar": "%b", "mask": "%m"}
    body: list[str] = []
    if atom.family == "universal":
        bits = int(atom.emit["bits"])
        held = _group([f"%w{i}" for i in range(bits // 32)]) if bits > 64 else f"%v{bits}"
        first, second = atom.ptx.split("; ")
        body.append(f"  {fill(first, {'space': '.global', 'd': held, 'a': '%g'})};\n")
        body.append(f"  {fill(second, {'space': '.global', 'd': held, 'a': '%o'})}\n")
        return _one_thread(name, moved, body)
    if atom.src_space == "smem":
        body += [load.format(i) for i in range(moved)]
        body.append("  fence.proxy.async.shared::cta;\n")
        if atom.family == "bulk_reduce":
            body += [f"  ld.global.b8 %v8, [%g+{moved + i}];\n  st.global.b8 [%o+{i}], %v8;\n" for i in range(moved)]
            body.append("  fence.proxy.async;\n")
    if "bar" in re.findall(r"\$(\w+)", atom.ptx):
        body.append(
            "  mbarrier.init.shared.b64 [%b], 1;\n  fence.mbarrier_init.release.cluster;\n"
            f"  mbarrier.arrive.expect_tx.shared.b64 _, [%b], {moved};\n"
        )
        source = "%s" if atom.src_space == "smem" else "%g"
        there = through | {"a": source, "d": "%u"}
        if atom.src_space == "smem":
            # The first block of a two-block cluster copies to the second, which waits and stores.
            body.append(
                "  mapa.shared::cluster.u32 %w0, %u, 1;\n  mapa.shared::cluster.u32 %w1, %b, 1;\n"
                "  mov.u32 %w2, %cluster_ctarank;\n  setp.eq.u32 %p1, %w2, 0;\n"
                "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
            )
            body.append(f"  @%p1 {fill(atom.ptx, there | {'d': '%w0', 'bar': '%w1'})}\n  @%p1 bra END;\n")
        else:
            body.append(f"  {fill(atom.ptx, there)}\n")
        body.append("WAIT:\n  mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0;\n  @!%p0 bra WAIT;\n")
        body += [store.replace("[%s", "[%u").format(i) for i in range(moved)]
        if atom.src_space == "smem":
            body.append("END:\n  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n")
            return _one_thread(name, moved, body, cluster=2)
    elif atom.family in ("prefetch", "bulk_prefetch"):
        body.append(f"  {fill(atom.ptx, through)}\n")
        body += [f"  ld.global.b8 %v8, [%g+{i}];\n  st.global.b8 [%o+{i}], %v8;\n" for i in range(moved)]
    elif atom.family == "cp_async":
        body += [f"  st.shared.b8 [%s+{i}], 7;\n" for i in range(moved)]
        body.append(f"  {fill(atom.ptx, through | {'size': str(moved // 2)})}\n  cp.async.wait_all;\n")
        body += [store.format(i) for i in range(moved)]
    else:
        body.append(f"  {fill(atom.ptx, through | {'d': '%o', 'a': '%s'})}\n")
        body.append("  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n")
    return _one_thread(name, moved, body)


def _one_thread(name: str, moved: int, body: list[str], cluster: int = 0) -> str:
    blocks = f".explicitcluster\n.reqnctapercluster {cluster}, 1, 1\n" if cluster else ""
    return (
        f".visible .entry {name}(.param .u64 d, .param .u64 a)\n.reqntid 1\n{blocks}{{\n"
        f"  .shared .align 128 .b8 tile[{moved}];\n  .shared .align 128 .b8 other[{moved}];\n"
        "  .shared .align 8 .b64 bar;\n  .reg .u64 %g, %o, %v64;\n  .reg .b32 %s, %u, %b, %v32;\n"
        "  .reg .b32 %w<8>;\n  .reg .b16 %m, %v16, %v8;\n  .reg .pred %p<2>;\n"
        "  ld.param.u64 %g, [a];\n  cvta.to.global.u64 %g, %g;\n  ld.param.u64 %o, [d];\n"
        "  cvta.to.global.u64 %o, %o;\n  mov.u32 %s, tile;\n  mov.u32 %u, other;\n  mov.u32 %b, bar;\n"
        "  mov.b16 %m, 1;\n" + "".join(body) + "  ret;\n}\n"
    )
