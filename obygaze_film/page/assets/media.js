// Stills of the shots, colours and sound on the timeline, once they are made.
export class Media {
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
   let free = -1; // stills of short shots would overlap: the next that has room is drawn
   for (let k = Math.max(0, starts.findLastIndex((s) => s <= from)); k < starts.length && starts[k] < from + span; k++) {
    const x = Math.max(0, at(starts[k])), room = at(starts[k + 1] ?? whole) - x;
    if (x < free || (room < 12 && k % Math.ceil(12 / Math.max(room, .1)))) continue;
    this.still(canvas, pen, starts[k], x, Math.max(room - 1, 24));
    free = x + Math.max(room, 24);
   }
  }
 }
}
