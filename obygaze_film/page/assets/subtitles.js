// What is said in a film: a list to search, as long as it is looked at.
import {make} from "./drawing.js";
import {clock} from "./time.js";

const MOST = 100; // lines that are shown at once

export class Subtitles {
 constructor(prefix, said, lines, go) {
  Object.assign(this, {said, lines, go});
  this.part = (name) => document.getElementById(`${prefix}-${name}`);
  const details = this.part("lines");
  details.addEventListener("toggle", () => { if (details.open) this.show(); });
  this.part("search").oninput = () => this.show();
 }
 show() {
  const wanted = this.part("search").value.toLowerCase(), found = [];
  for (let k = 0; k < this.lines.length; k++) if (this.lines[k].toLowerCase().includes(wanted)) found.push(k);
  this.part("said-list").replaceChildren(...found.slice(0, MOST).map((k) => {
   const start = this.said.starts[k] / 1000;
   return make("li", {}, make("button", {type: "button", textContent: clock(start), onclick: () => this.go(start)}), ` ${this.lines[k]}`);
  }));
  this.part("said-more").textContent = found.length > MOST ? this.part("said-more").dataset.text.replace("{n}", found.length - MOST) : "";
 }
}
