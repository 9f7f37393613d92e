// Talk to the server. Every call returns parsed JSON or raises an Error with the server's one line.

const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? sessionStorage.getItem("token");
if (token) sessionStorage.setItem("token", token);

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

async function check(response) {
  if (response.ok) return response;
  let body = null;
  try { body = await response.json(); } catch { /* not JSON: the status must do */ }
  const text = typeof body?.error === "string" ? body.error : `the server answered ${response.status}`;
  throw new ApiError(text, response.status, body);
}

export async function get(path, {signal} = {}) {
  return (await check(await fetch(`/api/${path}`, {headers: headers(), signal}))).json();
}

export async function getBytes(path, {signal} = {}) {
  return (await check(await fetch(`/api/${path}`, {headers: headers(), signal}))).arrayBuffer();
}

/** Ask for the first byte of something large: 202 means that the server is still making it. */
export async function probe(path, {signal} = {}) {
  const response = await check(await fetch(`/api/${path}`, {headers: headers({Range: "bytes=0-0"}), signal}));
  const body = response.status === 202 ? await response.json() : null;
  if (!body) response.body?.cancel();
  return {status: response.status, body};
}

export async function send(method, path, value, {signal} = {}) {
  const body = value === undefined ? undefined : JSON.stringify(value);
  const options = {method, body, signal, headers: headers({"Content-Type": "application/json"})};
  return (await check(await fetch(`/api/${path}`, options))).json();
}

/** The address of something an <img>, an <a> or a decoder fetches by itself. */
export function address(path) {
  return token ? `/api/${path}${path.includes("?") ? "&" : "?"}token=${token}` : `/api/${path}`;
}

/** Send a file as it is; the server checks that it is a video and answers with what it made of it. */
export async function upload(path, file) {
  const options = {method: "POST", body: file, headers: headers({"Content-Type": "application/octet-stream"})};
  return (await check(await fetch(`/api/${path}?name=${encodeURIComponent(file.name)}`, options))).json();
}
