// What the model sees in a span, its reasons, and what is said there: on the page and on the desk.
import {drawn, make} from "./drawing.js";
import {endsOf, filled, percentsOf, stepsOf, timesOf} from "./rows.js";
import {fillStrip} from "./strips.js";
import {clock} from "./time.js";

function bar({bar: length}) {
 const zero = drawn("line", {class: "zero", x1: "50%", x2: "50%", y1: 0, y2: "100%"});
 const from = length < 0 ? 50 + length : 50;
 return drawn("svg", {"aria-hidden": true}, zero, drawn("rect", {class: length < 0 ? "against" : "for", x: `${from}%`, width: `${Math.abs(length)}%`, y: 3, height: 7}));
}

export class Evidence {
 // Elements have ids that begin with `prefix`; `go` leads to a time.
 constructor(prefix, words, go) {
  Object.assign(this, {words, go});
  this.part = (name) => document.getElementById(`${prefix}-${name}`);
 }
 // What is found, or why nothing is.
 show(found, why = "") {
  const {words, part} = this;
  if (!part("why")) return;
  const text = (name, value) => { part(name).textContent = value ?? ""; };
  text("p", found ? found.p || words.unknown : why);
  text("band", found?.band ? `[${found.band}]` : "");
  text("flags", found && [found.length, filled(words.cuts, {n: found.cuts}), found.limit, found.flags].filter(Boolean).join(" · "));
  text("sentence", found?.sentence);
  text("classes", found?.classes);
  text("evidence-note", found?.note);
  this.concepts(found?.parts ?? []);
  this.frames(found?.frames, found?.end);
  const lines = (found?.said ?? []).map((line) => make("li", {}, make("button", {type: "button", textContent: line.clock, onclick: () => this.go(line.start)}), ` ${line.text}`));
  part("said").replaceChildren(...lines);
 }
 concepts(parts) {
  const {words} = this, table = this.part("parts");
  table.hidden = !parts.length;
  table.tBodies[0].replaceChildren(...parts.map((one) => {
   const p = make("td", {className: one.seen === false ? "n alone" : "n", textContent: one.p, title: one.doubt ? words.doubt : ""});
   const row = make("tr", {}, make("th", {scope: "row", textContent: one.name}), p, make("td", {}, bar(one)), make("td", {className: "n", textContent: one.value}));
   if (one.usual !== undefined) row.append(make("td", {className: "n", textContent: one.usual.replace(/^.*→/, "→"), title: one.usual}));
   return row;
  }));
 }
 // Frame by frame, where the model tells it of frames.
 frames(frames, end) {
  const table = this.part("frames");
  if (!table) return;
  table.hidden = !frames?.rows;
  if (!frames?.rows) return table.tBodies[0].replaceChildren();
  const starts = timesOf(frames.starts), first = starts[0] / 1000;
  const steps = stepsOf(starts, endsOf(starts, end), {from: first, to: end, count: Infinity}); // each frame's
  table.tBodies[0].replaceChildren(...frames.rows.map((one) => {
   const strip = drawn("svg", {class: "strip", viewBox: `${10 * first} 0 ${10 * (end - first)} 10`, preserveAspectRatio: "none", "aria-hidden": true});
   fillStrip(strip, steps, percentsOf(one.values));
   return make("tr", {}, make("th", {scope: "row", textContent: one.name}), make("td", {}, strip), make("td", {className: "n", textContent: one.best}));
  }));
 }
}
// The lines that are said in a span, whose ends are in seconds.
export function linesIn(said, lines, start, end) {
 const found = [];
 for (let k = 0; k < lines.length && said.starts[k] < 1000 * end; k++) {
  if (said.ends[k] <= 1000 * start) continue;
  const from = said.starts[k] / 1000;
  found.push({start: from, clock: clock(from), text: lines[k]});
 }
 return found;
}
