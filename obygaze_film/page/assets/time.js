// Times on a timeline: how they are written, where ticks, cuts and frames lie. Of the mailed page and of the desk.
export const clamp = (v, low, high) => Math.max(low, Math.min(v, high));
// Whether two spans are one: their ends are equal to the millisecond (coverage.SLACK_S), but for floating point.
export const sameSpan = (a, b) => [a.start - b.start, a.end - b.end].every((s) => Math.abs(s) <= 1e-3 + 1e-9);
// Rounded to the second, as Python writes times.
export const clock = (s) => {
 const whole = Math.floor(s + .5 + 1e-6);
 return [whole / 3600, whole / 60 % 60, whole % 60].map((v, i) => String(Math.floor(v)).padStart(i && 2, 0)).join(":");
};
// The ends of a span: with tenths, or hundredths, where both would be written alike, as Python writes them.
export const clockSpan = (start, end) => {
 const parts = (s, digits) => {
  const scale = 10 ** digits, n = Math.floor(s * scale + .5 + 1e-6), whole = Math.floor(n / scale);
  return `${clock(whole)}.${String(n % scale).padStart(digits, 0)}`;
 };
 const ways = [clock, ...[1, 2, 3].map((digits) => (s) => parts(s, digits))];
 const way = (end > start && ways.find((one) => one(start) !== one(end))) || clock;
 return `${way(start)}–${way(end)}`;
};
export const tickTimes = (from, span, steps) => {
 const step = steps.find((s) => span / s <= 9) ?? steps.at(-1), times = [];
 for (let t = Math.ceil(from / step) * step; t <= from + .96 * span; t += step) times.push(t);
 return times;
};
// The part of a film that is shown: at least ten seconds of it, and never beyond its ends.
export const windowOf = (a, b, whole) => {
 const span = clamp(b - a, Math.min(10, whole), whole), from = clamp(a, 0, whole - span);
 return [from, from + span];
};
export const toFrame = (t, fps) => Math.round(Math.round(t * fps) / fps * 1e4) / 1e4;
// The cut nearest to a time, if one is within reach.
export const snapped = (t, cuts, reach) => {
 const nearest = cuts.reduce((best, cut) => Math.abs(cut - t) < Math.abs(best - t) ? cut : best, Infinity);
 return Math.abs(nearest - t) <= reach ? nearest : t;
};
// How many cuts lie within a span. Its ends are often cuts themselves, and times are rounded to milliseconds.
export const cutsWithin = (cuts, start, end) => cuts.filter((cut) => cut > start + .01 && cut < end - .01).length;
// Where the shot begins that follows a time, or the one before it.
export const nextCut = (t, cuts, step) => (step > 0 ? cuts.find((cut) => cut > t + .05) : cuts.findLast((cut) => cut < t - .5)) ?? t;
