// What is said of the selected object: its evidence, the form, and the table of all decisions.
import {make} from "./drawing.js";
import {Evidence} from "./evidence.js";
import {mediaOf} from "./media.js";
import {filled} from "./rows.js";
import {DecisionTable} from "./table.js";
import {clock, clockSpan} from "./time.js";

export class Panel {
 // `act` is to go to a time, or to jump to a decision, edit or delete it.
 constructor(root, store, state, act) {
  Object.assign(this, {store, state, words: state.words, act, asked: "", found: {}});
  this.evidenceOf = new Evidence("d", state.words, act.go);
  this.table = new DecisionTable("d", root, store, state.words, act, {threshold: state.threshold, filter: "all", names: state.names});
  this.one = (s) => root.querySelector(s);
  this.all = (s) => [...root.querySelectorAll(s)];
  for (const node of this.all("[data-means]")) node.onmouseenter = node.onfocus = () => this.means(node);
 }
 means(node) { this.one("#d-means").textContent = node.dataset.means; }

 draw() {
  const {store, words} = this, it = store.selected, form = store.form, own = store.decision;
  const what = !it ? words[store.mode === "blind" ? "nothing_blind" : "nothing"] : own?.kind === "agreed" ? filled(words.agreed, own) : it.type === "differ" ? filled(words.differ_of, it) : it.place ? words.window : it.type === "passage" && !own?.origin ? filled(words.passage, {n: it.number}) : own && own.who !== store.name ? filled(words.theirs, own) : own?.verdict === "note" ? words.a_note : own ? words.yours : words.marked;
  this.one("#d-title").textContent = it ? filled(words.of, {what, which: clockSpan(it.start, it.end)}) : what;
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
  this.table.draw();
  this.evidence();
 }
 // Asked anew where the span is another; an answer that comes late is of no use.
 evidence() {
  const {store} = this, it = store.selected, asked = it && store.mode === "read" ? `span?a=${it.start}&b=${it.end}` : "";
  if (asked === this.asked) return;
  this.asked = asked;
  this.show(null);
  this.coming = asked ? this.ask(asked) : null;
 }
 async ask(asked) {
  const answer = await fetch(asked).catch(() => null), found = await answer?.json().catch(() => null);
  if (asked === this.asked) this.show(answer?.ok ? found : null, found?.said ?? this.words.stopped);
 }
 show(found, why = "") {
  this.found = found ?? {};
  this.evidenceOf.show(found, why);
  this.one("#d-like").replaceChildren(...(found?.like ?? []).map((there) => this.similar(there)));
 }
 // A span that is like the selected one, in this film or in another that is open.
 similar(there) {
  const {words} = this, near = there.film === this.state.film, still = make("canvas", {hidden: true, ariaHidden: "true"});
  const label = near ? there.clock : `${there.title}, ${there.clock}`;
  if (there.stills) mediaOf(there.film).then((media) => media.alone(still, (there.start + there.end) / 2), () => {});
  const link = near
   ? make("button", {type: "button", title: words.this_film, onclick: () => this.act.jump({start: there.start, end: there.end, type: "span", origin: "own"})}, still, label)
   : make("a", {href: `../${there.film}/read#t=${there.start},${there.end}`}, still, label);
  const said = near && this.store.saidOf(there);
  return make("li", {}, link, said ? ` ${filled(words.you_said, said)}` : "");
 }
}
