// Stills of the shots, colours and sound on the timeline, once they are made.
import {clamp} from "./time.js";

const made = {};
export const mediaOf = (film) => made[film] ??= new Promise((ready) => new Media(film, ready));
class Media {
 constructor(film, ready) {
  Object.assign(this, {film, ready, about: null});
  this.look();
 }
 async look() {
  const answer = await fetch(`../${this.film}/media.json`).catch(() => null);
  if (!answer?.ok) return;
  if (answer.status === 204) return setTimeout(() => this.look(), 2000); // it is being made
  const about = await answer.json();
  const picture = (name) => new Promise((done) => { const it = new Image(); it.onload = () => done(it); it.onerror = () => done(null); it.src = `../${this.film}/${name}`; });
  [this.stills, this.colours] = await Promise.all([picture("stills.webp"), picture("colours.png")]);
  this.about = about;
  if (this.stills && this.colours) this.ready(this);
 }
 // The still of the shot at a time, drawn as high as the canvas at x.
 still(canvas, pen, t, x, most) {
  const {starts, width, height, columns} = this.about, k = Math.max(0, starts.findLastIndex((s) => s <= t + 1e-3));
  const wide = Math.min(most, canvas.height * width / height), cut = wide / canvas.height * height;
  pen.drawImage(this.stills, k % columns * width + (width - cut) / 2, Math.floor(k / columns) * height, cut, height, x, 0, wide, canvas.height);
 }
 alone(canvas, t) {
  [canvas.width, canvas.height, canvas.hidden] = [this.about.width, this.about.height, false];
  this.still(canvas, canvas.getContext("2d"), t, 0, canvas.width);
 }
 paint(root, {from, span, whole}) {
  const {starts, peaks} = this.about, ink = getComputedStyle(root).getPropertyValue("--grey");
  for (const canvas of root.querySelectorAll("canvas.d-track")) {
   canvas.width = canvas.clientWidth;
   canvas.height = canvas.clientHeight;
   const pen = canvas.getContext("2d"), wide = canvas.width, at = (t) => (t - from) / span * wide;
   if (canvas.id === "d-colours") pen.drawImage(this.colours, from / whole * this.colours.width, 0, span / whole * this.colours.width, 1, 0, 0, wide, canvas.height);
   if (canvas.id === "d-sound") {
    pen.fillStyle = ink;
    for (let x = 0; x < wide; x++) {
     const first = (from + x / wide * span) / whole * peaks.length, last = Math.max(first + 1, (from + (x + 1) / wide * span) / whole * peaks.length);
     const high = Math.max(...peaks.slice(Math.floor(first), Math.ceil(last))) / 255 * canvas.height;
     pen.fillRect(x, (canvas.height - high) / 2, 1, Math.max(1, high));
    }
   }
   if (canvas.id !== "d-stills") continue;
   const {width, height} = this.about, full = canvas.height * width / height;
   for (let x = 0, room; x < wide; x += room) { // the shot that is on there; stills of short ones would overlap
    const t = from + x / wide * span, next = starts.find((start) => start > t + 1e-3) ?? whole;
    room = clamp(at(next) - x, 24, full);
    this.still(canvas, pen, t, x, room - 1);
   }
  }
 }
}
