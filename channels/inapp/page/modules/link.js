// Linking a channel with an account: the code to scan, renewed until somebody used it.

import { get, post } from "./api.js";
import { el } from "./dom.js";
import { word } from "./words.js";

const PAUSE_MS = 1500;

/** Asks for a code and shows it with `show(...nodes)` until the linking is over, or `isShown()` is no longer true. */
export async function link(channel, show, isShown) {
  const path = `/api/channels/${encodeURIComponent(channel)}/link`;
  const again = () => link(channel, show, isShown);
  let shown = null;
  try {
    let state = await post(path, {});
    while (isShown()) {
      if (state.version !== shown) show(...nodes(path, state, again));
      shown = state.version;
      if (["linked", "expired", "failed"].includes(state.state)) return;
      await new Promise((done) => setTimeout(done, PAUSE_MS));
      state = await get(path);
    }
  } catch (error) {
    if (isShown()) show(el("p", {}, word("link.failed", { detail: error.message })), button(again));
  }
}

function nodes(path, state, again) {
  if (state.qr) {
    const picture = el("img", { class: "qr", src: `${path}.svg?version=${state.version}`, alt: word("link.code") });
    return [picture, el("p", {}, word("link.scan"))];
  }
  if (state.code) return [el("p", { class: "link-code", dir: "ltr" }, state.code), el("p", {}, word("link.type"))];
  if (state.state === "linked") return [el("p", {}, word("link.done"))];
  if (state.state === "expired") return [el("p", {}, word("link.expired")), button(again)];
  if (state.state === "failed") return [el("p", {}, word("link.failed", { detail: state.detail })), button(again)];
  return [el("div", { class: "skeleton" }), el("p", {}, word("link.waiting"))];
}

const button = (again) => el("button", { type: "button", class: "button", onclick: again }, word("link.start"));
