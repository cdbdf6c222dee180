// The table of passages and decisions: filtered, ordered, and long only as far as it is seen.
import {make} from "./drawing.js";
import {whenSeen} from "./lazy.js";
import {FILTERS, disagreementsOf, openOf, rowsOf} from "./list.js";
import {filled} from "./rows.js";
import {clock, sameSpan} from "./time.js";

const FIRST = 20; // rows that are there at once

export class DecisionTable {
 // `names` of concepts are those that they have in the language of the page, where these differ.
 // `act` is to jump to an object, and to edit or delete a decision of one's own; without `edit` nothing can be changed.
 constructor(prefix, root, store, words, act, {threshold, filter, names = {}}) {
  Object.assign(this, {store, words, act, threshold, filter, names, limit: FIRST});
  this.part = (name) => document.getElementById(`${prefix}-${name}`);
  this.chips = [...root.querySelectorAll("[data-filter]")];
  for (const chip of this.chips) chip.onclick = () => this.show(chip.dataset.filter);
  if (this.part("order")) this.part("order").onchange = () => this.show(this.filter);
  addEventListener("beforeprint", () => this.extend(Infinity));
 }
 show(filter) {
  Object.assign(this, {filter, limit: FIRST});
  this.draw();
 }
 // The next kind of rows, of those that there are.
 showNext() {
  const names = FILTERS.filter((name) => this.chips.some((chip) => chip.dataset.filter === name));
  this.show(names[(names.indexOf(this.filter) + 1) % names.length]);
 }
 showOrder() {
  const order = this.part("order");
  if (!order) return;
  order.selectedIndex = (order.selectedIndex + 1) % order.options.length;
  this.show(this.filter);
 }
 extend(limit) {
  this.limit = limit;
  this.draw();
 }
 draw() {
  const {store, words, part} = this, open = openOf(store), every = disagreementsOf(store);
  const text = (name, value) => { if (part(name)) part(name).textContent = value; };
  text("count", filled(words.counted, {n: store.judged.length, notes: store.own.filter((one) => one.note).length}));
  text("differ", every.length ? filled(words.n_differ, {n: every.length, settled: every.length - open.length}) : "");
  for (const told of document.querySelectorAll("[data-otherwise], #d-meant-title")) told.textContent = filled(words.meant, {n: store.decisions.filter((one) => one.otherwise).length});
  text("hidden", store.hidden ? filled(words.hidden, {n: store.hidden}) : "");
  for (const chip of this.chips) chip.ariaPressed = String(chip.dataset.filter === this.filter);
  const rows = rowsOf(store, {filter: this.filter, order: part("order")?.value || "time", threshold: this.threshold});
  const table = part("table"), {activeElement: focused} = document, label = table.contains(focused) && focused.ariaLabel;
  const drawn = rows.slice(0, this.limit).map((one) => one.kind ? this.decision(one) : this.passage(one));
  if (rows.length > this.limit) drawn.push(this.more(rows.length - this.limit));
  table.tBodies[0].replaceChildren(...drawn);
  if (label) [...table.querySelectorAll("button")].find((one) => one.ariaLabel === label)?.focus();
 }
 more(n) {
  const button = make("button", {type: "button", textContent: filled(this.words.more_rows, {n}), onclick: () => this.extend(this.limit + FIRST)});
  const row = make("tr", {}, make("td", {colSpan: 3}, button));
  whenSeen([row], () => { if (row.isConnected) this.extend(this.limit + FIRST); });
  return row;
 }
 button(one, act, text, title) {
  const name = filled(this.words.of, {what: this.words[act], which: `${clock(one.start)} ${title}`});
  return make("button", {type: "button", textContent: text, ariaLabel: name, title: this.words[act], onclick: () => this.act[act](one)});
 }
 // Who pressed the key, where that is known, and whose decisions it settles.
 settling(one) {
  return filled(this.words.settled_by && one.who ? this.words.settled_by : this.words.agreed, one);
 }
 // A passage of the model, or a span that people differ on.
 passage(one) {
  const {words} = this, isDiffering = one.type === "differ";
  const title = isDiffering ? one.said : filled(words.passage, {n: one.number});
  const cell = make("td", {}, title);
  if (one.settled) cell.append(make("small", {textContent: ` ${this.settling(one.settled)}: ${one.settled.title}`}));
  else if (one.elsewhere) cell.append(make("small", {textContent: ` ${words.settled_read}`}));
  else if (isDiffering) cell.append(make("small", {textContent: ` ${words.open}`}));
  else if (one.length) cell.append(" ", make("small", {textContent: one.length}));
  if (one.sentence) cell.append(make("small", {className: "d-printed", textContent: ` ${one.sentence}`}));
  const isOn = this.store.selected && sameSpan(this.store.selected, one);
  return make("tr", {className: one.settled || one.elsewhere ? "d-settled" : isOn ? "d-on" : ""},
   make("th", {scope: "row"}, this.button(one, "jump", clock(one.start), title)), cell,
   make("td", {className: "n", textContent: one.value ?? ""}));
 }
 decision(one) {
  const {store, words} = this, isMine = Boolean(this.act.edit) && one.who === store.name, title = one.title || one.note;
  const cell = make("td", {}, [one.title, one.concepts.map((name) => this.names[name] ?? name).join(", "), one.note].filter(Boolean).join(" · "));
  if (one.beside) cell.append(` (${words.beside})`);
  if (one.otherwise) cell.append(` (${words.otherwise})`);
  if (one.kind === "agreed") cell.append(" ", make("small", {textContent: this.settling(one)}));
  else if (!isMine) cell.append(" ", make("small", {textContent: one.blind && words.blindly ? `${one.who}, ${words.blindly}` : one.who}));
  if (one.history.length) cell.append(make("details", {className: "d-was"}, make("summary", {textContent: words.was}), ...one.history.map((text) => make("div", {textContent: text}))));
  const changes = isMine ? [this.button(one, "edit", "✎", title), this.button(one, "delete", "✕", title)] : [];
  return make("tr", {className: one.id === store.decision?.id ? "d-on" : ""},
   make("th", {scope: "row"}, this.button(one, "jump", clock(one.start), title)), cell,
   make("td", {className: "n"}, ...changes));
 }
}
