"use strict";
// Draws the charts of the page with Apache ECharts. Each element .plot has its data in data-chart.
const charts = (() => {
  const drawn = new Map();
  const levels = ["#4292c6", "#f08a24", "#d94801", "#00735c", "#7a3e8f", "#b39b00", "#cc79a7", "#6b7280"];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const spoken = document.createElement("p");
  spoken.className = "spoken";
  spoken.setAttribute("aria-live", "polite");
  document.body.append(spoken);
  let printing = false;

  // The library is packed: gzip, base64.
  const library = (async () => {
    const packed = document.getElementById("library").textContent.trim();
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    return window.echarts;
  })();

  function colours() {
    const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    // Paper is white.
    return printing
      ? { fg: "#1b1f24", soft: "#59636e", line: "#d1d9e0", bg: "#fff" }
      : { fg: of("--fg"), soft: of("--soft"), line: of("--line"), bg: of("--bg") };
  }

  function axis(theme, name, more) {
    return {
      name,
      nameLocation: "middle",
      nameTextStyle: { color: theme.soft },
      axisLabel: { color: theme.soft, hideOverlap: true },
      axisLine: { show: true, lineStyle: { color: theme.soft } },
      splitLine: { lineStyle: { color: theme.line } },
      ...more,
    };
  }

  function common(theme, zoomed) {
    return {
      animation: false,
      textStyle: { color: theme.fg, fontFamily: "system-ui, DejaVu Sans, sans-serif" },
      grid: { left: 58, right: 24, top: 34, bottom: 48 },
      // Text, not HTML: names come from programs.
      tooltip: { renderMode: "richText", confine: true, backgroundColor: theme.bg, borderColor: theme.line, textStyle: { color: theme.fg, fontSize: 12 } },
      dataZoom: zoomed.map((axes) => ({ type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, preventDefaultMouseMove: false, ...axes })),
    };
  }

  const digits = (value) => Number(value.toPrecision(4)).toString();

  function stack(data, theme) {
    const sums = data.bars.map((_, i) => data.parts.reduce((sum, part) => sum + part.values[i], 0));
    const lines = (at) => {
      const parts = data.parts.map((part) => [part.name, part.values[at]]).filter((part) => part[1] > 0);
      parts.sort((a, b) => b[1] - a[1]);
      const share = (value) => (100 * value / sums[at]).toFixed(1) + " %";
      const rows = parts.slice(0, 9).map(([name, value]) => `${share(value).padStart(7)}  ${name}`);
      return `${data.bars[at]}: ${digits(sums[at])} ${data.unit}\n${rows.join("\n")}`;
    };
    const option = {
      ...common(theme, [{ xAxisIndex: 0 }]),
      xAxis: axis(theme, data.across ?? "", { type: "category", data: data.bars, nameGap: 28, axisLabel: { color: theme.soft, hideOverlap: true, interval: data.bars.length > 6 ? "auto" : 0, formatter: (name) => name.replace(/^thread /, "") } }),
      yAxis: axis(theme, data.unit, { type: "value", nameLocation: "end" }),
      series: data.parts.map((part, i) => ({
        type: "bar", stack: "all", name: part.name, data: part.values, barCategoryGap: "16%", barMaxWidth: 64,
        itemStyle: { color: part.colour ?? levels[i % levels.length], borderColor: theme.bg, borderWidth: 0.5 },
      })),
    };
    option.tooltip.trigger = "axis";
    option.tooltip.axisPointer = { type: "shadow" };
    option.tooltip.formatter = (items) => lines(items[0].dataIndex);
    return { option, points: data.bars.map((_, i) => ({ text: lines(i), show: { seriesIndex: 0, dataIndex: i } })) };
  }

  function roofline(data, theme) {
    const peak = Math.max(...data.roofs.map((roof) => roof.gflops));
    const xs = data.points.map((point) => point.intensity);
    const ys = data.points.map((point) => point.gflops).concat(data.reached ? [data.reached.gflops] : []);
    const decade = (value, round) => 10 ** round(Math.log10(value));
    const [left, right] = [decade(Math.min(0.01, ...xs), Math.floor), decade(Math.max(100, ...xs), Math.ceil)];
    const [low, high] = [decade(Math.min(peak / 1e3, ...ys), Math.floor), decade(peak * 1.05, Math.ceil)];
    const words = (point) => {
      const share = point.share ? ` (${point.share} of the cycles)` : "";
      return `${point.name}${share}\n${point.level}: ${digits(point.intensity)} FLOP/B, ${digits(point.gflops)} GFLOPS\n${point.limit} of its limit`;
    };
    const line = (name, points, colour, more) => ({
      type: "line", name, data: points, showSymbol: false, silent: true, lineStyle: { color: colour, width: 2, ...more }, itemStyle: { color: colour }, tooltip: { show: false },
    });
    const points = [];
    const series = data.levels.flatMap((level, i) => {
      const start = Math.max(left, low / level.gigabytes);
      const slope = line(level.label, [[start, start * level.gigabytes], [peak / level.gigabytes, peak]], levels[i]);
      const at = data.points.filter((point) => point.level === level.label);
      const scatter = {
        type: "scatter", name: level.label, z: 5, itemStyle: { color: levels[i], borderColor: theme.fg, borderWidth: 1 },
        data: at.map((point, k) => ({
          value: [point.intensity, point.gflops], words: words(point), symbol: point.share ? "diamond" : "circle", symbolSize: point.share ? 13 : 14,
          // A loop has one label, at the highest level.
          label: { show: !data.points.some((other) => other.name === point.name && other.share === point.share && other.intensity > point.intensity), position: "right", formatter: point.name, color: theme.fg, fontSize: 10 },
        })),
        labelLayout: { hideOverlap: true, moveOverlap: "shiftY" },
      };
      at.forEach((point, k) => points.push({ text: words(point), show: { seriesIndex: 2 * i + 1, dataIndex: k } }));
      return [slope, scatter];
    });
    for (const roof of data.roofs) {
      series.push({ ...line("peak", [[left, roof.gflops], [right, roof.gflops]], theme.fg), endLabel: { show: false } });
    }
    if (data.reached) series.push(line("reached", [[left, data.reached.gflops], [right, data.reached.gflops]], theme.fg, { type: "dashed" }));
    const shown = data.levels.map((level, i) => ({ name: level.label, itemStyle: { color: levels[i] }, text: `${level.label} ${digits(level.gigabytes)} GB/s` }));
    const texts = Object.fromEntries(shown.map((level) => [level.name, level.text]));
    texts.peak = data.roofs.map((roof) => `${roof.label} ${digits(roof.gflops)} GFLOPS`).join(", ");
    if (data.reached) texts.reached = `${data.reached.label} ${digits(data.reached.gflops)} GFLOPS`;
    const option = {
      ...common(theme, [{ xAxisIndex: 0 }, { yAxisIndex: 0 }]),
      legend: { type: "scroll", top: 0, data: Object.keys(texts), formatter: (name) => texts[name], textStyle: { color: theme.fg }, inactiveColor: theme.soft, pageTextStyle: { color: theme.fg } },
      xAxis: axis(theme, "operations for each byte, FLOP/B", { type: "log", min: left, max: right, nameGap: 28 }),
      yAxis: axis(theme, "GFLOPS", { type: "log", min: low, max: high, nameGap: 40 }),
      series,
    };
    option.tooltip.formatter = (item) => item.data.words;
    return { option, points };
  }

  // Two quantities that would be equal: points near a diagonal.
  function scatter(data, theme) {
    const points = [];
    const all = data.classes.flatMap((of) => of.points.flatMap(([x, y]) => [x, y])).filter((value) => value > 0);
    const [low, high] = all.length ? [10 ** Math.floor(Math.log10(Math.min(...all))), 10 ** Math.ceil(Math.log10(Math.max(...all)))] : [1, 10];
    const decades = { axisLabel: { color: theme.soft, hideOverlap: true, formatter: (value) => (value >= 1e5 || value < 1e-3 ? value.toExponential(0) : digits(value)) } };
    const series = data.classes.map((of, i) => {
      of.points.forEach(([, , text], k) => points.push({ text, show: { seriesIndex: i, dataIndex: k } }));
      return {
        type: "scatter", name: of.label, data: of.points.map(([x, y, words]) => ({ value: [x, y], words })), symbolSize: 7,
        itemStyle: { color: levels[i], opacity: 0.75 },
      };
    });
    series.push({ type: "line", name: "equal", data: [[low, low], [high, high]], showSymbol: false, silent: true, tooltip: { show: false }, lineStyle: { color: theme.soft, width: 1 } });
    const option = {
      ...common(theme, [{ xAxisIndex: 0 }, { yAxisIndex: 0 }]),
      legend: { type: "scroll", top: 0, data: data.classes.map((of) => of.label), textStyle: { color: theme.fg }, inactiveColor: theme.soft, pageTextStyle: { color: theme.fg } },
      xAxis: axis(theme, data.across, { type: "log", min: low, max: high, nameGap: 28, ...decades }),
      yAxis: axis(theme, data.up, { type: "log", min: low, max: high, nameGap: 40, ...decades }),
      series,
    };
    option.tooltip.formatter = (item) => item.data.words;
    return { option, points };
  }

  function curves(data, theme) {
    const points = [];
    const words = (curve, point) => `${curve.label}\n${data.across}: ${digits(point[0])}\n${data.up}: ${digits(point[1])}`;
    const series = data.curves.map((curve, i) => {
      curve.points.forEach((point, k) => points.push({ text: words(curve, point), show: { seriesIndex: i, dataIndex: k } }));
      return {
        type: "line", name: curve.label, data: curve.points.map((value) => ({ value, words: words(curve, value) })), showSymbol: curve.points.length < 60,
        symbolSize: 7, lineStyle: { color: levels[i % levels.length], width: 2, type: i < levels.length ? "solid" : "dashed" }, itemStyle: { color: levels[i % levels.length] },
      };
    });
    const of = (logarithmic) => (logarithmic ? { type: "log" } : { type: "value", min: 0 });
    const option = {
      ...common(theme, [{ xAxisIndex: 0 }, { yAxisIndex: 0 }]),
      legend: { type: "scroll", top: 0, textStyle: { color: theme.fg }, inactiveColor: theme.soft, pageTextStyle: { color: theme.fg } },
      xAxis: axis(theme, data.across, { nameGap: 28, ...of(data.logarithmic) }),
      yAxis: axis(theme, data.up, { nameGap: 40, ...of(data.logarithmicUp) }),
      series,
    };
    option.tooltip.formatter = (item) => item.data.words;
    return { option, points };
  }

  function bars(data, theme) {
    const points = [];
    const words = (series, at) => `${data.labels[at]}\n${series.label}: ${digits(series.values[at])} ${data.unit}`;
    const series = data.series.map((series, i) => {
      const values = series.values.map((value, at) => {
        if (value === null) return "-";
        points.push({ text: words(series, at), show: { seriesIndex: i, dataIndex: at } });
        return { value, words: words(series, at) };
      });
      return { type: "bar", name: series.label, data: values, barCategoryGap: "24%", barMaxWidth: 28, itemStyle: { color: levels[i % levels.length] } };
    });
    const option = {
      ...common(theme, [{ yAxisIndex: 0 }]),
      legend: { type: "scroll", top: 0, textStyle: { color: theme.fg }, inactiveColor: theme.soft, pageTextStyle: { color: theme.fg } },
      xAxis: axis(theme, data.unit, { type: "value", min: 0, nameGap: 28 }),
      // The first group is on top, as in the table.
      yAxis: axis(theme, "", { type: "category", data: data.labels, inverse: true, axisLabel: { color: theme.soft, width: 130, overflow: "truncate", interval: 0, hideOverlap: true } }),
      series,
    };
    option.grid = { ...option.grid, left: 8, containLabel: true };
    option.tooltip.formatter = (item) => item.data.words;
    return { option, points };
  }

  const kinds = { stack, roofline, curves, scatter, bars };
  const keys = { "+": 0.6, "=": 0.6, "-": 1 / 0.6, "0": Infinity };

  // Zooms around the middle; an infinite factor shows everything.
  function zoom(chart, factor) {
    for (const [dataZoomIndex, { start, end }] of chart.getOption().dataZoom.entries()) {
      const [middle, half] = [(start + end) / 2, Math.min(50, ((end - start) / 2) * factor)];
      const first = Math.max(0, Math.min(middle - half, 100 - 2 * half));
      chart.dispatchAction({ type: "dataZoom", dataZoomIndex, start: first, end: first + 2 * half });
    }
  }

  // Arrows step through the points, + and - zoom, 0 shows everything.
  function keyboard(element, state) {
    let at = -1;
    element.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const count = state.points.length;
      if (step && count) {
        at = (at + step + count) % count;
        state.chart.dispatchAction({ type: "showTip", ...state.points[at].show });
        spoken.textContent = state.points[at].text;
      } else if (keys[event.key]) {
        zoom(state.chart, keys[event.key]);
      } else if (event.key === "Escape") {
        state.chart.dispatchAction({ type: "hideTip" });
      } else {
        return;
      }
      event.preventDefault();
    });
  }

  function buttons(element, state) {
    const bar = document.createElement("span");
    bar.className = "zoom";
    for (const [text, name, factor] of [["+", "Zoom in", 0.6], ["−", "Zoom out", 1 / 0.6], ["Reset", "Reset zoom", Infinity]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", name);
      button.addEventListener("click", () => zoom(state.chart, factor));
      bar.append(button);
    }
    element.closest("figure").querySelector("figcaption").append(bar);
  }

  function redraw(element, state) {
    const { option, points } = kinds[state.data.kind](state.data, colours());
    state.points = points;
    state.chart.setOption(option, true);
  }

  // Draws the charts in an element, and forgets those that are gone.
  async function draw(root) {
    const echarts = await library;
    for (const [element, state] of drawn) {
      if (!element.isConnected) {
        state.chart.dispose();
        drawn.delete(element);
      }
    }
    for (const element of root.querySelectorAll(".plot")) {
      if (drawn.has(element)) continue;
      const state = { data: JSON.parse(element.dataset.chart), points: [] };
      state.chart = echarts.init(element, null, { renderer: "svg" });
      drawn.set(element, state);
      redraw(element, state);
      keyboard(element, state);
      buttons(element, state);
      new ResizeObserver(() => printing || state.chart.isDisposed() || state.chart.resize()).observe(element);
    }
  }

  function print(on) {
    printing = on;
    for (const [element, state] of drawn) {
      redraw(element, state);
      state.chart.resize(on ? { width: 640 } : { width: "auto" });
    }
  }

  dark.addEventListener("change", () => drawn.forEach((state, element) => redraw(element, state)));
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  const ready = draw(document).catch((error) => {
    for (const element of document.querySelectorAll(".plot")) element.textContent = "This browser cannot draw the chart (" + error + "). Its numbers are in the tables.";
  });
  return { draw, ready };
})();
