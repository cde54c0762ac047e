"""Configuration of an attention kernel: element type, head dimension, mask, tiles and schedule.

>>> config = AttentionConfig()
>>> config.name, config.smem_bytes, config.registers
('attention-bf16-128-full-128x176', 212992, 196)
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["BIASES", "HEADS", "MASKS", "AttentionConfig", "config_named", "default_config"]

HEADS = (64, 128, 256)
"""Supported head dimensions. TMA pads smaller heads with zeros."""

MASKS = ("full", "right", "left", "both")
"""Bounded sides of a query's keys: ``right`` is causal attention, ``both`` a sliding window."""

BIASES = ("i1", "f16", "bf16", "f32")
"""Element types of an added bias. ``i1`` is a mask, which is True for visible keys."""

SMEM = 232448
"""Shared memory available to a block, in bytes."""

_FLAGS = {
    "end": "from_end", "packed": "packed", "lse": "lse", "split": "split", "scaled": "scaled", "softcap": "softcap",
    "alibi": "alibi", "used": "used", "pack": "pack",
}  # fmt: skip
_ELEMENTS = ("bias", "sinks")
"""Fields that hold an element type; their words are, for example, ``bias_f16``."""
_LETTERS = {
    "v": "head_v",
    "page": "page",
    "s": "stages",
    "q": "q_stages",
    "o": "overlap",
    "p": "pingpong",
    "l": "lazy",
    "pairs": "pairs",
    "sms": "sms",
}
"""Words of a kernel's name -> the fields that they set."""


class AttentionConfig(NamedTuple):
    """Configuration of an attention kernel."""

    element: str = "bf16"  # of Q, K, V and the result: bf16 or f16
    head: int = 128  # head dimension, one of HEADS; smaller heads are padded with zeros
    mask: str = "full"  # one of MASKS
    from_end: bool = False  # align the last query with the last key instead of the first query with the first key
    packed: bool = False  # variable-length sequences, packed one after the other
    lse: bool = False  # also return the log-sum-exp of each row
    # Split-KV: several blocks share the keys of a tile. Each returns a partial f32 result and log-sum-exps, which
    # ``combine.py`` reduces.
    split: bool = False
    tile_m: int = 128  # queries of a block, 64 per consumer warpgroup
    tile_n: int = 176  # keys of a step
    stages: int = 2  # stages of K, and of V
    q_stages: int = 1  # tiles of Q in shared memory
    overlap: bool = True  # run the MMAs with V while the next scores go through softmax
    pingpong: bool = (
        True  # consumers issue their MMAs alternately, so that one's softmax overlaps with the other's MMAs
    )
    lazy: bool = True  # rescale the accumulator only if a row maximum has grown by more than softmax.SLACK
    # With keys bounded on the right, a block takes tiles in pairs of equal total length. Fewer tiles than
    # multiprocessors need no pairs.
    pairs: bool = True
    sms: int = 132  # multiprocessors of the GPU
    head_v: int = 0  # head dimension of V and of the result, one of HEADS; 0: that of Q and K
    used: bool = False  # the number of keys of each sequence is an array
    page: int = 0  # keys of a page; 0: the keys of a sequence are contiguous
    pack: bool = False  # rows of a tile are (query, head) pairs of the heads that share keys
    # Functions of the scores. Each makes the kernel scale the scores before softmax, not within it.
    scaled: bool = False  # the scale may be negative or 0
    softcap: bool = False  # cap * tanh(score / cap)
    alibi: bool = False  # subtract the distance of query and key, times a slope per head
    bias: str = ""  # element type of an added bias, one of BIASES; "i1" is a mask of visible keys
    sinks: str = ""  # element type of a per-head logit that joins the sum of exponentials; "" for none

    @property
    def value_head(self) -> int:
        """Head dimension of V and of the result."""
        return self.head_v or self.head

    @property
    def adjusts(self) -> bool:
        """Return True if the scores are changed between the MMA and softmax."""
        return self.scaled or self.softcap or self.alibi or bool(self.bias)

    @property
    def hides(self) -> bool:
        """Return True if a row may have no visible key."""
        return self.mask != "full" or bool(self.bias)

    @property
    def consumers(self) -> int:
        """Number of consumer warpgroups, 64 queries each."""
        return self.tile_m // 64

    @property
    def threads(self) -> int:
        """Threads of a block: a producer warpgroup and the consumers."""
        return 128 * (1 + self.consumers)

    @property
    def bounded(self) -> tuple[bool, bool]:
        """(left, right): True if the mask bounds the keys of a query on that side."""
        return self.mask in ("left", "both"), self.mask in ("right", "both")

    @property
    def rows_loaded(self) -> int:
        """Keys of one TMA load: those of a step, or the part of a step in one page."""
        return self.tile_n if self.gathers else min(self.page or self.tile_n, self.tile_n)

    @property
    def page_loads(self) -> int:
        """Pages of a step."""
        return self.tile_n // self.rows_loaded

    @property
    def clears(self) -> bool:
        """Return True if the producer zeroes values past the end of a sequence."""
        return not self.gathers and (self.packed or self.used or self.page > 0)

    @property
    def gathers(self) -> bool:
        """Return True if a warpgroup loads keys and values by cp.async, because TMA boxes do not fit the pages."""
        n = self.tile_n
        return self.page > 0 and (self.page % 8 != 0 or (n % self.page != 0 and self.page % n != 0))

    @property
    def takes_pairs(self) -> bool:
        """Return True if a work item is a pair of tiles."""
        return self.pairs and self.bounded[1] and not self.split and not self.pack

    @property
    def key_bytes(self) -> int:
        """Bytes of the keys of one step."""
        return self.tile_n * self.head * 2

    @property
    def value_bytes(self) -> int:
        """Bytes of the values of one step."""
        return self.tile_n * self.value_head * 2

    @property
    def query_bytes(self) -> int:
        """Bytes of a tile of Q."""
        return self.tile_m * self.head * 2

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes, without barriers."""
        return self.stages * (self.key_bytes + self.value_bytes) + self.q_stages * self.query_bytes

    @property
    def registers(self) -> int:
        """Registers of a consumer thread for scores, probabilities and the accumulator."""
        return self.tile_n // 2 + self.tile_n // 4 + self.value_head // 2

    @property
    def name(self) -> str:
        """Unique name of the kernel: the function it computes, then the settings that differ from the default."""
        flags = [word for word, field in _FLAGS.items() if getattr(self, field)]
        flags += [f"{field}_{getattr(self, field)}" for field in _ELEMENTS if getattr(self, field)]
        named = ["attention", self.element, str(self.head), self.mask, *flags, f"{self.tile_m}x{self.tile_n}"]
        plain = default_config(self.element, self.head, self.mask)
        for letter, field in _LETTERS.items():
            mine = getattr(self, field)
            if mine != getattr(plain, field):
                named.append(f"{letter}{int(mine)}")
        return "-".join(named)

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.element not in ("bf16", "f16"):
            raise ValueError(f"element is {self.element!r}; use 'bf16' or 'f16'")
        if self.head not in HEADS:
            raise ValueError(f"head is {self.head}; use one of {', '.join(map(str, HEADS))}")
        if self.head_v and self.head_v not in HEADS:
            raise ValueError(f"head_v is {self.head_v}; use one of {', '.join(map(str, HEADS))}, or 0 for that of Q")
        for field, known in (("bias", BIASES), ("sinks", BIASES[1:])):
            if getattr(self, field) and getattr(self, field) not in known:
                raise ValueError(f"{field} is {getattr(self, field)!r}; use one of {', '.join(known)}")
        if self.mask not in MASKS:
            raise ValueError(f"mask is {self.mask!r}; use one of {', '.join(MASKS)}")
        if self.gathers and not self.pack:
            raise ValueError(f"page={self.page} with tile_n={self.tile_n} needs pack=True")
        if self.split and not self.lse:
            raise ValueError("split=True needs lse=True")
        if self.tile_m not in (64, 128, 192):
            raise ValueError(f"tile_m is {self.tile_m}; it must be 64, 128 or 192")
        if self.tile_n % 16 or not 16 <= self.tile_n <= 256:
            raise ValueError(f"tile_n is {self.tile_n}; it must be a multiple of 16 up to 256")
        if self.stages < 1 or self.q_stages < 1:
            raise ValueError(f"stages and q_stages must be at least 1, got {self.stages} and {self.q_stages}")
        if self.smem_bytes + 256 > SMEM:
            raise ValueError(
                f"the kernel needs {self.smem_bytes} bytes of shared memory; at most {SMEM - 256} are "
                "available, use smaller tiles or fewer stages"
            )
        most = 136 if self.consumers == 3 else 208
        if self.registers > most:
            raise ValueError(
                f"the kernel needs {self.registers} registers per consumer thread; at most {most} are "
                "available, use smaller tiles"
            )


def default_config(element: str = "bf16", head: int = 128, mask: str = "full", *, few: bool = False) -> AttentionConfig:
    """Return the default configuration; ``few`` is for at most 64 queries.

    >>> default_config(mask="right").tile_n, default_config(head=64).tile_m
    (128, 192)
    """
    config = AttentionConfig(element, head, mask)
    if few:  # one consumer, bound by memory latency
        return config._replace(tile_m=64, tile_n=64 if head == 256 else 128, stages=3)
    if head == 64:  # 32 accumulator registers: three consumers with 64 x 128 scores, and room for two tiles of Q
        return config._replace(tile_m=192, tile_n=128, stages=3, q_stages=2)
    if head == 256:  # 128 accumulator registers
        return config._replace(tile_n=80 if mask == "full" else 64)
    # The diagonal halves tiles of 128 x 128. They leave room for two tiles of Q.
    return config if mask == "full" else config._replace(tile_n=128, q_stages=2)


def config_named(name: str) -> AttentionConfig:
    """Return the configuration with a given name.

    Raises:
        ValueError: if the name is not that of a kernel.

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
            field, _, element = word.partition("_")
            if word in _FLAGS:
                found = found._replace(**{_FLAGS[word]: True})
            elif field in _ELEMENTS:
                found = found._replace(**{field: element})
            elif tile:
                found = found._replace(tile_m=int(tile[1]), tile_n=int(tile[2]))
            elif other and other[1] in _LETTERS:
                field, number = _LETTERS[other[1]], int(other[2])
                found = found._replace(**{field: bool(number) if isinstance(getattr(found, field), bool) else number})
    if found is None or found.name != name:
        raise ValueError(f'there is no kernel named "{name}"; a valid name is "{AttentionConfig().name}"')
    return found
