// Hovering and zooming. Without this script the page still shows all values.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const kSvg = "http://www.w3.org/2000/svg";

  // Times are picoseconds.
  const printTime = (time) => {
    const units = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3]];
    const [name, size] = units.find((unit) => Math.abs(time) >= unit[1]) || units[3];
    return Number((time / size).toPrecision(4)) + " " + name;
  };

  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };

  const showTip = (event, title, figures, text) => {
    tip.replaceChildren(element("b", title));
    const list = document.createElement("dl");
    for (const [name, value] of figures) list.append(element("dt", name), element("dd", value));
    tip.append(list);
    if (text) tip.append(element("pre", text));
    tip.hidden = false;
    const gap = 14;
    const box = tip.getBoundingClientRect();
    let left = event.clientX + gap;
    let top = event.clientY + gap;
    if (left + box.width > innerWidth - 8) left = Math.max(8, event.clientX - gap - box.width);
    if (top + box.height > innerHeight - 8) top = Math.max(8, event.clientY - gap - box.height);
    tip.style.transform = `translate(${left}px, ${top}px)`;
  };
  const hideTip = () => { tip.hidden = true; };
  addEventListener("scroll", hideTip, { passive: true });

  // The browser's own tooltips would cover these.
  const points = document.querySelectorAll("#front-chart [data-tip]");
  for (const point of points) {
    point.querySelector("title")?.remove();
    const [label, time, memory, schedule, excluded] = data.candidates[Number(point.dataset.tip)];
    const figures = [["time", time], ["memory", memory]];
    if (excluded) figures.push(["not to choose", excluded]);
    point.addEventListener("pointermove", (event) => showTip(event, label, figures, schedule));
    point.addEventListener("pointerleave", hideTip);
  }

  const path = document.querySelector("#path-chart svg");
  if (path && data.path.length > 0) {
    const first = data.path[0][0];
    const total = data.path.at(-1)[1] - first;
    path.addEventListener("pointermove", (event) => {
      const box = path.getBoundingClientRect();
      const time = first + (event.clientX - box.left) / box.width * total;
      const found = data.path.find(([begin, end]) => time >= begin && end > time);
      if (!found || event.clientY > box.bottom) return hideTip();
      const [begin, end, spending, what] = found;
      showTip(event, data.texts[what], [["spent on", data.texts[spending]],
        ["from", printTime(begin)], ["takes", printTime(end - begin)]]);
    });
    path.addEventListener("pointerleave", hideTip);
  }

  const frame = document.getElementById("timeline-chart");
  if (frame && data.timeline) openTimeline(frame);

  function openTimeline(chart) {
    const svg = chart.querySelector("svg");
    const bars = svg.querySelector(".stretched");
    const names = svg.querySelector(".names");
    const over = svg.querySelector(".over");
    const axis = svg.querySelector(".axis-x");
    const { total, tasks, rows } = data.timeline;
    const height = Number(svg.getAttribute("height"));
    const tools = document.querySelector("#timeline .tools");
    const unit = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3]].find((u) => total >= u[1])
      || ["ns", 1e3];
    const byRow = rows.map(() => []);
    tasks.forEach((task, index) => byRow[task[0]].push(index));
    const written = [...names.children];
    let low = 0;
    let high = total;
    let grabbed = null;
    tools.hidden = false;
    svg.style.touchAction = "pan-y";

    function make(parent, name, attributes, text) {
      const made = document.createElementNS(kSvg, name);
      for (const key in attributes) made.setAttribute(key, attributes[key]);
      if (text !== undefined) made.textContent = text;
      parent.append(made);
      return made;
    }
    const width = () => svg.getBoundingClientRect().width;
    const at = (time) => (time - low) / (high - low);

    function drawAxis() {
      axis.replaceChildren();
      const wanted = (high - low) / Math.max(3, Math.min(8, width() / 110));
      const power = 10 ** Math.floor(Math.log10(wanted));
      const step = power * [1, 2, 5, 10].find((factor) => factor * power >= wanted);
      for (let k = Math.ceil(low / step); k * step <= high; ++k) {
        const x = 100 * at(k * step) + "%";
        make(axis, "line", { class: "grid", x1: x, x2: x, y1: 0, y2: height });
        make(axis, "text", { class: "tick", x, y: height, dy: 16, "text-anchor": "middle" },
          Number((k * step / unit[1]).toPrecision(6)).toLocaleString("en"));
      }
    }
    function drawNames() {
      names.replaceChildren();
      const wide = width();
      for (const [row, , begin, end, , kind, , name] of tasks) {
        if (13 > rows[row][1] || end <= low || begin >= high) continue;
        const left = Math.max(0, at(begin));
        const right = Math.min(1, at(end));
        const text = data.texts[name];
        const room = Math.floor(((right - left) * wide - 8) / 6.9);
        if (Math.min(6, text.length) > room) continue;
        const bright = !["compute", "collective"].includes(data.texts[kind]);
        make(names, "text", {
          class: bright ? "bar-name on-bright" : "bar-name", "text-anchor": "middle", x: 50 * (left + right) + "%",
          y: rows[row][0] + rows[row][1] / 2 + 4,
        }, text.length > room ? text.slice(0, room - 1) + "…" : text);
      }
    }
    function draw() {
      const scale = 1e6 / total;
      bars.setAttribute("viewBox", `${low * scale} 0 ${(high - low) * scale} ${height}`);
      over.replaceChildren();
      drawAxis();
      drawNames();
    }
    function show(from, to) {
      const extent = Math.min(total, Math.max(total / 1e5, to - from));
      low = Math.min(Math.max(0, from), total - extent);
      high = low + extent;
      draw();
    }
    function zoom(factor, around) {
      show(around - (around - low) * factor, around + (high - around) * factor);
    }
    function find(event) {
      const box = svg.getBoundingClientRect();
      const y = event.clientY - box.top;
      const row = rows.findIndex(([top, tall]) => y >= top && top + tall > y);
      if (row < 0) return null;
      const time = low + (event.clientX - box.left) / box.width * (high - low);
      const near = 3 / box.width * (high - low);
      let best = null;
      let distance = near;
      for (const index of byRow[row]) {
        const [, , begin, end] = tasks[index];
        const off = Math.max(begin - time, time - end, 0);
        if (distance >= off) [best, distance] = [index, off];
      }
      if (best !== null) return best;
      return byRow[row].find((index) => tasks[index][2] > time) ?? null;  // the next task
    }
    function outline(index) {
      const [row, , begin, end] = tasks[index];
      const left = Math.max(0, Math.min(1, at(begin)));
      const right = Math.max(0, Math.min(1, at(end)));
      make(over, "rect", {
        x: 100 * left + "%", width: 100 * Math.max(right - left, 0.001) + "%",
        y: rows[row][0], height: rows[row][1], rx: 2,
      });
    }
    function connect(from, to) {
      const wide = width();
      const x1 = at(tasks[from][3]) * wide;
      const x2 = at(tasks[to][1]) * wide;
      const y1 = rows[tasks[from][0]][0] + rows[tasks[from][0]][1] / 2;
      const y2 = rows[tasks[to][0]][0] + rows[tasks[to][0]][1] / 2;
      if (0 > x1 || x2 > wide) return;
      make(over, "path", { d: `M${x1} ${y1}C${x1 + 20} ${y1} ${x2 - 20} ${y2} ${x2} ${y2}` });
    }
    function hover(event) {
      const index = find(event);
      over.replaceChildren();
      if (index === null) return hideTip();
      const [row, ready, begin, end, cause, kind, wait, name, bound, id] = tasks[index];
      const text = (i) => data.texts[i];
      const figures = [["where", text(data.timeline.lanes[row])], ["what", text(kind)],
        ["from", printTime(begin)], ["takes", printTime(end - begin)]];
      if (begin > ready) figures.push(["start", printTime(begin - ready)]);
      if (cause >= 0) {
        figures.push(["waited for", `${text(wait)}: ${text(tasks[cause][7])}, `
          + text(data.timeline.lanes[tasks[cause][0]])]);
        outline(cause);
        connect(cause, index);
      }
      if (text(bound)) figures.push(["held back by", text(bound)]);
      outline(index);
      showTip(event, text(name) + (id >= 0 ? ` (task ${id})` : ""), figures);
    }

    svg.addEventListener("pointermove", (event) => {
      if (!grabbed) return hover(event);
      const moved = (event.clientX - grabbed.x) / width() * (grabbed.high - grabbed.low);
      show(grabbed.low - moved, grabbed.high - moved);
    });
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || high - low >= total) return;
      grabbed = { x: event.clientX, low, high };
      svg.setPointerCapture(event.pointerId);
      hideTip();
    });
    svg.addEventListener("pointerup", () => { grabbed = null; });
    svg.addEventListener("pointerleave", () => { hideTip(); over.replaceChildren(); });
    svg.addEventListener("dblclick", () => show(0, total));
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(event.deltaY > 0 ? 1.25 : 0.8,
        low + (event.clientX - box.left) / box.width * (high - low));
    }, { passive: false });
    const actions = {
      in: () => zoom(0.5, (low + high) / 2),
      out: () => zoom(2, (low + high) / 2),
      all: () => show(0, total),
    };
    for (const button of tools.querySelectorAll("button")) {
      button.addEventListener("click", actions[button.dataset.zoom]);
    }
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => {
      const step = (high - low) / 5;
      const keys = {
        "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.all,
        ArrowLeft: () => show(low - step, high - step),
        ArrowRight: () => show(low + step, high + step),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    new ResizeObserver(draw).observe(svg);
    // Paper is narrower than the screen, and only the names made without this script fit any width.
    addEventListener("beforeprint", () => {
      show(0, total);
      names.replaceChildren(...written);
    });
    addEventListener("afterprint", draw);
  }
})();
