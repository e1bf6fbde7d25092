"use strict";
// Writes what a test wants to know about the page into an element of the page.
(async () => {
  if (typeof charts !== "undefined") await charts.ready;
  const wide = [];
  for (const element of document.querySelectorAll("body *")) {
    const box = element.getBoundingClientRect();
    const scrolled = element.closest(".scroll, section:has(> table), .plot, .spoken, pre");
    if (!scrolled && box.width > 0 && box.right > innerWidth + 1) wide.push(`${element.tagName}.${element.className}: ${box.right}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) wide.push(`page: ${document.documentElement.scrollWidth}`);
  const bottom = (selector) => document.querySelector(selector)?.getBoundingClientRect().bottom;
  let violations = [];
  if (typeof axe !== "undefined") {
    const result = await axe.run(document, { resultTypes: ["violations"] });
    violations = result.violations.map((found) => `${found.id}: ${found.nodes.map((node) => node.target.join(" ")).slice(0, 5).join("; ")}`);
  }
  const plots = document.querySelectorAll(".plot");
  const found = {
    wide: wide.slice(0, 10), violations, result: bottom(".result"), causes: bottom(".causes"),
    charts: plots.length, drawn: [...plots].filter((plot) => plot.querySelector("svg path")).length,
  };
  const element = document.createElement("script");
  element.type = "application/json";
  element.id = "probe";
  element.textContent = JSON.stringify(found);
  document.body.append(element);
})();
