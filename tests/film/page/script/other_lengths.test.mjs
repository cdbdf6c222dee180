// A reader's copy that is shorter than what was scored is never the same film, however long its windows are.
import assert from "node:assert/strict";
import {test} from "node:test";
import {kindOf} from "./own_film.js";

const scored = {key: "", duration: 600, slack: 46}; // windows of 46 s

test("behind the last window there may be less than another window, and before its end nothing lacks", () => {
 const kinds = [600, 599.6, 640, 560, 700].map((duration) => kindOf({duration, key: ""}, scored));
 assert.deepEqual(kinds, ["as_long", "as_long", "as_long", "cut", "cut"]);
});

test("a film that plays faster is told by its length, whatever the length of the windows", () => {
 assert.equal(kindOf({duration: 600 * 24 / 25, key: ""}, scored), "speed");
});
