// The timeline of a mailed page: cursor, keys, zoom.
import {View, make, onKeys} from "./drawing.js";
import {clamp, clockSpan} from "./time.js";

const $ = (s, node = document) => node.querySelector(s), $$ = (s, node = document) => [...node.querySelectorAll(s)];
const words = JSON.parse($("#words").textContent), fill = (key, ...v) => words[key].replace(/{(\d)}/g, (_, n) => v[n]);
document.documentElement.classList.add("js");

for (const film of $$(".film")) {
 const one = (s) => $(s, film), all = (s) => $$(s, film), data = JSON.parse(one(".data").textContent);
 const {d: whole, t: starts, s: spans, f: flag, fl: texts} = data, n = starts.length, end = (i) => i + 1 < n ? starts[i + 1] : whole;
 const track = one(".track"), read = one(".read"), live = one(".live"), cards = all(".card"), view = new View(film, whole, data.k);
 let now = 0;
 const row = (t) => starts.findLastIndex((s) => s <= t + 1e-6);
 const number = (v) => v ? (v / 100).toFixed(2).replace(".", words.decimal) : words.hundredth;

 function show(t) {
  now = clamp(t, 0, whole);
  const i = row(now), p = data.p[i] < 0 ? "" : fill(data.h[i] ? "probability_band" : "probability_low", ...[data.p, data.l, data.h].map((v) => number(v[i])));
  const chips = data.c.slice(0, data.g).map((c, k) => [c[i], data.n[k], data.m[k]]).filter((c) => c[0] >= c[2]).sort((a, b) => b[0] - a[0]).slice(0, 3).map((c) => `${c[1]} ${number(c[0])}`);
  const when = clockSpan(starts[i], end(i)), flags = texts[flag[i]], join = (...parts) => parts.filter(Boolean).join("; ");
  live.textContent = track.ariaValueText = join(when, p, chips.join(", "), flags);
  track.ariaValueNow = Math.round(now);
  // A focused slider speaks itself.
  live.ariaLive = document.activeElement === track ? "off" : "polite";
  view.cursor(one(".cursor"), now);
  read.replaceChildren(make("b", {}, when), " " + join(p, flags), ...chips.map((c) => make("span", {className: "chip"}, c)));
  read.hidden = false;
  cards.forEach((c, k) => c.classList.toggle("now", now >= spans[k][0] && now < spans[k][1]));
 }
 view.painters.push(() => { if (!read.hidden) show(now); });

 const go = (t) => { view.reveal(clamp(t, 0, whole)); show(t); };
 const by = (k) => () => go(starts[clamp(row(now) + k, 0, n - 1)]), keys = {
  ArrowRight: by(1), ArrowUp: by(1), ArrowLeft: by(-1), ArrowDown: by(-1), Home: by(-n), End: by(n),
  PageDown: () => go(now + 60), PageUp: () => go(now - 60),
  "+": () => view.zoom(.5, now), "-": () => view.zoom(2, now), 0: () => view.view(0, whole),
 };
 track.tabIndex = 0;
 onKeys(track, keys);
 track.onfocus = () => show(now);
 for (const part of [track, ...all(".strip")]) part.onpointermove = part.onclick = (e) => show(view.time(e, track));
 for (const button of all("[data-key]")) button.onclick = keys[button.dataset.key];
 for (const button of all("[data-t]")) button.onclick = () => go(+button.dataset.t);
 for (const box of all("[data-search]")) box.oninput = () => {
  const wanted = box.value.toLowerCase();
  for (const line of all(".said li")) line.hidden = !line.textContent.toLowerCase().includes(wanted);
 };
 const sort = one("[data-sort]");
 if (sort) sort.onclick = () => {
  sort.ariaPressed = sort.ariaPressed !== "true";
  const place = (card) => sort.ariaPressed === "true" ? +card.dataset.rank : cards.indexOf(card);
  for (const list of all("ol.cards")) list.append(...[...list.children].sort((a, b) => place(a) - place(b)));
 };
}
