// The files that go with the next message: each is sent to the server as soon as it is chosen.

import { upload } from "./api.js";
import { el, icon } from "./dom.js";
import { word } from "./words.js";

const FAULTS = { file_too_large: "file.too_large", offline: "file.offline" };
const list = document.getElementById("files");
const chooser = document.getElementById("chooser");

export class Attachments {
  constructor(onChange) {
    this.files = [];
    this.onChange = onChange;
    document.getElementById("attach").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      for (const file of chooser.files) this.add(file);
      chooser.value = "";
    });
    document.getElementById("text").addEventListener("paste", (event) => {
      const pasted = [...(event.clipboardData?.files ?? [])];
      if (pasted.length === 0) return;
      event.preventDefault();
      pasted.forEach((file) => this.add(file));
    });
  }

  get busy() {
    return this.files.some((file) => file.state === "going");
  }

  /** What is on the server and goes with the next message. */
  get ready() {
    return this.files.filter((file) => file.state === "there");
  }

  async add(file) {
    const item = { name: file.name, state: "going", id: null, fault: null };
    this.files.push(item);
    this.changed();
    try {
      const [saved] = await upload([file]);
      Object.assign(item, { id: saved.id, name: saved.name, state: "there" });
    } catch (error) {
      Object.assign(item, { state: "failed", fault: word(FAULTS[error.code] ?? "file.failed") });
    }
    this.changed();
  }

  /** Gives the files away to a message. */
  take() {
    const taken = this.ready.map(({ id, name }) => ({ id, name }));
    this.files = [];
    this.changed();
    return taken;
  }

  changed() {
    list.hidden = this.files.length === 0;
    list.replaceChildren(...this.files.map((file) => this.chip(file)));
    this.onChange();
  }

  chip(file) {
    const remove = () => {
      this.files = this.files.filter((other) => other !== file);
      this.changed();
    };
    const state = file.state === "going" ? word("file.going") : file.fault;
    return el(
      "li",
      { class: `file ${file.state}` },
      icon("attach"),
      el("bdi", {}, file.name),
      state ? el("span", { class: "state" }, state) : null,
      el("button", { type: "button", class: "icon-button", onclick: remove, "aria-label": word("file.remove", { name: file.name }) }, icon("close")),
    );
  }
}
