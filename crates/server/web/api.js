// The API of the server this page came from. The token lives in this tab alone.

const KEY = "lastbyte-token";

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  clear: () => sessionStorage.removeItem(KEY),
};

/** An answer that is an error of the API. */
export class ApiError extends Error {
  constructor(status, error) {
    super(error.hint ? `${error.message} (${error.hint})` : error.message);
    this.status = status;
    this.code = error.code;
  }
}

const auth = () => (token.get() ? { authorization: `Bearer ${token.get()}` } : {});

function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** What a browser says of a server that does not answer is different in each. */
function unreachable(error) {
  throw error.name === "AbortError" ? error : new Error("The server does not answer");
}

/** The response, if it is not an error. */
export async function send(method, path, { query, body, headers, signal } = {}) {
  const isBytes = body instanceof Uint8Array || typeof body === "string";
  const used = token.get();
  const response = await fetch(address(path, query), {
    method,
    headers: { ...auth(), ...headers },
    body: body === undefined || isBytes ? body : JSON.stringify(body),
    signal,
    cache: "no-store",
  }).catch(unreachable);
  if (response.ok) return response;
  let error = { code: "unknown", message: `the server answered ${response.status}` };
  try {
    error = (await response.json()).error ?? error;
  } catch {}
  // An answer to an earlier token says nothing about the one that replaced it.
  if (response.status === 401 && used === token.get()) window.dispatchEvent(new Event("signed-out"));
  throw new ApiError(response.status, error);
}

export async function get(path, query, signal) {
  return (await send("GET", path, { query, signal })).json();
}

export async function post(path, body = {}, options = {}) {
  const response = await send("POST", path, { body, ...options });
  return response.status === 204 ? null : response.json();
}

export const processPath = (id, rest = "") => `/v1/processes/${encodeURIComponent(id)}${rest}`;

/** Reads server-sent events until the stream ends: `opened()` once they can come, and `take(name, data, id)` for each. */
export async function readEvents(path, { query, lastId, signal, opened }, take) {
  const headers = lastId ? { "last-event-id": lastId } : {};
  const response = await send("GET", path, { query, headers, signal });
  opened?.();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const fields = Object.fromEntries(event.split("\n").map((line) => {
        const at = line.indexOf(":");
        return [line.slice(0, at), line.slice(at + 1).replace(/^ /, "")];
      }));
      if (fields.data !== undefined) take(fields.event, JSON.parse(fields.data), fields.id);
    }
  }
}

/** A WebSocket that is attached to a process, from this cursor on. */
export async function attach(id, from) {
  const query = { from, late: "true" };
  if (token.get()) query.ticket = (await post("/v1/tickets")).ticket;
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}${address(processPath(id, "/attach"), query)}`);
  socket.binaryType = "arraybuffer";
  return socket;
}

/** Waits this long, or until the signal says stop. */
export const pause = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); done(); });
});

/** Waits until somebody looks at the page: a hidden one keeps no connection open. */
export const untilVisible = () => new Promise((done) => {
  if (!document.hidden) return done();
  const look = () => {
    if (document.hidden) return;
    document.removeEventListener("visibilitychange", look);
    done();
  };
  document.addEventListener("visibilitychange", look);
});
