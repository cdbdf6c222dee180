// The rows of a timeline: unpacked (page/packed.py), found by time, said, and drawn as paths in tenths of a second.
import {clock} from "./time.js";

export const MISSING = 255;
export const STEPS = 7; // of colour, from an absent to a present concept

function bytesOf(text) {
 if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text); // browsers of 2025 and later
 const signs = atob(text), bytes = new Uint8Array(signs.length);
 for (let k = 0; k < signs.length; k++) bytes[k] = signs.charCodeAt(k);
 return bytes;
}
export function timesOf(text) {
 const milliseconds = new Uint32Array(bytesOf(text).buffer), times = new Float64Array(milliseconds.length);
 for (let k = 0; k < times.length; k++) times[k] = milliseconds[k] / 1000;
 return times;
}
export const percentsOf = (text) => bytesOf(text);
export const numbersOf = (text) => new Uint16Array(bytesOf(text).buffer);
// When lines are said: their starts and ends.
export const saidOf = ({starts, ends}) => ({starts: timesOf(starts), ends: timesOf(ends)});
export const filled = (text, values) => text.replace(/{(\w+)}/g, (_, name) => values[name]);

// The last of ascending times that is not after `t`: its place, or -1.
export function placeOf(times, t) {
 let low = 0, high = times.length;
 while (low < high) {
  const middle = (low + high) >> 1;
  if (times[middle] <= t + 1e-6) low = middle + 1;
  else high = middle;
 }
 return low - 1;
}
// Each row ends where the next one starts, and the last one with the film.
export function endsOf(starts, whole) {
 const ends = new Float64Array(starts.length);
 ends.set(starts.subarray(1));
 if (ends.length) ends[ends.length - 1] = whole;
 return ends;
}

// Words of numbers, as Python writes them.
export class Numbers {
 constructor(words) { this.words = words; }
 percent(value) { return value ? (value / 100).toFixed(2).replace(".", this.words.decimal) : this.words.hundredth; }
 // A probability that is below a hundredth even at its upper end has no band.
 band(low, high) {
  if (!high) return "";
  const first = low ? this.percent(low) : `<${this.percent(1)}`;
  return `${first}–${this.percent(high)}`;
 }
 spoken(p, low, high) {
  const key = high ? "probability_band" : "probability_low";
  return filled(this.words[key], [p, low, high].map((value) => this.percent(value)));
 }
}

export class Rows {
 constructor(data, whole, words) {
  this.starts = timesOf(data.starts);
  this.ends = endsOf(this.starts, whole);
  for (const name of ["p", "low", "high", "former"]) this[name] = percentsOf(data[name]);
  this.concepts = data.concepts.map((concept) => ({...concept, p: percentsOf(concept.p)}));
  this.numbers = new Numbers(words);
  this.whole = whole;
  this.data = data;
 }
 at(t) { return Math.max(0, placeOf(this.starts, t)); }
 // Where the row begins that is `count` rows after the one at a time.
 startAfter(t, count) {
  const k = this.at(t) + count;
  return this.starts[Math.max(0, Math.min(k, this.starts.length - 1))];
 }
 // What is known of a time: the row's span, its probability with the band, concepts that are seen, flags.
 tell(t) {
  const k = this.at(t), numbers = this.numbers;
  const seen = this.concepts
   .filter((concept) => concept.found && concept.p[k] !== MISSING && concept.p[k] >= concept.seen)
   .sort((a, b) => b.p[k] - a.p[k])
   .slice(0, 3)
   .map((concept) => `${concept.name} ${numbers.percent(concept.p[k])}`);
  return {
   when: `${clock(this.starts[k])}–${clock(this.ends[k])}`,
   p: this.p[k] === MISSING ? "" : numbers.spoken(this.p[k], this.low[k], this.high[k]),
   seen,
   flags: this.data.flags.findLast(([first]) => first <= k)?.[1] ?? "",
  };
 }
 said(t) {
  const {when, p, seen, flags} = this.tell(t);
  return [when, p, seen.join(", "), flags].filter(Boolean).join("; ");
 }
 // What a tier shows, by its name: starts, ends and percentages.
 strip(name) {
  const [kind, number] = name.split("-"), {staging, others} = this.data;
  if (kind === "concept") return [this.starts, this.ends, this.concepts[number].p];
  if (kind === "staging") return [timesOf(staging.starts), timesOf(staging.ends), percentsOf(staging.values[number])];
  const starts = timesOf(others[number].starts);
  return [starts, endsOf(starts, this.whole), percentsOf(others[number].p)];
 }
}

const tenths = (t) => Math.round(10 * t);
const level = (percent) => 100 - percent; // the axis points down

// The rows of a part of a film as steps that can be seen: where rows are finer than a step of `count` equal ones, each
// step has the highest of its rows (or the lowest), and all is drawn where one zooms in.
export function stepsOf(starts, ends, percents, {from, to, count, isLowest = false}) {
 const first = Math.max(0, placeOf(starts, from)), steps = {starts: [], ends: [], percents: []};
 const width = (to - from) / count, isHigher = (a, b) => b === MISSING || (isLowest ? a < b : a > b);
 for (let k = first; k < starts.length && starts[k] < to;) {
  const start = starts[k];
  let value = percents[k], end = ends[k];
  for (k++; k < starts.length && ends[k] - start <= width; k++) {
   if (percents[k] !== MISSING && isHigher(percents[k], value)) value = percents[k];
   end = ends[k];
  }
  steps.starts.push(start);
  steps.ends.push(end);
  steps.percents.push(value);
 }
 return steps;
}
// A step line from the first start to the last end, with gaps where there is no value.
export function linePath({starts, ends, percents}) {
 let path = "", last = MISSING, isOn = false;
 for (let k = 0; k < starts.length; k++) {
  const value = percents[k];
  if (value === MISSING) isOn = false;
  else if (!isOn) {
   path += `M${tenths(starts[k])} ${level(value)}H${tenths(ends[k])}`;
   isOn = true;
  } else path += (value === last ? "" : `V${level(value)}`) + `H${tenths(ends[k])}`;
  last = value;
 }
 return path;
}
// Closed paths: along the upper edge, and back along the lower. Both have the same steps.
export function bandPath({starts, ends, percents: high}, {percents: low}) {
 let path = "";
 for (let first = 0, after; first < starts.length; first = after) {
  after = first + 1;
  if (high[first] === MISSING) continue;
  while (after < starts.length && high[after] !== MISSING) after++;
  path += `M${tenths(starts[first])} ${level(high[first])}`;
  for (let k = first; k < after; k++) {
   if (k + 1 < after && high[k + 1] === high[k]) continue;
   path += `H${tenths(ends[k])}`;
   if (k + 1 < after) path += `V${level(high[k + 1])}`;
  }
  path += `V${level(low[after - 1])}`;
  for (let k = after - 1; k >= first; k--) {
   if (k > first && low[k - 1] === low[k]) continue;
   path += `H${tenths(starts[k])}`;
   if (k > first) path += `V${level(low[k - 1])}`;
  }
  path += "Z";
 }
 return path;
}
// One path for each step of colour; neighbours of the same one are one stroke.
export function stripPaths({starts, ends, percents}) {
 const paths = Array.from({length: STEPS}, () => "");
 const colour = (k) => percents[k] === MISSING ? -1 : Math.min(Math.floor(percents[k] * STEPS / 100), STEPS - 1);
 for (let first = 0, after; first < starts.length; first = after) {
  const of = colour(first);
  after = first + 1;
  while (after < starts.length && colour(after) === of && starts[after] <= ends[after - 1] + 1e-6) after++;
  if (of !== -1) paths[of] += `M${tenths(starts[first])} 5H${tenths(ends[after - 1])}`;
 }
 return paths;
}
// Spans of a part of a film; those that are nearer to each other than can be seen are one.
export function spansPath(starts, ends, {from, to, count}) {
 const gap = (to - from) / count;
 let path = "";
 for (let k = Math.max(0, placeOf(starts, from)); k < starts.length && starts[k] < to;) {
  const start = starts[k];
  let end = ends[k];
  for (k++; k < starts.length && starts[k] - end < gap; k++) end = Math.max(end, ends[k]);
  path += `M${tenths(start)} 5H${tenths(Math.max(end, start + gap))}`;
 }
 return path;
}
export function ticksPath(times, {from, to, count}) {
 const gap = (to - from) / count;
 let path = "", last = -Infinity;
 for (let k = Math.max(0, placeOf(times, from)); k < times.length && times[k] < to; k++) {
  if (times[k] - last < gap) continue;
  last = times[k];
  path += `M${tenths(last)} 0v6`;
 }
 return path;
}
