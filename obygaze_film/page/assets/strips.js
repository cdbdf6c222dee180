// The drawn tiers of a film, on the page and on the desk: each is drawn when it is first seen, and as what is shown changes.
import {drawn} from "./drawing.js";
import {whenSeen} from "./lazy.js";
import {bandPath, highest, linePath, lowest, spansPath, stepsOf, stripPaths, ticksPath} from "./rows.js";

const FINEST = 2; // pixels: narrower steps are not told apart

// Coloured steps of a strip.
export function fillStrip(stretched, steps, percents) {
 const paths = stripPaths(steps, percents).map((d, step) => d && drawn("path", {class: `s${step + 1}`, d}));
 stretched.replaceChildren(...paths.filter(Boolean));
}
function fillPlot(stretched, rows, steps) {
 const lines = [drawn("path", {class: "band", d: bandPath(steps, highest(steps, rows.high), lowest(steps, rows.low))})];
 if (rows.former.length) lines.push(drawn("path", {class: "line former", d: linePath(steps, highest(steps, rows.former))}));
 lines.push(drawn("path", {class: "line", d: linePath(steps, highest(steps, rows.p))}));
 stretched.replaceChildren(...lines);
}
// `said` are the times of lines, `cuts` those of cuts; `rows` is null where no score may be seen.
export function drawStrips(view, {said, cuts}, rows) {
 const strips = {}; // read once, when they are seen
 let shown = "", known = new Map(); // the steps of what is shown, by the starts of their rows
 const stepsIn = (part, starts, ends) => {
  if (!known.has(starts)) known.set(starts, stepsOf(starts, ends, part));
  return known.get(starts);
 };
 const fill = (name, stretched, part) => {
  if (name === "cuts") return stretched.replaceChildren(drawn("path", {d: ticksPath(cuts, part)}));
  if (name === "said") return stretched.replaceChildren(drawn("path", {d: spansPath(said.starts, said.ends, part)}));
  if (name === "plot") return fillPlot(stretched, rows, stepsIn(part, rows.starts, rows.ends));
  const [starts, ends, percents] = strips[name] ??= rows.strip(name), steps = stepsIn(part, starts, ends);
  return fillStrip(stretched, steps, highest(steps, percents));
 };
 view.sized = whenSeen(view.root.querySelectorAll("[data-drawn]"), (node) => {
  const stretched = node.querySelector(".z");
  let last = "";
  const paint = ({from, to}) => {
   const part = {from, to, count: view.width / FINEST}, now = Object.values(part).join();
   if (now === last) return;
   if (now !== shown) [shown, known] = [now, new Map()];
   last = now;
   fill(node.dataset.drawn, stretched, part);
  };
  view.painters.push(paint);
  paint(view);
 });
}
