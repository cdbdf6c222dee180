// The player of the workspace, its keys, and decisions sent to the server. Shared by both modes.
const find = (s, node = document) => node.querySelector(s), state = JSON.parse(find("#state").textContent);
const video = find("video"), said = find("#said"), who = find("#who");
const hms = (s) => [s / 3600, s / 60 % 60, s % 60].map((v, i) => String(Math.floor(v + 1e-6)).padStart(i && 2, 0)).join(":");
const boxes = [...document.querySelectorAll(".ticks input")];
const ticked = () => boxes.filter((box) => box.checked).map((box) => box.value);
const tick = (concepts) => { for (const box of boxes) box.checked = concepts.includes(box.value); };
let span = null;
document.documentElement.classList.add("js");

const player = {
 go(t) { if (video) video.currentTime = Math.max(0, t); },
 play(a, b) { span = [a, b]; player.go(a); video?.play().catch(() => {}); },
 at: () => video ? video.currentTime : 0,
 moved() {},
};
if (video) {
 video.ontimeupdate = () => {
  find("#clock").value = hms(video.currentTime);
  player.moved(video.currentTime);
  if (!span || video.paused || video.seeking || video.currentTime < span[1]) return; // seeking: somebody may look elsewhere
  find("#loop").checked ? player.go(span[0]) : (video.pause(), span = null);
 };
 video.onseeking = () => { // whoever looks elsewhere has left the passage, by whatever control
  if (span && (video.currentTime < span[0] - .1 || video.currentTime >= span[1])) span = null;
 };
 video.onloadedmetadata = () => {
  if (Math.abs(video.duration - state.whole) > .01 * state.whole) said.textContent = `This copy is ${hms(video.duration)} long, what was scored ${hms(state.whole)}: another cut?`;
 };
 video.onerror = async () => {
  const answer = await fetch("video", {headers: {Range: "bytes=0-0"}}).catch(() => null);
  said.textContent = answer && !answer.ok ? await answer.text() : "The browser can't play this file.";
 };
}
const toggle = () => video && (video.paused ? video.play().catch(() => {}) : video.pause());
find("#play").onclick = toggle;

async function decide(body) {
 if (body.kind !== "undo" && !who.value.trim()) {
  said.textContent = "Write your name first.";
  who.focus();
  return null;
 }
 try {
  const answer = await fetch("decide", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({who: who.value, ...body})});
  const result = await answer.json();
  said.textContent = answer.ok ? result.said : `Not kept: ${result.said}`;
  return answer.ok ? result : null;
 } catch {
  said.textContent = "Not kept: the workspace was stopped. Start 'obygaze film open' again.";
  return null;
 }
}

const keys = {
 " ": toggle, j: () => player.go(player.at() - 5), l: () => player.go(player.at() + 5),
 ",": () => player.go(player.at() - 1 / 25), ".": () => player.go(player.at() + 1 / 25),
 "?": () => find("#help").showModal(),
};
find("#keys").onclick = keys["?"];
addEventListener("keydown", (e) => {
 if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input:not([type=checkbox]), textarea, select") || find("dialog[open]")) return;
 if (e.key === " " && e.target.matches("button, input, video, summary, a")) return; // they have it already
 const level = state.levels[+e.key - 1], act = keys[e.key.toLowerCase()] || (level && keys.level && (() => keys.level(level)));
 if (!act) return;
 e.preventDefault();
 act();
});
for (const button of document.querySelectorAll("[data-level]")) button.onclick = () => keys.level(button.dataset.level);

const copy = find("#copy");
if (copy) copy.onclick = async () => {
 copy.disabled = true;
 await fetch("copy", {method: "POST"});
 const bar = find("#copied");
 bar.hidden = false;
 const look = setInterval(async () => {
  const now = await (await fetch("copy")).json();
  bar.value = now.share || 0;
  if (now.done) location.reload();
  if (!now.error && !now.done) return;
  clearInterval(look);
  find("#copy-said").textContent = now.error;
 }, 500);
};
