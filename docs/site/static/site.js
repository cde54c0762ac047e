"use strict";
// Search reads the pages that it found for a summary of them; a browser forbids that to pages that are files.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll("article img")) {
    image.addEventListener("click", () => { location.href = image.src; });
  }
  // A long table has a field in which words can be typed: rows that have all of them stay.
  for (const table of document.querySelectorAll("article table")) {
    const rows = [...table.querySelectorAll("tbody tr")];
    if (rows.length < 20) continue;
    const field = document.createElement("input");
    Object.assign(field, { type: "search", className: "filter", placeholder: `filter ${rows.length} rows` });
    field.setAttribute("aria-label", field.placeholder);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
    (table.closest(".table-wrapper") ?? table).before(field);
  }
});
