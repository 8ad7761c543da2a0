// The timeline of all stages.

/** The drawing of the stages and what the pointer and the keys do to it. */
class Timeline {
  constructor(data, view, canvas, shown) {
    Object.assign(this, { data, view, canvas, shown, kept: -1, drag: null });
    const most = data.stages > 100 ? 8 : 12;
    this.row = Math.min(36, Math.max(most, Math.floor(520 / data.stages)));
    this.height = AXIS + this.row * data.stages + 4;
  }

  draw() {
    const { data, view, row } = this;
    this.colours = themeColours();
    const context = prepared(this.canvas, GUTTER + view.plot, this.height);
    drawAxis(context, view, this.height, this.colours);
    this.labels(context);
    context.save();
    context.beginPath();
    context.rect(GUTTER, AXIS, view.plot, this.height - AXIS);
    context.clip();
    for (let stage = 0; stage < data.stages; stage++) {
      const top = AXIS + stage * row;
      if (this.shown.idle()) {
        context.fillStyle = this.colours.idle;
        const left = Math.max(GUTTER, view.x(0));
        context.fillRect(left, top + 1, Math.min(GUTTER + view.plot, view.x(data.makespan_ms)) - left, row - 2);
      }
      if (data.ops) this.ops(context, stage, top);
    }
    if (!data.ops) this.bins(context);
    data.extra_ms.forEach((span, stage) => this.extra(context, stage, span));
    if (this.shown.path()) this.path(context);
    if (this.kept >= 0) this.outline(context, this.kept);
    if (this.drag) {
      context.fillStyle = this.colours.link;
      context.globalAlpha = 0.25;
      context.fillRect(Math.min(this.drag.from, this.drag.to), AXIS, Math.abs(this.drag.to - this.drag.from), this.height);
    }
    context.restore();
  }

  labels(context) {
    context.textAlign = "left";
    context.fillStyle = this.colours.quiet;
    context.fillText("ms", 6, AXIS / 2 - 1);
    const every = Math.ceil(13 / this.row);
    context.textAlign = "right";
    for (let stage = 0; stage < this.data.stages; stage += every) {
      context.fillText(this.row >= 18 ? `stage ${stage}` : `${stage}`, GUTTER - 8, AXIS + (stage + 0.5) * this.row);
    }
  }

  ops(context, stage, top) {
    const { data, view } = this;
    const { first, after } = data.rows[stage];
    const dim = this.shown.path();
    const until = view.end;
    const from = lastAtMost(data.ops.start_ms, view.start, first, after);
    for (let at = Math.max(first, Math.min(from, data.partner.get(from) ?? from)); at < after; at++) {
      if (data.ops.start_ms[at] > until) break;
      const name = data.ops.name[at];
      const op = opOf(data, name);
      const right = view.x(data.ends[at]);
      if (dim) context.globalAlpha = data.inPath.has(name) ? 1 : 0.35;
      const band = this.band(at, top);
      const left = this.block(context, op, view.x(data.ops.start_ms[at]), right, band);
      if (band.high >= 8 && right - left >= 14) this.name(context, op, left, right, band);
    }
    context.globalAlpha = 1;
  }

  /** Where an op is drawn in its row: the ops of a pair that overlaps share it. */
  band(at, top) {
    const partner = this.data.partner.get(at);
    const high = this.row - 4;
    if (partner === undefined) return { top: top + 2, high };
    return { top: partner > at ? top + 2 : top + 2 + high / 2, high: high / 2 };
  }

  /** Draw one op; gives where the part that is no recompute begins. */
  block(context, op, left, right, band) {
    const { data } = this;
    const gap = right - left > 4 ? 1 : 0;
    context.fillStyle = data.colours[WORKS[op.kind]][op.chunk];
    context.fillRect(left, band.top, right - left - gap, band.high);
    const again = op.kind === 1 || op.kind === 2 ? data.recompute_ms[op.cell] / this.view.msPerPixel : 0;
    if (!this.shown.recompute() || again <= 0) return left;
    context.fillStyle = data.colours.recompute[op.chunk];
    context.fillRect(left, band.top, Math.min(again, right - left - gap), band.high);
    return left + again;
  }

  name(context, op, left, right, band) {
    const from = Math.max(left, GUTTER);
    const until = Math.min(right, GUTTER + this.view.plot);
    const text = [op.text, op.number].find((text) => context.measureText(text).width + 6 < until - from);
    if (!text) return;
    context.textAlign = "center";
    context.fillStyle = this.data.text_colours[WORKS[op.kind]];
    context.fillText(text, (from + until) / 2, band.top + band.high / 2 + 0.5);
  }

  /** A page that is thinned: what each span of time goes to, stacked from the bottom. */
  bins(context) {
    const { data, view, row } = this;
    const { count, percent } = data.bins;
    const width = data.makespan_ms / count;
    const first = Math.max(0, Math.floor(view.start / width));
    const last = Math.min(count - 1, Math.floor(view.end / width));
    const length = width / view.msPerPixel + 0.3; // no seam between two
    const below = Array.from({ length: data.stages }, () => new Float64Array(count));
    context.globalAlpha = this.shown.path() ? 0.5 : 1;
    for (const [name, rows] of Object.entries(percent)) {
      const work = name === "recompute" && !this.shown.recompute() ? "backward" : name;
      context.fillStyle = data.colours[work][data.chunks >> 1];
      for (let stage = 0; stage < data.stages; stage++) {
        const bottom = AXIS + (stage + 1) * row - 1;
        for (let bin = first; bin <= last; bin++) {
          const high = (rows[stage][bin] / 100) * (row - 2);
          if (high === 0) continue;
          below[stage][bin] += high;
          context.fillRect(view.x(bin * width), bottom - below[stage][bin], length, high);
        }
      }
    }
    context.globalAlpha = 1;
  }

  /** What a stage does after its last op, hatched: it is no part of the pipeline. */
  extra(context, stage, [from, until]) {
    const { data, view, row } = this;
    const left = view.x(from);
    const length = view.x(until) - left;
    if (length <= 0) return;
    const top = AXIS + stage * row + 2;
    context.save();
    context.beginPath();
    context.rect(left, top, length, row - 4);
    context.clip();
    [context.fillStyle, context.strokeStyle] = data.extra_colours;
    context.fillRect(left, top, length, row - 4);
    context.lineWidth = 1;
    context.beginPath();
    const first = Math.max(left, GUTTER) - row;
    for (let x = first - (first % 6); x < Math.min(left + length, GUTTER + view.plot); x += 6) {
      context.moveTo(x, top + row - 4);
      context.lineTo(x + row - 4, top);
    }
    context.stroke();
    context.restore();
  }

  /** The longest path: its ops outlined, or drawn through when rows are thin, and joined. */
  path(context) {
    const { data, view, row } = this;
    context.strokeStyle = this.colours.path;
    context.lineWidth = 1.5;
    context.beginPath();
    data.path.forEach((name, at) => {
      const op = opOf(data, name);
      const y = AXIS + (op.stage + 0.5) * row;
      const left = view.x(data.path_start_ms[at]);
      const right = view.x(data.path_end_ms[at]);
      if (at === 0) context.moveTo(left, y);
      context.lineTo(left, y);
      if (data.ops && row >= 12) this.frame(context, left, right, y);
      else context.lineTo(right, y);
    });
    context.stroke();
  }

  /** Lines above and below an op, and beside it where it is wide enough for its colour to be seen. */
  frame(context, left, right, y) {
    const half = this.row / 2 - 2;
    if (right >= GUTTER && left <= GUTTER + this.view.plot) {
      if (right - left > 8) context.rect(left, y - half, right - left - 1, 2 * half);
      else {
        for (const edge of [y - half, y + half]) {
          context.moveTo(left, edge);
          context.lineTo(right, edge);
        }
      }
    }
    context.moveTo(right, y);
  }

  /** The op that is kept: a dark line inside a light one, seen on every colour. */
  outline(context, at) {
    const op = opOf(this.data, this.data.ops.name[at]);
    const left = this.view.x(this.data.ops.start_ms[at]);
    const length = Math.max(3, (this.data.ends[at] - this.data.ops.start_ms[at]) / this.view.msPerPixel);
    for (const [colour, width] of [["#ffffff", 5], ["#10263a", 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(left, AXIS + op.stage * this.row + 2, length, this.row - 4);
    }
  }

  /** What is under a pixel: {stage, op, lines}; null beside the rows. */
  under(x, y) {
    const { data, view } = this;
    const stage = Math.floor((y - AXIS) / this.row);
    const ms = view.ms(x);
    if (x < GUTTER || stage < 0 || stage >= data.stages || ms < 0 || ms > data.step_ms) return null;
    const [from, until] = data.extra_ms[stage] ?? [Infinity, Infinity];
    if (ms >= from && ms <= until && until > from) return { stage, op: -1, lines: extraLines(data, stage) };
    if (ms > data.makespan_ms) return null;
    if (!data.ops) {
      const bin = Math.min(data.bins.count - 1, Math.floor((ms / data.makespan_ms) * data.bins.count));
      return { stage, op: -1, lines: binLines(data, stage, bin) };
    }
    const { first, after } = data.rows[stage];
    const at = lastAtMost(data.ops.start_ms, ms, first, after);
    const near = 2 * view.msPerPixel; // an op of a pixel can be met
    const upper = y - AXIS - stage * this.row < this.row / 2;
    for (const next of [at, at + 1]) {
      if (next < first || next >= after) continue;
      const partner = data.partner.get(next) ?? next;
      const one = upper ? Math.min(next, partner) : Math.max(next, partner);
      const early = next > at ? near : 0;
      if (ms >= data.ops.start_ms[one] - early && ms <= data.ends[one] + near) return { stage, op: one, lines: opLines(data, one) };
    }
    return { stage, op: -1, lines: idleLines(data, stage, at, at + 1) };
  }
}
