// Questions to the owner: what would run, who asked, and the two answers.

import { post } from "./api.js";
import { el, icon, reconcile } from "./dom.js";
import { word } from "./words.js";

const GUARD_MS = 500;
const CLOSED = {
  allowed: "consent.allowed",
  denied: "consent.denied",
  expired: "consent.expired",
  gone: "consent.gone",
};

/** The card of a question, kept up to date by `update`. `onChange` is called when the answer was not taken. */
export class ConsentCard {
  constructor(question, onChange) {
    this.question = question;
    this.onChange = onChange;
    this.awake = false;
    this.sending = false;
    this.closed = false;
    this.allow = this.button("consent.allow", true);
    this.deny = this.button("consent.deny", false);
    this.fault = el("p", { class: "consent-fault", role: "alert", hidden: true }, word("consent.fault"));
    this.buttons = el("div", { class: "consent-buttons" }, this.allow, this.deny);
    const title = el("h2", { id: `consent-${question.id}` }, icon("warning"), word("consent.title"));
    this.article = el(
      "article",
      { class: "consent", "aria-labelledby": title.id, tabindex: "-1" },
      title,
      el("pre", { dir: "ltr", tabindex: "0" }, question.what),
      question.reason ? el("p", { dir: "auto" }, question.reason) : null,
      el("p", { class: "consent-from" }, `${word("consent.from")} `, el("bdi", {}, question.from)),
      this.buttons,
      this.fault,
    );
    // A press that was meant for what stood here before must not count: the buttons sleep until they have been seen.
    this.watch = new IntersectionObserver(([entry]) => this.seen(entry.isIntersecting));
    this.watch.observe(this.buttons);
    this.showReady();
    this.update(question);
  }

  button(key, approve) {
    return el("button", { type: "button", class: `button ${approve ? "allow" : ""}`, onclick: () => this.answer(approve) }, word(key));
  }

  seen(visible) {
    clearTimeout(this.timer);
    this.awake = false;
    if (visible) {
      this.timer = setTimeout(() => {
        this.awake = true;
        this.showReady();
      }, GUARD_MS);
    }
    this.showReady();
  }

  showReady() {
    for (const button of [this.allow, this.deny]) button.setAttribute("aria-disabled", String(!this.awake || this.sending));
  }

  async answer(approve) {
    if (!this.awake || this.sending || this.question.state !== "open") return;
    this.sending = true;
    this.fault.hidden = true;
    this.showReady();
    try {
      await post(`/api/approvals/${encodeURIComponent(this.question.id)}`, { approve });
    } catch (error) {
      this.sending = false;
      if (error.status === 404) this.onChange("gone");
      else this.fault.hidden = false;
      this.showReady();
    }
  }

  update(question) {
    this.question = question;
    if (question.state === "open" || this.closed) return;
    this.closed = true;
    this.watch.disconnect();
    clearTimeout(this.timer);
    const focused = this.article.contains(document.activeElement);
    this.fault.hidden = true;
    const allowed = question.state === "allowed";
    this.article.classList.add("closed");
    this.buttons.replaceWith(
      el("p", { class: "consent-closed", role: "status" }, icon(allowed ? "tick" : "cross"), word(CLOSED[question.state])),
    );
    if (focused) this.article.focus();
  }
}

/** Says that a question waits in another conversation than the open one; `onOpen` goes there. */
export function showBanner(state, onOpen) {
  const banner = document.getElementById("asks");
  const question = state.openQuestions().find((other) => other.conversation !== state.current);
  const shown = question ? `${question.id} ${titleOf(state, question)}` : "";
  if (banner.dataset.shown === shown) return;
  banner.dataset.shown = shown;
  banner.hidden = !question;
  const nodes = question
    ? [
        el("span", {}, word("consent.elsewhere", { title: `\u2068${titleOf(state, question)}\u2069` })),
        el("button", { type: "button", class: "button", onclick: () => onOpen(question.conversation) }, word("consent.show")),
      ]
    : [];
  reconcile(banner, nodes);
}

const titleOf = (state, question) => state.summaries.get(question.conversation)?.title || word("chat.new");
