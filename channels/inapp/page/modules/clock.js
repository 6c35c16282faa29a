// What runs by the clock: every job with its next time and last outcome, to start and to switch.

import { get, post } from "./api.js";
import { el, withCode } from "./dom.js";
import { isShown, openSheet } from "./sheet.js";
import { exactTimeOf, momentOf, word, wordOr } from "./words.js";

const KINDS = ["heartbeat", "procedure", "built-in"];
const RUNS_SHOWN = 10;
let said = "";

export async function showClock() {
  if (!isShown("clock")) {
    said = "";
    openSheet("clock", word("clock.title"), el("div", { class: "skeleton" }));
  }
  let nodes;
  try {
    const [{ jobs }, { runs }] = await Promise.all([get("/api/jobs"), get("/api/runs")]);
    nodes = said ? [el("p", { class: "clock-said", role: "status", dir: "auto" }, said)] : [];
    for (const kind of KINDS) nodes.push(...group(kind, jobs.filter((job) => job.kind === kind)));
    nodes.push(...history(runs));
  } catch {
    nodes = [
      el("p", {}, word("error.load")),
      el("button", { type: "button", class: "button", onclick: showClock }, word("error.retry")),
    ];
  }
  if (isShown("clock")) openSheet("clock", word("clock.title"), ...nodes);
}

/** Shows the jobs again when something changed while they are open. */
export function refreshClock() {
  if (isShown("clock")) showClock();
}

function group(kind, jobs) {
  const heading = el("h3", {}, word(`clock.${kind}`));
  if (!jobs.length) return [heading, el("p", { class: "fact-detail" }, word(`clock.${kind}.none`))];
  return [heading, el("ul", { class: "jobs" }, jobs.map(card))];
}

function card(job) {
  const name = nameOf(job);
  return el(
    "li",
    { class: job.enabled ? "job" : "job off" },
    el(
      "div",
      { class: "job-head" },
      el("strong", { dir: "auto" }, name),
      job.fault ? null : toggle(job, name),
    ),
    job.schedule === name ? null : el("p", { class: "fact-detail" }, el("bdi", {}, job.schedule || word("clock.by_hand"))),
    job.fault ? el("p", { class: "job-fault", dir: "auto" }, withCode(job.fault)) : null,
    job.next_at ? el("p", { class: "fact-detail" }, `${word("clock.next")}: `, moment(job.next_at)) : null,
    el(
      "div",
      { class: "job-foot" },
      el("p", { class: "fact-detail" }, job.last ? outcome(job.last) : word("clock.never")),
      job.fault
        ? null
        : el(
            "button",
            {
              type: "button",
              class: "button small",
              "aria-label": word("clock.run.of", { name }),
              onclick: (event) => act(event, `/api/heartbeat/${encodeURIComponent(job.name)}/run`, { kind: job.kind }, "clock.started", name),
            },
            word("clock.run"),
          ),
    ),
  );
}

function toggle(job, name) {
  return el("button", {
    type: "button",
    role: "switch",
    class: "switch",
    "aria-checked": String(job.enabled),
    "aria-label": word("clock.switch", { name }),
    title: word(job.enabled ? "clock.on" : "clock.off"),
    onclick: (event) =>
      act(
        event,
        `/api/heartbeat/${encodeURIComponent(job.name)}/switch`,
        { on: !job.enabled, kind: job.kind },
        job.enabled ? "clock.switched_off" : "clock.switched_on",
        name,
      ),
  });
}

async function act(event, path, body, done, name) {
  event.currentTarget.disabled = true;
  try {
    await post(path, body);
    said = word(done, { name });
  } catch (error) {
    said = error.status ? error.message : word("error.load");
  }
  await showClock();
}

function outcome(run) {
  const state = run.outcome ?? "running";
  const dot = { ok: "good", skipped: "off", missed: "", error: "" }[state] ?? "off";
  return [
    el("span", { class: `dot ${dot}`, "aria-hidden": "true" }),
    wordOr(`run.${state}`, state),
    " · ",
    moment(run.started_at ?? run.due_at),
  ];
}

function history(runs) {
  const heading = el("h3", {}, word("clock.history"));
  if (!runs.length) return [heading, el("p", { class: "fact-detail" }, word("status.runs.none"))];
  const rows = runs.slice(0, RUNS_SHOWN).map((run) => {
    const name = nameOf(run);
    const shown = el("bdi", {}, name);
    return el(
      "li",
      { class: "ran" },
      el(
        "p",
        {},
        run.conversation ? el("a", { href: `#/c/${encodeURIComponent(run.conversation)}` }, shown) : shown,
      ),
      el("p", { class: "fact-detail" }, outcome(run)),
      run.reason ? el("p", { class: "fact-detail", dir: "auto" }, run.reason) : null,
    );
  });
  return [heading, el("ul", { class: "jobs" }, rows)];
}

function nameOf(job) {
  return job.kind === "built-in" ? wordOr(`clock.job.${job.name}`, job.name) : job.name;
}

function moment(text) {
  const at = new Date(text);
  return el("time", { datetime: text, title: exactTimeOf(at) }, momentOf(at));
}
