// The tiers under one cursor: zoom, a drag that marks a span, bars whose ends move.
import {clamp, clock, tickTimes, windowOf} from "./time.js";

const SVG = "http://www.w3.org/2000/svg", EDGE = 6;
const drawn = (tag, values) => {
 const node = document.createElementNS(SVG, tag);
 for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
 return node;
};

export class Tiers {
 // `marked` gets a span that was dragged, `chosen` an object that was clicked, `moved` its new ends.
 constructor(root, store, player, state, {marked, chosen, moved, snap}) {
  Object.assign(this, {root, store, player, whole: state.whole, steps: state.ticks, from: 0, to: state.whole, painters: [], marked, chosen, moved, snap});
  this.one = (s) => root.querySelector(s);
  this.tracks = [...root.querySelectorAll(".d-track, .strip")];
  this.zoomed = [...root.querySelectorAll("svg.z")];
  this.spans = [...root.querySelectorAll("[data-a]")];
  root.onpointerdown = (e) => this.press(e);
  const over = this.one(".d-over");
  over.onkeydown = (e) => this.key(e);
  new ResizeObserver(() => this.draw()).observe(root);
 }
 get span() { return this.to - this.from; }
 share(t) { return (t - this.from) / this.span; }
 time(e, track) {
  const box = track.getBoundingClientRect(), whole = track.closest(".d-over");
  const x = (e.clientX - box.left) / box.width;
  return clamp(whole ? x * this.whole : this.from + x * this.span, 0, this.whole);
 }
 view(a, b) {
  [this.from, this.to] = windowOf(a, b, this.whole);
  this.draw();
 }
 zoom(k) { this.view(this.player.at - this.span * k / 2, this.player.at + this.span * k / 2); }
 reveal(a, b = a) {
  if (a >= this.from && b <= this.to) return;
  const middle = (a + b) / 2, half = Math.max(this.span, 1.2 * (b - a)) / 2;
  this.view(middle - half, middle + half);
 }
 key(e) {
  const {player, whole} = this, by = (s) => () => player.seek(player.at + s);
  const act = {
   ArrowRight: by(1), ArrowUp: by(1), ArrowLeft: by(-1), ArrowDown: by(-1), PageDown: by(60), PageUp: by(-60),
   Home: by(-whole), End: by(whole), "+": () => this.zoom(.5), "-": () => this.zoom(2), 0: () => this.view(0, whole),
  }[e.key];
  if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  e.stopPropagation();
  act();
  this.reveal(player.at);
 }

 // A click goes there or chooses a bar; a drag marks a span, moves an end, or the whole of one's own.
 press(e) {
  const track = this.tracks.find((one) => one.contains(e.target));
  if (e.button || !track) return;
  const bar = e.target.closest("[data-bar]"), object = bar && this.bars[bar.dataset.bar], first = this.time(e, track);
  const rect = bar?.getBoundingClientRect(), end = rect && (e.clientX - rect.left < EDGE ? -1 : rect.right - e.clientX < EDGE ? 1 : 0);
  const movable = bar && rect.width > 3 * EDGE && (bar.classList.contains("d-mine") || (end && bar.matches(".d-passage.d-on")));
  let moving = false;
  e.preventDefault();
  track.setPointerCapture(e.pointerId);
  const spanAt = (now) => {
   const to = this.snap(now), by = now - first;
   if (!movable || track.closest(".d-over")) return [Math.min(this.snap(first), to), Math.max(this.snap(first), to)];
   if (end < 0) return [Math.min(to, object.end), object.end];
   if (end > 0) return [object.start, Math.max(to, object.start)];
   return [clamp(object.start + by, 0, this.whole), clamp(object.end + by, 0, this.whole)];
  };
  track.onpointermove = (now) => {
   moving ||= Math.abs(now.clientX - e.clientX) > 4;
   if (moving) this.ghost(...spanAt(this.time(now, track)));
  };
  track.onpointerup = track.onpointercancel = (up) => {
   track.onpointermove = track.onpointerup = track.onpointercancel = null;
   this.ghost();
   if (up.type === "pointercancel") return;
   const t = this.time(up, track);
   if (!moving) return object ? this.chosen(object) : this.player.seek(t);
   const [a, b] = spanAt(t);
   if (track.closest(".d-over")) return this.view(a, b);
   movable ? this.moved(object, a, b) : this.marked(a, b);
  };
 }
 ghost(a, b) {
  const node = this.one(".d-ghost");
  node.hidden = a === undefined;
  if (!node.hidden) this.put(node, a, b);
 }
 put(node, a, b) {
  node.style.setProperty("--a", clamp(this.share(a), 0, 1));
  node.style.setProperty("--b", clamp(this.share(b), 0, 1));
 }

 draw() {
  const {from, span, whole, store} = this, at = (t) => `${100 * this.share(t)}%`, wide = (a, b) => `${Math.max(.05, 100 * (b - a) / span)}%`;
  for (const part of this.zoomed) part.setAttribute("viewBox", `${10 * from} 0 ${10 * span} ${part.viewBox.baseVal.height}`);
  for (const part of this.spans) {
   part.setAttribute("x", at(+part.dataset.a));
   part.setAttribute("width", wide(+part.dataset.a, +part.dataset.b));
  }
  this.one(".axis").replaceChildren(...tickTimes(from, span, this.steps).map((t, k) => {
   const label = drawn("text", {x: at(t), y: 11, class: t - from < .03 * span ? "first" : k % 2 ? "odd" : ""});
   label.textContent = clock(t);
   return label;
  }));
  this.bars = [];
  const seen = (one) => one.end > from && one.start < this.to, it = store.selected, mine = store.decision;
  const bar = (object, kind) => {
   const is = mine ? object.id === mine.id : it && it.start === object.start && it.end === object.end && !object.id;
   const rect = drawn("rect", {x: at(object.start), width: wide(object.start, object.end), height: "100%", "data-bar": this.bars.push(object) - 1, class: `${kind}${is ? " d-on" : ""}`});
   return rect;
  };
  const label = (object, rect) => {
   const text = drawn("text", {x: rect.getAttribute("x"), dx: 3, y: 11});
   text.textContent = object.number ?? "";
   return object.number && !object.number.startsWith("w") && (object.end - object.start) / span > .012 ? [rect, text] : [rect];
  };
  const passages = [...store.weak.map((one) => [one, "d-weak"]), ...store.passages.map((one) => [one, "d-passage"])].filter(([one]) => seen(one));
  this.one("#d-model")?.replaceChildren(...passages.flatMap(([one, kind]) => {
   const rect = bar(one, kind), height = Math.round(30 + 70 * one.p);
   rect.setAttribute("height", `${height}%`);
   rect.setAttribute("y", `${100 - height}%`);
   return label(one, rect);
  }));
  const people = store.decisions.filter(seen), fresh = it && !it.id && it.type === "span" ? [it] : [];
  this.one("#d-you").replaceChildren(...people.filter((one) => one.who === store.name).map((one) => bar(one, `d-mine d-${one.verdict}`)), ...fresh.map((one) => bar(one, "d-mine d-fresh")));
  const others = this.one("#d-others");
  others.replaceChildren(...people.filter((one) => one.who !== store.name).map((one) => bar(one, `d-theirs d-${one.verdict}`)));
  others.closest(".d-tier").hidden = store.decisions.every((one) => one.who === store.name);
  this.one("#d-whole").replaceChildren(...[...store.passages, ...store.decisions].map((one) => drawn("rect", {x: `${100 * one.start / whole}%`, width: `${Math.max(.1, 100 * (one.end - one.start) / whole)}%`, y: one.id ? "55%" : "15%", height: "30%", class: one.id ? "d-mine d-agree" : "d-passage"})));
  const shown = this.one(".d-shown");
  shown.style.left = `${100 * from / whole}%`;
  shown.style.width = `${100 * span / whole}%`;
  const lit = this.one(".d-lit");
  lit.hidden = !it;
  lit.classList.toggle("d-loops", store.loops);
  if (it) this.put(lit, it.start, it.end);
  for (const paint of this.painters) paint(this);
  this.cursor(this.player.at);
 }
 cursor(t) {
  const line = this.one(".d-cursor"), over = this.one(".d-over"), x = this.share(t);
  line.hidden = x < 0 || x > 1;
  line.style.setProperty("--a", x);
  this.one(".d-here").style.left = `${100 * t / this.whole}%`;
  over.ariaValueNow = Math.round(t);
  over.ariaValueText = clock(t);
 }
}
