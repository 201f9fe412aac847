// The page's policy allows neither eval nor styles that a library adds: expressions are interpreted, tooltips have their
// style in page.css.
const specifications = JSON.parse(document.getElementById("specifications").textContent);
for (const [name, specification] of Object.entries(specifications)) {
  window.vegaEmbed(document.getElementById(name), specification, {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true,
    defaultStyle: false, tooltip: {disableDefaultStyle: true},
  });
}
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));

// A table that goes on to the right fades there, since not every system shows a bar to scroll by.
for (const table of document.querySelectorAll(".scroll")) {
  const fade = () => table.classList.toggle("more", table.scrollLeft + table.clientWidth < table.scrollWidth - 1);
  table.addEventListener("scroll", fade);
  new ResizeObserver(fade).observe(table);
}
