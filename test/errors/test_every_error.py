"""Every error that names what is wrong with the input has a test: see ``error_sites`` for what counts and how."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from error_sites import sites

UNREACHED: Mapping[str, Sequence[str]] = {
    "callers in this package have checked it; an error still, for callers in Python": (
        "algebra/complements.py _extend: expected at most … modes to be stepped through, got …",
        "algebra/complements.py bounded_complement: expected static strides or a single mode to complement, got …",
        "algebra/complements.py bounded_complement: …",
        "algebra/compose.py _compose_basis: expected the path of … to lead to a mode of …, but depth … has none",
        "algebra/compose.py _leaf_static: … #3",
        "algebra/inverses.py left_inverse: … #2",
        "algebra/swizzle.py _fixed_and_free: expected a coordinate that fits …, got …",
        "algebra/swizzle.py _scalar: expected an integer index to swizzle, got the arithmetic tuple …",
        "algebra/tiled_copy.py _halves: expected a layout divided into a tile and a rest, got …",
        "algebra/tiled_copy.py _two: expected a layout of two modes, got …",
        "algebra/tiled_mma.py TiledMma.layout_tv: expected a static tile, got …",
        "algebra/tiling.py _two: expected a layout divided into a tile and a rest, got …",
        "arch/descriptors.py _split: expected a multiple of … units of 16 bytes, got …",
        "arch/tensor_map.py TensorMapSpec.__post_init__: expected boxes at multiples of 128 bytes, got …",
        "arch/tma.py _multicast: expected a number of CTAs that divides the box …, got …",
        "arch/tma.py _runs: expected a static extent or layout, got …",
        "arch/tma.py _runs: …",
        "arch/tma.py match_modes: expected … and … to divide into common pieces, got … against …",
        "arch/tma.py match_modes: expected steps along modes of the tensor, got …",
    ),
    "no form of an op in upstream/tables gets there; it is for tables made of another version of upstream": (
        "upstream/asm.py ParseState.finish: the type of operand '…' of '…' is not determined",
        "upstream/asm.py ParseState.finish: …",
        "upstream/asm.py ParseState.set_types: …",
        "upstream/asm.py ParseState.set_types: '…' has … …, but … types are given",
        "upstream/asm_attrs.py parse_optional_attr: expected one of … for attribute '…'",
        "upstream/directives.py _parse_shuffle_type: expected a vector type, got …",
        "upstream/directives.py parse_custom: the custom form of '…' is not supported, write it in generic form",
        "upstream/spec.py _sizes: one value for '…'",
        "upstream/spec.py _sizes: a multiple of …",
    ),
    "raised for what xDSL's own dialects reject while they are parsed; the ones registered here do not": (
        "ir/parsing.py LocatedParser.parse_dialect_type_or_attribute_body: …",
        "ir/parsing.py LocatedParser._read_operation: … #2",
    ),
    "a module that is verified holds each of its ops in a region": (
        "ir/verifier.py _structure: has successors but is in no region",
    ),
    "the verifier and the passes before have lowered or rejected every such value": (
        "passes/lowering/walk.py Lowering.value: a value of type … has no lowered form here",
    ),
}
"""Sites that no test reaches, by the reason why."""

Answer = Mapping[str, object]


@cache
def answer() -> Answer:
    """What the run in a process of its own found: ``wrong`` and ``reached``."""
    script = Path(__file__).with_name("error_sites.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def reached() -> set[str]:
    found = answer()["reached"]
    assert isinstance(found, dict)
    return set(found)


def test_each_error_is_as_its_test_says() -> None:
    assert answer()["wrong"] == []


def test_every_error_has_a_test() -> None:
    known = {key for keys in UNREACHED.values() for key in keys}
    missing = [f"{s.path}:{s.line}: {s.key}" for s in sites() if s.key not in reached() and s.key not in known]
    assert not missing, "errors without a test; add a case to test/errors/*.mlir or to error_cases.py"


def test_what_no_test_reaches_is_listed_with_reason() -> None:
    keys = {s.key for s in sites()}
    for reason, listed in UNREACHED.items():
        assert [key for key in listed if key not in keys] == [], f"not there any more: {reason}"
        assert [key for key in listed if key in reached()] == [], f"has a test now: {reason}"
