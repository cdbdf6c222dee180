// The sheet of stills of a film's shots, its colours and its sound, and how they are drawn on the timeline.
import {drawn} from "./drawing.js";
import {clamp} from "./time.js";

export class Media {
 // `starts` of the parts that stills stand for, `width` and `height` of a still, `columns` of the sheet `stills`, an image.
 constructor(values) { Object.assign(this, values); }
 // The still of the shot at a time, drawn as high as the canvas at x.
 still(canvas, t, x, most) {
  const {starts, width, height, columns} = this, k = Math.max(0, starts.findLastIndex((s) => s <= t + 1e-3));
  const wide = Math.min(most, canvas.height * width / height), cut = wide / canvas.height * height;
  canvas.getContext("2d").drawImage(this.stills, k % columns * width + (width - cut) / 2, Math.floor(k / columns) * height, cut, height, x, 0, wide, canvas.height);
 }
 alone(canvas, t) {
  [canvas.width, canvas.height, canvas.hidden] = [this.width, this.height, false];
  this.still(canvas, t, 0, canvas.width);
 }
 // Colours, and the sound by its highest samples: both stretched over the film.
 show(root, whole) {
  const colours = root.querySelector("#d-colours .z"), sound = root.querySelector("#d-sound .z"), {peaks} = this;
  const edge = (sign) => peaks.map((peak, k) => `${Math.round(10 * whole * (k + .5) / peaks.length)} ${(5 + sign * peak / 51).toFixed(2)}`);
  colours.append(drawn("image", {href: `${this.folder}colours.png`, width: 10 * whole, height: 10, preserveAspectRatio: "none"}));
  if (peaks.length) sound.append(drawn("path", {d: `M0 5L${[...edge(-1), ...edge(1).reverse()].join("L")}Z`}));
  for (const tier of root.querySelectorAll(".d-tier[hidden]:has(.d-media)")) tier.hidden = tier.contains(sound) && !peaks.length;
 }
 paint(canvas, {from, span, whole}) {
  [canvas.width, canvas.height] = [canvas.clientWidth, canvas.clientHeight];
  const full = canvas.height * this.width / this.height;
  for (let x = 0, room; x < canvas.width; x += room) { // the shot that is on there; stills of short ones would overlap
   const t = from + x / canvas.width * span, next = this.starts.find((start) => start > t + 1e-3) ?? whole;
   room = clamp((next - from) / span * canvas.width - x, 24, full);
   this.still(canvas, t, x, room - 1);
  }
 }
}
