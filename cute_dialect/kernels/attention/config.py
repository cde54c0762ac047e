"""The configuration of an attention kernel: type, head, tiles, masks, who does what when.

>>> config = AttentionConfig()
>>> config.name, config.smem_bytes, config.registers
('attention-bf16-128-full-128x176', 212992, 196)
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["HEADS", "MASKS", "AttentionConfig", "config_named", "default_config"]

HEADS = (64, 128, 256)
"""Sizes of a head that kernels are made for; what is smaller is filled up with zeros by TMA."""

MASKS = ("full", "right", "left", "both")
"""Which sides of a query's keys are bounded: ``right`` is causal attention, ``both`` a sliding window."""

SMEM = 232448
"""Shared memory that a block may have, bytes."""

_FLAGS = {"end": "from_end", "packed": "packed", "lse": "lse", "split": "split"}
_LETTERS = {"s": "stages", "q": "q_stages", "o": "overlap", "p": "pingpong", "l": "lazy", "sms": "sms"}
"""Words of a name -> the fields that they tell."""


class AttentionConfig(NamedTuple):
    """The configuration of a kernel.

    ``element``: of Q, K, V and the result, ``bf16`` or ``f16``; ``head``: elements of a head, those that are not there
    count as zeros; ``mask``: one of :data:`MASKS`; ``from_end``: the last query is opposite the last key, else the
    first one the first key; ``packed``: sequences of different lengths lie one behind the other; ``lse``: the logarithm
    of the sum of the exponentials of each row is a result, too; ``split``: the keys of a tile are shared by several
    blocks, each of which has a result of its own, of f32, and logarithms (:mod:`.combine`).

    ``tile_m``: queries of a block, 64 for each of its consumers; ``tile_n``: keys of a step; ``stages``: of K, and
    as many of V; ``q_stages``: tiles of Q in shared memory; ``overlap``: products with V are under way while the
    next scores go through softmax; ``pingpong``: consumers give their products to the tensor cores in turns, so
    that one's softmax is computed during the other's products; ``lazy``: sums are rescaled only where a maximum has
    grown by more than :data:`~cute_dialect.kernels.attention.softmax.SLACK`; ``sms``: of the chip.
    """

    element: str = "bf16"
    head: int = 128
    mask: str = "full"
    from_end: bool = False
    packed: bool = False
    lse: bool = False
    split: bool = False
    tile_m: int = 128
    tile_n: int = 176
    stages: int = 2
    q_stages: int = 1
    overlap: bool = True
    pingpong: bool = True
    lazy: bool = True
    sms: int = 132

    @property
    def consumers(self) -> int:
        """Warp groups that multiply, 64 queries each."""
        return self.tile_m // 64

    @property
    def threads(self) -> int:
        """Threads of a block: the producer's warp group and the consumers'."""
        return 128 * (1 + self.consumers)

    @property
    def bounded(self) -> tuple[bool, bool]:
        """Whether the keys of a query are bounded to the left and to the right."""
        return self.mask in ("left", "both"), self.mask in ("right", "both")

    @property
    def key_bytes(self) -> int:
        """Bytes of the keys, or of the values, of one step."""
        return self.tile_n * self.head * 2

    @property
    def query_bytes(self) -> int:
        """Bytes of a tile of Q."""
        return self.tile_m * self.head * 2

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block but for its barriers, bytes."""
        return 2 * self.stages * self.key_bytes + self.q_stages * self.query_bytes

    @property
    def registers(self) -> int:
        """Registers of a consumer's thread that hold scores, weights and results."""
        return self.tile_n // 2 + self.tile_n // 4 + self.head // 2

    @property
    def name(self) -> str:
        """What tells the kernel from the others: what it computes, then how, where that is not the default's way."""
        flags = [word for word, field in _FLAGS.items() if getattr(self, field)]
        named = ["attention", self.element, str(self.head), self.mask, *flags, f"{self.tile_m}x{self.tile_n}"]
        plain = default_config(self.element, self.head, self.mask)
        for letter, field in _LETTERS.items():
            mine = getattr(self, field)
            if mine != getattr(plain, field):
                named.append(f"{letter}{int(mine)}")
        return "-".join(named)

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        if self.element not in ("bf16", "f16"):
            raise ValueError(f"expected elements of bf16 or f16, got {self.element}")
        if self.head not in HEADS:
            raise ValueError(f"expected a head of {', '.join(map(str, HEADS))} elements, got {self.head}")
        if self.mask not in MASKS:
            raise ValueError(f"expected a mask of {', '.join(MASKS)}, got {self.mask}")
        if self.split and (self.packed or not self.lse):
            raise ValueError("expected logarithms, and no packed sequences, where keys are split")
        if self.tile_m not in (64, 128, 192):
            raise ValueError(f"expected 64, 128 or 192 queries of a block, got {self.tile_m}")
        if self.tile_n % 16 or not 16 <= self.tile_n <= 256:
            raise ValueError(f"expected 16 to 256 keys of a step in multiples of 16, got {self.tile_n}")
        if self.stages < 1 or self.q_stages < 1:
            raise ValueError(f"expected at least one stage, got {self.stages} and {self.q_stages}")
        if self.smem_bytes + 256 > SMEM:
            raise ValueError(f"expected at most {SMEM - 256} bytes of shared memory, got {self.smem_bytes}")
        most = 136 if self.consumers == 3 else 208
        if self.registers > most:
            raise ValueError(f"expected at most {most} registers of scores, weights and results, got {self.registers}")


def default_config(
    element: str = "bf16", head: int = 128, mask: str = "full", *, few: bool = False
) -> AttentionConfig:  # fmt: skip
    """Return the configuration that is taken where none is asked for; ``few``: of 64 queries at most.

    >>> default_config(mask="right").tile_n, default_config(head=64).tile_m
    (128, 192)
    """
    config = AttentionConfig(element, head, mask)
    if few:  # one consumer, which waits for memory
        return config._replace(tile_m=64, tile_n=64 if head == 256 else 128, stages=3)
    if head == 64:  # 32 registers of results: three consumers of 64 x 128 scores, and room for two tiles of Q
        return config._replace(tile_m=192, tile_n=128, stages=3, q_stages=2)
    if head == 256:  # 128 of results
        return config._replace(tile_n=80 if mask == "full" else 64)
    # The diagonal cuts tiles of 128 x 128 in half; those leave room for two tiles of Q.
    return config if mask == "full" else config._replace(tile_n=128, q_stages=2)


def config_named(name: str) -> AttentionConfig:
    """Return the configuration that has a name.  Raises ValueError where none has.

    >>> c = AttentionConfig(mask="right", lse=True, tile_n=96, stages=3, pingpong=False)
    >>> c.name, config_named(c.name) == c
    ('attention-bf16-128-right-lse-128x96-s3-q1-p0', True)
    """
    words = name.split("-")
    found = None
    if len(words) > 4 and words[0] == "attention" and words[2].isdigit():
        found = default_config(words[1], int(words[2]), words[3])
        for word in words[4:]:
            tile = re.fullmatch(r"(\d+)x(\d+)", word)
            other = re.fullmatch(r"([a-z]+)(\d+)", word)
            if word in _FLAGS:
                found = found._replace(**{_FLAGS[word]: True})
            elif tile:
                found = found._replace(tile_m=int(tile[1]), tile_n=int(tile[2]))
            elif other and other[1] in _LETTERS:
                field, number = _LETTERS[other[1]], int(other[2])
                found = found._replace(**{field: bool(number) if isinstance(getattr(found, field), bool) else number})
    if found is None or found.name != name:
        raise ValueError(f'expected the name of a kernel, "{AttentionConfig().name}" say, got "{name}"')
    return found
