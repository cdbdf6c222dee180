// The film: it plays, steps by its own frames, and repeats the selected span while the selection says so.
import {clamp, toFrame} from "./time.js";

export class Player {
 constructor(video, store, {whole, fps}) {
  Object.assign(this, {video, store, whole, fps, place: 0, moved: () => {}});
  if (!video) return;
  video.ontimeupdate = () => {
   this.place = video.currentTime;
   this.moved(this.place);
   const it = store.selected;
   if (store.loops && it && !video.paused && !video.seeking && video.currentTime >= this.ends(it)) this.seek(this.begins(it), true);
  };
  video.onseeking = () => { // whoever looks elsewhere has left the loop, by whatever control
   const it = store.selected;
   if (store.loops && it && (video.currentTime < this.begins(it) - .1 || video.currentTime > this.ends(it))) this.leave();
  };
 }
 // A window to judge begins three seconds before it.
 begins(it) { return it.place ? Math.max(0, it.start - 3) : it.start; }
 ends(it) { return it.end; }
 leave() {
  if (!this.store.loops) return;
  this.store.loops = false;
  this.store.changed();
 }
 get at() { return this.video ? this.video.currentTime : this.place; }
 seek(t) {
  this.place = clamp(t, 0, this.whole);
  if (this.video) this.video.currentTime = this.place;
  this.moved(this.place);
 }
 step(frames) {
  this.video?.pause();
  this.seek(toFrame(this.at, this.fps) + frames / this.fps + 1e-3);
 }
 toggle() { this.video && (this.video.paused ? this.start() : this.video.pause()); }
 start() { this.video?.play().catch(() => {}); }
 show(it) {
  this.seek(this.begins(it));
  this.start();
 }
}
