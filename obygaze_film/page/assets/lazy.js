// What is drawn when it is first seen, or printed.

// Whether a node is in the window, and in the list that it is scrolled in.
function isInView(node) {
 const box = node.getBoundingClientRect(), list = node.closest("[tabindex]")?.getBoundingClientRect();
 return box.top < Math.min(innerHeight, list?.bottom ?? Infinity) && box.bottom > Math.max(0, list?.top ?? 0);
}
// The function that is returned draws what is seen at once, where sizes are known: no frame without it is shown first.
export function whenSeen(nodes, draw) {
 const waiting = new Set(nodes);
 const once = (node) => {
  observer.unobserve(node);
  if (waiting.delete(node)) draw(node);
 };
 const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) once(entry.target);
 }, {rootMargin: "200px"});
 for (const node of waiting) observer.observe(node);
 addEventListener("beforeprint", () => [...waiting].forEach(once));
 return () => [...waiting].filter(isInView).forEach(once);
}
