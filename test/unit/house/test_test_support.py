"""Test support: forked lit workers, CPU limits and sampled parametrizations."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

from cpu_budget import SUITE_LIMIT, TEST_LIMIT, excess
from tiers import pairwise

LIT_CONFIG = """
import sys
sys.path[:0] = [{support!r}]
from forked_tools import ForkedTools
config.name, config.suffixes, config.test_format = "small", [".test"], ForkedTools()
config.environment["PYTHONPATH"] = {root!r}
config.substitutions += [("cute-opt", sys.executable + " -m cute_dialect.tools.cute_opt"), ("%python", sys.executable)]
"""


LIT_TESTS = {
    "pass_pipe": "RUN: cute-opt %s | grep module",
    "pass_not": "RUN: not cute-opt --no-such-option %s 2>&1 | grep 'no-such-option'",
    "pass_file": "RUN: echo 'import sys; print(sys.argv[1:], __name__); sys.exit(3)' > %t.py\n"
    "RUN: not %python %t.py 7 > %t.out\nRUN: grep \"\\['7'\\] __main__\" %t.out",
    "pass_stdin": "RUN: cat %s | cute-opt - | cute-opt | grep module",
    "pass_diff": "RUN: diff %s %s",
    "fail_pipe": "RUN: cute-opt %s | grep no-such-text",
    "fail_status": "RUN: cute-opt --no-such-option %s",
    "fail_python": "RUN: echo 'raise ValueError(5)' > %t.py\nRUN: %python %t.py",
}


def test_lit_tests_in_forks(tmp_path: Path) -> None:
    test = Path(__file__).parents[2]
    config = LIT_CONFIG.format(support=str(test / "support"), root=str(test.parent))
    (tmp_path / "lit.cfg.py").write_text(config)
    for name, script in LIT_TESTS.items():
        run = "".join(f"// {line}\n" for line in script.splitlines())
        (tmp_path / f"{name}.test").write_text(f"{run}module {{}}\n")
    command = [sys.executable, "-c", "import lit.main; lit.main.main()", "-v", "-j1", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if " of " in line]
    results = {words[3].removesuffix(".test"): words[0] for words in lines}
    assert results == {name: ("PASS:" if name.startswith("pass") else "FAIL:") for name in LIT_TESTS}, done.stdout


def test_cpu_limits() -> None:
    calls = [("quick", TEST_LIMIT / 2, False), ("late", TEST_LIMIT * 2, False), ("program", TEST_LIMIT * 9, True)]
    assert [line.split(":")[0] for line in excess(calls, 1.0)] == ["late"]
    assert not excess(calls, 1.0, slowdown=3.0)
    assert len(excess(calls, SUITE_LIMIT + 1)) == 2
    assert len(excess(calls, SUITE_LIMIT + 1, slowdown=1.5)) == 1


def test_a_sample_covers_all_pairs() -> None:
    cases = list(product("ab", "cde", "fgh", "ij"))
    chosen = [cases[n] for n in pairwise(cases)]
    assert len(chosen) < len(cases) / 2
    for i, j in combinations(range(4), 2):
        assert {(c[i], c[j]) for c in chosen} == {(c[i], c[j]) for c in cases}
