// The desk's modules, run by node: times, and what is selected and kept.
import assert from "node:assert/strict";
import test from "node:test";
import {disagreementsOf, nextOpen, openOf, rowsOf} from "./list.js";
import {Store} from "./store.js";
import {clock, clockSpan, nextCut, sameSpan, snapped, tickTimes, toFrame, windowOf} from "./time.js";

const passages = [{start: 10, end: 20, p: .8, number: "1"}, {start: 50, end: 60, p: .6, number: "2"}];
const kept = (values) => ({kind: "judgement", level: "S", verdict: "agree", concepts: [], note: "", who: "AB", origin: "", history: [], place: 0, ...values});
const made = (decisions = [], more = {}) => new Store({decisions, passages, weak: [{start: 30, end: 34, p: .1, number: "w1"}], who: " AB ", mode: "read", ...more});

test("times are written, framed and snapped", () => {
 assert.equal(clock(3725.9), "1:02:06");
 const spans = [[82, 88], [87.708, 88.125], [87.71, 87.74], [88, 88]].map(([start, end]) => clockSpan(start, end));
 assert.deepEqual(spans, ["0:01:22–0:01:28", "0:01:27.7–0:01:28.1", "0:01:27.71–0:01:27.74", "0:01:28–0:01:28"]);
 assert.equal(toFrame(1.03, 24), 1.0417);
 assert.equal(toFrame(10, 24000 / 1001), 10.01);
 assert.equal(snapped(9.6, [0, 10, 20], .5), 10);
 assert.equal(snapped(9.4, [0, 10, 20], .5), 9.4);
 assert.equal(snapped(3, [], 5), 3);
 assert.deepEqual([nextCut(10, [0, 10, 20], 1), nextCut(10.2, [0, 10, 20], -1), nextCut(25, [0, 10, 20], 1)], [20, 0, 25]);
});

test("what is shown of a film is never less than ten seconds of it, nor beyond its ends", () => {
 assert.deepEqual(windowOf(-50, 50, 600), [0, 100]);
 assert.deepEqual(windowOf(598, 599, 600), [590, 600]);
 assert.deepEqual(windowOf(0, 99, 4), [0, 4]);
 assert.deepEqual(tickTimes(0, 60, [5, 10, 20]), [0, 10, 20, 30, 40, 50]);
});

test("a weak passage is told from one that the model marks", () => {
 const store = made();
 assert.deepEqual([store.next(1).below, store.next(1, true).below], [undefined, true]);
});

test("the form follows from what is selected, whatever was ticked before", () => {
 const store = made([kept({id: "a-1", start: 50, end: 60, concepts: ["Body"], note: "why"})]);
 store.select(store.passages[0]);
 store.edit({concepts: ["Look"]});
 assert.deepEqual(store.form, {level: "", concepts: ["Look"], note: ""});
 store.select(store.passages[1]);
 assert.deepEqual(store.form, {level: "S", concepts: ["Body"], note: "why"});
 store.select({start: 1, end: 4, type: "span", origin: "own"});
 assert.deepEqual(store.form, {level: "", concepts: [], note: ""});
 store.select(null);
 assert.deepEqual(store.form, {level: "", concepts: [], note: ""});
});

test("a passage is judged, a moved one becomes one's own, an own one is edited under its id", () => {
 const own = kept({id: "a-2", kind: "passage", start: 70, end: 80, origin: "own"}), store = made([own]);
 store.select(store.passages[1]);
 assert.deepEqual(store.body({level: "S"}), {kind: "judgement", start_s: 50, end_s: 60, level: "S", concepts: [], note: "", origin: "own"});
 store.move(48, 60);
 assert.deepEqual([store.body({level: "S"}).kind, store.body({level: "S"}).origin], ["passage", "passage 2"]);
 store.select(own);
 store.move(70, 85);
 assert.deepEqual([store.body().kind, store.body().id, store.body().end_s, store.body().level], ["passage", "a-2", 85, "S"]);
 assert.equal(store.body({level: ""}).kind, "note");
});

test("another's decision is not edited but answered by one's own", () => {
 const theirs = kept({id: "b-1", who: "CD", start: 50, end: 60, concepts: ["Body"]}), store = made([theirs]);
 store.select(theirs);
 const body = store.body({level: "S"});
 assert.equal(body.id, undefined);
 assert.equal(body.kind, "judgement");
});

test("a window of the draw keeps its place", () => {
 const store = made([], {mode: "blind", passages: [], weak: []});
 store.select({start: 8, end: 16, place: 3, type: "window"});
 assert.deepEqual([store.body({level: "S"}).place, store.body({level: "S"}).kind], [3, "judgement"]);
});

test("what was deleted or changed elsewhere is no longer selected", () => {
 const own = kept({id: "a-1", start: 70, end: 80}), store = made([own]);
 store.select(own, true);
 store.answered({you: [{...own, id: "c-9", level: "EN"}]});
 assert.equal(store.decision.level, "EN");
 store.answered({you: []});
 assert.equal(store.selected, null);
});

test("an answer that comes late is of what it was asked of, never of what is selected now", () => {
 const first = kept({id: "a-1", start: 10, end: 20}), store = made();
 store.select(store.passages[1]);
 store.answered({you: [first], id: "a-1"});
 assert.equal(store.decision, null);
 store.select(null);
 store.answered({you: [first], id: "a-1"});
 assert.equal(store.selected, null);
 store.select(first);
 store.move(10, 22);
 store.move(10, 23); // before the first move is answered
 store.answered({you: [kept({id: "a-2", start: 10, end: 22})], id: "a-2"}, "a-1");
 assert.deepEqual([store.selected.id, store.selected.end], ["a-2", 23]);
});

test("next goes by time from wherever one is, weak ones apart", () => {
 const store = made();
 assert.equal(store.next(1).number, "1");
 store.select({start: 25, end: 28, type: "span"});
 assert.deepEqual([store.next(1).number, store.next(-1).number], ["2", "1"]);
 store.select(store.passages[1]);
 assert.deepEqual([store.next(1).number, store.next(1, true).number], ["1", "w1"]);
 assert.equal(made([], {passages: [], weak: []}).next(1), null);
});

test("progress counts passages seen, agreed with or not, and what was added", () => {
 const store = made([kept({id: "1", start: 10, end: 20}), kept({id: "2", kind: "passage", start: 49, end: 58, level: "EN", verdict: "disagree"}), kept({id: "3", kind: "passage", start: 90, end: 95}), kept({id: "4", start: 50, end: 60, who: "CD"})]);
 assert.deepEqual(store.progress, {passages: 2, seen: 2, agree: 1, disagree: 1, unsure: 0, added: 1});
 store.answered({you: [kept({id: "5", start: 10, end: 20, level: "NS", verdict: "unsure"})]});
 assert.deepEqual(store.progress, {passages: 2, seen: 1, agree: 0, disagree: 0, unsure: 1, added: 0});
});

test("a span that is like the selected one was judged as the passage of its times was", () => {
 const half = made([kept({id: "1", start: 15, end: 25})]);
 assert.equal(half.progress.seen, 1);
 assert.equal(half.saidOf({start: 10, end: 20}).id, "1");
 const twice = made([kept({id: "1", start: 10, end: 18}), kept({id: "2", start: 12, end: 20, level: "EN", verdict: "disagree"})]);
 assert.deepEqual([twice.progress.agree, twice.progress.disagree], [0, 1]);
 assert.equal(twice.saidOf({start: 10, end: 20}).verdict, "disagree");
 assert.equal(made([kept({id: "1", start: 16, end: 25})]).saidOf({start: 10, end: 20}), null);
});

test("what was decided under other words is offered again, in the mode that it was decided in", () => {
 const own = [kept({id: "a-1", start: 1, end: 9, place: 2, otherwise: true}), kept({id: "a-2", start: 10, end: 20, otherwise: true}), kept({id: "a-3", start: 50, end: 60}), kept({id: "b-1", who: "CD", start: 1, end: 9, otherwise: true})];
 assert.deepEqual(made(own).otherwise.map((one) => one.id), ["a-2", "a-1"]);
 assert.deepEqual(made(own, {mode: "blind"}).otherwise.map((one) => one.id), ["a-1", "a-2"]);
});

const both = (n, start, more = {}) => [kept({id: `a-${n}`, start, end: start + 8, title: "Sure", blind: true, place: n, p: .1 * n, ...more}), kept({id: `b-${n}`, who: "CD", level: "N", title: "None", start, end: start + 8, blind: true, place: n, p: .1 * n, ...more})];
const differ = (n, start, agreed = "") => ({start, end: start + 8, parents: [`a-${n}`, `b-${n}`], agreed});

test("what people differ on comes one after the other, and what is settled no more", () => {
 const settled = kept({id: "c-1", kind: "agreed", start: 30, end: 38, parents: ["a-2", "b-2"], judges: "AB, CD", title: "Sure"});
 const store = made([...both(1, 90), ...both(2, 30), ...both(3, 60), settled], {differ: [differ(2, 30, "c-1"), differ(3, 60), differ(1, 90)]});
 assert.deepEqual(openOf(store).map((one) => one.start), [60, 90]);
 assert.deepEqual([nextOpen(store, -1), nextOpen(store, 60), nextOpen(store, 90)].map((one) => one.start), [60, 90, 60]);
 assert.equal(disagreementsOf(store)[0].settled, settled);
 assert.equal(openOf(store)[0].said, "AB: Sure · CD: None");
 assert.equal(nextOpen(made(), 0), null);
});

test("a level of what differs is what they agree on; of what is agreed, another", () => {
 const store = made(both(3, 60), {differ: [differ(3, 60)]});
 store.select(nextOpen(store, -1));
 assert.deepEqual(store.form, {level: "", concepts: [], note: ""});
 assert.deepEqual(store.body({level: "S"}), {kind: "agreed", start_s: 60, end_s: 68, level: "S", concepts: [], note: "", parents: ["a-3", "b-3"]});
 const agreed = kept({id: "c-1", kind: "agreed", start: 60, end: 68, parents: ["a-3", "b-3"]});
 store.answered({you: [...both(3, 60), agreed], differ: [differ(3, 60, "c-1")], id: "c-1"});
 assert.equal(store.mine.id, "c-1");
 assert.equal(store.body({level: "N"}).id, "c-1");
 assert.deepEqual(openOf(store), []);
 assert.equal(store.judged.length, 1); // what is agreed is no judgement of one's own
});

test("passages are in the order of their ranks where their rounded probabilities are alike", () => {
 const passage = (number, start, p, rank) => ({number, start, end: start + 8, p, rank});
 const passages = [passage("1", 10, .7, 3), passage("2", 20, .7, 1), passage("3", 30, .7, 2)];
 const store = {passages, weak: [], own: [], decisions: [], differ: [], name: "AB"};
 assert.deepEqual(rowsOf(store, {filter: "passages", order: "strength"}).map((one) => one.number), ["2", "3", "1"]);
});

test("rows are of one kind, in an order of one's own", () => {
 const own = kept({id: "a-9", start: 50, end: 60, p: .6}), note = kept({id: "n-1", who: "CD", level: "", start: 1, end: 2, p: null});
 const store = made([note, ...both(3, 60), own, ...both(9, 90)], {differ: [differ(3, 60)]});
 const ids = (options) => rowsOf(store, options).map((one) => one.id ?? one.start);
 assert.deepEqual(ids({filter: "mine"}), ["a-9", "a-3", "a-9"]);
 assert.deepEqual(ids({filter: "theirs"}), ["n-1", "b-3", "b-9"]);
 assert.deepEqual(ids({filter: "differ"}), [60]);
 assert.deepEqual(ids({filter: "undecided"}), [10]);
 assert.deepEqual(ids({filter: "blind"}), ["a-3", "b-3", "a-9", "b-9"]);
 assert.deepEqual(ids({order: "strength"}).slice(0, 3), ["a-9", "b-9", "a-9"]);
 assert.equal(ids({order: "strength"}).at(-1), "n-1");
 assert.equal(ids({order: "doubt", threshold: .3})[0], "a-3");
 assert.equal(ids({order: "doubt", threshold: .3}).at(-1), "n-1");
});

test("one's decision is of a passage whose ends are equal to the millisecond, and of no other", () => {
 const of = (start) => made([kept({id: "a-1", start, end: 20})]);
 const isOf = (store) => { store.select(store.passages[0]); return store.decision?.id === "a-1"; };
 for (const [start, isSame] of [[10, true], [10.001, true], [10.0015, false]]) {
  assert.equal(isOf(of(start)), isSame);
  assert.equal(sameSpan({start, end: 20}, passages[0]), isSame);
 }
});

test("a passage is undecided in the table where it is not counted as judged above it", () => {
 const undecided = (own) => {
  const store = made(own), left = rowsOf(store, {filter: "undecided"}).map((one) => one.start);
  assert.equal(store.progress.seen, passages.length - left.length);
  return left;
 };
 assert.deepEqual(undecided([kept({id: "a-1", start: 9, end: 20})]), [50]); // its begin was moved
 assert.deepEqual(undecided([kept({id: "a-1", kind: "agreed", start: 10, end: 20})]), [10, 50]); // it settles others' decisions
 assert.deepEqual(undecided([kept({id: "a-1", start: 10, end: 20, place: 3})]), [10, 50]); // blindly
 assert.deepEqual(undecided([kept({id: "a-1", start: 10, end: 20, otherwise: true})]), [10, 50]); // under other words
});
