// The tiers under one cursor: a drag that marks a span, bars whose ends move.
import {View, drawn, onKeys} from "./drawing.js";
import {clamp, clock} from "./time.js";

const EDGE = 6;

export class Tiers extends View {
 // `act` is to mark a span that was dragged, jump to an object that was clicked, or move its ends.
 constructor(root, store, player, state, act) {
  super(root, state.whole, state.ticks);
  Object.assign(this, {store, player, act});
  this.one = (s) => root.querySelector(s);
  root.onpointerdown = (e) => this.press(e);
  const by = (s) => () => { player.seek(player.at + s); this.reveal(player.at); };
  onKeys(this.one(".d-over"), {ArrowRight: by(1), ArrowUp: by(1), ArrowLeft: by(-1), ArrowDown: by(-1), PageDown: by(60), PageUp: by(-60), Home: by(-this.whole), End: by(this.whole)});
  new ResizeObserver(() => this.draw()).observe(root);
 }
 time(e, track) {
  const box = track.getBoundingClientRect();
  return track.matches(".d-over") ? clamp((e.clientX - box.left) / box.width, 0, 1) * this.whole : super.time(e, track);
 }

 // A click goes there or chooses a bar; a drag marks a span, moves an end, or the whole of one's own.
 press(e) {
  const track = e.target.closest(".d-track, .strip");
  if (e.button || !track) return;
  const bar = e.target.closest("[data-bar]"), object = bar && this.bars[bar.dataset.bar], first = this.time(e, track), overview = track.matches(".d-over");
  const rect = bar?.getBoundingClientRect(), end = rect && (e.clientX - rect.left < EDGE ? -1 : rect.right - e.clientX < EDGE ? 1 : 0);
  const movable = bar && rect.width > 3 * EDGE && (bar.matches(".d-mine") || (end && bar.matches(".d-passage.d-on")));
  let moving = false;
  e.preventDefault();
  track.setPointerCapture(e.pointerId);
  const spanAt = (now) => {
   const to = this.act.snap(now), by = now - first, from = this.act.snap(first);
   if (!movable) return [Math.min(from, to), Math.max(from, to)];
   if (end < 0) return [Math.min(to, object.end), object.end];
   if (end > 0) return [object.start, Math.max(to, object.start)];
   return [clamp(object.start + by, 0, this.whole), clamp(object.end + by, 0, this.whole)];
  };
  const ghost = this.one(".d-ghost");
  track.onpointermove = (now) => {
   moving ||= Math.abs(now.clientX - e.clientX) > 4;
   if (moving) this.put(ghost, ...spanAt(this.time(now, track)));
  };
  track.onpointerup = track.onpointercancel = (up) => {
   track.onpointermove = track.onpointerup = track.onpointercancel = null;
   this.put(ghost);
   if (up.type === "pointercancel") return;
   const t = this.time(up, track);
   if (!moving) return object ? this.act.jump(object) : this.act.go(t);
   const [a, b] = spanAt(t);
   overview ? this.view(a, b) : movable ? this.act.move(object, a, b) : this.act.mark(a, b);
  };
 }
 // A part of all tiers; nothing without its ends.
 put(node, a, b) {
  node.hidden = a === undefined;
  node.style.setProperty("--a", clamp(this.share(a), 0, 1));
  node.style.setProperty("--b", clamp(this.share(b), 0, 1));
 }

 draw() {
  const {from, to, span, whole, store} = this, it = store.selected, mine = store.decision;
  this.bars = [];
  const seen = (one) => one.end > from && one.start < to;
  const bar = (object, kind, values = {}) => {
   const is = mine ? object.id === mine.id : it && it.start === object.start && it.end === object.end && !object.id;
   return drawn("rect", {"data-a": object.start, "data-b": object.end, height: "100%", "data-bar": this.bars.push(object) - 1, class: `${kind}${is ? " d-on" : ""}`, ...values});
  };
  const passage = (one, kind) => {
   const height = Math.round(30 + 70 * one.p), rect = bar(one, kind, {height: `${height}%`, y: `${100 - height}%`});
   return kind === "d-passage" && (one.end - one.start) / span > .012 ? [rect, drawn("text", {"data-a": one.start, dx: 3, y: 11}, one.number)] : [rect];
  };
  this.one("#d-model")?.replaceChildren(...store.weak.filter(seen).flatMap((one) => passage(one, "d-weak")), ...store.passages.filter(seen).flatMap((one) => passage(one, "d-passage")));
  const people = store.decisions.filter(seen), isMine = (one) => one.who === store.name, fresh = it && !it.id && it.type === "span" ? [bar(it, "d-mine d-fresh")] : [];
  const own = people.filter((one) => one.kind !== "agreed"), others = this.one("#d-others"), agreed = this.one("#d-agreed");
  this.one("#d-you").replaceChildren(...own.filter(isMine).map((one) => bar(one, `d-mine d-${one.verdict}`)), ...fresh);
  others.replaceChildren(...own.filter((one) => !isMine(one)).map((one) => bar(one, `d-theirs d-${one.verdict}`)));
  others.closest(".d-tier").hidden = store.decisions.every((one) => isMine(one) || one.kind === "agreed");
  agreed.replaceChildren(...people.filter((one) => one.kind === "agreed").map((one) => bar(one, `d-theirs d-${one.verdict}`)));
  agreed.closest(".d-tier").hidden = store.decisions.every((one) => one.kind !== "agreed");
  super.draw();

  const place = (a, b) => [`${100 * a / whole}%`, `${100 * Math.max(.001, (b - a) / whole)}%`];
  this.one("#d-whole").replaceChildren(...[...store.passages, ...store.decisions].map((one) => {
   const [x, width] = place(one.start, one.end);
   return drawn("rect", {x, width, y: one.id ? "55%" : "15%", height: "30%", class: one.id ? "d-mine d-agree" : "d-passage"});
  }));
  const shown = this.one(".d-shown").style, lit = this.one(".d-lit");
  [shown.left, shown.width] = place(from, to);
  this.put(lit, it?.start, it?.end);
  lit.classList.toggle("d-loops", store.loops);
  this.moveTo(this.player.at);
 }
 moveTo(t) {
  const over = this.one(".d-over");
  this.cursor(this.one(".d-cursor"), t);
  this.one(".d-here").style.left = `${100 * t / this.whole}%`;
  over.ariaValueNow = Math.round(t);
  over.ariaValueText = clock(t);
 }
}
