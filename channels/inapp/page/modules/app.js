// Puts the parts together: the address decides what is open, events of the server change what is known.

import { listen, post } from "./api.js";
import { refreshClock, showClock } from "./clock.js";
import { Composer } from "./composer.js";
import { showBanner } from "./consent.js";
import { Conversation } from "./conversation.js";
import { withCode } from "./dom.js";
import { setUpSearch, showSessions } from "./list.js";
import { Outbox } from "./outbox.js";
import { setUpRemoval, showRemoval } from "./removal.js";
import * as sheet from "./sheet.js";
import { State } from "./state.js";
import { word, wordOr } from "./words.js";

const app = document.getElementById("app");
const byId = (id) => document.getElementById(id);
const OFFLINE_MS = 4000;
const desk = matchMedia("(min-width: 640px)");

const state = new State((what) => {
  if (what === "removed") leaveRemoved();
  else if (what === "list") renderList();
  else renderSoon();
});
const outbox = new Outbox(renderSoon, begun);
const composer = new Composer((text, files) => {
  outbox.add(state.current, text, files);
  conversation.toEnd();
});
const conversation = new Conversation(state, outbox, (text) => composer.put(text));

let planned = false;

/** Many events may come at once: the page is drawn once for all of them. */
function renderSoon() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    conversation.render();
    renderFoot();
    showBanner(state, open);
  });
}

function renderList() {
  showSessions(state, open);
  renderSoon();
}

function renderFoot() {
  const summary = state.summaries.get(state.current);
  const channel = summary?.channel ?? "inapp";
  const here = channel === "inapp" && state.current !== null;
  const scheduled = channel === "heartbeat" || channel === "procedure";
  byId("composer").hidden = !here;
  byId("elsewhere").hidden = here || state.current === null;
  byId("elsewhere").textContent = scheduled
    ? word("elsewhere.scheduled")
    : word("elsewhere.chat", { channel: wordOr(`channel.${channel}`, channel) });
  byId("stop").hidden = !here || !conversation.running;
  showRemoval(summary);
}

/** The conversation that is open may be gone: then nothing is open. */
function leaveRemoved() {
  if (state.current === null || state.current.startsWith("draft:") || state.summaries.has(state.current)) return;
  location.hash = "#/";
}

/** What the address says: `#/c/<id>`, `#/c/<id>/<n>`, `#/new`, or nothing. */
function route() {
  const [, kind, id, n] = location.hash.split("/");
  if (kind === "new") return { id: newId, n: undefined };
  if (kind !== "c" || !id) return { id: null, n: undefined };
  return { id: decodeURIComponent(id), n: n ? Number(n) : undefined };
}

let newId = "draft:1";

function go() {
  const { id, n } = route();
  if (id === null && desk.matches && state.listLoaded) return openFirst();
  sheet.close();
  state.current = id;
  app.dataset.view = id === null ? "list" : "chat";
  byId("go-chats").setAttribute("aria-current", "page");
  composer.show(id);
  conversation.show(id, n);
  if (id !== null && !id.startsWith("draft:")) state.open(id, n).then(() => state.markRead(id));
  renderList();
  renderFoot();
  if (id !== null && desk.matches && !byId("composer").hidden) composer.focus();
}

/** On a desk something is always open: the latest conversation of this page, else a new one. */
function openFirst() {
  const latest = state.sorted().find((summary) => summary.channel === "inapp");
  history.replaceState(null, "", latest ? `#/c/${encodeURIComponent(latest.id)}` : "#/new");
  go();
}

function open(id, n) {
  const address = `#/c/${encodeURIComponent(id)}${n === undefined ? "" : `/${n}`}`;
  if (location.hash === address) go();
  else location.hash = address;
}

/** A new conversation got its id with its first message. */
function begun(draft, id) {
  if (state.current !== draft) return;
  newId = `draft:${Number(draft.split(":")[1]) + 1}`;
  state.opened.set(id, state.opened.get(id) ?? { messages: new Map(), fault: null, loading: false });
  history.replaceState(null, "", `#/c/${encodeURIComponent(id)}`);
  state.current = id;
  composer.show(id);
  conversation.show(id);
  renderList();
}

let offlineTimer = null;

function showLine(kind) {
  const line = byId("line-state");
  line.hidden = kind === null;
  if (kind !== null) line.replaceChildren(...withCode(word(kind)));
}

function onLine(now) {
  conversation.connected = now === "connected";
  renderSoon();
  if (now === "connected") {
    clearTimeout(offlineTimer);
    offlineTimer = null;
    showLine(null);
    state.loadList().then(() => state.current === null && go());
    outbox.flush();
  } else if (now === "no_rights") {
    clearTimeout(offlineTimer);
    showLine("line.no_rights");
  } else if (!navigator.onLine) showLine("line.offline");
  else if (offlineTimer === null) {
    showLine("line.reconnecting");
    offlineTimer = setTimeout(() => showLine("line.offline"), OFFLINE_MS);
  }
}

function onEvent(kind, data) {
  const { message } = data;
  if (kind === "message" && message.role === "user") outbox.arrived(data.conversation, message);
  state.take(kind, data);
  if (kind === "status") sheet.refreshStatus();
  if (kind === "done") refreshClock();
}

byId("new").addEventListener("click", () => {
  location.hash = "#/new";
  composer.focus();
});
byId("back").addEventListener("click", () => (location.hash = "#/"));
byId("go-chats").addEventListener("click", () => {
  sheet.close();
  if (!desk.matches) location.hash = "#/";
});
byId("go-clock").addEventListener("click", showClock);
byId("go-status").addEventListener("click", sheet.showStatus);
byId("go-language").addEventListener("click", () => {
  document.cookie = `language=${word("language.other.code")}; path=/; max-age=31536000; samesite=strict`;
  location.reload();
});
byId("stop").addEventListener("click", async () => {
  const id = state.current;
  await post("/api/stop", { conversation: id }).catch(() => state.faults.set(id, word("error.stop")));
  renderSoon();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden || state.current === null) return;
  state.markRead(state.current);
  renderList();
});
addEventListener("hashchange", go);
desk.addEventListener("change", go);

setUpSearch(state, open);
setUpRemoval(state);
renderList();
go();
listen(onEvent, onLine);
