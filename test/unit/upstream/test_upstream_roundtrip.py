"""Round trips of each snippet in test/upstream/corpus between our parser and printer and those of upstream MLIR.

Files are split into snippets at `// -----`. We parse each snippet in three forms: as written, and in upstream's custom
and generic forms. We print each in our custom and generic forms. Upstream must parse both, and print the same generic
form as for the original snippet.
"""

from pathlib import Path
from types import ModuleType

import pytest
from ops_support import printed
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from cute_dialect.upstream.registry import register

CORPUS = Path(__file__).parents[2] / "upstream" / "corpus"


def snippets() -> list[object]:
    return [
        pytest.param(text, id=f"{path.stem}-{i}")
        for path in sorted(CORPUS.glob("*.mlir"))
        for i, text in enumerate(path.read_text().split("// -----"))
    ]


def upstream(ir: ModuleType, text: str, generic: bool) -> str:
    """Parse and verify `text` with upstream MLIR, and return the printed form."""
    with ir.Context():
        return ir.Module.parse(text).operation.get_asm(print_generic_op_form=generic)


def ours(text: str) -> ModuleOp:
    """Parse and verify `text` with our dialects, without unregistered ops or attributes."""
    ctx = Context()
    register(ctx)
    module = Parser(ctx, text, "corpus").parse_module()
    module.verify()
    return module


@pytest.mark.sample(every=24)
@pytest.mark.parametrize("text", snippets())
def test_round_trip(ir: ModuleType, text: str) -> None:
    wanted = upstream(ir, text, generic=True)
    custom = upstream(ir, text, generic=False)
    for source in (custom, wanted, text):
        module = ours(source)
        assert upstream(ir, printed(module, generic=True), generic=True) == wanted
        assert upstream(ir, printed(module, generic=False), generic=True) == wanted


@pytest.mark.parametrize("text", snippets())
def test_our_custom_form_reads_back(text: str) -> None:
    once = printed(ours(text), generic=False)
    assert printed(ours(once), generic=False) == once
