// Judging blindly: windows in the order of the draw, by keys; the film's share when all are judged.
let current = null, wanted = 0;
const panel = (id, text) => { find(id).textContent = text; };

async function advance() {
 const answer = await (await fetch(`next?n=${wanted}&who=${encodeURIComponent(who.value)}`)).json();
 current = answer.window || null;
 find("#judging").hidden = !current;
 tick([]);
 if (!current) {
  video?.pause();
  panel("#target", `${answer.done} windows judged`);
  panel("#place", "");
  panel("#estimate", answer.share || answer.said || "Too few are judged for an estimate.");
  return;
 }
 panel("#target", `Window ${answer.done + 1} of ${wanted}: ${hms(current.start)}–${hms(current.end)}`);
 panel("#estimate", "");
 player.play(Math.max(0, current.start - state.around), Math.min(state.whole, current.end + state.around));
}
player.moved = (t) => {
 if (current) panel("#place", t < current.start ? "before the window" : t < current.end ? "the window" : "after the window");
};
find("#begin").onclick = () => {
 const n = find("#n");
 if (!n.reportValidity()) return;
 find("#judging").hidden = false;
 if (!who.value.trim()) { said.textContent = "Write your name, then begin."; who.focus(); return; }
 wanted = +n.value;
 find("#begin").blur();
 advance();
};
find("#tell").onclick = async () => {
 const answer = await (await fetch(`next?n=${wanted}&tell=1&who=${encodeURIComponent(who.value)}`)).json();
 panel("#estimate", answer.sofar || "Not before ten windows are judged.");
};
Object.assign(keys, {
 level: async (level) => {
  if (!current) return;
  const judged = {kind: "judgement", start_s: current.start, end_s: current.end, place: current.place, windows: wanted, level, concepts: ticked()};
  current = null; // a second key press is of the next window
  if (await decide(judged)) await advance();
  else current = {start: judged.start_s, end: judged.end_s, place: judged.place};
 },
 z: async () => { if (wanted && await decide({kind: "undo"})) await advance(); },
});
