// Talk to the server. Every call returns parsed JSON or raises an Error with the server's one line.

const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? sessionStorage.getItem("token");
if (token) sessionStorage.setItem("token", token);

const AWAY = "the studio does not answer; if it was stopped, start it again in a terminal: cycleback studio FOLDER";

export class ApiError extends Error {
  constructor(message, status, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

function headers(extra = {}) {
  return token ? {Authorization: `Bearer ${token}`, ...extra} : extra;
}

/** Ask the server and read its answer; raise an ApiError if it refuses, or is away (status 0). */
async function ask(path, options, read = (response) => response.json()) {
  try {
    const response = await fetch(`/api/${path}`, options);
    if (!response.ok) throw await refusal(response);
    return await read(response);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // fetch raises a TypeError where there is no network
    throw new ApiError(AWAY, 0, null);
  }
}

async function refusal(response) {
  let body = null;
  try { body = await response.json(); } catch { /* not JSON: the status must do */ }
  const text = typeof body?.error === "string" ? body.error : `the server answered ${response.status}`;
  return new ApiError(text, response.status, body);
}

export function get(path, {signal} = {}) {
  return ask(path, {headers: headers(), signal});
}

export function getBytes(path, {signal} = {}) {
  return ask(path, {headers: headers(), signal}, (response) => response.arrayBuffer());
}

/** Ask for the first byte of something large: 202 means that the server is still making it. */
export function probe(path, {signal} = {}) {
  return ask(path, {headers: headers({Range: "bytes=0-0"}), signal}, async (response) => {
    const body = response.status === 202 ? await response.json() : null;
    if (!body) response.body?.cancel();
    return {status: response.status, body};
  });
}

export function send(method, path, value, {signal} = {}) {
  const body = value === undefined ? undefined : JSON.stringify(value);
  return ask(path, {method, body, signal, headers: headers({"Content-Type": "application/json"})});
}

/** The address of something an <img>, an <a> or a decoder fetches by itself. */
export function address(path) {
  return token ? `/api/${path}${path.includes("?") ? "&" : "?"}token=${token}` : `/api/${path}`;
}

/** Send a file as it is; the server checks that it is a video and answers with what it made of it. */
export function upload(path, file) {
  const options = {method: "POST", body: file, headers: headers({"Content-Type": "application/octet-stream"})};
  return ask(`${path}?name=${encodeURIComponent(file.name)}`, options);
}
