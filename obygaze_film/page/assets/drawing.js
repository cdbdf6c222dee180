// What the mailed page and the desk draw alike: nodes, and a timeline that shows a part of its film.
import {clamp, clock, tickTimes, windowOf} from "./time.js";

export const make = (tag, values = {}, ...children) => {
 const node = Object.assign(document.createElement(tag), values);
 node.append(...children);
 return node;
};
export const drawn = (tag, values = {}, ...children) => {
 const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
 for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
 node.append(...children);
 return node;
};
// Keys of one node, which go no further.
export const onKeys = (node, keys) => {
 node.onkeydown = (e) => {
  if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  e.stopPropagation();
  keys[e.key]();
 };
};

export class View {
 // `steps` are those between the axis's times; `painters` draw more of what is shown, in `width` pixels, and `sized` is
 // called when these are known.
 constructor(root, whole, steps) {
  Object.assign(this, {root, whole, steps, from: 0, to: whole, width: 1000, painters: [], sized: () => {}});
 }
 get span() { return this.to - this.from; }
 share(t) { return (t - this.from) / this.span; }
 time(e, track) {
  const box = track.getBoundingClientRect();
  return clamp(this.from + (e.clientX - box.left) / box.width * this.span, 0, this.whole);
 }
 view(a, b) {
  [this.from, this.to] = windowOf(a, b, this.whole);
  this.draw();
 }
 zoom(k, t) { this.view(t - this.span * k / 2, t + this.span * k / 2); }
 reveal(a, b = a) {
  if (a >= this.from && b <= this.to) return;
  const middle = (a + b) / 2, half = Math.max(this.span, 1.2 * (b - a)) / 2;
  this.view(middle - half, middle + half);
 }
 // An svg.z is stretched over the film; what has data-a begins then, and ends at data-b.
 draw() {
  const {root, from, span} = this, at = (t) => `${100 * this.share(t)}%`;
  for (const part of root.querySelectorAll("svg.z")) {
   const height = part.getAttribute("viewBox").split(" ")[3]; // as text: the parsed one makes the browser lay out the page
   part.setAttribute("viewBox", `${10 * from} 0 ${10 * span} ${height}`);
  }
  for (const part of root.querySelectorAll("[data-a]")) {
   const {a, b} = part.dataset;
   part.setAttribute("x", at(a));
   if (b) part.setAttribute("width", `${Math.max(.05, 100 * (b - a) / span)}%`);
  }
  root.querySelector(".axis").replaceChildren(...tickTimes(from, span, this.steps).map((t, k) => drawn("text", {x: at(t), y: 12, class: t - from < .03 * span ? "first" : k % 2 ? "odd" : ""}, clock(t))));
  for (const paint of this.painters) paint(this);
 }
 cursor(line, t) {
  const x = this.share(t);
  line.hidden = x < 0 || x > 1;
  line.style.setProperty("--a", x);
 }
}
