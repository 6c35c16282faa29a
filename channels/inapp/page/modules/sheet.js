// The side sheet: details of a tool call, and how the program is.

import { get } from "./api.js";
import { el } from "./dom.js";
import { link } from "./link.js";
import { toolName, toolState } from "./message.js";
import { exactTimeOf, lengthOf, momentOf, number, word, wordOr } from "./words.js";

const sheet = document.getElementById("sheet");
const title = document.getElementById("sheet-title");
const content = document.getElementById("sheet-body");
let opener = null;
let shown = null;

export function openSheet(name, heading, ...nodes) {
  if (sheet.hidden) opener = document.activeElement;
  const again = shown === name;
  shown = name;
  title.textContent = heading;
  content.replaceChildren(...nodes);
  if (!again) content.scrollTop = 0;
  if (!sheet.hidden) return;
  sheet.hidden = false;
  document.getElementById("sheet-close").focus();
}

/** Whether the sheet shows this now. */
export const isShown = (name) => shown === name;

export function close() {
  if (sheet.hidden) return;
  sheet.hidden = true;
  shown = null;
  opener?.focus();
}

document.getElementById("sheet-close").addEventListener("click", close);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
});

export function showTool(call) {
  const output = call.output ?? call.detail ?? "";
  openSheet(
    "tool",
    toolName(call.name),
    el("p", { class: "fact-detail" }, el("code", { dir: "ltr" }, call.name), ` · ${toolState(call.state)}`),
    ...(call.args
      ? [el("h3", {}, word("tool.args")), el("pre", { dir: "ltr" }, JSON.stringify(call.args, null, 2))]
      : []),
    el("h3", {}, word("tool.output")),
    output ? el("pre", { dir: "auto" }, output) : el("p", {}, word("tool.output.none")),
  );
}

/** A hit that is no message: where it was found. */
export function showHit(hit) {
  const path = /^file:([^#]+)/.exec(hit.ref)?.[1];
  const address = path && `/api/files/${path.split("/").map(encodeURIComponent).join("/")}`;
  openSheet(
    "hit",
    hit.title || hit.ref,
    el("p", { class: "fact-detail" }, el("code", { dir: "ltr" }, hit.ref)),
    el("h3", {}, word("tool.output")),
    el("pre", { dir: "auto" }, hit.snippet),
    path ? el("p", {}, el("a", { href: address, target: "_blank", rel: "noopener" }, word("search.open_file"))) : "",
  );
}

export async function showStatus() {
  if (shown !== "status") openSheet("status", word("status.title"), el("div", { class: "skeleton" }));
  let nodes;
  try {
    const [status, { runs }] = await Promise.all([get("/api/status"), get("/api/runs")]);
    nodes = [...channels(status.channels), ...next(status.next_jobs), ...lastRuns(runs), ...program(status)];
  } catch {
    nodes = [
      el("p", {}, word("error.load")),
      el("button", { type: "button", class: "button", onclick: showStatus }, word("error.retry")),
    ];
  }
  if (shown === "status") openSheet("status", word("status.title"), ...nodes);
}

/** Shows the state again when something changed while the sheet is open. */
export function refreshStatus() {
  if (shown === "status") showStatus();
}

const DOTS = { connected: "good", off: "off" };

function channels(list = []) {
  const rows = list.map((channel) =>
    el(
      "div",
      {},
      el(
        "div",
        { class: "fact" },
        el("dt", {}, wordOr(`channel.${channel.channel}`, channel.channel)),
        el(
          "dd",
          {},
          el("span", { class: `dot ${DOTS[channel.state] ?? ""}`, "aria-hidden": "true" }),
          wordOr(`channel.state.${channel.state}`, channel.state),
        ),
      ),
      [channel.detail, channel.remedy].filter(Boolean).map((line) => el("p", { class: "fact-detail", dir: "auto" }, line)),
      channel.state === "logged_out"
        ? el("button", { type: "button", class: "button", onclick: () => showLink(channel.channel) }, word("link.start"))
        : null,
      channel.last_receive_at
        ? el("p", { class: "fact-detail" }, `${word("status.received")}: `, moment(channel.last_receive_at))
        : null,
    ),
  );
  return section("status.channels", rows, "status.channels.none");
}

/** The code to link a channel with; the phone scans it here. */
function showLink(channel) {
  const heading = word("link.title", { channel: wordOr(`channel.${channel}`, channel) });
  openSheet("link", heading);
  link(channel, (...nodes) => openSheet("link", heading, ...nodes), () => shown === "link");
}

function next(jobs = []) {
  const rows = jobs.map((job) => fact(job.name, moment(job.at ?? job.next_at)));
  return section("status.next", rows, "status.next.none");
}

function lastRuns(runs = []) {
  const rows = runs
    .slice(0, 8)
    .map((run) => fact(run.name, [wordOr(`run.${run.outcome}`, run.outcome ?? ""), " · ", moment(run.started_at ?? run.due_at)]));
  return section("status.runs", rows, "status.runs.none");
}

function program(status) {
  const rows = [fact(word("status.version"), status.version)];
  if (status.uptime_seconds !== undefined) rows.push(fact(word("status.since"), lengthOf(status.uptime_seconds)));
  const waiting = status.queue?.waiting;
  if (typeof waiting === "number") rows.push(fact(word("status.queue"), number(waiting)));
  return section("status.program", rows);
}

function section(key, rows, emptyKey) {
  return [el("h3", {}, word(key)), rows.length ? el("dl", { class: "facts" }, rows) : el("p", {}, word(emptyKey))];
}

function fact(name, value) {
  return el("div", { class: "fact" }, el("dt", { dir: "auto" }, name), el("dd", {}, value));
}

function moment(text) {
  const at = new Date(text);
  return el("time", { datetime: text, title: exactTimeOf(at) }, momentOf(at));
}

