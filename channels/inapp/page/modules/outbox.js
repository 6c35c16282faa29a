// Messages on their way to the server. Each has a key: however often it is sent, it is taken once.

import { post } from "./api.js";
import { load, save } from "./stored.js";

const PAUSES_MS = [1000, 2000, 4000, 8000, 15000];

/**
 * `items` are {key, conversation, text, files: [{id, name}], at, state, code?, messageId?}; `conversation` is an id, or `draft:...` for a
 * conversation that begins with the message. States: `queued`, `sent` (the server has it, its event has not come yet)
 * and `refused`.
 */
export class Outbox {
  constructor(onChange, onBegun) {
    this.items = load("outbox", []);
    this.onChange = onChange;
    this.onBegun = onBegun;
    this.busy = false;
    this.failures = 0;
    this.timer = null;
  }

  of(conversation) {
    return this.items.filter((item) => item.conversation === conversation);
  }

  add(conversation, text, files = []) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const key = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    this.items.push({ key, conversation, text, files, at: new Date().toISOString(), state: "queued" });
    this.changed();
    this.flush();
  }

  retry(item) {
    item.state = "queued";
    this.changed();
    this.flush();
  }

  remove(item) {
    this.items = this.items.filter((other) => other !== item);
    this.changed();
  }

  /** A saved message has arrived: what it was sent as is no longer on its way. */
  arrived(conversation, message) {
    const item = this.items.find(
      (other) =>
        other.messageId === message.id ||
        (other.messageId === undefined &&
          other.state === "queued" &&
          other.text === message.text &&
          (other.conversation === conversation || other.conversation.startsWith("draft:"))),
    );
    if (!item) return;
    if (item.conversation !== conversation) this.begun(item.conversation, conversation);
    this.remove(item);
  }

  /** Sends what waits, one after the other; without a connection it tries again by itself. */
  async flush() {
    if (this.busy) return;
    this.busy = true;
    clearTimeout(this.timer);
    try {
      let item;
      while ((item = this.items.find((other) => other.state === "queued"))) await this.send(item);
      this.failures = 0;
    } catch {
      this.timer = setTimeout(() => this.flush(), PAUSES_MS[Math.min(this.failures, PAUSES_MS.length - 1)]);
      this.failures += 1;
    } finally {
      this.busy = false;
    }
  }

  async send(item) {
    const conversation = item.conversation.startsWith("draft:") ? "new" : item.conversation;
    try {
      const answer = await post("/api/messages", {
        text: item.text,
        conversation,
        key: item.key,
        attachments: (item.files ?? []).map((file) => file.id),
      });
      item.messageId = answer.message_id;
      item.state = "sent";
      if (item.conversation !== answer.conversation) this.begun(item.conversation, answer.conversation);
    } catch (error) {
      if (![400, 404, 413].includes(error.status)) throw error;
      item.state = "refused";
      item.code = error.code;
    }
    this.changed();
  }

  begun(draft, conversation) {
    for (const item of this.items) if (item.conversation === draft) item.conversation = conversation;
    this.onBegun(draft, conversation);
  }

  changed() {
    save("outbox", this.items.filter((item) => item.state !== "sent"));
    this.onChange();
  }
}
