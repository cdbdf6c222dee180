// A mailed page: what the desk shows of a film, to read; a film from the reader's own disk plays in it.
import {Evidence, linesIn} from "./evidence.js";
import {listen} from "./keys.js";
import {MinuteTable} from "./minutes.js";
import {ownFilm} from "./own_film.js";
import {Player} from "./player.js";
import {Rows, saidOf, secondsOf, timesOf} from "./rows.js";
import {Media} from "./stills.js";
import {Store} from "./store.js";
import {drawStrips} from "./strips.js";
import {Subtitles} from "./subtitles.js";
import {DecisionTable} from "./table.js";
import {Tiers} from "./tiers.js";
import {clock, clockSpan, cutsWithin, nextCut} from "./time.js";

const words = JSON.parse(document.getElementById("words").textContent);

class FilmPage {
 constructor(article) {
  const prefix = article.id, data = JSON.parse(article.querySelector(".data").textContent);
  this.part = (name) => document.getElementById(`${prefix}-${name}`);
  this.article = article;
  this.data = data;
  this.said = saidOf(data.said);
  this.rows = new Rows(data.rows, data.whole, words);
  this.cutTimes = data.cuts === null ? this.rows.starts : timesOf(data.cuts);
  const passages = data.passages.filter((one) => !one.below), weak = data.passages.filter((one) => one.below);
  this.store = new Store({decisions: data.decisions, passages, weak, who: "", mode: "read"});
  const desk = article.querySelector(".d-desk"), act = {
   go: (t) => this.go(t), jump: (one) => this.choose(one), snap: (t) => t,
   mark: (a, b) => this.tiers.view(a, b), move: () => {}, // nothing is marked here: a drag shows a part
  };
  this.player = new Player(this.part("video"), this.store, data);
  this.tiers = new Tiers(prefix, desk, this.store, this.player, {...data, rows: this.rows}, act);
  this.evidence = new Evidence(prefix, words, act.go);
  const filter = passages.length || !weak.length ? "passages" : "weak";
  this.table = new DecisionTable(prefix, desk, this.store, words, act, {threshold: data.threshold, filter});
  this.store.changed = () => this.draw();
  this.player.moved = (t, isPlaying) => this.moved(t, isPlaying);
  this.part("video").onpause = () => this.moved(this.player.at, false); // what is read aloud waits for this
  drawStrips(this.tiers, {said: this.said, cuts: this.cutTimes}, this.rows);
  this.openOwn();
  if (this.part("stills")) this.showStills(this.part("stills"), data.copy.stills);
  if (this.part("lines")) this.subtitles = new Subtitles(prefix, this.said, data.lines, act.go);
  this.minutes = new MinuteTable(this.part("minutes"), () => data.minutes, words);
  this.draw();
 }
 get cuts() { return this.cutSeconds ??= secondsOf(this.cutTimes); }
 // Stills that the owner put into the page.
 async showStills(canvas, {sheet, ...values}) {
  const media = new Media({...values, stills: new Image()});
  media.stills.src = sheet;
  await media.stills.decode();
  this.tiers.painters.push((view) => media.paint(canvas, view));
  this.tiers.draw();
 }
 openOwn() {
  const {part, data} = this, scored = {key: "", duration: data.whole, ...data.copy, slack: data.copy ? 0 : data.slack};
  ownFilm({
   input: part("file"), video: part("video"), scored, words, opened: () => this.show(this.store.selected),
   say: (text, command = "") => {
    part("own").textContent = text;
    part("command").textContent = command;
    part("command").hidden = !command;
   },
  });
 }
 go(t) {
  this.tiers.reveal(t);
  this.player.seek(t);
 }
 // A passage, a decision or a span is shown, and played again and again where there is a film.
 choose(one) {
  this.store.select(one, Boolean(this.player.film));
  if (one) this.tiers.reveal(one.start, one.end);
  this.show(one);
 }
 show(one) {
  if (one && this.player.film) this.player.show(one);
  else this.player.seek(one ? one.start : this.player.at);
 }
 step(count, isWeak = false) {
  const next = this.store.next(count, isWeak);
  if (next) this.choose(next);
 }
 draw() {
  const {store, part} = this, it = store.selected;
  this.table.draw();
  this.tiers.draw();
  const title = !it ? words.nothing : it.type === "passage" ? words.passage.replace("{n}", it.number) : it.cited || it.note || words.marked;
  part("title").textContent = it ? words.of.replace("{what}", title).replace("{which}", clockSpan(it.start, it.end)) : title;
  part("loop").ariaPressed = String(store.loops);
  this.evidence.show(it ? this.found(it) : null);
 }
 // What is known of the selected object: of a passage of the model's, of any other what is said in it.
 found(it) {
  const cuts = cutsWithin(this.cuts, it.start, it.end), said = linesIn(this.said, this.data.lines, it.start, it.end);
  const isPassage = it.type === "passage";
  return isPassage ? {...it, p: it.value, cuts, said} : {p: it.title || "–", note: it.note, classes: it.concepts?.join(", "), cuts, said};
 }
 moved(t, isPlaying) {
  const {part, rows} = this, known = rows.tell(t);
  this.tiers.moveTo(t, isPlaying);
  part("clock").value = clock(t);
  part("read").textContent = [known.when, known.p, known.seen.join(", "), known.flags].filter(Boolean).join(" · ");
 }
 // `#t=12,20` of the address: the first film's; `#f2&t=12,20` that of another one.
 follow() {
  const [, anchor, start, end] = location.hash.match(/^#(?:(f\d+)&)?t=([\d.]+)(?:,([\d.]+))?$/) ?? [];
  if (start === undefined || (anchor ?? "f1") !== this.article.id) return;
  this.article.scrollIntoView();
  if (!end) return this.go(Number(start));
  const isThere = (one) => Math.abs(one.start - start) < .05 && Math.abs(one.end - end) < .05;
  const known = [...this.store.passages, ...this.store.weak, ...this.store.decisions].find(isThere);
  this.choose(known ?? {start: Number(start), end: Number(end), type: "span", origin: "own"});
 }
}

const films = Array.from(document.querySelectorAll("article.film"), (article) => new FilmPage(article));
let [current] = films; // the one that keys are for
for (const film of films) film.article.onfocusin = film.article.onpointerdown = () => { current = film; };
const follow = () => films.forEach((film) => film.follow());
const at = () => current.player.at;
const keys = {
 " ": () => current.player.toggle(), j: () => current.player.seek(at() - 5), l: () => current.player.seek(at() + 5),
 ",": () => current.player.step(-1), ".": () => current.player.step(1),
 "[": () => current.go(nextCut(at(), current.cuts, -1)), "]": () => current.go(nextCut(at(), current.cuts, 1)),
 n: () => current.step(1), p: () => current.step(-1), w: () => current.step(1, true),
 r: () => {
  current.store.loops = !current.store.loops && Boolean(current.player.film && current.store.selected);
  current.draw();
 },
 f: () => current.table.showNext(), v: () => current.table.showOrder(),
 "+": () => current.tiers.zoom(.5, at()), "-": () => current.tiers.zoom(2, at()), 0: () => current.tiers.view(0, current.data.whole),
 "?": () => document.getElementById("page-help").showModal(),
};
listen({keys, escape: () => current.player.leave(), words, prefix: "page"});
for (const button of document.querySelectorAll("[data-key]")) {
 button.onclick = () => {
  current = films.find((film) => film.article.contains(button)) ?? current;
  keys[button.dataset.key.toLowerCase()]();
 };
}
for (const button of document.querySelectorAll("[data-dialog]")) button.onclick = () => document.getElementById(button.dataset.dialog.slice(1)).showModal();
document.documentElement.classList.add("js");
addEventListener("hashchange", follow);
follow();
