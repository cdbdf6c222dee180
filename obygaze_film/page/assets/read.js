// Reading: passages that play and loop, own passages, notes, citations.
const film = find(".film"), cardsOf = [...film.querySelectorAll(".card")];
let target = null, yours = [];
const set = (id, text) => { find(id).textContent = text; };

// Choose a span. Its evidence and its concepts are its own: those of its card, and those that were kept of it.
function aim(next, card, moved) {
 target = next;
 const name = who.value.trim().replace(/\s+/g, " "), before = yours.findLast((one) => one.who === name && one.start === next.start && one.end === next.end);
 if (!moved) tick(before?.concepts || []);
 set("#target", next.rank ? `Passage ${next.rank}: ${hms(next.start)}–${hms(next.end)}` : `Your passage: ${hms(next.start)}–${hms(next.end)}`);
 set("#marked", next.rank ? "" : `${hms(next.start)}–${hms(next.end)}`);
 find("#why").replaceChildren(...[...card?.children || []].filter((part) => part.matches(".p, .why, .facts, .parts")).map((part) => part.cloneNode(true)));
}
function choose(k) {
 if (!state.passages.length) return;
 const place = (k + state.passages.length) % state.passages.length, passage = state.passages[place];
 aim({...passage, place}, cardsOf[place]);
 film.timeline.go(passage.start);
 player.play(passage.start, passage.end);
}
function list(you) {
 yours = you.filter((one) => one.kind !== "note");
 const svg = "http://www.w3.org/2000/svg";
 find("#you").replaceChildren(...you.map((one) => {
  const rect = document.createElementNS(svg, "rect");
  for (const [name, value] of Object.entries({x: one.x, width: one.w, height: "100%", class: `${one.kind}${one.own ? " own" : ""}`})) rect.setAttribute(name, value);
  [rect.dataset.a, rect.dataset.b] = [one.start, one.end];
  return rect;
 }));
 find("#decided").replaceChildren(...you.map((one) => Object.assign(document.createElement("li"), {textContent: one.text})));
 set("#counted", `${yours.length} judged, ${you.length - yours.length} notes`);
 film.timeline.again();
}
const kept = (result) => result && list(result.you);
list(JSON.parse(find("#decisions").textContent));

film.addEventListener("seek", ({detail: t}) => player.go(t));
player.moved = (t) => film.timeline.show(t);
cardsOf.forEach((card, k) => { find(".jump", card).onclick = () => choose(k); });
const here = () => video ? player.at() : film.timeline.at();
function mark(end) {
 const t = here(), from = end ? target?.start ?? 0 : t, to = end ? t : Math.max(target && !target.rank ? target.end : 0, Math.min(t + 10, state.whole));
 if (to <= from) { said.textContent = "The end lies before the beginning."; return; }
 const moved = target && !target.rank && !target.kept;
 aim({start: from, end: to, origin: target?.origin || "own"}, null, moved);
}
Object.assign(keys, {
 n: () => choose((target?.place ?? -1) + 1), p: () => choose((target?.place ?? 0) - 1),
 i: () => { if (target?.rank || target?.kept) target = null; mark(false); }, o: () => { if (target?.rank) target = null; mark(true); },
 z: async () => kept(await decide({kind: "undo"})),
 level: async (level) => {
  if (!target) { said.textContent = "Choose a passage (N), or mark one (I, O)."; return; }
  const body = {start_s: target.start, end_s: target.end, level, concepts: ticked()};
  const decided = target, result = await decide(target.rank ? {kind: "judgement", ...body} : {kind: "passage", origin: target.origin, ...body});
  decided.kept ||= Boolean(result); // what is marked next is another passage, with concepts of its own
  kept(result);
 },
});
find("#in").onclick = keys.i;
find("#out").onclick = keys.o;
find("#move").onclick = () => {
 if (!target?.rank) { said.textContent = "Choose a passage first (N)."; return; }
 aim({start: target.start, end: target.end, origin: `passage ${target.rank}`});
 said.textContent = "Its ends move with I and O; a level keeps them.";
};
find("#keep-note").onclick = async () => {
 const [start_s, end_s] = target ? [target.start, target.end] : [here(), Math.min(here() + 1, state.whole)];
 const result = await decide({kind: "note", start_s, end_s, note: find("#note").value});
 if (result) find("#note").value = "";
 kept(result);
};
find("#cite").onclick = async () => {
 if (!target) { said.textContent = "Choose a passage first (N)."; return; }
 const text = state.cited.replace("{0}", hms(target.start)).replace("{1}", hms(target.end));
 await navigator.clipboard.writeText(text).then(() => { said.textContent = "Citation copied."; }, () => { said.textContent = text; });
};
