"""ptxas accepts instructions of sm_100 and later on exactly the chips and PTX versions of the tables of targets."""

from __future__ import annotations

import pytest
from arch_support import assemble

from cute_dialect.arch.targets import PTX_VERSIONS, TARGETS, find_target, instruction_needs, lacking, statements

CHIPS = [chip for chip, target in TARGETS.items() if target.family]
REGISTERS = (
    ".reg .b8 %c<4>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<8>; .reg .pred %p<4>;"
    " .reg .b128 %q<2>;\n"
)
MMA = "[%r2], %rd1, %rd2, %r3"
R2, R4, R8 = ("{" + ", ".join(f"%r{i}" for i in range(10, 10 + n)) + "}" for n in (2, 4, 8))
F4 = "{%f0, %f1, %f2, %f3}"
A, B, B4, C = "{%r1, %r2, %r3, %r4}", "{%r5, %r6}", "{%r5, %r6, %r7, %r8}", F4
SCALES = "%r7, {0, 0}, %r8, {0, 0}"
TMA = "cp.async.bulk.tensor"
DONE = "mbarrier::complete_tx::bytes"
FIVE = "[%rd8, {%r2, %r3, %r4, %r5, %r6}]"


def tcgen05_mma(kind: str, rest: str = "%p0", sp: str = "", group: int = 1) -> str:
    scales = " [%r6], [%r7]," if "block_scale" in kind else ""
    metadata = " [%r5]," if sp else ""
    return f"tcgen05.mma{sp}.cta_group::{group}.kind::{kind} [%r2], %rd1, %rd2,{metadata} %r3,{scales} {rest};"


def mma_sync(kind: str, types: str, k: int, sp: str = "", scales: str = "") -> str:
    name = f"mma{sp or '.sync'}{'.sync' if sp else ''}.aligned.m16n8k{k}.row.col.kind::{kind}.f32.{types}"
    more = (", %r9, 0" if sp else "") + (f", {scales}" if scales else "")
    return f"{name} {F4}, {A}, {B4 if sp else B}, {C}{more};"


SP = ".sp::ordered_metadata"

PROBES = {
    # name: PTX
    "alloc": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 128;",
    "dealloc": "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 128;",
    "relinquish": "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
    "ld": f"tcgen05.ld.sync.aligned.16x256b.x1.b32 {R4}, [%r2];",
    "st": f"tcgen05.st.sync.aligned.16x64b.x2.unpack::16b.b32 [%r2], {R2};",
    "wait": "tcgen05.wait::ld.sync.aligned;",
    "fence": "tcgen05.fence::after_thread_sync;",
    "cp": "tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.b4x16_p64 [%r2], %rd1;",
    "commit": "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %h0;",
    **{f"mma {kind}": tcgen05_mma(kind) for kind in ("f16", "tf32", "f8f6f4", "i8")},
    "mma 2sm": tcgen05_mma("f16", group=2),
    "mma lanes": tcgen05_mma("f16", "{%r4, %r5, %r6, %r7}, %p0"),
    "mma scale-d": tcgen05_mma("f16", "%p0, 3"),
    "mma lanes scale-d": tcgen05_mma("tf32", "{%r4, %r5, %r6, %r7}, %p0, 3"),
    "mma.sp scale-d": tcgen05_mma("tf32", "%p0, 3", sp=".sp"),
    "mma ashift": "tcgen05.mma.cta_group::1.kind::f16.ashift [%r2], [%r4], %rd2, %r3, %p0;",
    **{f"mma.ws {kind}": tcgen05_mma(kind).replace("mma.", "mma.ws.") for kind in ("f16", "i8")},
    "mma.ws mask": tcgen05_mma("f16", "%p0, %rd3").replace("mma.", "mma.ws."),
    "mma.ws.sp": tcgen05_mma("tf32", sp=".sp").replace("mma.sp", "mma.ws.sp"),
    **{f"mma.sp {kind}": tcgen05_mma(kind, sp=".sp") for kind in ("f16", "tf32", "f8f6f4", "i8")},
    **{
        f"mma {kind} {size}": tcgen05_mma(f"{kind}.block_scale{size}")
        for kind, sizes in {
            "mxf8f6f4": ("", ".block32", ".scale_vec::1X"),
            "mxf4": ("", ".block32", ".scale_vec::2X"),
            "mxf4nvf4": (".block16", ".block32", ".scale_vec::2X", ".scale_vec::4X"),
        }.items()
        for size in sizes
    },
    "tcgen05.mma.sp mxf8f6f4": tcgen05_mma("mxf8f6f4.block_scale", sp=".sp"),
    "tcgen05.mma.sp mxf4": tcgen05_mma("mxf4.block_scale", sp=".sp"),
    "tcgen05.mma.sp mxf4nvf4": tcgen05_mma("mxf4nvf4.block_scale.block16", sp=".sp"),
    "shift": "tcgen05.shift.cta_group::1.down [%r2];",
    "ld.red": f"tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {R2}, %r9, [%r1];",
    "try_cancel": f"clusterlaunchcontrol.try_cancel.async.shared::cta.{DONE}.b128 [%r1], [%r2];",
    "query": "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;",
    "try_cancel multicast": f"clusterlaunchcontrol.try_cancel.async.shared::cta.{DONE}.multicast::cluster::all.b128 "
    "[%r1], [%r2];",
    **{
        f"{name}.f32x2": f"{name}.rn.f32x2 %rd4, %rd1, %rd2{', %rd3' if name == 'fma' else ''};"
        for name in ("add", "sub", "mul", "fma")
    },
    "max3": "max.f32 %f3, %f1, %f2, %f0;",
    "min3 nan": "min.NaN.abs.f32 %f3, %f1, %f2, %f0;",
    "max": "max.f32 %f3, %f1, %f2;",
    "ld v8": f"ld.global.v8.b32 {R8}, [%rd0];",
    "st v4.b64": "st.global.v4.b64 [%rd0], {%rd10, %rd11, %rd12, %rd13};",
    "st.bulk": "st.bulk.weak.shared::cta [%rd3], %rd1, 0;",
    "cp_mask": "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd0], [%r1], %r2, %h0;",
    "st.async.mmio": "st.async.mmio.release.sys.global.b32 [%rd0], %r2;",
    "tma cta": f"{TMA}.2d.shared::cta.global.tile.{DONE} [%r1], [%rd8, {{%r2, %r3}}], [%r4];",
    "gather4 cta": f"{TMA}.2d.shared::cta.global.tile::gather4.{DONE} [%r1], {FIVE}, [%r7];",
    "gather4": f"{TMA}.2d.shared::cluster.global.tile::gather4.{DONE} [%r1], {FIVE}, [%r7];",
    "scatter4": f"{TMA}.2d.global.shared::cta.tile::scatter4.bulk_group {FIVE}, [%r7];",
    "prefetch gather4": f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 {FIVE};",
    **{
        f"tma cta_group {n}": f"{TMA}.2d.shared::cluster.global.tile.{DONE}.cta_group::{n} "
        "[%r1], [%rd8, {%r2, %r3}], [%r4];"
        for n in (1, 2)
    },
    **{
        f"im2col::w{width}": f"{TMA}.4d.shared::cluster.global.im2col::w{width}.{DONE} "
        "[%r1], [%rd8, {%r2, %r3, %r4, %r5}], [%r6], {%h0, %h1};"
        for width in ("", "::128")
    },
    "redux f32": "redux.sync.max.abs.NaN.f32 %f3, %f1, 0xffffffff;",
    "redux s32": "redux.sync.max.s32 %r3, %r1, 0xffffffff;",
    "cvt e2m1x2": "cvt.rn.satfinite.e2m1x2.f32 %c0, %f0, %f1;",
    "cvt f16x2.e2m1x2": "cvt.rn.f16x2.e2m1x2 %r9, %c2;",
    "cvt e2m3x2": "cvt.rn.satfinite.relu.e2m3x2.f32 %h2, %f0, %f1;",
    "cvt f16x2.e3m2x2": "cvt.rn.relu.f16x2.e3m2x2 %r9, %h4;",
    "cvt ue8m0x2": "cvt.rp.satfinite.ue8m0x2.f32 %h5, %f0, %f1;",
    "cvt bf16x2.ue8m0x2": "cvt.rn.bf16x2.ue8m0x2 %r9, %h5;",
    "cvt.rs e4m3x4": "cvt.rs.satfinite.e4m3x4.f32 %r9, {%f0, %f1, %f2, %f3}, %r0;",
    "cvt.rs bf16x2": "cvt.rs.bf16x2.f32 %r9, %f0, %f1, %r0;",
    "ldmatrix m16n16": f"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {R2}, [%r1];",
    "ldmatrix m8n16": "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r10}, [%r1];",
    "stmatrix m16n8": "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r1], {%r10};",
    "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32 128;",
    "tensormap.replace": "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd0], %rd1;",
    "multimem e4m3": f"multimem.ld_reduce.relaxed.sys.global.add.acc::f16.v4.e4m3x4 {R4}, [%rd0];",
    "wgmma": "wgmma.fence.sync.aligned;",
    "mma.sync f8f6f4": mma_sync("f8f6f4", "e2m1.e3m2.f32", 32),
    "mma.sync mxf8f6f4": mma_sync("mxf8f6f4.block_scale.scale_vec::1X", "e4m3.e5m2.f32.ue8m0", 32, scales=SCALES),
    "mma.sync mxf4": mma_sync("mxf4.block_scale.scale_vec::2X", "e2m1.e2m1.f32.ue8m0", 64, scales=SCALES),
    "mma.sync mxf4nvf4": mma_sync("mxf4nvf4.block_scale.scale_vec::4X", "e2m1.e2m1.f32.ue4m3", 64, scales=SCALES),
    "mma.sp f8f6f4": mma_sync("f8f6f4", "e4m3.e2m1.f32", 64, SP),
    "mma.sp mxf8f6f4": mma_sync("mxf8f6f4.block_scale.scale_vec::1X", "e4m3.e5m2.f32.ue8m0", 64, SP, SCALES),
    "mma.sp mxf4": mma_sync("mxf4.block_scale.scale_vec::2X", "e2m1.e2m1.f32.ue8m0", 128, SP, SCALES),
    "mma.sp mxf4nvf4": mma_sync("mxf4nvf4.block_scale.scale_vec::4X", "e2m1.e2m1.f32.ue4m3", 128, SP, SCALES),
    "mma.sync bf16": f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {F4}, {A}, {B}, {C};",
}  # fmt: skip
"""An instruction with each modifier whose chips differ."""

NEWEST = PTX_VERSIONS[-1]


def refusal(probe: str, chip: str, ptx: int) -> str:
    """Return the errors of ptxas for a probe."""
    version = f"{ptx // 10}.{ptx % 10}"
    text = f".version {version}\n.target {chip}\n.address_size 64\n.visible .entry k() {{\n{REGISTERS}"
    said = assemble(f"{text}{PROBES[probe]}\nret;\n}}\n", chip)
    return "\n".join(line for line in said.splitlines() if "error" in line)


def reason(probe: str, chip: str, ptx: int) -> str | None:
    """Return the reason of the tables against a probe, or None."""
    target = find_target(chip, f"+ptx{ptx}")
    ((name, operands),) = statements(PROBES[probe])
    found = (lacking(target, name, needs) for needs in instruction_needs(name, operands))
    return next((text for text in found if text is not None), None)


@pytest.mark.sample("wgmma", "mma.sp mxf4", "ld.red", "redux f32")
@pytest.mark.parametrize("probe", PROBES)
def test_ptxas_accepts_the_instruction_on_the_same_chips(probe: str) -> None:
    for chip in CHIPS:
        said, found = refusal(probe, chip, NEWEST), reason(probe, chip, NEWEST)
        assert (said == "") == (found is None), f"{chip}: {said or 'ptxas accepts it'}; table: {found}"


@pytest.mark.sample("mma mxf4nvf4 .block16", "cp_mask")
@pytest.mark.parametrize("probe", PROBES)
def test_ptxas_accepts_the_instruction_from_the_same_version(probe: str) -> None:
    chip = next((chip for chip in CHIPS if reason(probe, chip, NEWEST) is None), None)
    if chip is None:
        assert probe == "wgmma"
        return
    for ptx in (ptx for ptx in PTX_VERSIONS if ptx >= TARGETS[chip].ptx):
        said, found = refusal(probe, chip, ptx), reason(probe, chip, ptx)
        assert (said == "") == (found is None), f"{chip}, PTX {ptx}: {said or 'accepted'}; table: {found}"


def test_the_message_names_the_chips_that_have_the_instruction() -> None:
    assert reason("ld.red", "sm_100f", NEWEST) == (
        "sm_100f has no tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32, which needs sm_103a/f or sm_110a/f"
    )
    assert reason("setmaxnreg", "sm_120", NEWEST) == (
        "sm_120 has no setmaxnreg.inc.sync.aligned.u32, which needs "
        "sm_90a, sm_100a/f, sm_103a/f, sm_110a/f, sm_120a/f or sm_121a/f"
    )
