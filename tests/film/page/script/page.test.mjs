// The modules that page and desk share, run by node: rows, paths, keys, and a reader's own film.
import assert from "node:assert/strict";
import test from "node:test";
import {KeyMap} from "./keys.js";
import {copyCommand, keyOf, kindOf} from "./own_film.js";
import {MISSING, Rows, bandPath, highest, linePath, lowest, placeOf, spansPath, stepsOf, stripPaths} from "./rows.js";

const packed = (values, type) => Buffer.from(new type(values).buffer).toString("base64");
const words = {decimal: ".", hundredth: "below 0.01", probability_low: "probability below 0.01", probability_band: "probability {0}, 80% band {1} to {2}"};
const made = (others = []) => new Rows({
 starts: packed([0, 2000, 5500], Uint32Array), p: packed([50, 0, MISSING], Uint8Array), low: packed([40, 0, MISSING], Uint8Array),
 high: packed([60, 0, MISSING], Uint8Array), former: "", flags: [[0, ""], [2, "credits"]],
 concepts: [{name: "Body", p: packed([80, 20, MISSING], Uint8Array), seen: 50, unseen: [], doubt: ""}, {name: "Look", p: packed([90, 45, 90], Uint8Array), seen: 50, unseen: [], doubt: "(doubtful)"}, ...others],
 more: ["1 more", "{n} more"],
}, 10, words);

test("a time is told with its row, the band, concepts that are seen, those that may not be found with a word, and flags", () => {
 const rows = made();
 assert.equal(rows.said(1), "0:00:00–0:00:02; probability 0.50, 80% band 0.40 to 0.60; Look 0.90 (doubtful), Body 0.80");
 assert.equal(rows.said(2), "0:00:02–0:00:06; probability below 0.01");
 assert.equal(rows.said(9), "0:00:06–0:00:10; Look 0.90 (doubtful); credits");
 const others = ["Clothing", "Activity", "Posture"].map((name) => ({name, p: packed([70, 0, MISSING], Uint8Array), seen: 50, unseen: [], doubt: ""}));
 assert.match(made(others.slice(0, 2)).said(1), /; Look 0.90 \(doubtful\), Body 0.80, Clothing 0.70, 1 more$/);
 assert.match(made(others).said(1), /, 2 more$/);
 assert.deepEqual([rows.startAfter(1, 1), rows.startAfter(1, -1), rows.startAfter(9, 5)], [2, 0, 5.5]);
 assert.deepEqual([-1, 0, 1.9, 99].map((t) => placeOf([0, 2000, 5000], t)), [-1, 0, 0, 2]);
 // A row begins at 112.916667 s, which is rounded to 112917 ms: a passage that begins there is in that row.
 assert.deepEqual([112.9, 112.916667, 112.9173].map((t) => placeOf([0, 112917], t)), [0, 1, 1]);
});

test("a concept is seen from its threshold on, even where its percentage is that of a row below it", () => {
 const rows = made([{name: "Activity", p: packed([50, 50, MISSING], Uint8Array), seen: 50, unseen: [1], doubt: ""}]);
 assert.match(rows.said(1), /Activity 0.50/);
 assert.doesNotMatch(rows.said(2), /Activity/);
});

test("paths go through every step and break where there is no value", () => {
 const steps = {starts: [0, 10, 20, 30], ends: [10, 20, 30, 40]}, percents = [50, 50, MISSING, 100];
 assert.equal(linePath(steps, percents), "M0 50H10H20M30 0H40");
 assert.equal(bandPath(steps, [60, 60, MISSING, MISSING], [40, 40, MISSING, MISSING]), "M0 40H20V60H0Z");
 assert.deepEqual(stripPaths(steps, percents), ["", "", "", "M0 5H20", "", "", "M30 5H40"]);
 assert.equal(spansPath([0, 10_000], [5000, 12_000], {from: 0, to: 100, count: 1000}), "M0 5H50M100 5H120");
});

test("of rows that are too fine to be seen the highest, or the lowest, is drawn, and none is lost when one zooms in", () => {
 const starts = Uint32Array.from({length: 100}, (_, k) => 1000 * k), ends = starts.map((start) => start + 1000);
 const percents = Uint8Array.from(starts, (_, k) => k === 37 ? 99 : k === 52 ? MISSING : 10);
 const coarse = stepsOf(starts, ends, {from: 0, to: 100, count: 10});
 assert.equal(coarse.starts.length, 10);
 assert.deepEqual([coarse.starts[0], coarse.ends.at(-1)], [0, 1000]);
 assert.equal(Math.max(...highest(coarse, percents)), 99);
 assert.equal(Math.max(...lowest(coarse, percents)), 10);
 const fine = stepsOf(starts, ends, {from: 50, to: 55, count: 10});
 assert.deepEqual([...highest(fine, percents)], [10, 10, MISSING, 10, 10]);
 assert.deepEqual([...lowest(fine, percents)], [10, 10, MISSING, 10, 10]);
});

test("a key that is changed leaves its own one, and the key it takes changes places with it", () => {
 const map = new KeyMap(["n", "p"]);
 map.change("n", "m");
 assert.deepEqual([map.actionOf("m"), map.actionOf("n"), map.actionOf("p")], ["n", undefined, "p"]);
 map.change("n", "p");
 assert.deepEqual([map.actionOf("p"), map.actionOf("m")], ["n", "p"]);
 assert.deepEqual(new KeyMap(["n", "p"], map.changes).keyOf, map.keyOf);
});

test("a copy is the same file, as long, of another speed, or another cut", () => {
 const scored = {duration: 6000, key: "k", slack: .5};
 const kinds = [{duration: 1, key: "k"}, {duration: 6001, key: "o"}, {duration: 5760, key: ""}, {duration: 5994.006, key: ""}, {duration: 5900, key: "o"}];
 assert.deepEqual(kinds.map((copy) => kindOf(copy, scored)), ["same", "as_long", "speed", "speed", "cut"]);
});

test("a file's key is that of its size and of sampled bytes, and names that a shell reads otherwise are left out", async () => {
 const bytes = Uint8Array.from({length: 2_000_000}, (_, k) => k % 251);
 assert.equal(await keyOf(new Blob([bytes])), process.env.KEY ?? await keyOf(new Blob([bytes])));
 assert.notEqual(await keyOf(new Blob([bytes])), await keyOf(new Blob([bytes.subarray(1)])));
 assert.match(copyCommand("a film.avi"), /-i "a film\.avi"/);
 assert.match(copyCommand('a"; rm -r $HOME; ".avi'), /-i "FILM"/);
});
