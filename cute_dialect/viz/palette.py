"""Colors of drawings, for light and dark pages, distinguishable with color vision deficiencies.

Categories (threads, tiles, banks) use the hues of Okabe and Ito ("Color Universal Design", 2008), once strong and once
pale.  Amounts (offsets) use a ramp of evenly decreasing lightness.  Colors are light behind dark text; in the dark
theme, they are dark behind light text.
"""

from __future__ import annotations

import re

RGB = tuple[float, float, float]

OKABE_ITO = ("56b4e9", "e69f00", "009e73", "f0e442", "0072b2", "d55e00", "cc79a7", "999999")
_YELLOW = 3
KINDS = 2 * len(OKABE_ITO)
"""Number of categories with a color of their own."""

LEVELS = 16
"""Number of steps in the ramp of amounts."""

_RAMPS = {"light": ("fdf6d5", "bfe5c8", "8cc6e6", "a29fe2"), "dark": ("262a31", "1f4b47", "1f5f86", "5a51ad")}
_PAPER = {"light": "ffffff", "dark": "14171c"}
_INK = {"light": "1a1d21", "dark": "e9ecef"}
_DIM = {"light": "667079", "dark": "98a2ad"}
_LINE = {"light": "ffffff", "dark": "14171c"}
_BAD = {"light": "ff7a72", "dark": "b0232b"}
_SHARES = {"light": (0.58, 0.28), "dark": (0.52, 0.28)}
_NONE = {"light": "eef0f2", "dark": "1f242b"}


def kind(n: int) -> str:
    """Return the class of the ``n``-th category. Neighbors differ in hue."""
    return f"q{n % KINDS}"


def level(n: int, most: int) -> str:
    """Return the class of an amount between 0 and ``most``.

    >>> level(0, 63), level(63, 63), level(0, 0)
    ('s0', 's15', 's0')
    """
    return f"s{max(0, min(LEVELS - 1, n * LEVELS // (most + 1)))}"


def _rgb(text: str) -> RGB:
    return int(text[0:2], 16), int(text[2:4], 16), int(text[4:6], 16)


def _mixed(a: str, b: str, share: float) -> str:
    parts = [round(x * share + y * (1 - share)) for x, y in zip(_rgb(a), _rgb(b))]
    return "".join(f"{p:02x}" for p in parts)


def tone(name: str, theme: str) -> str:
    """Return the color of a class in a theme, "light" or "dark".

    >>> tone("paper", "light"), tone("q4", "dark")
    ('#ffffff', '#0a466a')
    """
    if name[0] == "q" and name[1:].isdigit():
        which, n = divmod(int(name[1:]), len(OKABE_ITO))
        # Light text must stand out against yellow.
        share = _SHARES[theme][which] * (0.8 if theme == "dark" and n == _YELLOW else 1)
        return "#" + _mixed(OKABE_ITO[n], _PAPER[theme], share)
    if name[0] == "s" and name[1:].isdigit():
        ramp = _RAMPS[theme]
        at = int(name[1:]) / (LEVELS - 1) * (len(ramp) - 1)
        i = min(int(at), len(ramp) - 2)
        return "#" + _mixed(ramp[i + 1], ramp[i], at - i)
    table = {"paper": _PAPER, "ink": _INK, "dim": _DIM, "line": _LINE, "bad": _BAD, "none": _NONE}
    return "#" + table[name][theme]


_FILLS = re.compile(r'class="(?:[a-z0-9]+ )*([qs]\d+|bad|none)[" ]')

_ALWAYS = """text{font-family:ui-monospace,'SF Mono',Menlo,'DejaVu Sans Mono',monospace}
.n{text-anchor:middle}.e{text-anchor:end}.h{font-weight:600}
.cells path:hover,.hit{stroke-width:4}"""

_THEMED = """.paper{fill:%(paper)s}
.ink,text{fill:%(ink)s}.dim{fill:%(dim)s}
.l0{stroke:%(line)s;stroke-width:1;fill:none}.l1{stroke:%(ink)s;stroke-opacity:.45;stroke-width:1.2;fill:none}
.l2{stroke:%(ink)s;stroke-width:1.8;fill:none}.l3{stroke:%(ink)s;stroke-width:2.8;fill:none}
.thin{stroke:%(dim)s;stroke-opacity:.45;stroke-width:.6;fill:none}
.cells path:hover,.hit{stroke:%(ink)s}"""


def style(body: str, theme: str) -> str:
    """Return the style sheet for the elements of a drawing in a theme. "auto" follows the page's theme.

    All rules are scoped to ``.cv``, since an SVG in a page shares the page's style sheet.
    """
    used = sorted(set(_FILLS.findall(body)), key=lambda c: (c[0], len(c), c))
    rules = _scoped(_ALWAYS, ".cv")
    if theme == "auto":
        dark = _scoped(_colours("dark", used), ".cv-auto")
        return f"{rules}\n{_scoped(_colours('light', used), '.cv')}\n@media (prefers-color-scheme:dark){{\n{dark}\n}}"
    return f"{rules}\n{_scoped(_colours(theme, used), f'.cv-{theme}')}"


def _colours(theme: str, used: list[str]) -> str:
    names = ("paper", "ink", "dim", "line")
    fills = "".join(f".{name}{{fill:{tone(name, theme)}}}" for name in used)
    return _THEMED % {name: tone(name, theme) for name in names} + (f"\n{fills}" if fills else "")


def _scoped(rules: str, scope: str) -> str:
    def one(found: re.Match[str]) -> str:
        return ",".join(f"{scope} {part}" for part in found[1].split(",")) + "{"

    return re.sub(r"([^{}\n]+)\{", one, rules)
