"use strict";
(() => {
  const main = document.getElementById("main");
  const chooser = document.getElementById("region");
  const shown = [main.innerHTML];

  // Headings that all regions share are in the page once.
  function complete() {
    for (const table of main.querySelectorAll("table[data-head]")) {
      const head = document.getElementById(table.dataset.head);
      if (head && table.tHead.rows.length < 2) table.tHead.prepend(head.content.cloneNode(true));
    }
  }

  // The other regions, packed: gzip, base64, one after the other.
  async function unpack() {
    const packed = document.getElementById("packed");
    if (!packed || shown.length > 1) return;
    const bytes = Uint8Array.from(atob(packed.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    shown.push(...(await new Response(stream).text()).split("\u001e"));
  }

  async function choose(index) {
    try {
      await unpack();
      main.innerHTML = shown[index] ?? shown[0];
    } catch (error) {
      main.textContent = "This browser cannot unpack the other regions (" + error + "); use a newer one, or fxscope report --region.";
    }
    complete();
    if (typeof charts !== "undefined") charts.draw(main);
  }

  // Parts that are open while the page is printed: all but lists that are of use on screens only.
  const opened = [];
  function unfold(printing) {
    if (!printing) return opened.splice(0).forEach((part) => (part.open = false));
    opened.push(...main.querySelectorAll("details:not([open]):not([data-screen])"));
    opened.forEach((part) => (part.open = true));
  }

  function fold(open) {
    main.querySelectorAll("details.fold").forEach((part) => (part.open = open));
  }

  // Shows the region of a row of the list of regions.
  function follow(value) {
    chooser.value = value;
    chooser.dispatchEvent(new Event("change"));
    scrollTo(0, 0);
    chooser.focus();
  }

  function sort(button) {
    const th = button.closest("th");
    const table = th.closest("table");
    const rows = [...table.tBodies[0].rows];
    const sign = th.getAttribute("aria-sort") === "descending" ? 1 : -1;
    const column = th.cellIndex;
    const key = (row) => {
      const text = row.cells[column].textContent;
      // Rows are told apart by the place they had at first.
      const value = column === 0 ? Number(row.dataset.row) : Number.parseFloat(text);
      return Number.isNaN(value) ? -Infinity : value;
    };
    rows.forEach((row, i) => (row.dataset.row ??= i));
    rows.sort((a, b) => sign * (key(a) - key(b)));
    table.tBodies[0].append(...rows);
    for (const other of th.parentElement.cells) other.setAttribute("aria-sort", "none");
    th.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.fold) fold(button.dataset.fold === "open");
    else if (button.dataset.choose) follow(button.dataset.choose);
    else if (button.closest("th[aria-sort]")) sort(button);
  });
  addEventListener("beforeprint", () => unfold(true));
  addEventListener("afterprint", () => unfold(false));
  if (chooser) {
    chooser.addEventListener("change", () => {
      history.replaceState(null, "", "#" + chooser.value);
      choose(chooser.value);
    });
    const asked = Number.parseInt(location.hash.slice(1), 10);
    if (asked > 0 && asked < chooser.length) {
      chooser.value = asked;
      choose(asked);
    }
  }
  complete();
})();
