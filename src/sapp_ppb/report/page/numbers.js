"use strict";
// The numbers of the page, and what is said of them. What they mean stands in report/page_data.py.

const KINDS = "FBIW";
const WORKS = ["forward", "backward", "input gradient", "weight gradient"]; // of the kinds

/** Numbers of the page with what follows from them; null for a page without a plan. */
function readData() {
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!data) return null;
  const digits = data.makespan_ms >= 1000 ? 1 : data.makespan_ms >= 10 ? 2 : 5;
  const numbers = new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  data.ms = (value) => `${numbers.format(value)} ms`;
  data.mb = (value) => `${value.toLocaleString("en-US", { maximumFractionDigits: 1 })} MB`;
  data.inPath = new Set(data.path);
  if (data.ops) {
    data.rows = [];
    let first = 0;
    for (const length of data.ops.row_length) {
      data.rows.push({ first, after: first + length });
      first += length;
    }
    data.index = new Map(data.ops.name.map((name, at) => [name, at]));
    data.ends = data.ops.start_ms.map((start, at) => start + durationOf(data, opOf(data, data.ops.name[at])));
    data.partner = new Map(); // ops that overlap run from the same start to the same end
    data.ops.pair.forEach((at, pair) => {
      data.partner.set(at, at + 1).set(at + 1, at);
      data.ends[at] = data.ends[at + 1] = data.ops.start_ms[at] + data.ops.pair_ms[pair];
    });
  }
  return data;
}

/** Kind, cell, micro-batch, stage and text of the op that a number names. */
function opOf(data, name) {
  const kind = name % 4;
  const rest = Math.floor(name / 4);
  const cell = rest % data.cells.length;
  const piece = Math.floor(rest / data.cells.length);
  const microBatch = Math.floor(piece / data.sequence_chunks);
  const chunk = data.sequence_chunks > 1 ? `.${piece % data.sequence_chunks}` : "";
  return { kind, cell, microBatch, ...data.cells[cell], number: `${microBatch}${chunk}`, text: `${cell}${KINDS[kind]}${microBatch}${chunk}` };
}

/** How long an op takes by itself. */
const durationOf = (data, op) => data.duration_ms[op.kind * data.cells.length + op.cell];

/** Number of the op of a text such as 17F3, or 17F3.1 for a sequence chunk; undefined for what is none. */
function nameOf(data, text) {
  const found = /^\s*(\d+)\s*([FBIW])\s*(\d+)(?:\.(\d+))?\s*$/i.exec(text);
  if (!found) return undefined;
  const [cell, microBatch, chunk] = [Number(found[1]), Number(found[3]), Number(found[4] || 0)];
  const piece = microBatch * data.sequence_chunks + chunk;
  const name = (piece * data.cells.length + cell) * 4 + KINDS.indexOf(found[2].toUpperCase());
  const exists = cell < data.cells.length && chunk < data.sequence_chunks && data.index.has(name);
  return exists ? name : undefined;
}

/** Last place in an ascending list at or below a value; -1 for none. */
function lastAtMost(list, value, first = 0, after = list.length) {
  while (first < after) {
    const middle = (first + after) >> 1;
    if (list[middle] <= value) first = middle + 1;
    else after = middle;
  }
  return first - 1;
}

/** Lines that say when an op runs and what it waited for. */
function opLines(data, at) {
  const op = opOf(data, data.ops.name[at]);
  const start = data.ops.start_ms[at];
  const takes = data.ends[at] - start;
  const again = op.kind === 1 || op.kind === 2 ? Math.min(takes, data.recompute_ms[op.cell]) : 0;
  const partner = data.partner.get(at);
  const piece = data.sequence_chunks > 1 ? `, sequence chunk ${op.number.split(".")[1]}` : "";
  return [
    `${op.text}: ${WORKS[op.kind]} of micro-batch ${op.microBatch}${piece}`,
    `cell ${op.cell}: stage ${op.stage}, chunk ${op.chunk}, layers: ${op.layers}`,
    `${data.ms(start)} to ${data.ms(data.ends[at])}, takes ${data.ms(takes)}` +
      (again > 0 ? `, of which ${data.ms(again)} recompute` : ""),
    waitText(data, at),
    ...(partner === undefined ? [] : [`together with ${opOf(data, data.ops.name[partner]).text}, which it overlaps`]),
    ...(data.inPath.has(data.ops.name[at]) ? ["on the longest path"] : []),
  ];
}

/** What an op waited for, in words. */
function waitText(data, at) {
  const waited = data.ops.waited_for[at];
  if (waited < 0) return "waited for nothing: it is the first";
  const op = opOf(data, data.ops.name[at]);
  const other = opOf(data, data.ops.name[waited]);
  const first = Math.min(at, data.partner.get(at) ?? at);
  if (waited === first - 1 && other.stage === op.stage) return `waited for ${other.text}, before it on its stage`;
  const sent = data.ops.start_ms[at] - data.ends[waited];
  const hop = sent > 1e-6 * data.makespan_ms ? `, and ${data.ms(sent)} for it to arrive` : "";
  const where = other.stage === op.stage ? "" : ` of stage ${other.stage}`;
  // With blocking sends a forward's output leaves only after the backward behind it.
  if (op.kind === 0 && other.kind !== 0) return `waited for ${other.text}${where}, which holds its input back${hop}`;
  return `waited for its input from ${other.text}${where}${hop}`;
}

/** Lines about a moment in which a stage does nothing. */
function idleLines(data, stage, before, next) {
  const row = data.rows[stage];
  const from = before < row.first ? 0 : data.ends[before];
  const last = next >= row.after;
  const until = last ? Math.max(data.makespan_ms, from) : data.ops.start_ms[next];
  return [
    `stage ${stage} idle for ${data.ms(until - from)}`,
    `${data.ms(from)} to ${data.ms(until)}`,
    last ? "its ops are done" : `${opOf(data, data.ops.name[next]).text} ${waitText(data, next)}`,
  ];
}

/** Lines about what a stage does after its last op. */
function extraLines(data, stage) {
  const [from, until] = data.extra_ms[stage];
  const last = until >= data.step_ms ? ["the step ends with it"] : [];
  return [`stage ${stage} outside the pipeline`, `${data.ms(from)} to ${data.ms(until)}, takes ${data.ms(until - from)}`, ...last];
}

/** Lines about one span of a stage on a page that is thinned. */
function binLines(data, stage, bin) {
  const width = data.makespan_ms / data.bins.count;
  const shares = Object.entries(data.bins.percent).map(([name, rows]) => [name, rows[stage][bin]]);
  const idle = data.bins.idle_percent[stage][bin];
  return [
    `stage ${stage}, ${data.ms(bin * width)} to ${data.ms((bin + 1) * width)}`,
    [...shares, ["idle", idle]].map(([name, share]) => `${name} ${share}%`).join(", "),
    `holds ${data.mb(data.bins.memory_mb[stage][bin])} at most`,
  ];
}
