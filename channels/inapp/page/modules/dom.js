// Building elements. Text always goes in as text; only what the server rendered and sanitised goes in as HTML.

/** An element with attributes (`on...` are listeners, `false` and `null` leave one out) and children. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function icon(name, className = "icon", set = "icon") {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#${set}-${name}`);
  svg.append(use);
  return svg;
}

/** The round mark of a channel: the agent's own for this page, a drawing where there is one, else a letter. */
export function channelMark(channel) {
  const drawn = document.getElementById(`mark-${channel}`) !== null;
  const picture = channel === "inapp" ? icon("hoopoe") : drawn ? icon(channel, "icon", "mark") : channel.slice(0, 1);
  return el("span", { class: `mark ${channel}`, "aria-hidden": "true" }, picture);
}

/** Nodes of HTML that the server sanitised. */
export function sanitised(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return [...parsed.body.childNodes].map((node) => document.adoptNode(node));
}

/** Text with `code` between backticks. */
export function withCode(text) {
  return text.split("`").map((part, index) => (index % 2 ? el("code", { dir: "ltr" }, part) : part));
}

/** Makes the children of `parent` exactly `nodes`, touching only what differs. */
export function reconcile(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  let place = parent.firstChild;
  for (const node of nodes) {
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
}

const ADDRESS = /https?:\/\/[^\s<>"'“”«»]+/g;

/** Turns web addresses in the text of an element into links. */
export function linkAddresses(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    if (walker.currentNode.data.includes("://") && !walker.currentNode.parentElement.closest("a, code, pre")) {
      texts.push(walker.currentNode);
    }
  }
  for (const text of texts) {
    const parts = [];
    let from = 0;
    for (const found of text.data.matchAll(ADDRESS)) {
      const address = found[0].replace(/[.,;:!?)\]}،؛؟…]+$/u, "");
      parts.push(text.data.slice(from, found.index));
      parts.push(el("a", { href: address, target: "_blank", rel: "noopener noreferrer", dir: "ltr" }, address));
      from = found.index + address.length;
    }
    if (parts.length) text.replaceWith(...parts, text.data.slice(from));
  }
}
