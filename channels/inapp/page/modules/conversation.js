// The open conversation: its messages, where it is scrolled to, and what the agent is doing.

import { ConsentCard } from "./consent.js";
import { channelMark, el, icon, reconcile } from "./dom.js";
import { daySeparator, liveMessage, savedMessage, toolDoing, waitingMessage } from "./message.js";
import { unfinished } from "./state.js";
import { dayOf, sameDay, word, wordOr } from "./words.js";

const NEAR_END_PX = 80;
const LONG_WAIT_MS = 15_000;
const scroller = document.getElementById("scroller");
const list = document.getElementById("messages");
const pill = document.getElementById("pill");
const pillText = document.getElementById("pill-text");
const doing = document.getElementById("doing");

export class Conversation {
  constructor(state, outbox, onExample) {
    this.state = state;
    this.outbox = outbox;
    this.onExample = onExample;
    this.id = null;
    this.cache = new Map();
    this.live = null;
    this.atEnd = true;
    this.seen = 0;
    this.sought = null;
    this.connected = false;
    pill.addEventListener("click", () => this.toEnd());
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.atEnd && this.sought === null && this.stick()).observe(scroller);
  }

  /** `id` of a conversation, `draft:...` for one that is not begun, null for none; `around` is a message to show. */
  show(id, around) {
    if (id !== this.id) {
      this.cache.clear();
      this.live = null;
      list.replaceChildren();
      this.seen = 0;
      this.atEnd = true;
    }
    this.id = id;
    this.sought = around ?? null;
    this.render();
  }

  render() {
    const id = this.id;
    const opened = this.state.opened.get(id);
    const live = this.state.turns.has(id);
    // A turn that is seen live has a row already when it called tools: it is shown once.
    const messages = [...(opened?.messages.values() ?? [])]
      .filter((message) => !(live && message.role === "assistant" && unfinished(message)))
      .sort((a, b) => a.n - b.n);
    const ids = new Set(messages.map((message) => message.id));
    const waiting = this.outbox.of(id).filter((item) => !ids.has(item.messageId));
    const before = { height: scroller.scrollHeight, top: scroller.scrollTop, first: this.first };
    reconcile(list, this.nodes(messages, waiting, opened));
    this.head();
    this.showDoing(messages, waiting);
    this.place(before, messages, waiting);
  }

  nodes(messages, waiting, opened) {
    if (opened?.fault && !messages.length) return [this.faultNode(opened.fault)];
    const turn = this.state.turns.get(this.id);
    const fault = this.state.faults.get(this.id);
    if (!messages.length && !waiting.length && !turn) {
      if (opened?.loading) return this.cached("loading", "", () => el("div", {}, [1, 2, 3].map(() => el("div", { class: "skeleton wide" }))));
      return this.cached(`empty ${this.id === null}`, "", () => this.emptyNode());
    }
    const nodes = [];
    if (opened?.loading) nodes.push(...this.cached("older", "", () => el("div", { class: "skeleton wide" })));
    else if (opened?.fault) nodes.push(this.faultNode(opened.fault));
    let last = null;
    const summary = this.state.summaries.get(this.id);
    for (const message of messages) {
      const at = new Date(message.at);
      if (last === null || !sameDay(new Date(last.at), at)) {
        nodes.push(...this.cached(`day ${at.toDateString()}`, dayOf(at), () => daySeparator(dayOf(at))));
        last = null;
      }
      const options = {
        follows: last?.role === message.role && last?.sender === message.sender,
        own: (summary?.channel === "inapp" && message.role === "user") || message.role === "owner",
        named: message.sender !== summary?.title,
      };
      nodes.push(...this.cached(`n ${message.n}`, JSON.stringify([message, options]), () => savedMessage(message, options)));
      last = message;
    }
    for (const item of waiting) {
      const at = new Date(item.at);
      if (last === null || !sameDay(new Date(last.at), at)) {
        nodes.push(...this.cached(`day ${at.toDateString()}`, dayOf(at), () => daySeparator(dayOf(at))));
      }
      const options = { follows: last?.role === "user", onRetry: () => this.outbox.retry(item), onRemove: () => this.outbox.remove(item) };
      nodes.push(...this.cached(`key ${item.key}`, JSON.stringify([item, options]), () => waitingMessage(item, options)));
      last = { role: "user", at: item.at };
    }
    if (turn && (turn.text || turn.tools.size)) {
      this.live ??= liveMessage();
      this.live.update(turn);
      nodes.push(this.live.article);
    } else this.live = null;
    for (const question of this.state.questions.values()) {
      if (question.conversation === this.id) nodes.push(this.consentNode(question));
    }
    if (fault) nodes.push(...this.cached("fault", fault, () => el("div", { class: "fault", role: "alert" }, icon("warning"), el("span", { dir: "auto" }, fault))));
    return nodes;
  }

  /** The node of a key, made anew when its signature changed. */
  cached(key, signature, make) {
    let entry = this.cache.get(key);
    if (entry?.signature !== signature) {
      entry = { signature, node: make() };
      this.cache.set(key, entry);
    }
    return [entry.node];
  }

  /** One card for as long as it is shown: it remembers since when it was seen. */
  consentNode(question) {
    const key = `consent ${question.id}`;
    const card = this.cache.get(key) ?? new ConsentCard(question, (state) => this.state.asked(this.id, { ...question, state }));
    this.cache.set(key, card);
    card.update(question);
    return card.article;
  }

  faultNode(fault) {
    if (fault === "gone") return el("div", { class: "fault" }, icon("warning"), el("span", {}, word("error.gone")));
    const again = () => {
      const opened = this.state.opened.get(this.id);
      opened.fault = null;
      return opened.messages.size ? this.state.older(this.id) : this.state.open(this.id);
    };
    return el(
      "div",
      { class: "fault", role: "alert" },
      icon("warning"),
      el("span", {}, word("error.load")),
      el("button", { type: "button", class: "button", onclick: again }, word("error.retry")),
    );
  }

  emptyNode() {
    if (this.id === null) return el("div", { class: "empty" }, icon("hoopoe", "brand"), el("p", {}, word("chat.pick")));
    const example = (label, text) => el("button", { type: "button", onclick: () => this.onExample(text) }, label);
    return el(
      "div",
      { class: "empty" },
      icon("hoopoe", "brand"),
      el("h2", {}, word("chat.empty.title")),
      el("p", {}, word("chat.empty.text")),
      el(
        "div",
        { class: "suggestions" },
        example(word("chat.empty.first"), word("chat.empty.first.text")),
        example(word("chat.empty.second"), word("chat.empty.second.text")),
      ),
    );
  }

  head() {
    const summary = this.state.summaries.get(this.id);
    const channel = summary?.channel ?? "inapp";
    const mark = document.getElementById("chat-mark");
    const title = summary?.title || (this.id === null ? word("app.name") : word("chat.new"));
    document.getElementById("chat-title").textContent = title;
    document.getElementById("chat-detail").textContent = wordOr(`channel.${channel}`, channel);
    if (mark.dataset.channel === channel) return;
    const picture = channelMark(channel);
    mark.className = picture.className;
    mark.dataset.channel = channel;
    mark.replaceChildren(...picture.childNodes);
  }

  /** The line that says what happens now. */
  showDoing(messages, waiting) {
    const text = this.doingText(messages, waiting);
    if (doing.textContent !== text) doing.textContent = text;
    doing.classList.toggle("on", text !== "");
  }

  doingText(messages, waiting) {
    if (this.id === null || !this.connected) return "";
    if (this.state.openQuestions().some((question) => question.conversation === this.id)) return word("doing.consent");
    const turn = this.state.turns.get(this.id);
    const running = turn && [...turn.tools.values()].findLast((tool) => tool.state === "running");
    if (running) return toolDoing(running.name);
    if (turn) return turn.text ? "" : word("doing.thinking");
    if (waiting.some((item) => item.state === "sent")) return word("doing.thinking");
    const last = messages.at(-1);
    if (!last || !unfinished(last) || this.state.faults.has(this.id)) return "";
    const long = last.state === "waiting" && Date.now() - new Date(last.at) > LONG_WAIT_MS;
    return word(long ? "doing.waiting" : "doing.thinking");
  }

  get running() {
    return this.state.turns.has(this.id);
  }

  /** Keeps what is being read in its place; only at the end new messages push it up. */
  place(before, messages, waiting) {
    const first = messages[0]?.n;
    const count = (messages.at(-1)?.n ?? 0) + waiting.length;
    if (this.sought !== null && this.state.opened.get(this.id)?.messages.has(this.sought)) {
      const found = list.querySelector(`[data-n="${this.sought}"]`);
      found.scrollIntoView({ block: "center" });
      found.classList.add("found");
      this.sought = null;
      this.atEnd = this.isAtEnd();
    } else if (this.atEnd) this.stick();
    else if (before.first !== undefined && first < before.first) {
      scroller.scrollTop = before.top + scroller.scrollHeight - before.height;
    }
    this.first = first;
    if (this.atEnd) this.seen = count;
    this.showPill(count - this.seen);
  }

  showPill(fresh) {
    pill.hidden = this.atEnd || !list.querySelector(".message");
    pillText.textContent = fresh > 0 ? word("pill", { count: fresh }) : word("pill.down");
  }

  isAtEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END_PX;
  }

  stick() {
    scroller.scrollTop = scroller.scrollHeight;
  }

  toEnd() {
    this.atEnd = true;
    this.render();
  }

  scrolled() {
    const atEnd = this.isAtEnd();
    if (scroller.scrollTop < 400 && this.id !== null && this.state.opened.has(this.id) && !atEnd) this.state.older(this.id);
    if (atEnd === this.atEnd) return;
    this.atEnd = atEnd;
    this.render();
  }
}
