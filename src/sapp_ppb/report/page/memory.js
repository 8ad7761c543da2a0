// The memory of the chosen stage over time, and faintly that of the others.

/** What the stages hold during the span that the timeline shows. */
class Memory {
  constructor(data, view, canvas) {
    Object.assign(this, { data, view, canvas, height: 230 });
    const used = data.peak_mb.map((peak, stage) => (data.limit_mb ? peak / data.limit_mb[stage] : peak));
    this.stage = used.indexOf(Math.max(...used));
    this.top = 1.06 * Math.max(...data.peak_mb, ...(data.limit_mb || []));
  }

  y(mb) { return this.height - 8 - (mb / this.top) * (this.height - AXIS - 8); }

  draw() {
    const { data, view } = this;
    const colours = themeColours();
    const context = prepared(this.canvas, GUTTER + view.plot, this.height);
    drawAxis(context, view, this.height, colours);
    const step = stepFor(this.top, 5);
    context.textAlign = "right";
    context.fillStyle = colours.quiet;
    context.fillText("MB", GUTTER - 8, AXIS / 2 - 1);
    for (let mb = 0; mb <= this.top; mb += step) {
      context.fillStyle = colours.quiet;
      context.fillText(mb.toLocaleString("en-US"), GUTTER - 8, this.y(mb));
      context.fillStyle = colours.line;
      context.fillRect(GUTTER, Math.round(this.y(mb)), view.plot, 1);
    }
    context.save();
    context.beginPath();
    context.rect(GUTTER, AXIS - 4, view.plot, this.height);
    context.clip();
    for (let stage = 0; stage < data.stages; stage++) if (stage !== this.stage) this.curve(context, stage, colours, false);
    this.curve(context, this.stage, colours, true);
    if (data.limit_mb) this.limit(context, colours);
    context.textAlign = "left";
    context.fillStyle = colours.text;
    context.fillText(`stage ${this.stage}`, GUTTER + 6, this.height - 18);
    context.restore();
  }

  curve(context, stage, colours, chosen) {
    const { data, view } = this;
    context.beginPath();
    if (data.ops) this.steps(context, data.ops.memory_ms[stage], data.ops.memory_mb[stage]);
    else {
      const width = data.makespan_ms / data.bins.count;
      this.steps(context, data.bins.memory_mb[stage].map((_, bin) => bin * width), data.bins.memory_mb[stage]);
    }
    context.lineWidth = chosen ? 1.8 : 1;
    context.globalAlpha = chosen ? 1 : Math.min(0.25, 5 / data.stages);
    context.strokeStyle = chosen ? colours.curve : colours.quiet;
    context.stroke();
    if (!chosen) return void (context.globalAlpha = 1);
    context.lineTo(view.x(data.makespan_ms), this.y(0));
    context.lineTo(view.x(0), this.y(0));
    context.closePath();
    context.fillStyle = colours.curve;
    context.globalAlpha = 0.22;
    context.fill();
    context.globalAlpha = 1;
  }

  /** Steps of a curve; within one column of pixels its lowest, highest and last value stand for all. */
  steps(context, times, values) {
    const { data, view } = this;
    let at = Math.max(0, lastAtMost(times, view.start));
    let last = values[at];
    context.moveTo(view.x(times[at]), this.y(last));
    for (at += 1; at < times.length && times[at - 1] <= view.end; ) {
      const x = view.x(times[at]);
      context.lineTo(x, this.y(last));
      let [low, high] = [values[at], values[at]];
      const column = times[at] + 0.5 * view.msPerPixel;
      for (; at < times.length && times[at] <= column; at++) {
        last = values[at];
        low = Math.min(low, last);
        high = Math.max(high, last);
      }
      if (low < high) {
        context.lineTo(x, this.y(low));
        context.lineTo(x, this.y(high));
      }
      context.lineTo(x, this.y(last));
    }
    context.lineTo(view.x(data.makespan_ms), this.y(values.at(-1)));
  }

  limit(context, colours) {
    const y = this.y(this.data.limit_mb[this.stage]);
    context.strokeStyle = colours.limit;
    context.lineWidth = 1.5;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(GUTTER, y);
    context.lineTo(GUTTER + this.view.plot, y);
    context.stroke();
    context.setLineDash([]);
    context.textAlign = "left";
    context.fillStyle = colours.limit;
    context.fillText(`limit ${this.data.mb(this.data.limit_mb[this.stage])}`, GUTTER + 6, y - 8);
  }

  said() {
    const peak = this.data.peak_mb[this.stage];
    if (!this.data.limit_mb) return `peak ${this.data.mb(peak)}, no limit`;
    const limit = this.data.limit_mb[this.stage];
    return `peak ${this.data.mb(peak)} of ${this.data.mb(limit)}, ${this.data.mb(Math.abs(limit - peak))} ${peak > limit ? "over" : "free"}`;
  }

  linesAt(ms) {
    const { data, stage } = this;
    const times = data.ops && data.ops.memory_ms[stage];
    const held = times
      ? data.ops.memory_mb[stage][Math.max(0, lastAtMost(times, ms))]
      : data.bins.memory_mb[stage][Math.min(data.bins.count - 1, Math.floor((ms / data.makespan_ms) * data.bins.count))];
    const limit = data.limit_mb ? ` of ${data.mb(data.limit_mb[stage])}` : "";
    return [`stage ${stage}: ${data.mb(held)}${limit}`, `at ${data.ms(ms)}${times ? "" : ", at most"}`];
  }
}
