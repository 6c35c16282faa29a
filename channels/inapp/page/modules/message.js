// One message as it stands in a conversation.

import { filePath } from "./api.js";
import { el, icon, linkAddresses, sanitised } from "./dom.js";
import { exactTimeOf, timeOf, word, wordOr } from "./words.js";
import { showTool } from "./sheet.js";

const FINAL_STATES = { failed: "state.failed", cancelled: "state.cancelled", expired: "state.expired" };
const REFUSALS = {
  empty: "refused.empty",
  too_large: "refused.too_large",
  no_conversation: "refused.no_conversation",
  no_upload: "refused.no_upload",
};

export function daySeparator(text) {
  return el("h2", { class: "day" }, text);
}

/**
 * A saved message. `follows`: it stands under one of the same sender. `own`: the owner wrote it. `named`: its sender is
 * not who the chat is named after.
 */
export function savedMessage(message, { follows, own, named }) {
  const kind = message.role === "assistant" ? "agent" : message.role === "system" ? "notice" : "person";
  const at = new Date(message.at);
  const article = el("article", {
    class: `message ${kind} ${follows ? "follows" : ""}`,
    "data-n": message.n,
    "aria-label": kind === "agent" ? word("role.agent") : own ? word("role.you") : message.sender,
  });
  if (kind === "agent" && !follows) article.append(icon("hoopoe", "small-mark"));
  if (kind === "person" && !own && named && !follows && message.sender) {
    article.append(el("p", { class: "sender" }, el("bdi", {}, message.sender)));
  }
  if (message.tool_calls?.length) article.append(toolCards(message.tool_calls));
  if (message.text || !message.attachments?.length) article.append(body(message.text, message.html));
  if (message.attachments?.length) article.append(attached(message.attachments));
  const time = el("time", { datetime: message.at, title: exactTimeOf(at) }, timeOf(at));
  const fault = FINAL_STATES[message.state];
  const stopped = message.flags?.includes("stopped") && word("state.stopped");
  const state = fault ? el("span", { class: "bad" }, word(fault)) : kind === "person" && own && sign("tick", "state.saved");
  article.append(el("p", { class: "under" }, time, state, stopped));
  return article;
}

/** A message on its way. */
export function waitingMessage(item, { follows, onRetry, onRemove }) {
  const at = new Date(item.at);
  const time = el("time", { datetime: item.at, title: exactTimeOf(at) }, timeOf(at));
  const under = el("p", { class: "under" });
  if (item.state === "refused") {
    const reason = REFUSALS[item.code] ? word(REFUSALS[item.code]) : "";
    under.append(
      el("span", { class: "bad" }, `${word("sent.refused")} ${reason}`),
      el("button", { type: "button", class: "button", onclick: onRetry }, word("sent.retry")),
      el("button", { type: "button", class: "button", onclick: onRemove }, word("sent.remove")),
    );
  } else {
    under.append(time, item.state === "sent" ? sign("tick", "state.saved") : sign("clock", "state.queued"));
  }
  return el(
    "article",
    { class: `message person ${follows ? "follows" : ""}`, "data-key": item.key, "aria-label": word("role.you") },
    item.text || !item.files?.length ? body(item.text) : null,
    item.files?.length ? attached(item.files) : null,
    under,
  );
}

/** What a running turn has shown so far; call the returned `update` with the turn as it grows. */
export function liveMessage() {
  const tools = el("div", { class: "tools" });
  const text = el("div", { class: "plain", dir: "auto" });
  const article = el(
    "article",
    { class: "message agent live", "aria-label": word("role.agent") },
    icon("hoopoe", "small-mark"),
    tools,
    el("div", { class: "body" }, text),
  );
  const update = (turn) => {
    tools.hidden = turn.tools.size === 0;
    const signature = JSON.stringify([...turn.tools.values()]);
    if (tools.dataset.signature !== signature) {
      tools.replaceChildren(...[...turn.tools.values()].map(toolCard));
      tools.dataset.signature = signature;
    }
    const shown = text.textContent;
    if (turn.text === shown) return;
    if (turn.text.startsWith(shown)) text.append(turn.text.slice(shown.length));
    else text.textContent = turn.text;
  };
  return { article, update };
}

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** The files of a message; one that is in the workspace can be opened. */
function attached(files) {
  return el("ul", { class: "attached" }, files.map((file) => el("li", {}, attachment(file))));
}

function attachment(file) {
  if (!file.path) return el("span", { class: "file" }, icon("attach"), el("bdi", {}, file.name));
  const href = filePath(file.path);
  if (PICTURES.has(file.mime)) {
    const picture = el("img", { src: href, alt: file.name, loading: "lazy" });
    return el("a", { href, target: "_blank", rel: "noopener" }, picture);
  }
  return el("a", { class: "file", href, target: "_blank", rel: "noopener" }, icon("attach"), el("bdi", {}, file.name));
}

function sign(name, key) {
  return el("span", { title: word(key) }, icon(name), el("span", { class: "unseen" }, word(key)));
}

function body(text, html) {
  const element = el("div", { class: "body", dir: "auto" });
  if (html === undefined) element.append(el("div", { class: "plain", dir: "auto" }, text));
  else element.append(...sanitised(html));
  linkAddresses(element);
  for (const block of element.querySelectorAll("pre")) addCopyButton(block);
  return element;
}

function addCopyButton(block) {
  if (!navigator.clipboard) return;
  const box = el("div", { class: "code-box", dir: "ltr" });
  block.replaceWith(box);
  const button = el("button", { type: "button", class: "button" }, word("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = word("copied");
    setTimeout(() => (button.textContent = word("copy")), 2000);
  });
  box.append(block, button);
}

function toolCards(calls) {
  return el("div", { class: "tools" }, calls.map((call) => toolCard({ ...call, state: call.outcome })));
}

const TOOL_ICONS = { running: "tool", success: "tick" };

function toolCard(call) {
  const bad = !(call.state in TOOL_ICONS);
  const detail = call.detail || firstLine(bad ? call.output : Object.values(call.args ?? {}).find(isText));
  const seconds = call.took_seconds >= 0.1 ? word("seconds", { seconds: Number(call.took_seconds.toFixed(1)) }) : null;
  return el(
    "button",
    { type: "button", class: `tool ${bad ? "bad" : call.state}`, onclick: () => showTool(call) },
    icon(TOOL_ICONS[call.state] ?? "warning"),
    el("span", { class: "name" }, toolName(call.name)),
    detail ? el("bdi", { class: "what" }, detail) : null,
    call.state === "success"
      ? el("span", { class: "unseen" }, word("tool.state.success"))
      : el("span", { class: "state" }, toolState(call.state)),
    seconds ? el("span", { class: "state" }, seconds) : null,
  );
}

export const toolName = (name) => wordOr(`tool.${name}`, name);
export const toolState = (state) => wordOr(`tool.state.${state}`, state);
export const toolDoing = (name) => wordOr(`doing.${name}`, word("doing.tool", { name }));

const isText = (value) => typeof value === "string" && value.trim() !== "";
const firstLine = (text) => (text ?? "").trim().split("\n", 1)[0].slice(0, 160);
