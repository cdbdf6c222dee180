// The timeline as a table, minute by minute; made when it is opened, or printed. `load` gives what it is made of.
import {make} from "./drawing.js";
import {MISSING, Numbers, numbersOf, percentsOf} from "./rows.js";
import {clock} from "./time.js";

const MINUTE_S = 60;

export class MinuteTable {
 constructor(details, load, words) {
  Object.assign(this, {table: details.querySelector("table"), load, words, numbers: new Numbers(words)});
  details.addEventListener("toggle", () => this.fill());
  addEventListener("beforeprint", () => this.fill());
 }
 async fill() {
  const {words, numbers} = this, data = await this.load();
  if (!data?.judged || this.table.tBodies[0].rows.length) return; // a desk that was stopped answers nothing
  const judged = numbersOf(data.judged);
  const [p, low, high, ...concepts] = [data.p, data.low, data.high, ...data.concepts].map(percentsOf);
  const cell = (text) => make("td", {className: "n", textContent: text});
  const number = (value) => value === MISSING ? "" : numbers.percent(value);
  this.table.tBodies[0].append(...Array.from(judged, (seconds, k) => make("tr", {},
   make("th", {scope: "row", textContent: clock(MINUTE_S * k)}), cell(words.seconds.replace("{}", seconds)),
   cell(number(p[k])), cell(p[k] === MISSING ? "" : numbers.band(low[k], high[k])),
   ...concepts.map((values) => cell(number(values[k]))), make("td", {textContent: data.flags[k]}))));
 }
}
