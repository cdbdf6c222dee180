// What is drawn when it is first seen, or printed.
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
}
