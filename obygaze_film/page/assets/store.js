// What is decided and what is selected. Form and evidence follow from the selected object, never from what was selected before.
import {sameSpan} from "./time.js";

const named = (text) => text.trim().replace(/\s+/g, " ");
// Whether a decision says something of the whole of a span: it is on half of it or more.
const over = (one, span) => overlap(one, span) >= (span.end - span.start) / 2;
const overlap = (a, b) => Math.min(a.end, b.end) - Math.max(a.start, b.start);

export class Store {
 constructor({decisions, differ = [], hidden = 0, passages, weak, who, mode}) {
  Object.assign(this, {decisions, differ, hidden, mode, who, selected: null, loops: false, draft: null, changed: () => {}});
  this.passages = passages.map((one) => ({...one, type: "passage"}));
  this.weak = weak.map((one) => ({...one, type: "passage", below: true}));
 }
 get name() { return named(this.who); }
 get own() { return this.decisions.filter((one) => one.who === this.name); }
 // What was agreed settles others' decisions, and is none of one's own of a span.
 get judged() { return this.own.filter((one) => one.level && one.kind !== "agreed"); }
 // One's own that were decided under other definitions: those of this mode first.
 get otherwise() {
  const isHere = (one) => Boolean(one.place) === (this.mode === "blind");
  return this.judged.filter((one) => one.otherwise).sort((a, b) => isHere(b) - isHere(a));
 }

 // A decision by id, a passage of the model, or a span that is marked and not yet kept.
 select(object, loops = false) {
  [this.selected, this.draft, this.loops] = [object, null, Boolean(object) && loops];
  this.changed();
 }
 find(id) { return this.decisions.find((one) => one.id === id); }
 // The selected object's own decision, if there is one.
 get decision() {
  const it = this.selected;
  if (!it) return null;
  if (it.id) return this.find(it.id) ?? null;
  return it.type === "passage" || it.place ? this.judged.findLast((one) => sameSpan(one, it)) ?? null : null;
 }
 get mine() { return this.decision?.who === this.name ? this.decision : null; }
 get form() {
  // What was decided under other words is decided again from nothing: under today's words nobody said it.
  const {level = "", concepts = [], note = ""} = (this.decision?.otherwise ? null : this.decision) ?? {};
  return {level, concepts, note, ...this.draft};
 }
 edit(change) {
  this.draft = {...this.draft, ...change};
  this.changed();
 }
 move(start, end) {
  const it = this.selected, origin = it.type === "passage" ? `passage ${it.number}` : it.origin || "own";
  const {id} = this.decision ?? {}, draft = this.draft;
  this.select({id, start, end, origin, type: "span", moved: Boolean(id)}, this.loops);
  this.draft = draft;
 }
 // What the server is asked to keep of the selected object.
 body(change = {}) {
  const it = this.selected, old = this.decision, {level, concepts, note} = {...this.form, ...change};
  const parents = it.parents ?? old?.parents;
  if (level && parents?.length) return {kind: "agreed", start_s: it.start, end_s: it.end, level, concepts, note, parents, ...(this.mine && {id: this.mine.id})};
  const kind = !level ? "note" : it.place || (it.type === "passage" && !it.moved) || (old?.kind === "judgement" && !it.moved) ? "judgement" : "passage";
  const body = {kind, start_s: it.start, end_s: it.end, level, concepts, note, origin: it.origin || old?.origin || "own"};
  return {...body, ...(this.mine && {id: this.mine.id}), ...(it.place && {place: it.place})};
 }
 // `id` is of what was kept in place of `old`: of what is selected still, unless one went on meanwhile.
 answered({you, differ = [], hidden = 0, id}, old) {
  Object.assign(this, {decisions: you, differ, hidden});
  const it = this.selected, kept = this.find(id);
  if (it && kept && (sameSpan(kept, it) || (old && it.id === old))) [this.selected, this.draft] = [{...this.selected, id, moved: false}, null];
  if (this.selected?.id && !this.find(this.selected.id)) { // deleted, or changed elsewhere
   const {id: gone, ...span} = this.selected, again = this.own.findLast((one) => sameSpan(one, span));
   this.selected = again ? {...span, id: again.id} : span.type === "passage" ? span : null;
   this.draft = null;
  }
  this.changed();
 }
 // The next passage in order of time; where the selected one is none, that after its start.
 next(step, weak = false) {
  const list = weak || !this.passages.length ? this.weak : this.passages, it = this.selected;
  if (!list.length) return null;
  let k = list.findIndex((one) => it && sameSpan(one, it));
  if (k < 0) k = it ? list.findIndex((one) => one.start > it.start) - (step > 0 ? 1 : 0) : step > 0 ? -1 : 0;
  return list[(k + step + list.length) % list.length];
 }
 // What was said of a span that need not be the decision's own; of several decisions the last one's.
 saidOf(span, decisions = this.judged) { return decisions.findLast((one) => over(one, span)) ?? null; }
 // One's own that were decided in reading, under today's words, and what they say of a passage: null where it is undecided.
 get read() { return this.judged.filter((one) => !one.place && !one.otherwise); }
 readOf(passage) { return this.saidOf(passage, this.read); }
 // Who has seen how many of the passages, and what they said of them.
 get progress() {
  const {read} = this, found = {passages: this.passages.length, seen: 0, agree: 0, disagree: 0, unsure: 0, added: 0};
  for (const passage of this.passages) {
   const said = this.readOf(passage);
   if (said) { found.seen++; found[said.verdict]++; }
  }
  found.added = read.filter((one) => !this.passages.some((passage) => over(one, passage)) && one.verdict === "agree").length;
  return found;
 }
}
