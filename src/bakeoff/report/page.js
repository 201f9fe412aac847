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

// On a narrow screen rows are shown as cards (page.css), in which every cell needs the name of its column; and tables
// that are no longer laid out as tables have to say that they are.
for (const table of document.querySelectorAll(".scroll > table")) {
  const names = [];
  for (const row of table.tHead.rows) {
    let column = 0;
    for (const cell of row.cells) {
      for (let i = 0; i < cell.colSpan; i++, column++) {
        names[column] = [names[column], cell.innerText.replace(/\s+/g, " ").trim()].filter(Boolean).join(", ");
      }
    }
  }
  table.setAttribute("role", "table");
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    let column = 0;
    for (const cell of row.cells) {
      const heads = cell.tagName === "TH";
      cell.setAttribute("role", !heads ? "cell" : row.parentNode === table.tHead ? "columnheader" : "rowheader");
      cell.dataset.name = names[column] ?? "";
      column += cell.colSpan;
    }
  }
}
