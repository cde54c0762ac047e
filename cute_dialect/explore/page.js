"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const make = (tag, attributes = {}, text) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
};
const ROW = 18, MORE = 30;

// ---- syntax colors: one expression per kind of text, and the group that matched selects the class
const KINDS = {
  source: data.mlir ? null : /(#.*$)|("""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|return|for|in|if|else|elif|while|with|class|import|from|as|not|and|or|lambda|None|True|False|yield|assert|pass)\b|\b(\d[\w.]*)\b|(@[\w.]+)/g,
  mlir: /(\/\/.*$)|("(?:[^"\\]|\\.)*")|(?<![%\w!])([a-z_]\w*(?:\.[a-z_]\w*)+|scf|func|module)\b|(?<![\w%])(-?\d[\w.]*)\b|([%!#^][\w#.$]+)/g,
  ptx: /(\/\/.*$)|("(?:[^"\\]|\\.)*")|(?<![%\w])(\.?[a-z]\w*(?:\.[\w:]+)+|ret|bra)\b|\b(\d\w*)\b|([%$@][\w$]+)/g,
  sass: /(\/\*.*?\*\/|\/\/.*$)|("(?:[^"\\]|\\.)*")|(?<![\w`(.])([A-Z][A-Z0-9]{2,}(?:\.\w+)*)\b|\b(0x[\da-f]+|\d+)\b|(\b(?:R|UR|P|UP)\d+|@!?U?P\d)/g,
};
if (!KINDS.source) KINDS.source = KINDS.mlir;
const CLASSES = ["c", "s", "w", "n", "v"];
function colour(into, text, kind) {
  let at = 0;
  if (text.length < 2000) for (const m of text.matchAll(KINDS[kind])) {
    if (m.index > at) into.append(text.slice(at, m.index));
    into.append(make("span", { class: CLASSES[m.slice(1).findIndex(x => x !== undefined)] }, m[0]));
    at = m.index + m[0].length;
  }
  into.append(text.slice(at));
}

// ---- columns: only visible lines are in the document
class Pane {
  constructor(d) {
    Object.assign(this, d);
    this.byGroup = new Map();
    d.groups.forEach((gs, i) => { for (const g of gs) { const l = this.byGroup.get(g); l ? l.push(i) : this.byGroup.set(g, [i]); } });
    this.lit = new Set(); this.now = -1; this.cursor = -1;
    const box = this.box = make("div", { class: "pane", "data-pane": d.key });
    const head = make("h2", {}, d.title);
    this.says = make("small", {}, d.lines.length ? `${d.lines.length} lines` : "");
    head.append(this.says);
    this.view = make("div", { class: "view", tabindex: "0", role: "listbox", "aria-label": d.title });
    this.map = make("div", { class: "map" });
    box.append(head, this.view, this.map);
    if (!d.lines.length) { this.view.append(make("div", { class: "missing" }, d.missing || "empty")); }
    else {
      this.size = make("div", { class: "size" }); this.win = make("div", { class: "win" });
      const longest = d.lines.reduce((n, l) => Math.max(n, l.length + 7 * (l.match(/^\t*/)[0].length)), 0);
      this.size.style.height = `${d.lines.length * ROW + 8}px`;
      this.size.style.width = `${Math.min(longest, 2000) + 12 + (d.notes ? 7 : 0)}ch`;
      this.size.style.font = '12.5px/18px ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';
      this.size.append(this.win); this.view.append(this.size);
      this.view.addEventListener("scroll", () => this.draw(), { passive: true });
      this.view.addEventListener("mousemove", e => { const i = this.index(e); if (i >= 0 && !pinned) point(this, i, false); });
      this.view.addEventListener("mouseleave", () => { if (!pinned) release(); });
      this.view.addEventListener("click", e => { const i = this.index(e); if (i >= 0) { pinned = true; point(this, i, true); } });
      this.view.addEventListener("focus", () => { current = this; for (const p of panes) p.box.classList.toggle("focus", p === this); });
    }
  }
  index(e) { const l = e.target.closest(".ln"); return l ? +l.dataset.line : -1; }
  draw(anew) {
    if (!this.lines.length || this.box.hidden) return;
    const top = this.view.scrollTop, high = this.view.clientHeight || 600;
    const from = Math.max(0, Math.floor(top / ROW) - MORE), to = Math.min(this.lines.length, Math.ceil((top + high) / ROW) + MORE);
    if (!anew && this.from <= Math.max(0, from + MORE - 5) && this.to >= Math.min(this.lines.length, to - MORE + 5) && this.from !== undefined) return;
    this.from = from; this.to = to;
    const lines = [];
    for (let i = from; i < to; i++) lines.push(this.line(i));
    this.win.style.top = `${from * ROW}px`;
    this.win.replaceChildren(...lines);
  }
  line(i) {
    const number = this.numbers ? this.numbers[i] : i + 1;
    const l = make("div", { class: "ln", "data-line": i });
    if (number !== null) l.dataset.number = number;
    l.append(make("i", {}, number === null ? "" : String(number)));
    if (this.notes) l.append(make("b", { title: "live registers" }, this.notes[i]));
    const code = make("span");
    colour(code, this.lines[i], this.kind);
    l.append(code);
    if (!this.groups[i].length) l.classList.add("none");
    const bad = marks(this, i);
    if (bad.length) {
      l.classList.add("bad"); l.title = bad.map(m => m.text).join("\n");
      if (this.kind === "source") l.append(make("em", {}, `◀ ${bad[0].short}`));
    }
    this.paint(l, i);
    return l;
  }
  paint(l, i) { l.classList.toggle("lit", this.lit.has(i)); l.classList.toggle("now", this.now === i); }
  light(lit, now) {
    this.lit = lit; this.now = now;
    if (!this.win) return;
    for (const l of this.win.children) this.paint(l, +l.dataset.line);
    const n = this.lines.length, shown = [...lit].sort((a, b) => a - b);
    this.says.textContent = lit.size ? `${lit.size} of ${n} lines` : `${n} lines`;
    const ticks = []; let last = -9;
    for (const i of shown) { const y = Math.round(1000 * i / n); if (y - last >= 4) { const u = make("u"); u.style.top = `${y / 10}%`; ticks.push(u); last = y; } }
    this.map.replaceChildren(...ticks);
  }
  inSight(i) { const y = i * ROW; return y >= this.view.scrollTop && y + ROW <= this.view.scrollTop + this.view.clientHeight; }
  show(i) { if (!this.inSight(i)) this.scroll(i); this.draw(); }
  scroll(i) { this.view.scrollTop = Math.max(0, i * ROW - this.view.clientHeight / 3); }
  // Scroll to the highlighted lines, unless enough of them are visible.
  follow() {
    const seen = [...this.lit].filter(l => this.inSight(l)).length;
    if (seen < Math.min(this.lit.size, this.view.clientHeight / ROW / 2)) this.scroll(Math.min(...this.lit));
    this.draw();
  }
}

// ---- marks beside lines: faults, bank conflicts
const marksOf = new Map();
for (const mark of data.marks) for (const g of mark.groups) marksOf.set(g, [...marksOf.get(g) || [], mark]);
function marks(pane, i) {
  const groups = marksOf.size ? (pane.own || pane.groups)[i] : [];
  return [...new Set(groups.flatMap(g => marksOf.get(g) || []))];
}

const panes = data.panes.map(d => new Pane(d));
let current = panes[0], pinned = false, at = null, timer = 0;

function light(groups, from, i, scroll) {
  const set = new Set(groups);
  for (const p of panes) {
    const lit = new Set();
    for (const g of set) for (const l of p.byGroup.get(g) || []) lit.add(l);
    if (p === from && lit.size) lit.add(i);
    p.light(lit, p === from ? i : -1);
  }
  clearTimeout(timer);
  const follow = () => { for (const p of panes) if (p !== from && !p.box.hidden && p.lit.size) p.follow(); };
  if (scroll) follow(); else timer = setTimeout(follow, 160);
  at = { groups: set, named: from && from.key === "trace" ? data.named[i] : null }; document.body.dataset.groups = [...set].join(" ");
  if (tab === "layouts") showTab("layouts");
  for (const r of document.querySelectorAll("#tab tr[data-g]")) r.classList.toggle("lit", r.dataset.g.split(" ").some(g => g && set.has(+g)));
}
function point(pane, i, scroll) {
  if (!scroll && pane.now === i) return;
  pane.cursor = i;
  if (scroll) pane.show(i);
  light(pane.groups[i], pane, i, scroll);
}
function release() { pinned = false; clearTimeout(timer); for (const p of panes) p.light(new Set(), -1); at = null; delete document.body.dataset.groups; if (tab === "layouts") showTab("layouts"); }

// ---- tabs
// Drawings follow the system's theme by a media query. A theme chosen on the page replaces that query.
const THEMES = ["auto", "light", "dark"], WHEN = { auto: "(prefers-color-scheme:dark)", light: "not all", dark: "all" };
function draws(html) { const d = make("div"); d.innerHTML = html.replaceAll("@media (prefers-color-scheme:dark)", `@media ${WHEN[document.documentElement.dataset.theme]}`); return d; }
let tab = "";
const TABS = {};
function table(columns, rows) {
  const t = make("table"), h = make("tr");
  for (const c of columns) h.append(make("th", { class: c.kind }, c.head));
  t.append(h);
  for (const row of rows) {
    const r = make("tr"), leads = row.groups.length || row.line >= 0;
    if (row.bad) r.classList.add("bad");
    row.cells.forEach((cell, k) => {
      const d = make("td", { class: columns[k].kind });
      d.append(columns[k].kind === "code" ? make("code", {}, String(cell)) : String(cell));
      r.append(d);
    });
    if (leads) {
      r.dataset.g = row.groups.join(" "); r.tabIndex = 0;
      r.addEventListener("click", () => follows(row));
      r.addEventListener("keydown", e => { if (e.key === "Enter") follows(row); });
    }
    t.append(r);
  }
  return t;
}
function follows(row) {
  const source = panes[0];
  pinned = true;
  light(row.groups, row.line >= 0 ? source : null, row.line, true);
  if (row.line >= 0) { source.cursor = row.line; source.show(row.line); }
}
const says = text => make("p", { class: "says" }, text);
TABS.layouts = ["Layouts", into => {
  const found = at && at.named ? [at.named] : [], seen = new Set();
  for (const g of at ? at.groups : []) for (const v of data.values[g] || []) { const k = v.join(); if (!seen.has(k)) { seen.add(k); found.push(v); } }
  if (!at) { into.append(says("Point at a line to see the layouts of its values.")); return; }
  if (!found.length) { into.append(says("No value of this line has a layout.")); return; }
  const box = make("div", { class: "values" });
  found.sort((a, b) => !a[2] - !b[2]);
  for (const [name, type, key, part] of found.slice(0, 12)) {
    const f = make("figure", { "data-drawing": key });
    f.append(make("figcaption", {}, `${name ? name + " : " : ""}${type}`));
    if (part) f.append(says(`Drawn: ${part}.`));
    if (key) f.append(draws(data.drawings[key]));
    box.append(f);
  }
  into.append(box);
}];
for (const t of data.tabs) TABS[t.key] = [t.title, into => {
  if (t.says) into.append(says(t.says));
  for (const part of t.parts) {
    if (part.columns) into.append(table(part.columns, part.rows));
    else if (part.html) into.append(draws(part.html));
    else into.append(make("pre", {}, part.text));
  }
}, t];
function showTab(key) {
  tab = key;
  for (const b of $("tabs").children) b.setAttribute("aria-selected", b.dataset.tab === key);
  const into = $("tab"); into.dataset.tab = key; into.replaceChildren(); TABS[key][1](into);
}
for (const key of Object.keys(TABS)) {
  const extra = TABS[key][2] && TABS[key][2].count ? ` (${TABS[key][2].count})` : "";
  const b = make("button", { role: "tab", "data-tab": key }, TABS[key][0] + extra);
  b.addEventListener("click", () => showTab(key)); $("tabs").append(b);
}

// ---- header
$("title").textContent = data.title; $("facts").textContent = data.facts;
// In a narrow window, IR columns between the first and the last start hidden.
const shown = panes.filter(p => p.shown);
if (innerWidth < 300 * shown.length) for (const p of shown.slice(shown.length > 4 ? 2 : 1, -2)) p.shown = false;
for (const p of panes) {
  p.box.hidden = !p.shown;
  const b = make("button", { "aria-pressed": p.shown, "data-toggle": p.key }, p.title);
  b.addEventListener("click", () => { p.box.hidden = !p.box.hidden; b.setAttribute("aria-pressed", !p.box.hidden); for (const q of panes) q.draw(true); });
  $("toggles").append(b); $("panes").append(p.box);
}
$("theme").addEventListener("click", () => { const r = document.documentElement; r.dataset.theme = THEMES[(THEMES.indexOf(r.dataset.theme) + 1) % 3]; showTab(tab); });
$("keys").addEventListener("click", () => $("help").showModal());
$("split").addEventListener("mousedown", e => {
  e.preventDefault();
  const move = m => { $("below").style.flexBasis = `${Math.max(60, innerHeight - m.clientY)}px`; for (const p of panes) p.draw(true); };
  addEventListener("mousemove", move); addEventListener("mouseup", () => removeEventListener("mousemove", move), { once: true });
});
function search(next) {
  const words = $("search").value.toLowerCase(), p = current, n = p.lines.length;
  if (!words || !n) return;
  for (let k = next ? 1 : 0; k <= n; k++) { const i = (Math.max(p.cursor, 0) + k) % n; if (p.lines[i].toLowerCase().includes(words)) { pinned = true; point(p, i, true); return; } }
}
$("search").addEventListener("input", () => search(false));
$("search").addEventListener("keydown", e => { if (e.key === "Enter") search(true); if (e.key === "Escape") { e.target.value = ""; current.view.focus(); } e.stopPropagation(); });
function column(step) {
  const shown = panes.filter(p => !p.box.hidden && p.lines.length), k = shown.indexOf(current);
  const p = shown[(k + step + shown.length) % shown.length];
  p.view.focus({ preventScroll: true }); p.box.scrollIntoView({ inline: "nearest", block: "nearest" });
  if (p.lit.size && !p.lit.has(p.cursor)) { p.cursor = Math.min(...p.lit); p.show(p.cursor); }
}
function move(step) { const p = current, i = Math.min(p.lines.length - 1, Math.max(0, p.cursor < 0 ? Math.floor(p.view.scrollTop / ROW) : p.cursor + step)); pinned = true; point(p, i, true); }
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
  const list = Object.keys(TABS), act = {
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
    PageDown: () => move(20), PageUp: () => move(-20), Home: () => move(-1e9), End: () => move(1e9),
    l: () => column(1), ArrowRight: () => column(1), h: () => column(-1), ArrowLeft: () => column(-1),
    "/": () => { $("search").focus(); $("search").select(); }, "?": () => $("help").showModal(), Escape: release,
    n: () => { const s = [...current.lit].sort((a, b) => a - b), i = s.find(l => l > current.cursor) ?? s[0]; if (i !== undefined) { current.cursor = i; current.show(i); } },
    p: () => { const s = [...current.lit].sort((a, b) => b - a), i = s.find(l => l < current.cursor) ?? s[0]; if (i !== undefined) { current.cursor = i; current.show(i); } },
  }[e.key] || (/^[1-9]$/.test(e.key) && list[e.key - 1] ? () => showTab(list[e.key - 1]) : null);
  if (e.key === "Tab" && e.target.closest && e.target.closest(".view")) { column(e.shiftKey ? -1 : 1); e.preventDefault(); return; }
  if (act) { act(); e.preventDefault(); }
});
addEventListener("resize", () => { for (const p of panes) p.draw(true); });
showTab(data.first || "layouts");
for (const p of panes) p.draw(true);
panes[0].view.focus({ preventScroll: true });
if (data.start >= 0) { pinned = true; point(panes[0], data.start, true); }
else for (const p of panes) { const first = p.groups.findIndex(g => g.length); if (first > 20) { p.view.scrollTop = (first - 4) * ROW; p.draw(); } }
document.body.dataset.ready = String(Math.round(performance.now()));
})();
