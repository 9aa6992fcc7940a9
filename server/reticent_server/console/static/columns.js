// SPDX-License-Identifier: Apache-2.0
// The search among the columns of a schema's form; without scripts the columns stand in their sections.
"use strict";

const find = document.getElementById("find");
const columns = [...document.querySelectorAll(".column")];

function matches(column, text) {
  const name = column.querySelector("[name$='.name']");
  const told = column.querySelector("legend").textContent + " " + (name ? name.value : "");
  return told.toLowerCase().includes(text);
}

function search() {
  const text = find.value.trim().toLowerCase();
  for (const column of columns) column.hidden = !matches(column, text);
  for (const section of document.querySelectorAll(".section")) {
    const shown = [...section.querySelectorAll(".column")].some((column) => !column.hidden);
    section.hidden = !shown;
    if (text && shown) section.open = true;
  }
}

if (find) {
  for (const each of [find, document.querySelector("label[for=find]")]) each.hidden = false;
  find.addEventListener("input", search);
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
}
