// Which rows the table has, and in which order: passages of the model, decisions, what people differ on, passages nobody decided.
export const FILTERS = ["passages", "weak", "all", "mine", "theirs", "differ", "undecided", "blind"];

// A disagreement as an object to select: whose levels it is of, and what settles it, if anything does.
export const disagreementsOf = ({differ, decisions}) => differ.map(({start, end, parents, agreed}) => {
 const people = parents.map((id) => decisions.find((one) => one.id === id)).filter(Boolean);
 const settled = decisions.find((one) => one.id === agreed), elsewhere = Boolean(agreed) && !settled; // in sight of the score
 return {type: "differ", start, end, parents, settled, elsewhere, people, p: people[0]?.p, value: people[0]?.value, said: people.map((one) => `${one.who}: ${one.title}`).join(" · ")};
});
export const openOf = (store) => disagreementsOf(store).filter((one) => !one.settled && !one.elsewhere);
// The next one that is open, after a time, and round to the first.
export const nextOpen = (store, after) => {
 const open = openOf(store);
 return open.find((one) => one.start > after + 1e-6) ?? open[0] ?? null;
};
const undecidedOf = (store) => store.passages.filter((one) => !store.readOf(one));

const ROWS = {
 passages: ({passages}) => passages,
 weak: ({weak}) => weak,
 all: ({decisions}) => decisions,
 mine: ({decisions, name}) => decisions.filter((one) => one.who === name),
 theirs: ({decisions, name}) => decisions.filter((one) => one.who !== name),
 differ: disagreementsOf,
 undecided: undecidedOf,
 blind: ({decisions}) => decisions.filter((one) => one.blind),
};
// What has no probability comes last, whatever the order. Passages have ranks: their probabilities are rounded here.
const ranked = (a, b) => (a.rank && b.rank ? a.rank - b.rank : 0);
const ORDERS = {
 time: (a, b) => a.start - b.start,
 strength: (a, b) => ranked(a, b) || (b.p ?? -1) - (a.p ?? -1),
 doubt: (a, b, threshold) => Math.abs((a.p ?? 9) - threshold) - Math.abs((b.p ?? 9) - threshold),
};
export const rowsOf = (store, {filter = "all", order = "time", threshold = .5} = {}) => [...ROWS[filter](store)].sort((a, b) => ORDERS[order](a, b, threshold) || a.start - b.start);
