// The rows of a timeline: unpacked (page/packed.py), found by time, said, and drawn as paths in tenths of a second.
import {clockSpan} from "./time.js";

export const MISSING = 255;
export const STEPS = 7; // of colour, from an absent to a present concept

function bytesOf(text) {
 if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text); // browsers of 2025 and later
 const signs = atob(text), bytes = new Uint8Array(signs.length);
 for (let k = 0; k < signs.length; k++) bytes[k] = signs.charCodeAt(k);
 return bytes;
}
// Times stay whole milliseconds: to convert those of twelve hours takes as long as to draw them.
export const timesOf = (text) => new Uint32Array(bytesOf(text).buffer);
export const secondsOf = (times) => Array.from(times, (time) => time / 1000);
export const percentsOf = (text) => bytesOf(text);
export const numbersOf = (text) => new Uint16Array(bytesOf(text).buffer);
// When lines are said: their starts and ends.
export const saidOf = ({starts, ends}) => ({starts: timesOf(starts), ends: timesOf(ends)});
export const filled = (text, values) => text.replace(/{(\w+)}/g, (_, name) => values[name]);

// The last of ascending times in milliseconds that is not after `t` seconds: its place, or -1. Times were rounded to
// milliseconds: who goes to where a row begins is in that row, though it may begin by its rounded time half of one later.
export function placeOf(times, t) {
 const latest = 1000 * t + .5 + 1e-3;
 let low = 0, high = times.length;
 while (low < high) {
  const middle = (low + high) >> 1;
  if (times[middle] <= latest) low = middle + 1;
  else high = middle;
 }
 return low - 1;
}
// Each row ends where the next one starts, and the last one with the film, whose length is in seconds.
export function endsOf(starts, whole) {
 const ends = new Uint32Array(starts.length);
 ends.set(starts.subarray(1));
 if (ends.length) ends[ends.length - 1] = Math.round(1000 * whole);
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
  return this.starts[Math.max(0, Math.min(k, this.starts.length - 1))] / 1000;
 }
 // What is known of a time: the row's span, its probability with the band, concepts that are seen, flags.
 tell(t) {
  const k = this.at(t), numbers = this.numbers;
  const all = this.concepts
   .filter(({p, seen, unseen}) => p[k] !== MISSING && p[k] >= seen && !unseen.includes(k))
   .sort((a, b) => b.p[k] - a.p[k])
   .map((concept) => [concept.name, numbers.percent(concept.p[k]), concept.doubt].filter(Boolean).join(" "));
  const seen = all.slice(0, 3), more = all.length - seen.length;
  if (more) seen.push(filled(this.data.more[more > 1 ? 1 : 0], {n: more}));
  return {
   when: clockSpan(this.starts[k] / 1000, this.ends[k] / 1000),
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
  if (kind === "staging") {
   this.stagingTimes ??= [timesOf(staging.starts), timesOf(staging.ends)];
   return [...this.stagingTimes, percentsOf(staging.values[number])];
  }
  const starts = timesOf(others[number].starts);
  return [starts, endsOf(starts, this.whole), percentsOf(others[number].p)];
 }
}

const tenths = (milliseconds) => Math.round(milliseconds / 100);
const level = (percent) => 100 - percent; // the axis points down

// The rows of a part of a film as steps that can be seen: where rows are finer than one of `count` equal steps, several
// are one, and all of them are drawn where one zooms in. Rows of the same times have the same steps: the places of each
// one's first row, and of the row after the last; its start and end in tenths of a second.
export function stepsOf(rowStarts, rowEnds, {from, to, count}) {
 const after = 1000 * to, width = 1000 * (to - from) / count, first = [], starts = [], ends = [];
 let k = Math.max(0, placeOf(rowStarts, from));
 while (k < rowStarts.length && rowStarts[k] < after) {
  const latest = rowStarts[k] + width;
  first.push(k);
  starts.push(tenths(rowStarts[k]));
  for (k++; k < rowStarts.length && rowEnds[k] <= latest; k++);
  ends.push(tenths(rowEnds[k - 1]));
 }
 first.push(k);
 return {first, starts, ends};
}
// The highest percentage of the rows of each step; MISSING where all are missing.
export function highest({first}, percents) {
 const values = new Uint8Array(first.length - 1);
 for (let step = 0, k = first[0]; step < values.length; step++) {
  let most = 0; // of percentages that are raised by one, so that what is missing is the lowest
  for (; k < first[step + 1]; k++) most = Math.max(most, percents[k] + 1 & 255);
  values[step] = most - 1;
 }
 return values;
}
export function lowest({first}, percents) {
 const values = new Uint8Array(first.length - 1);
 for (let step = 0, k = first[0]; step < values.length; step++) {
  let least = MISSING;
  for (; k < first[step + 1]; k++) least = Math.min(least, percents[k]);
  values[step] = least;
 }
 return values;
}
// A step line from the first start to the last end, with gaps where there is no value.
export function linePath({starts, ends}, percents) {
 let path = "", last = MISSING, isOn = false;
 for (let k = 0; k < starts.length; k++) {
  const value = percents[k];
  if (value === MISSING) isOn = false;
  else if (!isOn) {
   path += `M${starts[k]} ${level(value)}H${ends[k]}`;
   isOn = true;
  } else path += (value === last ? "" : `V${level(value)}`) + `H${ends[k]}`;
  last = value;
 }
 return path;
}
// Closed paths: along the upper edge, and back along the lower.
export function bandPath({starts, ends}, high, low) {
 let path = "";
 for (let first = 0, after; first < starts.length; first = after) {
  after = first + 1;
  if (high[first] === MISSING) continue;
  while (after < starts.length && high[after] !== MISSING) after++;
  path += `M${starts[first]} ${level(high[first])}`;
  for (let k = first; k < after; k++) {
   if (k + 1 < after && high[k + 1] === high[k]) continue;
   path += `H${ends[k]}`;
   if (k + 1 < after) path += `V${level(high[k + 1])}`;
  }
  path += `V${level(low[after - 1])}`;
  for (let k = after - 1; k >= first; k--) {
   if (k > first && low[k - 1] === low[k]) continue;
   path += `H${starts[k]}`;
   if (k > first) path += `V${level(low[k - 1])}`;
  }
  path += "Z";
 }
 return path;
}
// One path for each step of colour; neighbours of the same one are one stroke.
export function stripPaths({starts, ends}, percents) {
 const paths = Array.from({length: STEPS}, () => "");
 const colour = (k) => percents[k] === MISSING ? -1 : Math.min(Math.floor(percents[k] * STEPS / 100), STEPS - 1);
 for (let first = 0, after, next = colour(0); first < starts.length; first = after) {
  const of = next;
  for (after = first + 1; after < starts.length && (next = colour(after)) === of && starts[after] <= ends[after - 1]; after++);
  if (of !== -1) paths[of] += `M${starts[first]} 5H${ends[after - 1]}`;
 }
 return paths;
}
// Spans of a part of a film; those that are nearer to each other than can be seen are one.
export function spansPath(starts, ends, {from, to, count}) {
 const gap = 1000 * (to - from) / count, after = 1000 * to;
 let path = "";
 for (let k = Math.max(0, placeOf(starts, from)); k < starts.length && starts[k] < after;) {
  const start = starts[k];
  let end = ends[k];
  for (k++; k < starts.length && starts[k] - end < gap; k++) end = Math.max(end, ends[k]);
  path += `M${tenths(start)} 5H${tenths(Math.max(end, start + gap))}`;
 }
 return path;
}
export function ticksPath(times, {from, to, count}) {
 const gap = 1000 * (to - from) / count, after = 1000 * to;
 let path = "";
 for (let k = Math.max(0, placeOf(times, from)), next = -Infinity; k < times.length && times[k] < after; k++) {
  if (times[k] < next) continue;
  path += `M${tenths(times[k])} 0v6`;
  next = times[k] + gap;
 }
 return path;
}
