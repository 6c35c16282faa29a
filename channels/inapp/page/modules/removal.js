// Deleting the open conversation, after a question.

import { remove } from "./api.js";
import { isolated, word } from "./words.js";

const button = document.getElementById("remove");
const dialog = document.getElementById("remove-confirm");
const text = document.getElementById("remove-text");
const now = document.getElementById("remove-now");
const fault = document.getElementById("remove-fault");

/** The button is there for a conversation that is saved. */
export function showRemoval(summary) {
  button.hidden = summary === undefined;
}

export function setUpRemoval(state) {
  let asked = null;
  button.addEventListener("click", () => {
    const summary = state.summaries.get(state.current);
    if (summary === undefined) return;
    asked = summary.id;
    const said = word("remove.text", { title: isolated(summary.title || word("chat.new")) });
    text.textContent = summary.channel === "inapp" ? said : `${said} ${word("remove.elsewhere")}`;
    fault.hidden = true;
    dialog.showModal();
  });
  now.addEventListener("click", async () => {
    now.disabled = true;
    try {
      await remove(`/api/conversations/${encodeURIComponent(asked)}`);
    } catch (error) {
      // Gone already is as good.
      fault.hidden = error.status === 404;
    }
    now.disabled = false;
    if (!fault.hidden) return;
    state.removed(asked, "all");
    dialog.close();
  });
}
