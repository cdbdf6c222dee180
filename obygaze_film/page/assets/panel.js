// What is said of the selected object: its evidence, the form, and the table of all decisions.
import {drawn, make} from "./drawing.js";
import {mediaOf} from "./media.js";
import {FILTERS, disagreementsOf, openOf, rowsOf} from "./list.js";
import {clock} from "./time.js";

const bar = (part) => drawn("svg", {"aria-hidden": true}, drawn("line", {class: "zero", x1: "50%", x2: "50%", y1: 0, y2: "100%"}), drawn("rect", {class: part.side, x: part.x, width: part.w, y: 3, height: 7}));
export const filled = (text, values) => text.replace(/{(\w+)}/g, (_, name) => values[name]);

export class Panel {
 // `act` is to go to a time, or to jump to a decision, edit or delete it.
 constructor(root, store, state, act) {
  Object.assign(this, {store, state, words: state.words, act, asked: "", found: {}, filter: "all"});
  this.one = (s) => root.querySelector(s);
  this.all = (s) => [...root.querySelectorAll(s)];
  for (const node of this.all("[data-means]")) node.onmouseenter = node.onfocus = () => this.means(node);
 }
 means(node) { this.one("#d-means").textContent = node.dataset.means; }

 draw() {
  const {store, words} = this, it = store.selected, form = store.form, own = store.decision;
  const what = !it ? words[store.mode === "blind" ? "nothing_blind" : "nothing"] : own?.kind === "agreed" ? filled(words.agreed, own) : it.type === "differ" ? filled(words.differ_of, it) : it.place ? words.window : it.type === "passage" && !own?.origin ? filled(words.passage, {n: it.number}) : own && own.who !== store.name ? filled(words.theirs, own) : own?.verdict === "note" ? words.a_note : own ? words.yours : words.marked;
  this.one("#d-title").textContent = it ? filled(words.of, {what, which: `${clock(it.start)}–${clock(it.end)}`}) : what;
  this.one("#d-length").textContent = it ? `${(it.end - it.start).toFixed(1).replace(".", words.decimal)} s` : "";
  for (const one of this.all("[data-level]")) one.ariaPressed = String(one.dataset.level === form.level);
  for (const one of this.all("[data-concept]")) one.ariaPressed = String(form.concepts.includes(one.dataset.concept));
  const note = this.one("#d-note");
  if (note !== document.activeElement || note.dataset.of !== JSON.stringify(it)) note.value = form.note;
  note.dataset.of = JSON.stringify(it);
  this.one("#d-loop").ariaPressed = String(store.loops);
  for (const one of this.all("[data-needs]")) one.disabled = !(one.dataset.needs === "own" ? store.mine : it);
  const {progress} = store;
  if (store.mode === "read") this.one("#d-progress").textContent = filled(progress.passages ? words.progress : words.progress_none, {...progress, n: progress.passages, unsure: progress.unsure ? filled(words.unsure, progress) : ""});
  this.table();
  this.evidence();
 }
 table() {
  const {store, words, filter} = this, chosen = store.decision?.id, open = openOf(store), every = disagreementsOf(store);
  const button = (one, what, text) => make("button", {type: "button", textContent: text, ariaLabel: filled(words.of, {what: words[what], which: `${clock(one.start)} ${one.title || one.note}`}), title: words[what], onclick: () => this.act[what](one)});
  this.one("#d-count").textContent = filled(words.counted, {n: store.judged.length, notes: store.own.filter((one) => one.note).length});
  const {activeElement: focused} = document, label = focused?.closest("#d-table") && focused.ariaLabel;
  this.one("#d-differ").textContent = every.length ? filled(words.n_differ, {n: every.length, settled: every.length - open.length}) : "";
  this.one("#d-hidden").textContent = store.hidden ? filled(words.hidden, {n: store.hidden}) : "";
  for (const chip of this.all("[data-filter]")) chip.ariaPressed = String(chip.dataset.filter === filter);
  const order = this.one("#d-order")?.value || "time", rows = rowsOf(store, {filter, order, threshold: this.state.threshold});
  this.one("#d-table tbody").replaceChildren(...rows.map((one) => {
   if (one.type) {
    const title = one.type === "differ" ? one.said : filled(words.passage, {n: one.number});
    const end = one.settled ? `${filled(words.agreed, one.settled)}: ${one.settled.title}` : one.type === "differ" ? words.open : "";
    return make("tr", {className: one.settled ? "d-settled" : ""}, make("th", {scope: "row"}, button({...one, title}, "jump", clock(one.start))), make("td", {}, title, end && make("small", {textContent: ` ${end}`})), make("td", {className: "n", textContent: one.p?.toFixed(2).replace(".", words.decimal) ?? ""}));
   }
   const mine = one.who === store.name, said = [one.title, one.concepts.join(", "), one.note].filter(Boolean).join(" · ");
   const cell = make("td", {}, said + (one.beside ? ` (${words.beside})` : "") + (one.otherwise ? ` (${words.otherwise})` : ""));
   if (one.kind === "agreed") cell.append(" ", make("small", {textContent: filled(words.agreed, one)}));
   else if (!mine) cell.append(" ", make("small", {textContent: one.who}));
   if (one.history.length) cell.append(make("details", {className: "d-was"}, make("summary", {textContent: words.was}), ...one.history.map((text) => make("div", {textContent: text}))));
   return make("tr", {className: one.id === chosen ? "d-on" : ""}, make("th", {scope: "row"}, button(one, "jump", clock(one.start))), cell, make("td", {className: "n"}, ...mine ? [button(one, "edit", "✎"), button(one, "delete", "✕")] : []));
  }));
  if (label) this.all("#d-table button").find((one) => one.ariaLabel === label)?.focus();
 }

 // The next kind of rows, of those that this mode has.
 showNext() {
  const there = FILTERS.filter((name) => this.one(`[data-filter="${name}"]`));
  this.showRows(there[(there.indexOf(this.filter) + 1) % there.length]);
 }
 showRows(filter) {
  this.filter = filter;
  this.table();
 }

 // Asked anew where the span is another; an answer that comes late is of no use.
 async evidence() {
  const {store} = this, it = store.selected, asked = it && store.mode === "read" ? `span?a=${it.start}&b=${it.end}` : "";
  if (asked === this.asked) return;
  this.asked = asked;
  this.show(null);
  if (!asked) return;
  const answer = await fetch(asked).catch(() => null), found = await answer?.json().catch(() => null);
  if (asked === this.asked) this.show(answer?.ok ? found : null, found?.said ?? this.words.stopped);
 }
 // What is found, or why nothing is.
 show(found, why = "") {
  const {words, one} = this;
  if (!one("#d-why")) return;
  this.found = found ?? {};
  const text = (id, value) => { one(id).textContent = value ?? ""; };
  text("#d-p", found ? found.p || words.unknown : why);
  text("#d-band", found?.band ? `[${found.band}]` : "");
  text("#d-flags", found && [filled(words.cuts, {n: found.cuts}), !found.reaches && found.p ? words.below : "", found.flags].filter(Boolean).join(" · "));
  text("#d-sentence", found?.sentence);
  text("#d-classes", found?.classes);
  text("#d-evidence-note", found?.note);
  one("#d-parts").hidden = !found?.parts.length;
  one("#d-parts tbody").replaceChildren(...(found?.parts ?? []).map((part) => make("tr", {}, make("th", {scope: "row", textContent: part.name}), make("td", {className: `n${part.seen ? "" : " alone"}`, textContent: part.p, title: part.doubt ? words.doubt : ""}), make("td", {}, bar(part)), make("td", {className: "n", textContent: part.value}), make("td", {className: "n", textContent: part.usual.replace(/^.*→/, "→"), title: part.usual}))));
  one("#d-said").replaceChildren(...(found?.said ?? []).map((line) => make("li", {}, make("button", {type: "button", textContent: line.clock, onclick: () => this.act.go(line.start)}), ` ${line.text}`)));
  one("#d-like").replaceChildren(...(found?.like ?? []).map((there) => {
   const near = there.film === this.state.film;
   const label = near ? there.clock : `${there.title}, ${there.clock}`, still = make("canvas", {hidden: true, ariaHidden: "true"});
   if (there.stills) mediaOf(there.film).then((media) => media.alone(still, (there.start + there.end) / 2), () => {});
   const link = near ? make("button", {type: "button", title: words.this_film, onclick: () => this.act.jump({start: there.start, end: there.end, type: "span", origin: "own"})}, still, label) : make("a", {href: `../${there.film}/read#t=${there.start},${there.end}`}, still, label);
   const said = near && this.store.judged.find((mine) => mine.start < there.end && mine.end > there.start);
   return make("li", {}, link, said ? ` ${filled(words.you_said, said)}` : "");
  }));
 }
}
