// The drawn tiers of a film, on the page and on the desk: each is drawn when it is first seen, and as what is shown changes.
import {drawn} from "./drawing.js";
import {whenSeen} from "./lazy.js";
import {bandPath, linePath, spansPath, stepsOf, stripPaths, ticksPath} from "./rows.js";

// Coloured steps of a strip.
export function fillStrip(stretched, steps) {
 const paths = stripPaths(steps).map((d, step) => d && drawn("path", {class: `s${step + 1}`, d}));
 stretched.replaceChildren(...paths.filter(Boolean));
}
function fillPlot(stretched, rows, part) {
 const steps = (percents, isLowest = false) => stepsOf(rows.starts, rows.ends, percents, {...part, isLowest});
 const lines = [drawn("path", {class: "band", d: bandPath(steps(rows.high), steps(rows.low, true))})];
 if (rows.former.length) lines.push(drawn("path", {class: "line former", d: linePath(steps(rows.former))}));
 lines.push(drawn("path", {class: "line", d: linePath(steps(rows.p))}));
 stretched.replaceChildren(...lines);
}
// `said` are the times of lines, `cuts` those of cuts; `rows` is null where no score may be seen.
export function drawStrips(view, {said, cuts}, rows) {
 const strips = {}; // read once, when they are seen
 const fill = (name, stretched, part) => {
  if (name === "cuts") return stretched.replaceChildren(drawn("path", {d: ticksPath(cuts, part)}));
  if (name === "said") return stretched.replaceChildren(drawn("path", {d: spansPath(said.starts, said.ends, part)}));
  if (name === "plot") return fillPlot(stretched, rows, part);
  strips[name] ??= rows.strip(name);
  return fillStrip(stretched, stepsOf(...strips[name], part));
 };
 whenSeen(view.root.querySelectorAll("[data-drawn]"), (node) => {
  const stretched = node.querySelector(".z");
  let last = "";
  const paint = ({from, to}) => {
   const part = {from, to, count: view.width}, now = Object.values(part).join();
   if (now === last) return;
   last = now;
   fill(node.dataset.drawn, stretched, part);
  };
  view.painters.push(paint);
  paint(view);
 });
}
