// Keys of keyboards of other countries: what they type, and where they lie.
import assert from "node:assert/strict";
import {test} from "node:test";
import {digitOf, isOfBrowser} from "./keys.js";

const LEVELS = 4;
const pressed = (key, code, {shiftKey = false} = {}) => digitOf({key, code, shiftKey}, LEVELS);

test("a level is given by the key of its digit, whatever the keyboard types with it", () => {
 assert.equal(pressed("2", "Digit2"), "2"); // English, German
 assert.equal(pressed("é", "Digit2"), "2"); // French
 assert.equal(pressed("2", "Digit2", {shiftKey: true}), "2"); // French, with Shift
 assert.equal(pressed("+", "Digit1"), "1"); // Czech
 assert.equal(pressed("2", "Numpad2"), "2");
});

test("other signs stay keys of their own", () => {
 assert.equal(pressed("-", "Digit6"), ""); // French: - zooms, as there is no sixth level
 assert.equal(pressed("!", "Digit1", {shiftKey: true}), ""); // English
 assert.equal(pressed("n", "KeyN"), "");
 assert.equal(pressed("n", undefined), ""); // a program that types for somebody names no place
});

test("a digit that is typed is one, even above the levels: the desk then says how many there are", () => {
 assert.equal(pressed("7", "Digit7"), "7");
});

test("AltGr types a sign, and Ctrl and Alt are the browser's", () => {
 const withKeys = (...held) => isOfBrowser({
  ctrlKey: held.includes("Control"), altKey: held.includes("Alt"), metaKey: false, getModifierState: (name) => held.includes(name),
 });
 assert.equal(withKeys(), false);
 assert.equal(withKeys("Control"), true);
 assert.equal(withKeys("Alt"), true);
 assert.equal(withKeys("Control", "Alt", "AltGraph"), false); // as Windows tells it
 assert.equal(withKeys("AltGraph"), false);
});
