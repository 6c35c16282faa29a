// Requests to the server this page came from, and its events.

/** An answer that is not the wanted one. `status` is 0 when there was no answer. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    throw new Refused(0, "offline", String(error));
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new Refused(response.status, body?.error?.code ?? "unknown", body?.error?.message ?? response.statusText);
}

export const get = (path) => request(path);

export const post = (path, body) =>
  request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const remove = (path) => request(path, { method: "DELETE" });

/** Sends files on; the answer lists {id, name, size} of each. */
export function upload(files) {
  const form = new FormData();
  for (const file of files) form.append("file", file, file.name);
  return request("/api/uploads", { method: "POST", body: form });
}

export const filePath = (path) => `/api/files/${path.split("/").map(encodeURIComponent).join("/")}`;

export function conversationPath(id, from, to) {
  const query = new URLSearchParams({ html: "1" });
  if (from !== undefined) query.set("from", from);
  if (to !== undefined) query.set("to", to);
  return `/api/conversations/${encodeURIComponent(id)}?${query}`;
}

const KINDS = ["message", "delta", "reset", "tool", "approval", "status", "done", "error"];
const PAUSES_MS = [500, 1000, 2000, 4000, 8000];

/**
 * Listens until the page is left. `onEvent(kind, data)` gets each event, `onLine(state)` hears `connected`, `lost`
 * (and trying again) and `no_rights`. After a break it asks for what came after the last event it saw.
 */
export function listen(onEvent, onLine) {
  let last = null;
  let failures = 0;
  let source = null;
  let timer = null;

  function connect() {
    clearTimeout(timer);
    source?.close();
    source = new EventSource(last === null ? "/api/events" : `/api/events?last_event_id=${encodeURIComponent(last)}`);
    source.onopen = () => {
      failures = 0;
      onLine("connected");
    };
    source.onerror = lost;
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        // A failed connection is also called "error", but carries no data.
        if (event.data === undefined) return;
        last = event.lastEventId;
        onEvent(kind, JSON.parse(event.data));
      });
    }
  }

  async function lost(event) {
    if (event?.data !== undefined) return;
    source.close();
    onLine("lost");
    const pause = PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)];
    failures += 1;
    clearTimeout(timer);
    timer = setTimeout(connect, pause);
    const refused = await get("/api/status").then(() => null, (error) => error);
    if (refused?.status === 401) {
      clearTimeout(timer);
      onLine("no_rights");
    }
  }

  addEventListener("online", connect);
  addEventListener("offline", () => onLine("lost"));
  connect();
}
