// SPDX-License-Identifier: Apache-2.0
// The slider on the forecast's own points. Without this script the fields and the table say the same.
"use strict";
if (window.matchMedia("(min-width: 62rem)").matches) {
  const codebook = document.querySelector(".codebook details");
  if (codebook) codebook.open = true;
}
(() => {
  const slider = document.getElementById("slider");
  const rows = Array.from(document.querySelectorAll("#points tbody tr"));
  const field = document.getElementById("epsilon");
  if (!slider || !field || rows.length < 2) return;
  const number = (row) => Number(row.dataset.epsilon);
  const first = Math.max(0, rows.findIndex((row) => number(row) === Number(field.value)));
  const low = Math.log(number(rows[0]));
  const high = Math.log(number(rows[rows.length - 1]));
  const dot = document.getElementById("dot");
  const curve = document.querySelector(".plot path.line");
  const at = (x) => {
    let [a, b] = [0, curve.getTotalLength()];
    for (let i = 0; i < 20; i += 1) {
      const middle = (a + b) / 2;
      if (curve.getPointAtLength(middle).x < x) a = middle; else b = middle;
    }
    return curve.getPointAtLength(a).y;
  };
  const show = () => {
    const row = rows[Number(slider.value)];
    field.value = String(number(row));
    document.getElementById("said-epsilon").textContent = field.value;
    const ratio = document.querySelector("#points thead th:nth-child(3)") !== null;
    document.getElementById("said-width").textContent = row.dataset.middle + (ratio ? " times" : "");
    slider.setAttribute("aria-valuetext", `ε ${field.value}: ${row.dataset.middle}`);
    const run = document.querySelector(".run");
    if (run) {
      run.disabled = Number(slider.value) !== first;
      run.title = run.disabled ? "Forecast again at this ε first" : "";
    }
    if (dot && curve) {
      const x = (100 * (Math.log(number(row)) - low)) / (high - low);
      dot.setAttribute("cx", `${x}%`);
      dot.setAttribute("cy", `${at(x)}%`);
    }
  };
  slider.value = String(first);
  slider.setAttribute("aria-valuetext", `ε ${field.value}`);
  slider.addEventListener("input", show);
  document.getElementById("slide").hidden = false;
})();
