// The filter of the claims ledger: shows the rows that fit the form's three controls. Without it the table is whole.
{
  const form = document.querySelector("form.claims-filter");
  const table = document.querySelector("table.claims-ledger");
  const count = form.querySelector("output");
  const { ruling, note, text } = form.elements;
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row,
    ruling: row.querySelector(".ruling").textContent,
    notes: row.querySelector("strong").textContent,
    text: row.textContent.toLowerCase(),
  }));

  const apply = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (one) =>
      (!ruling.value || one.ruling === ruling.value) &&
      (!note.value || one.notes.includes(note.value)) &&
      words.every((word) => one.text.includes(word));
    for (const one of rows) one.row.hidden = !fits(one);
    count.textContent = `${rows.filter((one) => !one.row.hidden).length} of ${rows.length} claims shown`;
  };

  // On a narrow screen the style turns rows into blocks, and a table that is no longer laid out as one stops being
  // announced as one. The roles say it again.
  const roles = { table: [table], rowgroup: [table.tHead, table.tBodies[0]], row: table.rows };
  for (const [role, elements] of Object.entries(roles)) for (const one of elements) one.setAttribute("role", role);
  for (const cell of table.querySelectorAll("th, td")) {
    cell.setAttribute("role", cell.closest("thead") ? "columnheader" : cell.matches("th") ? "rowheader" : "cell");
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply)); // after the controls have been reset
  // A link to a row must find it, whatever is filtered.
  addEventListener("hashchange", () => form.reset());
  form.hidden = false;
  apply();
}
