// The desk: keys, decisions sent to the server, the queue of windows that are judged blindly.
import {make} from "./drawing.js";
import {nextOpen} from "./list.js";
import {mediaOf} from "./media.js";
import {listen} from "./keys.js";
import {MinuteTable} from "./minutes.js";
import {Panel} from "./panel.js";
import {Player} from "./player.js";
import {Rows, filled, saidOf, secondsOf, timesOf} from "./rows.js";
import {Store} from "./store.js";
import {Stream} from "./stream.js";
import {drawStrips} from "./strips.js";
import {Tiers} from "./tiers.js";
import {clock, clockSpan, nextCut, snapped, toFrame} from "./time.js";

// The film; none where it is encoded while it plays, and the browser doesn't play that either.
function filmOf(video) {
 if (!video?.dataset.type) return video;
 if (Stream.plays(video)) new Stream(video, JSON.parse(document.querySelector("#state").textContent).whole);
 else video.remove();
 return video.isConnected ? video : null;
}
const find = (s) => document.querySelector(s), state = JSON.parse(find("#state").textContent), {words} = state;
const rows = state.rows ? new Rows(state.rows, state.whole, words) : null, cutTimes = timesOf(state.cuts), cuts = secondsOf(cutTimes);
const store = new Store(state), video = filmOf(find("video")), player = new Player(video, store, state);
const spoken = find("#d-spoken"), who = find("#d-who"), blind = state.mode === "blind";
const say = (text) => { spoken.textContent = text; };
// What the server answers; without its words it is stopped, or another one.
const got = async (address, how) => {
 const answer = await fetch(address, how).catch(() => null), found = await answer?.json().catch(() => null);
 return {said: words.stopped, ...found, ok: Boolean(answer?.ok && found)};
};
const each = (name, does) => {
 for (const node of document.querySelectorAll(`[data-${name}]`)) node.onclick = () => does(node.dataset[name], node);
};
const click = (id, does) => {
 const node = find(id);
 if (node) node.onclick = () => does(node);
};
const nearby = (t) => {
 const at = find("#d-snap").checked ? snapped(t, cuts, tiers.span / 100) : t;
 return at === t ? toFrame(t, state.fps) : at;
};

// What is chosen is shown, and played again and again until one leaves it.
function choose(one, loops = true) {
 store.select(one, loops && Boolean(video));
 if (!one) return;
 tiers.reveal(one.start, one.end);
 loops ? player.show(one) : player.seek(one.start);
}
const refused = (a, b) => b - a < Math.max(.1, 1 / state.fps) ? words.short : blind && words.only_windows;
const mark = (a, b) => refused(a, b) ? say(refused(a, b)) : choose({start: a, end: b, type: "span", origin: "own"}, false);
// Another span for the selected object: one's own decision is kept with its new ends at once.
function reshape(a, b) {
 if (refused(a, b)) return say(refused(a, b));
 store.move(a, b);
 if (store.decision) decide(store.body());
}
function end(isLast) {
 const t = nearby(player.at), it = store.selected;
 if (it?.type !== "span" && (store.mine?.kind ?? "judgement") === "judgement") return mark(isLast ? Math.max(0, t - 10) : t, isLast ? t : Math.min(t + 10, state.whole));
 isLast ? reshape(it.start, t) : reshape(t, it.end > t ? it.end : Math.min(t + 10, state.whole));
}

const act = {
 snap: nearby, go: (t) => player.seek(t), jump: (one) => choose(one), edit: (one) => { choose(one); find("[data-level]").focus(); },
 delete: (one) => redraw({kind: "delete", id: one.id}), mark, move: (one, a, b) => { store.select(one); reshape(a, b); },
};
const tiers = new Tiers("d", find(".d-desk"), store, player, {...state, rows}, act), panel = new Panel(document.body, store, state, act);
store.changed = () => { panel.draw(); tiers.draw(); };
if (find("#d-minutes")) new MinuteTable(find("#d-minutes"), () => got("minutes"), words);
drawStrips(tiers, {said: saidOf(state.said), cuts: cutTimes}, rows);

// In turn: what is pressed before an answer came is of the decision that the answer tells.
let sending = Promise.resolve(), waiting = 0, answers = 0;
const latest = new Map();
const decide = (body) => {
 const hurried = waiting++ > 0;
 return sending = sending.then((last) => send(body, hurried && last)).catch(() => null).finally(() => { waiting--; });
};
async function send(body, last) {
 if (!store.name) {
  say(words.name_first);
  who.focus();
  return null;
 }
 const span = `${body.start_s}-${body.end_s}`;
 let id = body.id ?? (last?.span === span ? last.id : undefined);
 while (latest.has(id)) id = latest.get(id);
 const result = await got("decide", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({who: store.who, mode: state.mode, ...body, id})});
 if (!result.ok) {
  await refresh();
  say(filled(words.of, {what: words.not_kept, which: result.said}));
  return null;
 }
 answers++;
 say(result.said);
 store.answered(result, body.id);
 if (!result.id) latest.clear(); // what was undone stands again
 else if (id) latest.set(id, result.id);
 return {...result, span};
}
// What was asked for before a decision, and answered behind it, is no longer so.
async function refresh() {
 const before = answers, found = await got(`decisions?mode=${state.mode}&who=${encodeURIComponent(store.who)}`);
 if (found.ok && before === answers) store.answered(found);
 return found;
}
// Nothing is chosen to decide on; where the server is gone that is said instead.
const unchosen = async () => {
 say(words[blind ? "nothing_blind" : "choose_first"]);
 if (!(await refresh()).ok) say(words.stopped);
};
const judge = async (level) => {
 if (!store.selected) return unchosen();
 if (!level) return say(filled(words.levels, {n: state.levels.length}));
 const judged = store.selected, body = store.body({level});
 if (wanted) body.windows = wanted;
 if (await decide(body) && blind && judged.place) await advance();
};
const change = (values) => {
 if (!store.selected) return unchosen();
 store.edit(values);
 if ("note" in values || store.mine) decide(store.body());
};

// Windows in the order of the draw; their number is fixed before, and kept with the judgements.
let wanted = 0;
async function advance(more = "") {
 const answer = await got(`next?n=${wanted}${more}&who=${encodeURIComponent(store.who)}`), {window: next} = answer;
 if (!answer.ok) return say(answer.said);
 wanted = Math.max(wanted, answer.fixed ?? 0);
 find("#d-progress").textContent = filled(next ? words.queue : words.queue_done, {k: answer.done + 1, done: answer.done, n: wanted});
 find("#d-estimate").textContent = next && !more ? "" : answer.share || answer.sofar || answer.few;
 if (more) return;
 find("#d-judging").hidden = !next && !store.judged.length;
 if (!next) { video?.pause(); return store.select(null); }
 tiers.view(next.start - state.around, next.end + state.around);
 choose({...next, type: "window"});
}
// Who said before how many they would judge is told so, and not asked again.
async function stated() {
 const {fixed} = await got(`next?n=0&who=${encodeURIComponent(store.who)}`), n = find("#d-n"), told = find("#d-stated");
 n.disabled = Boolean(fixed);
 if (fixed) n.value = fixed;
 told.hidden = !fixed;
 told.textContent = fixed ? filled(words.stated, {n: fixed}) : "";
 return fixed;
}
async function begin() {
 if (!who.value.trim()) { say(words.name_first); return who.focus(); }
 const n = find("#d-n");
 if (!n.reportValidity()) return;
 await refresh();
 wanted = await stated() || +n.value;
 find("#d-begin").hidden = true;
 await advance();
}
click("#d-start", begin);
// What was decided under other definitions: windows of the draw come again by themselves, others are chosen one by one.
click("#d-again", () => {
 find("#d-meant").close();
 const [next] = store.otherwise;
 if (blind) return say(words.again_blind);
 if (!next) return say(words.again_none);
 next.place ? location.assign("blind") : choose(next);
});
click("#d-tell", () => advance("&tell=1"));

// What was taken back may be a window of the draw, which is then the next one.
const redraw = async (body) => { if (await decide(body) && wanted) await advance(); };
const passage = (step, weak) => {
 const next = store.next(step, weak);
 next ? choose(next) : say(blind ? words.only_windows : words.none_moved);
};
const toggle = (name) => change({concepts: store.form.concepts.includes(name) ? store.form.concepts.filter((one) => one !== name) : [...store.form.concepts, name]});
const keys = {
 " ": () => player.toggle(), j: () => player.seek(player.at - 5), l: () => player.seek(player.at + 5), ",": () => player.step(-1), ".": () => player.step(1),
 "[": () => player.seek(nextCut(player.at, cuts, -1)), "]": () => player.seek(nextCut(player.at, cuts, 1)),
 n: () => passage(1), p: () => passage(-1), w: () => passage(1, true), i: () => end(false), o: () => end(true),
 s: () => find("#d-snap").click(), r: () => {
  if (!store.selected) return unchosen();
  store.loops = !store.loops && Boolean(video);
  store.changed();
 },
 d: () => {
  const next = nextOpen(store, store.selected?.start ?? -1);
  if (!next) return say(words.none_open);
  find("#d-judging").hidden = false;
  choose(next);
 },
 f: () => panel.table.showNext(), v: () => panel.table.showOrder(),
 z: () => redraw({kind: "undo"}), y: () => redraw({kind: "redo"}), x: () => store.mine ? act.delete(store.mine) : say(words.no_delete),
 c: () => blind ? say(words.only_windows) : cite(), "+": () => tiers.zoom(.5, player.at), "-": () => tiers.zoom(2, player.at), 0: () => tiers.view(0, state.whole),
 "?": () => find("#d-help").showModal(),
};
listen({keys, escape: () => player.leave(), level: (digit) => judge(state.levels[digit - 1]), levels: state.levels.length, words, prefix: "d", storage: localStorage});
each("key", (key) => keys[key.toLowerCase()]());
each("level", judge);
each("concept", toggle);
// After a pointer's click Space plays, and does not press the button again; after a key's (its click has no detail) the button keeps the focus.
for (const button of document.querySelectorAll("[data-level], [data-concept]")) button.addEventListener("click", (e) => { if (e.detail) button.blur(); });
each("dialog", (id) => find(id).showModal());
each("export", (name, link) => { link.href = `export/${name}?who=${encodeURIComponent(store.who)}`; });
each("span", (ends) => {
 find("#d-moved").close();
 mark(...ends.split(",").map(Number));
});
find("#d-note").oninput = (e) => { if (store.selected) store.draft = {...store.draft, note: e.target.value}; };
click("#d-keep", () => {
 const note = find("#d-note").value, {mine} = store;
 if (!note.trim() && !mine?.note) return say(words.no_note);
 if (blind && store.selected && !store.form.level) return say(words.level_first);
 if (!note.trim() && mine.kind === "note") return act.delete(mine);
 if (!store.selected) mark(player.at, Math.min(player.at + 1, state.whole));
 change({note});
});
// Other pages of the desk are that person's too, before anything is decided under the name.
who.oninput = () => {
 store.who = who.value;
 document.cookie = `who=${encodeURIComponent(store.who)}; path=${new URL("../..", location.href).pathname}; SameSite=Strict`;
};
who.onchange = async () => {
 await refresh();
 if (blind && !wanted) await stated();
};
addEventListener("focus", refresh);

// A citation, with a still of the user's own copy and the figure of the span, each to keep.
async function cite() {
 await panel.coming; // what the model says of the span
 const it = store.selected, {title, year, file, made} = state.cited;
 if (!it) return unchosen();
 const own = store.decision, by = own ? own.cited : it.type !== "passage" ? "" : it.below ? words.by_model_below : words.by_model;
 const ends = `${it.start},${it.end}`, facts = [by, panel.found.cited, made, new Date().toISOString().slice(0, 10)];
 find("#d-citation").textContent = `${title}${year && ` (${year})`}, ${clockSpan(it.start, it.end)}. ${facts.filter(Boolean).join(words.semicolon)}. ${file}#t=${ends}`;
 const still = find("#d-still"), save = find("#d-save"), name = `${title} ${clock(it.start)}`.replace(/[^\p{L}\p{N}]+/gu, "-");
 find("#d-rights").hidden = save.hidden = still.hidden = !video?.videoWidth;
 if (!still.hidden) {
  [still.width, still.height] = [video.videoWidth, video.videoHeight];
  still.getContext("2d").drawImage(video, 0, 0);
  still.toBlob((picture) => { URL.revokeObjectURL(save.href); save.href = URL.createObjectURL(picture); });
  save.download = `${name}.png`;
 }
 for (const [id, kind] of [["#d-figure", "svg"], ["#d-figure-pdf", "pdf"]]) {
  const link = find(id);
  if (link) Object.assign(link, {href: `figure.${kind}?a=${it.start}&b=${it.end}&who=${encodeURIComponent(store.who)}`, download: `${name}.${kind}`});
 }
 find("#d-cited").showModal();
}
// The film as a figure shows what is shown to whoever saves it.
for (const link of document.querySelectorAll("#d-away a[href^='figure.']")) link.onclick = () => {
 const address = new URL(link.href);
 address.searchParams.set("who", store.who);
 link.href = address.href;
};
click("#d-copy-text", (button) => navigator.clipboard.writeText(find("#d-citation").textContent).then(() => { button.textContent = words.copied; }));

const stills = find("#d-stills");
if (stills) mediaOf(state.film).then((media) => {
 media.show(tiers.root, state.whole);
 tiers.painters.push((view) => media.paint(stills, view));
 tiers.draw();
}, () => {});
player.moved = (t, isPlaying) => { tiers.moveTo(t, isPlaying); find("#d-clock").value = clock(t); };
if (video) {
 video.onpause = () => {
  if (video.seeking) return;
  tiers.moveTo(player.at);
  say(clock(video.currentTime));
 };
 video.onerror = async () => {
  const answer = await fetch("video", {headers: {Range: "bytes=0-0"}}).catch(() => null);
  say(answer && !answer.ok ? await answer.text() : words.cannot_play);
 };
}
// Work of the server's, begun and asked after until it is done.
async function work(address, bar, done, failed) {
 let now = await got(address, {method: "POST"});
 bar.hidden = false;
 while (now.ok && !now.done && !now.error) {
  await new Promise((later) => setTimeout(later, 500));
  now = await got(address);
  bar.value = now.share || 0;
 }
 bar.hidden = true;
 now.ok && !now.error ? done(now) : failed(now.error || now.said);
}
click("#d-copy", (button) => {
 button.disabled = true;
 work("copy", find("#d-copied"), () => location.reload(), say);
});
const show = (...lines) => find("#d-learnt").replaceChildren(...lines.map((line) => make("p", {}, line)));
const learnt = ({said, film}) => show(...said, make("a", {href: `../${film}/read`, textContent: words.open_learnt}));
click("#d-train", async (button) => {
 show(words.training);
 button.disabled = true;
 await work("learn", find("#d-trained"), learnt, show);
 button.disabled = false;
});
if (find("#d-train")) got("learn").then((now) => { if (now.done) learnt(now); }); // for whoever comes back
const [, a, b] = location.hash.match(/^#t=([\d.]+)(?:,([\d.]+))?$/) ?? [];
store.changed();
if (a && b && !blind) mark(+a, +b);
else if (a) player.seek(+a);
