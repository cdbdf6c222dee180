// A film that the browser doesn't play, encoded for it while it plays, from where one looks (workspace/streaming.py).
const AHEAD = 30, BEHIND = 60; // seconds that are fetched before they are played, and kept afterwards
const BEFORE = .2; // seconds before the place one looks at, so that the picture that is on there is sent

const done = (buffer) => buffer.updating ? new Promise((resolve) => buffer.addEventListener("updateend", resolve, {once: true})) : null;
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The end of what is there around a time; -1 where nothing is.
export function endOf(ranges, t) {
 for (let k = 0; k < ranges.length; k++) if (ranges.start(k) <= t + .05 && ranges.end(k) > t) return ranges.end(k);
 return -1;
}

export class Stream {
 static plays(video) { return Boolean(globalThis.MediaSource?.isTypeSupported(video.dataset.type)); }
 constructor(video, whole) {
  Object.assign(this, {video, whole, source: new MediaSource(), edge: -1});
  video.src = URL.createObjectURL(this.source);
  this.source.addEventListener("sourceopen", () => {
   if (this.buffer) return; // it opens again when more is added after its end
   this.source.duration = whole;
   this.buffer = this.source.addSourceBuffer(video.dataset.type);
   this.look();
   for (const event of ["seeking", "timeupdate", "waiting"]) video.addEventListener(event, () => this.look());
  });
 }
 // Begins anew where nothing is, or where what is there ends soon and nothing comes.
 look() {
  const t = this.video.currentTime, end = endOf(this.buffer.buffered, t);
  const isComing = this.edge >= 0 && (end < 0 ? t >= this.from && t <= this.edge + 5 : Math.abs(end - this.edge) < 1);
  if (isComing || end > Math.min(t + AHEAD / 3, this.whole - .5)) return;
  if (end < 0) this.start(Math.max(0, t - BEFORE));
  else if (end < this.whole - .5) this.start(end);
 }
 async start(from) {
  this.run?.abort();
  const run = this.run = new AbortController();
  [this.from, this.edge] = [from, from];
  try {
   const answer = await fetch(`stream?t=${from}`, {signal: run.signal});
   if (!answer.ok) throw new Error(await answer.text());
   await this.add(answer, run);
  } catch { // another place was looked at, or the server stopped: whoever looks on asks again
   if (run === this.run) this.edge = -1;
  }
 }
 async add(answer, run) {
  const {buffer, video} = this, reader = answer.body.getReader(), isOn = () => run === this.run;
  await done(buffer);
  if (!isOn()) return;
  buffer.abort();
  buffer.timestampOffset = Number(answer.headers.get("x-start"));
  for (;;) {
   const {value, done: isEnd} = await reader.read();
   if (!isOn()) return;
   if (isEnd) break;
   await done(buffer);
   if (!isOn()) return;
   buffer.appendBuffer(value);
   await done(buffer);
   this.edge = Math.max(this.edge, endOf(buffer.buffered, this.edge));
   const behind = video.currentTime - BEHIND;
   if (behind > 0 && buffer.buffered.length && buffer.buffered.start(0) < behind - BEHIND) buffer.remove(0, behind);
   while (isOn() && this.edge - video.currentTime > AHEAD && video.currentTime >= this.from - 1) await later(250);
  }
  this.edge = this.whole;
 }
}
