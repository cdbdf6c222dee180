// The timeline of a mailed page: cursor, keys, zoom.
import {clamp, clock, tickTimes, windowOf} from "./time.js";

const $ = (s, node = document) => node.querySelector(s), $$ = (s, node = document) => [...node.querySelectorAll(s)];
const words = JSON.parse($("#words").textContent), fill = (key, ...v) => words[key].replace(/{(\d)}/g, (_, n) => v[n]);
const make = (tag, textContent = "", className = "") => Object.assign(document.createElement(tag), {textContent, className});
document.documentElement.classList.add("js");

for (const film of $$(".film")) {
 const one = (s) => $(s, film), all = (s) => $$(s, film), data = JSON.parse(one(".data").textContent);
 const {d: whole, t: starts, s: spans, f: flag, fl: texts} = data, n = starts.length, end = (i) => i + 1 < n ? starts[i + 1] : whole;
 const track = one(".track"), read = one(".read"), line = one(".cursor"), live = one(".live"), cards = all(".card");
 let from = 0, to = whole, now = 0;
 const row = (t) => starts.findLastIndex((s) => s <= t + 1e-6);
 const number = (v) => v ? (v / 100).toFixed(2).replace(".", words.decimal) : words.hundredth;

 function show(t) {
  now = clamp(t, 0, whole);
  const i = row(now), p = data.p[i] < 0 ? "" : fill(data.h[i] ? "probability_band" : "probability_low", ...[data.p, data.l, data.h].map((v) => number(v[i])));
  const chips = data.c.slice(0, data.g).map((c, k) => [c[i], data.n[k], data.m[k]]).filter((c) => c[0] >= c[2]).sort((a, b) => b[0] - a[0]).slice(0, 3).map((c) => `${c[1]} ${number(c[0])}`);
  const when = `${clock(starts[i])}–${clock(end(i))}`, flags = texts[flag[i]], join = (...parts) => parts.filter(Boolean).join("; ");
  live.textContent = track.ariaValueText = join(when, p, chips.join(", "), flags);
  track.ariaValueNow = Math.round(now);
  // A focused slider speaks itself.
  live.ariaLive = document.activeElement === track ? "off" : "polite";
  const x = (now - from) / (to - from);
  line.hidden = x < 0 || x > 1;
  line.style.left = 100 * x + "%";
  read.replaceChildren(make("b", when), " " + join(p, flags), ...chips.map((c) => make("span", c, "chip")));
  read.hidden = false;
  const room = track.clientWidth - read.offsetWidth;
  read.style.left = `${clamp(x * track.clientWidth - read.offsetWidth / 2, 0, room)}px`;
  cards.forEach((c, k) => c.classList.toggle("now", now >= spans[k][0] && now < spans[k][1]));
 }

 function view(a, b) {
  [from, to] = windowOf(a, b, whole);
  const span = to - from, at = (t) => 100 * (t - from) / span + "%";
  for (const part of all("svg.z")) part.setAttribute("viewBox", `${10 * from} 0 ${10 * span} ${part.viewBox.baseVal.height}`);
  for (const part of all("[data-a]")) {
   const {a, b} = part.dataset, set = (node, name, v) => node?.setAttribute(name, v), rect = $("rect", part) || part;
   set(rect, "x", at(a));
   set(rect, "width", 100 * (b - a) / span + "%");
   set($("text", part), "x", at((+a + +b) / 2));
  }
  one(".axis").innerHTML = tickTimes(from, span, data.k).map((t, k) => `<text x="${at(t)}" y="13" class="${t - from < .03 * span ? "first" : k % 2 ? "odd" : ""}">${clock(t)}</text>`).join("");
  if (!read.hidden) show(now);
 }
 const around = (k) => view(now - (to - from) * k, now + (to - from) * k), go = (t) => {
  now = clamp(t, 0, whole);
  if (now < from || now >= to) around(.5);
  show(now);
 };
 const zoom = {in: () => around(.25), out: () => around(1), all: () => view(0, whole)};
 const by = (k) => () => go(starts[clamp(row(now) + k, 0, n - 1)]), keys = {
  ArrowRight: by(1), ArrowUp: by(1), ArrowLeft: by(-1), ArrowDown: by(-1), Home: by(-n), End: by(n),
  PageDown: () => go(now + 60), PageUp: () => go(now - 60), "+": zoom.in, "-": zoom.out, 0: zoom.all,
 };
 track.tabIndex = 0;
 track.onkeydown = (e) => {
  if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  keys[e.key]();
 };
 track.onfocus = () => show(now);
 const time = (e) => from + (e.clientX - track.getBoundingClientRect().left) / track.clientWidth * (to - from);
 for (const part of [track, ...all(".strip")]) {
  part.onpointermove = (e) => show(time(e));
  part.onclick = (e) => show(time(e));
 }
 for (const button of all("[data-zoom]")) button.onclick = zoom[button.dataset.zoom];
 for (const button of all("[data-t]")) button.onclick = () => go(+button.dataset.t);
 for (const box of all("[data-search]")) box.oninput = () => {
  const wanted = box.value.toLowerCase();
  for (const line of all(".said li")) line.hidden = !line.textContent.toLowerCase().includes(wanted);
 };

 // Folds while segments scroll.
 new IntersectionObserver(([e]) => one(".level").classList.toggle("stuck", !e.isIntersecting), {rootMargin: "0px 0px 99999px"}).observe(one(".time"));
 const sort = one("[data-sort]");
 if (sort) sort.onclick = () => {
  sort.ariaPressed = sort.ariaPressed !== "true";
  const place = (card) => sort.ariaPressed === "true" ? +card.dataset.rank : cards.indexOf(card);
  for (const list of all("ol.cards")) list.append(...[...list.children].sort((a, b) => place(a) - place(b)));
 };
}
