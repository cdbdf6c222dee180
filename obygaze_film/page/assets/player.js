// The film: it plays, steps by its own frames, and repeats the selected span while the selection says so.
import {clamp, toFrame} from "./time.js";

// A window to judge begins three seconds before it.
const begin = (it) => it.place ? Math.max(0, it.start - 3) : it.start;

export class Player {
 constructor(video, store, {whole, fps}) {
  Object.assign(this, {video, store, whole, fps, place: 0, moved: () => {}});
  if (!video) return;
  // Told at each of its times, and whether it is playing: what is read aloud waits until it stands still.
  video.ontimeupdate = () => {
   this.moved(this.at, this.isPlaying);
   if (this.loop && !video.paused && !video.seeking && this.at >= this.loop.end) this.seek(begin(this.loop));
  };
  video.onseeking = () => { // whoever looks elsewhere has left the loop, by whatever control
   if (this.loop && (this.at < begin(this.loop) - .1 || this.at > this.loop.end)) this.leave();
  };
 }
 get loop() { return this.store.loops && this.store.selected; }
 leave() {
  if (!this.store.loops) return;
  this.store.loops = false;
  this.store.changed();
 }
 // The film, once there is one: on a page nobody may have opened it yet.
 get film() { return this.video?.src ? this.video : null; }
 get isPlaying() { return Boolean(this.film && !this.film.paused); }
 get at() { return this.film ? this.film.currentTime : this.place; }
 seek(t) {
  this.place = clamp(t, 0, this.whole);
  if (this.film) this.film.currentTime = this.place;
  this.moved(this.place, this.isPlaying);
 }
 step(frames) {
  this.film?.pause();
  this.seek(toFrame(this.at, this.fps) + frames / this.fps + 1e-3);
 }
 start() { this.film?.play().catch(() => {}); }
 toggle() { this.film?.paused ? this.start() : this.film?.pause(); }
 show(it) {
  this.seek(begin(it));
  this.start();
 }
}
