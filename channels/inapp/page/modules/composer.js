// The box to write in. What is written and not sent is kept for each conversation.

import { Attachments } from "./attach.js";
import { load, save } from "./stored.js";

const LINES_MAX = 8;
const form = document.getElementById("composer");
const box = document.getElementById("text");
const send = document.getElementById("send");

export class Composer {
  constructor(onSend) {
    this.onSend = onSend;
    this.drafts = load("drafts", {});
    this.id = null;
    this.attachments = new Attachments(() => this.fit());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    box.addEventListener("input", () => this.changed());
    box.addEventListener("keydown", (event) => {
      // While an input method composes, Enter belongs to it (code 229 in browsers that say so only there).
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.submit();
    });
  }

  show(id) {
    if (id === this.id) return;
    this.id = id;
    box.value = this.drafts[draftName(id)] ?? "";
    this.fit();
  }

  put(text) {
    box.value = text;
    this.changed();
    this.focus();
  }

  focus() {
    box.focus();
  }

  submit() {
    if (!this.sendable || this.id === null) return;
    const text = box.value.trim();
    box.value = "";
    this.changed();
    this.onSend(text, this.attachments.take());
  }

  get sendable() {
    return !this.attachments.busy && (box.value.trim() !== "" || this.attachments.ready.length > 0);
  }

  changed() {
    const name = draftName(this.id);
    if (box.value) this.drafts[name] = box.value;
    else delete this.drafts[name];
    save("drafts", this.drafts);
    this.fit();
  }

  fit() {
    send.setAttribute("aria-disabled", String(!this.sendable));
    // Where the style sheet cannot let the box grow (`field-sizing`), it is measured.
    if (CSS.supports("field-sizing", "content")) return;
    const line = Number.parseFloat(getComputedStyle(box).lineHeight);
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, LINES_MAX * line + 16)}px`;
  }
}

/** All conversations that are not begun share one draft. */
const draftName = (id) => (id?.startsWith("draft:") ? "draft:" : id);
