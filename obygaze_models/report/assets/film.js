"use strict";
// The timelines' keys, pointer and zoom, the reader's own film, and what they think of the segments.
// Nothing is requested and nothing is kept: judgements leave this window as a file that the reader saves.
const read = (node) => JSON.parse(node.textContent), root = document.documentElement;
const words = read(document.getElementById("words")), svg = "http://www.w3.org/2000/svg";
const fill = (key, ...values) => words[key].replace(/{(\d)}/g, (_, n) => values[n]);
const clock = (s) => [s / 3600, s / 60 % 60, s % 60].map((v, i) => String(Math.floor(v + 1e-6)).padStart(i && 2, "0")).join(":");
const decimal = (n) => (n / 100).toFixed(2).replace(".", words.decimal);
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const make = (tag, text, kind) => Object.assign(document.createElement(tag), {textContent: text, className: kind || ""});
root.classList.add("js");
let unsaved = 0;
addEventListener("beforeunload", (e) => unsaved && e.preventDefault());

function save(name, lines) {
  // A cell that a spreadsheet would take for a formula is marked as text.
  const cell = (v) => { v = String(v).replace(/^[=+\-@\t\r](?!\d|$)/, "'$&"); return /[",\r\n]/.test(v) ? `"${v.replace(/"/g, '""')}"` : v; };
  const text = Array.isArray(lines) ? lines.map((line) => line.map(cell).join(",") + "\n").join("") : lines;
  const link = make("a"), url = URL.createObjectURL(new Blob([text], {type: "text/plain;charset=utf-8"}));
  link.href = url; link.download = name; link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

for (const film of document.querySelectorAll(".film")) {
  const one = (s) => film.querySelector(s), all = (s) => [...film.querySelectorAll(s)];
  const data = read(one(".data")), whole = data.d, starts = data.t, n = starts.length;
  const track = one(".track"), card = one(".read"), line = one(".cursor"), live = one("[role=status]"), level = one(".level");
  const video = one("video"), warn = one(".warn"), said = one(".said");
  let from = 0, to = whole, now = 0;
  const row = (t) => { let a = 0, b = n - 1; while (a < b) { const m = a + b + 1 >> 1; starts[m] <= t + 1e-6 ? a = m : b = m - 1; } return a; };
  const end = (i) => i + 1 < n ? starts[i + 1] : whole;
  const top = (i) => data.c.map((c, k) => [c[i], data.n[k]]).filter((c) => c[0] >= 0).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const p = (i) => data.p[i] < 0 ? "" : fill("probability_band", decimal(data.p[i]), decimal(data.l[i]), decimal(data.h[i]));

  function show(t, seek) {
    now = clamp(t, 0, whole);
    const i = row(now), chips = top(i).map((c) => `${c[1]} ${decimal(c[0])}`), flags = data.fl[data.f[i]];
    const when = `${clock(starts[i])}–${clock(end(i))}`, text = [when, p(i), chips.join(", "), flags].filter(Boolean).join("; ");
    track.setAttribute("aria-valuenow", Math.round(now));
    track.setAttribute("aria-valuetext", text);
    // A focused slider is read out by its value; the region speaks where the focus is elsewhere.
    live.setAttribute("aria-live", document.activeElement === track ? "off" : "polite");
    if (live.textContent !== text) live.textContent = text;
    const x = clamp((now - from) / (to - from), 0, 1);
    line.hidden = now < from || now > to;
    line.style.left = `${100 * x}%`;
    card.replaceChildren(make("b", when), " ", p(i) || flags, ...chips.map((c) => make("span", c, "chip")), p(i) && flags ? ` ${flags}` : "");
    card.hidden = false;
    card.style.left = `${clamp(x * track.clientWidth - card.offsetWidth / 2, 0, Math.max(0, track.clientWidth - card.offsetWidth))}px`;
    all(".card").forEach((c, k) => c.classList.toggle("now", now >= data.s[k][0] && now < data.s[k][1]));
    if (seek && video.src) {
      warn.hidden = !(video.duration < now);
      if (video.duration < now) warn.textContent = words.ends_before;
      else video.currentTime = now;
    }
  }

  function view(a, b) {
    const span = clamp(b - a, Math.min(10, whole), whole);
    from = clamp(a, 0, whole - span); to = from + span;
    const at = (t) => `${100 * (t - from) / span}%`;
    for (const part of all("svg.z")) part.setAttribute("viewBox", `${10 * from} 0 ${10 * span} ${part.viewBox.baseVal.height}`);
    for (const part of all("[data-a]")) {
      const a = +part.dataset.a, b = +part.dataset.b, rect = part.querySelector("rect") || part, text = part.querySelector("text");
      rect.setAttribute("x", at(a)); rect.setAttribute("width", `${100 * (b - a) / span}%`);
      if (text) text.setAttribute("x", at((a + b) / 2));
    }
    const step = data.k.find((s) => span / s <= 9) || 7200;
    one(".axis").replaceChildren();
    for (let t = Math.ceil(from / step) * step, k = 0; t <= from + .96 * span; t += step, k++) {
      const text = document.createElementNS(svg, "text");
      text.textContent = clock(t); text.setAttribute("x", at(t)); text.setAttribute("y", 13);
      if (k % 2) text.setAttribute("class", "odd");
      if (t - from < .03 * span) text.style.textAnchor = "start";
      one(".axis").append(text);
    }
    if (!card.hidden) show(now);
  }
  const zoom = {in: () => view(now - (to - from) / 4, now + (to - from) / 4), out: () => view(now - (to - from), now + (to - from)), all: () => view(0, whole)};
  for (const button of all("[data-zoom]")) button.onclick = zoom[button.dataset.zoom];

  Object.assign(track, {role: "slider", tabIndex: 0, ariaLabel: track.dataset.label, ariaValueMin: 0, ariaValueMax: Math.round(whole)});
  const keys = {
    ArrowRight: () => starts[Math.min(row(now) + 1, n - 1)], ArrowLeft: () => starts[Math.max(row(now) - 1, 0)], PageDown: () => now + 60,
    PageUp: () => now - 60, Home: () => 0, End: () => starts[n - 1], "+": zoom.in, "=": zoom.in, "-": zoom.out, "0": zoom.all,
  };
  keys.ArrowUp = keys.ArrowRight; keys.ArrowDown = keys.ArrowLeft;
  track.onkeydown = (e) => {
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    const t = keys[e.key]();
    if (t === undefined) return;
    now = clamp(t, 0, whole);
    if (now < from || now >= to) view(now - (to - from) / 2, now + (to - from) / 2);
    show(now, true);
  };
  track.onfocus = () => card.hidden && show(now);
  const time = (e) => { const box = track.getBoundingClientRect(); return from + clamp((e.clientX - box.left) / box.width, 0, 1) * (to - from); };
  for (const part of [track, ...all(".strip")]) {
    part.addEventListener("pointermove", (e) => show(time(e)));
    part.addEventListener("click", (e) => show(time(e), true));
  }
  if (track.getAttribute("aria-valuetext") === null) { track.ariaValueNow = 0; track.ariaValueText = clock(0); }

  // The level's line stays in sight; the room that it gives up when it folds is kept, so that nothing jumps.
  const mark = make("div"); level.before(mark);
  new IntersectionObserver(([e]) => level.classList.toggle("stuck", !e.isIntersecting && e.boundingClientRect.top < 0)).observe(mark);

  const player = one(".player"), choose = one("input[type=file]");
  function close() { if (video.src) URL.revokeObjectURL(video.src); video.removeAttribute("src"); video.load(); player.hidden = warn.hidden = true; }
  choose.onchange = () => {
    close();
    if (!choose.files[0]) return;
    video.src = URL.createObjectURL(choose.files[0]); player.hidden = false;
  };
  one(".close").onclick = () => { close(); choose.value = ""; };
  video.onloadedmetadata = () => {
    const other = Math.abs(video.duration - whole) > .01 * whole;
    warn.hidden = !other; warn.textContent = other ? fill("other_cut", clock(video.duration), clock(whole)) : "";
    show(now, now > 0);
  };
  video.onerror = () => { if (video.src) { warn.hidden = false; warn.textContent = words.unplayable; } };
  video.ontimeupdate = () => video.paused || show(video.currentTime);

  for (const button of all("[data-t]")) button.onclick = () => {
    const t = +button.dataset.t;
    if (t < from || t >= to) view(t - (to - from) / 2, t + (to - from) / 2);
    show(t, true);
  };

  const cards = all(".card"), chosen = (c) => c.querySelector("[aria-pressed=true]")?.dataset.judge;
  for (const item of cards) for (const button of item.querySelectorAll("[data-judge]")) button.onclick = () => {
    const on = button.ariaPressed !== "true";
    for (const other of item.querySelectorAll("[data-judge]")) other.ariaPressed = on && other === button;
    item.querySelector(".labels")?.remove();
    if (on && (button.dataset.judge === "disagree" || button.dataset.judge === "agree" && data.positive.length > 1))
      item.querySelector("fieldset").append(one("template").content.cloneNode(true));
    unsaved = 1; said.textContent = fill("judged", cards.filter(chosen).length, cards.length);
  };
  const actions = {
    judgements() {
      const name = one(".name").value.trim().replace(/\s+/g, " "), judged = cards.filter(chosen);
      const slug = name.toLowerCase().normalize("NFD").replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "x";
      if (!judged.length) return words.need_judgement;
      if (!name) { one(".name").focus(); return words.need_name; }
      const lines = [data.columns];
      for (const item of judged) {
        const k = cards.indexOf(item), what = chosen(item), [a, b] = data.s[k], extra = item.querySelector(".labels");
        const picked = extra ? extra.querySelector("select").value : what === "unsure" ? data.unsure : data.positive[0] || "";
        if (extra && !picked && data.positive.length) { extra.querySelector("select").focus(); return fill("need_level", k + 1); }
        const concepts = extra ? [...extra.querySelectorAll(":checked[type=checkbox]")].map((c) => c.value) : [];
        lines.push([`${data.movie.replace(/[/\\]/g, "-").replace(/^\.+/, "")}-${slug}-${String(k + 1).padStart(4, "0")}`, data.movie, "", a, b, picked,
          concepts.join(";"), name, ...data.codebook ? [data.codebook] : [], 1, what]);
      }
      save(`${data.file}-${slug}.csv`, lines); unsaved = 0;
      return fill("saved", judged.length);
    },
    timeline() {
      const share = (v) => v < 0 ? "" : (v / 100).toFixed(2);
      save(`${data.file}-timeline.csv`, [["movie", "start_s", "end_s", "p", "p_low", "p_high", ...data.n.map((c) => `${c}_p`), "flags"],
        ...starts.map((s, i) => [data.movie, s, end(i), share(data.p[i]), share(data.l[i]), share(data.h[i]), ...data.c.map((c) => share(c[i])), data.fl[data.f[i]]])]);
      return "";
    },
  };
  for (const button of all("[data-save]")) button.onclick = () => { said.textContent = actions[button.dataset.save](); };
}
