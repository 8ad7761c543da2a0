// What the drawings share: their sizes and colours, the axis of time, and the span that is shown.

const GUTTER = 66; // pixels left of the plot, for labels; the memory below has the same
const AXIS = 24; // pixels above the rows
const WIDEST = 8e6; // pixels; browsers end near 16 million

/** Distance of the marks of an axis: 1, 2 or 5 times a power of ten, so that few enough fit. */
function stepFor(span, marks) {
  const power = 10 ** Math.floor(Math.log10(span / marks));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => span / step <= marks);
}

/** Make a canvas as sharp as the screen and give its context, cleared. */
function prepared(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return context;
}

/** Colours of the theme that is on. */
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "text", "quiet", "line", "idle", "path", "limit", "link", "curve"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Part of the step that is shown: a native scroll bar moves it, the zoom widens what it scrolls over. */
class View {
  constructor(data, scroller, changed) {
    Object.assign(this, { data, scroller, changed, zoom: 1 });
    this.spacer = scroller.querySelector(".spacer");
    scroller.addEventListener("scroll", () => {
      this.start = scroller.scrollLeft * this.msPerPixel;
      changed();
    });
    new ResizeObserver(() => this.setZoom(this.zoom, this.start)).observe(scroller);
    this.setZoom(1, 0);
  }

  get msPerPixel() { return this.data.step_ms / (this.plot * this.zoom); }
  get end() { return this.start + this.plot * this.msPerPixel; }
  x(ms) { return GUTTER + (ms - this.start) / this.msPerPixel; }
  ms(x) { return this.start + (x - GUTTER) * this.msPerPixel; }

  setZoom(zoom, start) {
    // Kept, because asking the scroller lays the page out anew.
    this.plot = Math.max(50, this.scroller.clientWidth - GUTTER);
    this.zoom = Math.min(Math.max(1, zoom), Math.max(1, WIDEST / this.plot));
    this.spacer.style.width = `${GUTTER + this.plot * this.zoom}px`;
    this.scroller.scrollLeft = start / this.msPerPixel;
    this.start = this.scroller.scrollLeft * this.msPerPixel;
    this.changed();
  }

  /** Zoom by a factor and keep what is at a pixel where it is; the middle when none is given. */
  zoomAt(factor, x = GUTTER + this.plot / 2) {
    const kept = this.ms(x);
    const zoom = Math.min(Math.max(1, this.zoom * factor), Math.max(1, WIDEST / this.plot));
    this.setZoom(zoom, kept - ((x - GUTTER) * this.data.step_ms) / (this.plot * zoom));
  }

  show(from, until) { this.setZoom(this.data.step_ms / (until - from), from); }
}

/** Marks and lines of time above a plot. */
function drawAxis(context, view, height, colours) {
  const step = stepFor(view.end - view.start, Math.max(2, view.plot / 110));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  context.textAlign = "center";
  for (let at = Math.ceil(view.start / step); at * step <= view.end; at++) {
    const x = Math.round(view.x(at * step)) + 0.5;
    context.fillStyle = colours.line;
    context.fillRect(x - 0.5, AXIS - 5, 1, height - AXIS + 5);
    const text = (at * step).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    const half = context.measureText(text).width / 2;
    if (x - half < GUTTER - 4 || x + half > GUTTER + view.plot) continue;
    context.fillStyle = colours.quiet;
    context.fillText(text, x, AXIS / 2 - 1);
  }
}
