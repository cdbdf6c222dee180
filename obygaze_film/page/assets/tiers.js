// The tiers under one cursor: a drag that marks a span, bars whose ends move.
import {View, drawn, onKeys} from "./drawing.js";
import {clamp, clock, sameSpan} from "./time.js";

const EDGE = 6;

export class Tiers extends View {
 // Elements have ids that begin with `prefix`. `rows` is null where no score may be seen. `act` is to mark a span
 // that was dragged, jump to an object that was clicked, or move its ends.
 constructor(prefix, root, store, player, {whole, ticks, rows}, act) {
  super(root, whole, ticks);
  Object.assign(this, {store, player, rows, act});
  this.part = (name) => root.querySelector(`#${prefix}-${name}`);
  this.one = (s) => root.querySelector(s);
  root.onpointerdown = (e) => this.press(e);
  const go = (t) => { player.seek(t); this.reveal(player.at); };
  const by = (s) => () => go(player.at + s), row = (count) => () => go(rows ? rows.startAfter(player.at, count) : player.at + count);
  onKeys(this.one(".d-over"), {
   ArrowRight: row(1), ArrowUp: row(1), ArrowLeft: row(-1), ArrowDown: row(-1),
   PageDown: by(60), PageUp: by(-60), Home: by(-whole), End: by(whole),
  });
  new ResizeObserver(([{contentRect}]) => {
   if (contentRect.width === this.width) return;
   this.width = contentRect.width;
   for (const paint of this.painters) paint(this); // nothing else depends on it
   this.sized();
  }).observe(this.one(".d-over"));
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
   const is = mine ? object.id === mine.id : it && sameSpan(it, object) && !object.id;
   return drawn("rect", {"data-a": object.start, "data-b": object.end, height: "100%", "data-bar": this.bars.push(object) - 1, class: `${kind}${is ? " d-on" : ""}`, ...values});
  };
  const passage = (one, kind) => {
   const height = Math.round(30 + 70 * one.p), rect = bar(one, kind, {height: `${height}%`, y: `${100 - height}%`});
   return kind === "d-passage" && (one.end - one.start) / span > .012 ? [rect, drawn("text", {"data-a": one.start, dx: 3, y: 11}, one.number)] : [rect];
  };
  this.part("model")?.replaceChildren(...store.weak.filter(seen).flatMap((one) => passage(one, "d-weak")), ...store.passages.filter(seen).flatMap((one) => passage(one, "d-passage")));
  const people = store.decisions.filter(seen), isMine = (one) => one.who === store.name;
  const fresh = it && !it.id && it.type === "span" ? [bar(it, "d-mine d-fresh")] : [];
  const own = people.filter((one) => one.kind !== "agreed");
  this.part("you")?.replaceChildren(...own.filter(isMine).map((one) => bar(one, `d-mine d-${one.verdict}`)), ...fresh);
  const others = own.filter((one) => !isMine(one));
  this.tier("others", others, store.decisions.some((one) => !isMine(one) && one.kind !== "agreed"), bar);
  this.tier("agreed", people.filter((one) => one.kind === "agreed"), store.decisions.some((one) => one.kind === "agreed"), bar);
  for (const tier of this.root.querySelectorAll("[data-who]")) {
   tier.replaceChildren(...others.filter((one) => one.who === tier.dataset.who).map((one) => bar(one, `d-theirs d-${one.verdict}`)));
  }
  super.draw();

  const place = (a, b) => [`${100 * a / whole}%`, `${100 * Math.max(.001, (b - a) / whole)}%`];
  const marked = (objects, y) => objects.map((one) => `M${1000 * one.start / whole} ${y}H${Math.max(1000 * one.end / whole, 1000 * one.start / whole + 1)}`).join("");
  this.part("whole").replaceChildren(drawn("path", {class: "d-over-model", d: marked(store.passages, 3)}), drawn("path", {class: "d-over-people", d: marked(store.decisions, 7)}));
  const shown = this.one(".d-shown").style, lit = this.one(".d-lit");
  [shown.left, shown.width] = place(from, to);
  this.put(lit, it?.start, it?.end);
  lit.classList.toggle("d-loops", store.loops);
  this.moveTo(this.player.at, this.player.isPlaying);
 }
 // A tier of people's decisions, which is there only where there are any.
 tier(name, decisions, isThere, bar) {
  const tier = this.part(name);
  if (!tier) return;
  tier.replaceChildren(...decisions.map((one) => bar(one, `d-theirs d-${one.verdict}`)));
  tier.closest(".d-tier").hidden = !isThere;
 }
 // The cursor. While a film plays nothing that is read aloud changes.
 moveTo(t, isPlaying = false) {
  const over = this.one(".d-over");
  this.cursor(this.one(".d-cursor"), t);
  this.one(".d-here").style.left = `${100 * t / this.whole}%`;
  if (isPlaying) return;
  over.ariaValueNow = Math.round(t);
  over.ariaValueText = this.rows ? this.rows.said(t) : clock(t);
 }
}
