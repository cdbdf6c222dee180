// The reader's film, and judgements that the reader saves. No request, nothing kept.
let unsaved = false;
addEventListener("beforeunload", (e) => unsaved && e.preventDefault());

function save(name, lines) { // text in quotes; none begins as a spreadsheet's formula does
 const cell = (v) => isNaN(v) || /\s/.test(v) ? `"${v.replace(/^'*[=+\-@\t\r\n＝＋－＠]/, "'$&").replace(/"/g, '""')}"` : v;
 const file = new Blob(lines.map((line) => line.map(cell).join() + "\n"), {type: "text/csv"});
 Object.assign(make("a"), {href: URL.createObjectURL(file), download: name}).click();
}

for (const film of $$(".film")) {
 const one = (s) => $(s, film), all = (s) => $$(s, film), {data, show, at} = film.timeline;
 const {d: whole, t: starts, s: spans, f: flag, fl: texts} = data, end = (i) => i + 1 < starts.length ? starts[i + 1] : whole;
 const video = one("video"), warn = one(".warn"), said = one(".said");
 const tell = (text) => { warn.textContent = text; warn.hidden = !text; };
 film.addEventListener("seek", ({detail: t}) => {
  if (video.duration) video.duration < t ? tell(words.ends_before) : video.currentTime = t;
 });

 const choose = one(".file");
 choose.onchange = () => {
  const [file] = choose.files;
  URL.revokeObjectURL(video.src);
  tell("");
  one(".player").hidden = !file;
  video.src = file ? URL.createObjectURL(file) : "";
 };
 one(".close").onclick = () => { choose.value = ""; choose.onchange(); };
 video.onloadedmetadata = () => {
  if (at()) show(at(), true);
  if (Math.abs(video.duration - whole) > .01 * whole) tell(fill("other_cut", clock(video.duration), clock(whole)));
 };
 video.onerror = () => choose.files[0] && tell(words.unplayable);
 video.ontimeupdate = () => video.paused || show(video.currentTime);

 const cards = all(".card"), judged = (card) => $("[aria-pressed=true]", card)?.dataset.judge;
 for (const card of cards) for (const button of $$("[data-judge]", card)) button.onclick = () => {
  const on = button.ariaPressed !== "true", what = button.dataset.judge;
  for (const other of $$("[data-judge]", card)) other.ariaPressed = on && other === button;
  $(".labels", card)?.remove();
  if (on && data.ask.includes(what)) $("fieldset", card).append($("template", film).content.cloneNode(true));
  unsaved = true;
  said.textContent = fill("judged", cards.filter(judged).length, cards.length);
 };
 const actions = {
  judgements() {
   const who = one(".name").value.trim().replace(/\s+/g, " "), rows = [data.columns];
   const name = `${data.file}-${who.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
   for (const [k, card] of cards.entries()) {
    const what = judged(card), labels = $(".labels", card), level = labels ? $("select", labels).value : data.level[what];
    if (!what) continue;
    if (labels && !level) return fill("need_level", k + 1);
    const concepts = $$(".labels :checked[type]", card).map((c) => c.value), id = `${name}-${String(k + 1).padStart(4, 0)}`;
    rows.push([id, data.movie, "", ...spans[k], level, concepts.join(";"), who, ...data.codebook, 1, what]);
   }
   if (rows.length < 2 || !who) return words[who ? "need_judgement" : "need_name"];
   save(name + ".csv", rows);
   unsaved = false;
   return fill("saved", rows.length - 1);
  },
  timeline() {
   const cells = (i) => [data.p, data.l, data.h, ...data.c].map((c) => c[i] < 0 ? "" : c[i] / 100);
   save(data.file + "-timeline.csv", [data.heads, ...starts.map((s, i) => [data.movie, s, end(i), ...cells(i), texts[flag[i]]])]);
  },
 };
 for (const button of all("[data-save]")) button.onclick = () => { said.textContent = actions[button.dataset.save]() || ""; };
}
