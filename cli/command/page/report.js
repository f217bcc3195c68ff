"use strict";
(function () {
  // Without a script all findings are shown; with one they can be filtered.
  const form = document.getElementById("filters");
  if (!form) return;
  const rows = Array.from(document.querySelectorAll("#findings tbody tr"));
  const count = document.getElementById("count");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  function apply() {
    const severities = new Set(Array.from(form.querySelectorAll("input[type=checkbox]"))
      .filter((box) => box.checked).map((box) => box.value));
    const id = form.elements.id.value;
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, at) => {
      const fits = severities.has(row.dataset.severity) && (id === "" || row.dataset.id === id) &&
        words.every((word) => texts[at].includes(word));
      row.hidden = !fits;
      if (fits) shown += 1;
    });
    count.textContent = shown + " of " + rows.length + " shown";
  }
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
  // Who follows a link to a page wants to read it.
  function unfold() {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  }
  window.addEventListener("hashchange", unfold);
  unfold();
  // On paper nothing stays folded.
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
  });
})();
