// The chats of all channels, and what a search finds.

import { get } from "./api.js";
import { channelMark, el, reconcile } from "./dom.js";
import { showHit } from "./sheet.js";
import { exactTimeOf, number, shortTimeOf, word, wordOr } from "./words.js";

const sessions = document.getElementById("sessions");
const hits = document.getElementById("hits");
const query = document.getElementById("query");
const clear = document.getElementById("query-clear");
const rows = new Map();

export function showSessions(state, onOpen) {
  sessions.setAttribute("aria-busy", String(!state.listLoaded));
  if (!state.listLoaded) {
    if (!sessions.childElementCount) sessions.append(...Array.from({ length: 5 }, () => el("li", { class: "skeleton" })));
    return;
  }
  const nodes = state.sorted().map((summary) => sessionRow(state, summary, onOpen));
  if (state.listFault && !nodes.length) {
    nodes.push(
      el(
        "li",
        { class: "empty" },
        el("p", {}, word("error.load")),
        el("button", { type: "button", class: "button", onclick: () => state.loadList() }, word("error.retry")),
      ),
    );
  } else if (!nodes.length) {
    nodes.push(
      el("li", { class: "empty" }, el("h2", {}, word("list.empty.title")), el("p", {}, word("list.empty.text"))),
    );
  }
  reconcile(sessions, nodes);
}

function sessionRow(state, summary, onOpen) {
  const unread = state.unread(summary);
  const signature = JSON.stringify([summary, unread, summary.id === state.current]);
  const known = rows.get(summary.id);
  if (known?.signature === signature) return known.row;
  const at = new Date(summary.updated_at);
  const channel = wordOr(`channel.${summary.channel}`, summary.channel);
  const button = el(
    "button",
    {
      type: "button",
      class: `session ${unread ? "unread" : ""}`,
      "aria-current": summary.id === state.current ? "true" : false,
      "data-id": summary.id,
      onclick: () => onOpen(summary.id),
    },
    channelMark(summary.channel),
    el("span", { class: "title", dir: "auto" }, summary.title || word("chat.new")),
    el("time", { datetime: summary.updated_at, title: exactTimeOf(at) }, shortTimeOf(at)),
    el("span", { class: "last", dir: "auto" }, oneLine(summary.last_text)),
    el("span", { class: "unseen" }, channel),
    unread
      ? el("span", { class: "badge" }, el("span", { "aria-hidden": "true" }, number(unread)), el("span", { class: "unseen" }, word("unread", { count: unread })))
      : null,
  );
  let row = known?.row;
  if (row) {
    const focused = row.contains(document.activeElement);
    row.replaceChildren(button);
    if (focused) button.focus();
  } else row = el("li", {}, button);
  rows.set(summary.id, { row, signature });
  return row;
}

/** Text as one line, without the marks of its formats. */
function oneLine(text = "") {
  return text
    .slice(0, 600)
    .replace(/^\s*[-+]\s/gm, "")
    .replace(/```\w*/g, " ")
    .replace(/[*`>|]+|^#+\s/gm, "")
    .replace(/\s+/g, " ")
    .trim();
}

export function setUpSearch(state, onOpen) {
  let timer = null;
  let asked = 0;

  async function search() {
    const words = query.value.trim();
    const mine = ++asked;
    const active = words !== "";
    clear.hidden = query.value === "";
    sessions.hidden = active;
    hits.hidden = !active;
    if (!active) return hits.replaceChildren();
    try {
      const found = await get(`/api/search?${new URLSearchParams({ query: words, limit: "30" })}`);
      if (mine === asked) hits.replaceChildren(...results(state, words, found, onOpen));
    } catch {
      if (mine !== asked) return;
      hits.replaceChildren(
        el("div", { class: "empty" }, el("p", {}, word("error.load")), el("button", { type: "button", class: "button", onclick: search }, word("error.retry"))),
      );
    }
  }

  query.addEventListener("input", () => {
    clearTimeout(timer);
    if (query.value.trim() === "") return search();
    if (hits.hidden) {
      hits.hidden = false;
      sessions.hidden = true;
      hits.replaceChildren(el("p", { class: "note" }, word("search.running")));
    }
    timer = setTimeout(search, 200);
  });
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    search();
  });
  const reset = () => {
    query.value = "";
    search();
  };
  clear.addEventListener("click", () => {
    reset();
    query.focus();
  });
  query.addEventListener("keydown", (event) => {
    if (event.key === "Escape") reset();
  });
}

function results(state, words, found, onOpen) {
  const nodes = [];
  if (found.indexing) nodes.push(el("p", { class: "note" }, word("search.indexing")));
  if (!found.hits.length) {
    const none = el("h2", {}, word("search.none", { query: words }));
    return [...nodes, el("div", { class: "empty" }, none, el("p", {}, word("search.none.hint")))];
  }
  nodes.push(el("p", { class: "hits-count" }, word("search.count", { count: found.hits.length })));
  return [...nodes, ...found.hits.map((hit) => hitRow(state, hit, words, onOpen))];
}

/** The text with the words that were looked for marked, as far as they stand there letter by letter. */
function marked(text, words) {
  const parts = words.split(/[\s\p{P}]+/u).filter(Boolean);
  if (!parts.length) return [text];
  const found = new RegExp(`(${parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")})`, "giu");
  return text.split(found).map((part, index) => (index % 2 ? el("mark", {}, part) : part));
}

function hitRow(state, hit, words, onOpen) {
  const place = /^conversation:([^#]+)(?:#(\d+))?/.exec(hit.ref);
  const summary = place && state.summaries.get(place[1]);
  const own = hit.role === "owner" || (hit.role === "user" && summary?.channel === "inapp");
  const speaker = hit.role === "assistant" ? word("role.agent") : own ? word("role.you") : hit.sender;
  const at = hit.at ? new Date(hit.at) : null;
  const open = () => (place ? onOpen(place[1], place[2] ? Number(place[2]) : undefined) : showHit(hit));
  return el(
    "button",
    { type: "button", class: "hit", onclick: open },
    el(
      "span",
      { class: "from" },
      el("bdi", {}, summary?.title || hit.title || hit.source),
      at ? el("time", { datetime: hit.at, title: exactTimeOf(at) }, shortTimeOf(at)) : null,
    ),
    el("span", { class: "snippet" }, speaker ? [el("bdi", {}, speaker), ": "] : null, el("bdi", {}, marked(oneLine(hit.snippet), words))),
  );
}
