// The controls, what the pointer and the keys do, and what is copied.

const byId = (id) => document.getElementById(id);

/** Lines as text, one element each; a line that holds a name has a direction of its own. */
function fill(element, lines) {
  element.replaceChildren(...lines.map((line) => {
    const row = document.createElement("div");
    row.dir = "auto";
    row.textContent = line;
    return row;
  }));
}

function showTip(lines, event) {
  const tip = byId("tip");
  tip.hidden = !lines;
  if (!lines) return;
  fill(tip, lines);
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 6);
  const below = event.clientY + 18 + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${below ? event.clientY + 18 : Math.max(4, event.clientY - tip.offsetHeight - 10)}px`;
}

async function copyText(button) {
  const pre = button.closest("figure").querySelector("pre");
  try {
    await navigator.clipboard.writeText(pre.textContent);
  } catch {
    const range = document.createRange(); // a page from a disk may have no clipboard
    range.selectNodeContents(pre);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

/** Everything that reacts. */
function start(data) {
  let asked = false;
  const redraw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      timeline.draw();
      memory.draw();
    });
  };
  const scroller = byId("timeline-view");
  const canvas = scroller.querySelector("canvas");
  const shown = Object.fromEntries(["path", "recompute", "idle"].map((name) => [name, () => byId(`show-${name}`)?.checked ?? false]));
  const view = new View(data, scroller, redraw);
  const timeline = new Timeline(data, view, canvas, shown);
  const memory = new Memory(data, view, byId("memory-view"));

  const chooseStage = (stage) => {
    memory.stage = stage;
    byId("memory-stage").value = stage;
    byId("memory-said").textContent = memory.said();
    redraw();
  };
  const keep = (at) => {
    timeline.kept = at;
    fill(byId("details"), at < 0 ? [] : opLines(data, at));
    if (at >= 0) {
      chooseStage(opOf(data, data.ops.name[at]).stage);
      byId("details").append(steps(at));
    }
    redraw();
  };
  const goTo = (at) => {
    const from = data.ops.start_ms[at];
    const long = data.ends[at] - from || data.makespan_ms / 100;
    if (from < view.start || from + long > view.end || long < 30 * view.msPerPixel) view.show(from - 8 * long, from + 9 * long);
    keep(at);
  };
  const steps = (at) => {
    const stage = opOf(data, data.ops.name[at]).stage;
    const { first, after } = data.rows[stage];
    const box = document.createElement("div");
    box.className = "controls";
    for (const [text, to] of [["Op before", at - 1], ["Op after", at + 1], ["What it waited for", data.ops.waited_for[at]]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.disabled = to < 0 || (text !== "What it waited for" && (to < first || to >= after));
      button.addEventListener("click", () => {
        goTo(to);
        const same = [...byId("details").querySelectorAll("button")].find((one) => one.textContent === text);
        if (same) same.focus({ preventScroll: true });
      });
      box.append(button);
    }
    return box;
  };

  const place = (event, of) => {
    const box = of.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    const [x] = place(event, canvas);
    if (event.button !== 0 || event.pointerType === "touch" || x < GUTTER) return;
    timeline.drag = { from: x, to: x };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event, canvas);
    if (timeline.drag) {
      timeline.drag.to = Math.min(Math.max(x, GUTTER), GUTTER + view.plot);
      showTip([`${data.ms(Math.abs(timeline.drag.to - timeline.drag.from) * view.msPerPixel)}`], event);
      return redraw();
    }
    const found = timeline.under(x, y);
    showTip(found && found.lines, event);
  });
  canvas.addEventListener("pointerup", () => {
    const drag = timeline.drag;
    timeline.drag = null;
    timeline.dragged = Boolean(drag) && Math.abs(drag.to - drag.from) > 4;
    if (timeline.dragged) view.show(view.ms(Math.min(drag.from, drag.to)), view.ms(Math.max(drag.from, drag.to)));
    redraw();
  });
  canvas.addEventListener("pointercancel", () => { timeline.drag = null; redraw(); });
  canvas.addEventListener("click", (event) => {
    if (timeline.dragged) return void (timeline.dragged = false);
    const found = timeline.under(...place(event, canvas));
    if (data.ops) keep(found ? found.op : -1);
    if (found) chooseStage(found.stage);
  });
  canvas.addEventListener("dblclick", () => view.setZoom(1, 0));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    view.zoomAt(2 ** (-event.deltaY / 240), Math.max(GUTTER, place(event, canvas)[0]));
  }, { passive: false });
  scroller.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const factor = { "+": 2, "=": 2, "-": 0.5 }[event.key];
    if (factor) view.zoomAt(factor);
    else if (event.key === "0") view.setZoom(1, 0);
    else if (event.key === "Escape") keep(-1);
    else return;
    event.preventDefault();
  });
  for (const one of [canvas, memory.canvas]) one.addEventListener("pointerleave", () => showTip(null));
  scroller.addEventListener("scroll", () => showTip(null));
  memory.canvas.addEventListener("pointermove", (event) => {
    const ms = view.ms(place(event, memory.canvas)[0]);
    showTip(ms >= view.start && ms <= data.makespan_ms ? memory.linesAt(ms) : null, event);
  });

  for (const button of document.querySelectorAll("[data-zoom]")) {
    const factor = Number(button.dataset.zoom);
    button.addEventListener("click", () => (factor ? view.zoomAt(factor) : view.setZoom(1, 0)));
  }
  for (const name of Object.keys(shown)) byId(`show-${name}`)?.addEventListener("change", redraw);
  for (const button of document.querySelectorAll("[data-op]")) {
    button.addEventListener("click", () => {
      goTo(data.index.get(nameOf(data, button.dataset.op)));
      byId("timeline").scrollIntoView();
    });
  }
  if (data.ops) {
    byId("find").addEventListener("change", (event) => {
      const name = nameOf(data, event.target.value);
      if (name !== undefined) goTo(data.index.get(name));
      else if (event.target.value.trim()) fill(byId("details"), [`There is no op ${event.target.value.trim()} in this step.`]);
    });
  } else byId("bin-ms").textContent = data.ms(data.makespan_ms / data.bins.count).replace(" ms", "");
  byId("memory-stage").addEventListener("change", (event) => chooseStage(Number(event.target.value)));
  chooseStage(memory.stage);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  for (const [event, print] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(event, () => {
      document.documentElement.classList.toggle("print", print);
      timeline.draw();
      memory.draw();
    });
  }
}

for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copyText(button));
const pageData = readData();
if (pageData) start(pageData);
