// What the page knows: conversations, the messages that are loaded, and what running turns have shown so far.

import { conversationPath, get } from "./api.js";
import { load, save } from "./stored.js";

const PAGE = 50;
const LIST = 100;
const UNFINISHED = new Set(["waiting", "running"]);

/** Whether a turn still works on the message. */
export const unfinished = (message) => UNFINISHED.has(message.state);

export class State {
  constructor(onChange) {
    this.onChange = onChange;
    this.summaries = new Map();
    this.opened = new Map();
    this.turns = new Map();
    this.faults = new Map();
    this.questions = new Map();
    this.read = load("read", null);
    this.current = null;
    this.listFault = false;
    this.listLoaded = false;
  }

  /** Newest first. */
  sorted() {
    return [...this.summaries.values()].sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1));
  }

  async loadList() {
    try {
      const { conversations } = await get(`/api/conversations?limit=${LIST}`);
      for (const summary of conversations) this.know(summary);
      this.listFault = false;
      if (this.read === null) {
        this.read = {};
        for (const summary of conversations) this.read[summary.id] = summary.message_count;
        save("read", this.read);
      }
    } catch {
      this.listFault = true;
    }
    this.listLoaded = true;
    this.onChange("list");
  }

  /** Takes a summary; one from an event may come without a title, or tell of an earlier message. */
  know(summary) {
    const before = this.summaries.get(summary.id);
    const title = summary.title || before?.title || "";
    const count = Math.max(summary.message_count ?? 0, before?.message_count ?? 0);
    this.summaries.set(summary.id, { ...before, ...summary, title, message_count: count });
  }

  unread(summary) {
    if (summary.id === this.current && !document.hidden) return 0;
    return Math.max(0, summary.message_count - (this.read?.[summary.id] ?? 0));
  }

  markRead(id) {
    const count = this.summaries.get(id)?.message_count;
    if (count === undefined || this.read === null || this.read[id] === count) return;
    this.read[id] = count;
    save("read", this.read);
  }

  /** Loads the newest messages of a conversation, or those from a little before number `around`. */
  async open(id, around) {
    let opened = this.opened.get(id);
    if (opened?.messages.size && (around === undefined || opened.messages.has(around))) return;
    opened ??= { messages: new Map(), fault: null, loading: false };
    this.opened.set(id, opened);
    let count = this.summaries.get(id)?.message_count;
    await this.fetch(id, opened, async () => {
      if (count === undefined) count = (await get(conversationPath(id, 1, 1))).message_count ?? Infinity;
      const newest = Number.isFinite(count) ? Math.max(1, count - PAGE + 1) : undefined;
      opened.reached = around === undefined ? newest : Math.max(1, Math.min(around - 10, newest ?? around));
      return [opened.reached, undefined];
    });
    // All of the newest were removed: what is left stands before them.
    while (!opened.fault && !opened.messages.size && opened.reached > 1) await this.older(id);
  }

  async older(id) {
    const opened = this.opened.get(id);
    // Numbers of removed messages are missing: what was asked for counts, not only what came.
    const first = Math.min(opened.reached ?? Infinity, ...opened.messages.keys());
    if (opened.loading || opened.fault || !(first > 1) || !Number.isFinite(first)) return;
    const from = Math.max(1, first - PAGE);
    await this.fetch(id, opened, async () => [from, first - 1]);
    if (!opened.fault) opened.reached = from;
  }

  async fetch(id, opened, range) {
    opened.loading = true;
    opened.fault = null;
    this.onChange("messages");
    try {
      const [from, to] = await range();
      const found = await get(conversationPath(id, from, to));
      for (const message of found.messages) opened.messages.set(message.n, message);
      const { messages, ...summary } = found;
      this.know(summary);
    } catch (error) {
      opened.fault = error.status === 404 ? "gone" : "load";
    }
    opened.loading = false;
    this.onChange("messages");
    this.onChange("list");
  }

  /** Takes one event of the server. */
  take(kind, data) {
    const id = data.conversation;
    if (kind === "message") this.saved(id, data.message, data.summary, data.turn);
    else if (kind === "done") this.done(id, data);
    else if (kind === "status" && data.running) this.keepTurns(data.running);
    else if (kind === "status" && data.removed) this.removed(id, data.removed);
    else if (kind === "delta") this.turn(id, data.turn).text += data.text;
    else if (kind === "reset") this.turn(id, data.turn).text = "";
    else if (kind === "tool") this.tool(this.turn(id, data.turn), data);
    else if (kind === "approval") this.asked(id, data);
    else if (kind === "error") {
      this.turns.delete(id);
      this.forgetQuestions((question) => question.conversation === id);
      this.faults.set(id, data.message);
    }
    if (id === this.current) this.onChange("messages");
  }

  /** What the owner had removed: messages by their numbers, or `all` of a conversation. */
  removed(id, numbers) {
    if (numbers === "all") {
      for (const known of [this.summaries, this.opened, this.turns, this.faults]) known.delete(id);
      this.forgetQuestions((question) => question.conversation === id);
      this.onChange("removed");
    } else {
      for (const n of numbers) this.opened.get(id)?.messages.delete(n);
      this.loadList();
    }
    this.onChange("list");
  }

  turn(id, turn) {
    let live = this.turns.get(id);
    if (live === undefined || live.id !== turn) {
      live = { id: turn, text: "", tools: new Map(), startedAt: new Date() };
      this.turns.set(id, live);
    }
    return live;
  }

  tool(live, data) {
    const before = live.tools.get(data.n);
    const seconds = before && data.state !== "running" ? (performance.now() - before.startedAt) / 1000 : undefined;
    live.tools.set(data.n, { startedAt: performance.now(), ...before, ...data, took_seconds: data.took_seconds ?? seconds });
  }

  /** A question to the owner, or how it ended; it stays until its turn is done. */
  asked(id, data) {
    if (data.state !== "open" && !this.questions.has(data.id)) return;
    this.turn(id, data.turn);
    this.questions.set(data.id, data);
    this.onChange("questions");
  }

  openQuestions() {
    return [...this.questions.values()].filter((question) => question.state === "open");
  }

  forgetQuestions(which) {
    for (const question of [...this.questions.values()]) if (which(question)) this.questions.delete(question.id);
    this.onChange("questions");
  }

  /** After a break: only these turns still run, and what they have shown and ask follows. */
  keepTurns(running) {
    this.forgetQuestions(() => true);
    for (const id of [...this.turns.keys()]) if (!running.includes(id)) this.turns.delete(id);
    this.onChange("messages");
  }

  saved(id, message, summary, turn) {
    if (message.flags?.includes("removed")) return this.removed(id, [message.n]);
    if (summary) this.know(summary);
    else this.loadList();
    this.faults.delete(id);
    const opened = this.opened.get(id);
    if (message.role === "assistant" && !unfinished(message)) this.finish(id, opened, message, turn);
    else if (opened && message.role === "system") this.notice(id, opened, message);
    else if (opened) this.put(id, opened, message);
    if (id === this.current && !document.hidden) this.markRead(id);
    this.onChange("list");
  }

  /** What the gateway itself says is Markdown as well. */
  async notice(id, opened, message) {
    const found = await get(conversationPath(id, message.n, message.n)).catch(() => null);
    this.put(id, opened, found?.messages[0] ?? message);
    if (id === this.current) this.onChange("messages");
  }

  done(id, data) {
    this.forgetQuestions((question) => question.conversation === id && question.turn === data.turn);
    const opened = this.opened.get(id);
    if (data.summary) this.know(data.summary);
    if (id === this.current && !document.hidden) this.markRead(id);
    this.onChange("list");
    if (opened) {
      for (const [n, message] of opened.messages) {
        if (message.role !== "assistant" && unfinished(message)) {
          opened.messages.set(n, { ...message, state: "answered" });
        }
      }
    }
    if (data.message) this.finish(id, opened, data.message, data.turn);
    else this.turns.delete(id);
  }

  /** The streamed text stays until the rendered message takes its place, so that nothing flickers. */
  async finish(id, opened, message, turn) {
    const live = this.turns.get(id);
    const known = opened?.messages.get(message.n);
    if (opened && (known?.html === undefined || known.text !== message.text || unfinished(known))) {
      const found = await get(conversationPath(id, message.n, message.n)).catch(() => null);
      this.put(id, opened, found?.messages[0] ?? message);
    }
    if (live !== undefined && this.turns.get(id) === live && (turn == null || live.id === turn)) {
      this.turns.delete(id);
    }
    if (id === this.current) this.onChange("messages");
  }

  put(id, opened, message) {
    const last = Math.max(0, ...opened.messages.keys());
    opened.messages.set(message.n, message);
    if (last > 0 && message.n > last + 1) this.fetch(id, opened, async () => [last + 1, message.n - 1]);
  }
}
