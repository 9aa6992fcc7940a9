// SPDX-License-Identifier: Apache-2.0
// The slider on the forecast's own points: each was planned and priced by the server, so that what is chosen can be
// run at once. Without this script the fields and the table say the same.
"use strict";
if (window.matchMedia("(min-width: 62rem)").matches) {
  const codebook = document.querySelector(".codebook details");
  if (codebook) codebook.open = true;
}
(() => {
  const question = document.getElementById("question");
  const run = document.querySelector(".run");
  if (!question || !run) return;
  const field = document.getElementById("epsilon");
  const request = document.querySelector("input[name=request]");
  const slider = document.getElementById("slider");
  const rows = slider ? Array.from(document.querySelectorAll("#points tbody tr")) : [];
  const byId = (id) => document.getElementById(id);
  const number = (row) => Number(row.dataset.epsilon);
  const asked = JSON.parse(request.value);
  const isChanged = (element) => {
    if (element === field || !element.name || element.type === "hidden" || element.tagName === "BUTTON") return false;
    if (element.tagName !== "SELECT") return element.value !== element.defaultValue;
    const first = Array.from(element.options).findIndex((option) => option.defaultSelected);
    return element.selectedIndex !== Math.max(0, first);
  };
  const place = () => rows.findIndex((row) => number(row) === Number(field.value));
  const judge = () => {
    const isPriced = rows.length ? place() >= 0 : Number(field.value) === asked.privacy.epsilon;
    const isStale = !isPriced || Array.from(question.elements).some(isChanged);
    const row = rows[place()];
    const covered = row ? row.dataset.covered === "yes" : !byId("pays").hidden;
    run.disabled = isStale || !covered;
    byId("stale").hidden = !isStale;
  };
  const dot = byId("dot");
  const curve = document.querySelector(".plot path.line");
  const at = (x) => {
    let [a, b] = [0, curve.getTotalLength()];
    for (let i = 0; i < 20; i += 1) {
      const middle = (a + b) / 2;
      if (curve.getPointAtLength(middle).x < x) a = middle; else b = middle;
    }
    return curve.getPointAtLength(a).y;
  };
  const say = (id, text) => { const element = byId(id); if (element) element.textContent = text; };
  const price = (row) => {
    const lefts = Array.from(row.querySelectorAll(".left"));
    document.querySelectorAll(".budget").forEach((budget, i) => {
      budget.querySelector(".taken").textContent = lefts[i].dataset.percent;
      budget.querySelector(".left").textContent = lefts[i].textContent;
      budget.querySelector(".this").setAttribute("width", lefts[i].dataset.share);
    });
    if (lefts.length) say("said-cost", lefts[0].dataset.rest);
    say("lacks-cost", row.dataset.cost);
    run.textContent = `Spend ε ${row.dataset.cost} and run`;
    request.value = JSON.stringify({ ...asked, privacy: { ...asked.privacy, epsilon: number(row) } });
    byId("pays").hidden = row.dataset.covered !== "yes";
    byId("lacks").hidden = row.dataset.covered === "yes";
  };
  const show = (row) => {
    say("said-epsilon", String(number(row)));
    say("said-width", row.dataset.width);
    say("said-rest", row.dataset.rest);
    slider.value = String(rows.indexOf(row));
    slider.setAttribute("aria-valuetext", `ε ${number(row)}: ${row.dataset.width}`);
    price(row);
    if (dot && curve) {
      const [low, high] = [Math.log(number(rows[0])), Math.log(number(rows[rows.length - 1]))];
      const x = (100 * (Math.log(number(row)) - low)) / (high - low);
      dot.setAttribute("cx", `${x}%`);
      dot.setAttribute("cy", `${at(x)}%`);
    }
  };
  question.addEventListener("input", () => {
    if (rows[place()]) show(rows[place()]);
    judge();
  });
  if (rows.length > 1) {
    slider.addEventListener("input", () => {
      const row = rows[Number(slider.value)];
      field.value = String(number(row));
      show(row);
      judge();
    });
    slider.value = String(Math.max(0, place()));
    slider.setAttribute("aria-valuetext", `ε ${field.value}`);
    byId("slide").hidden = false;
  }
  judge();
})();
