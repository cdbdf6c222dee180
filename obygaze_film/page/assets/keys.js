// Keys of one letter or sign: they can be switched off, and each can be changed. Both are kept in `storage`, where there is one.
import {filled} from "./rows.js";

const SWITCH = "obygaze-keys", CHANGES = "obygaze-changed-keys";
const written = (key, words) => key === " " ? words.space : key.toUpperCase();

// Which key does what, where some were changed: an action is named by the key that it has at first.
export class KeyMap {
 constructor(actions, changes = {}) {
  this.actions = actions;
  this.keyOf = Object.fromEntries(actions.map((action) => [action, changes[action] ?? action]));
 }
 actionOf(key) { return this.actions.find((action) => this.keyOf[action] === key); }
 // The action that had the key gets the other one's.
 change(action, key) {
  const before = this.actionOf(key);
  if (before !== undefined) this.keyOf[before] = this.keyOf[action];
  this.keyOf[action] = key;
 }
 get changes() { return Object.fromEntries(this.actions.filter((action) => this.keyOf[action] !== action).map((action) => [action, this.keyOf[action]])); }
}

// The digit of a pressed key: as it is typed, or by the key's place for the digits up to `most`; else empty. French keyboards type & é "
// with the keys 1 2 3, and digits with Shift.
export function digitOf({key, code = "", shiftKey}, most) {
 if (/^[1-9]$/.test(key)) return key;
 const [, digit] = code.match(/^Digit([1-9])$/) ?? [];
 return digit && !shiftKey && +digit <= most ? digit : "";
}

// Whether a pressed key is the browser's: with Ctrl, Alt or Command, but not with AltGr, which types [ on many keyboards.
export const isOfBrowser = (e) => (e.ctrlKey || e.metaKey || e.altKey) && !e.getModifierState("AltGraph");

// `keys` are what each key does at first; `level` does what a digit does, which stays as it is; there are `levels` of them.
export function listen({keys, escape, level, levels = 0, words, prefix, storage}) {
 const part = (name) => document.getElementById(`${prefix}-${name}`), singles = part("singles");
 const kept = (name) => { try { return storage?.getItem(name); } catch { return null; } };
 const keep = (name, value) => { try { storage?.setItem(name, value); } catch { /* it is for this visit alone */ } };
 const map = new KeyMap(Object.keys(keys), JSON.parse(kept(CHANGES) || "{}"));
 singles.checked = kept(SWITCH) !== "off";
 singles.onchange = () => keep(SWITCH, singles.checked ? "on" : "off");

 function label() {
  for (const button of document.querySelectorAll("[data-key], [data-change]")) {
   const sign = button.querySelector("kbd"), action = button.dataset.key ?? button.dataset.change;
   if (sign) sign.textContent = written(map.keyOf[action.toLowerCase()] ?? action, words);
  }
 }
 // The next key that is pressed is the action's, if it is one sign and no digit.
 for (const button of document.querySelectorAll("[data-change]")) {
  button.onkeydown = (e) => {
   if (!("waits" in button.dataset) || e.key === "Tab" || e.key === "Escape") return;
   e.preventDefault();
   e.stopPropagation();
   delete button.dataset.waits;
   if ([...e.key].length !== 1 || /^[1-9?]$/.test(e.key)) return;
   map.change(button.dataset.change, e.key.toLowerCase());
   keep(CHANGES, JSON.stringify(map.changes));
   label();
   part("changed").textContent = filled(words.key_changed, {key: written(e.key, words), what: button.dataset.what});
  };
  button.onblur = () => { delete button.dataset.waits; };
  button.onclick = () => {
   button.dataset.waits = "";
   part("changed").textContent = words.key_waits;
  };
 }
 label();
 addEventListener("keydown", (e) => {
  if (isOfBrowser(e) || e.target.matches("input:not([type=checkbox]), textarea, select") || document.querySelector("dialog[open]")) return;
  if (e.key === "Escape") return escape();
  if (e.key === " " && e.target.matches("button, input, video, summary, a")) return; // they have it already
  const digit = level ? digitOf(e, levels) : "";
  const does = digit ? () => level(digit) : keys[map.actionOf(e.key.toLowerCase())];
  if (!does || (e.key !== " " && !singles.checked)) return;
  e.preventDefault();
  does();
 });
}
