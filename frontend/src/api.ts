// The server's interface, as far as the page uses it.

import type { AnswerOut, CalibrationOut, GalleryOut, HitOut, ItemOut, LocatedOut, LocateRequest, SearchRequest } from "./schema";

export type Answer = AnswerOut;
export type Calibration = CalibrationOut;
export type Corner = [number, number];
export type Gallery = GalleryOut;
export type Hit = HitOut;
export type Item = ItemOut;
export type Located = LocatedOut;

/** The server refused; `message` is its own line. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The server did not answer at all. */
export class Lost extends Error {}

let token = tokenFromAddress() ?? sessionStorage.getItem("evidex-token");

function tokenFromAddress(): string | null {
  const found = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (!found) return null;
  history.replaceState(history.state, "", location.pathname + location.search);
  sessionStorage.setItem("evidex-token", decodeURIComponent(found));
  return decodeURIComponent(found);
}

export function setToken(value: string): void {
  token = value;
  sessionStorage.setItem("evidex-token", value);
}

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Lost("The server does not answer. Is ‘evidex serve’ still running?");
  }
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  const line = body && typeof body === "object" && "error" in body ? String(body.error) : response.statusText;
  throw new Refusal(response.status, line);
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await call(path, { signal })).json() as Promise<T>;
}

export async function isAlive(): Promise<boolean> {
  return fetch("health").then((response) => response.ok, () => false);
}

/** As the server takes it; a picture goes as a form. */
export type Question = SearchRequest & { image?: File };

export async function search(question: Question, signal: AbortSignal): Promise<Answer> {
  const { image, ...rest } = question;
  if (!image) {
    const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(rest), signal };
    return (await call("search", init)).json() as Promise<Answer>;
  }
  const form = new FormData();
  form.set("image", image, image.name || "picture");
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) form.set(name, String(value));
  return (await call("search", { method: "POST", body: form, signal })).json() as Promise<Answer>;
}

/** What is looked for in a picture: words, another item, or a picture of the visitor's. */
export type LocateQuestion = Pick<LocateRequest, "text" | "like"> & { image?: File };

export async function locate(item: string, { image, ...question }: LocateQuestion): Promise<Located> {
  if (!image) {
    const body = JSON.stringify({ item, ...question });
    return (await call("locate", { method: "POST", headers: { "Content-Type": "application/json" }, body })).json() as Promise<Located>;
  }
  const form = new FormData();
  form.set("image", image, image.name || "picture");
  form.set("item", item);
  return (await call("locate", { method: "POST", body: form })).json() as Promise<Located>;
}

const pictures = new Map<string, Promise<string>>();

/** An address for a picture; with a token it is fetched here, because images cannot carry one. */
export function pictureUrl(id: string, size: "thumbnail" | "preview"): Promise<string> {
  const path = `items/${encodeURIComponent(id)}/${size}`;
  if (!token) return Promise.resolve(path);
  let url = pictures.get(path);
  if (!url) {
    url = call(path).then(async (response) => URL.createObjectURL(await response.blob()));
    url.catch(() => pictures.delete(path));
    pictures.set(path, url);
  }
  return url;
}

/** Give `image` its picture; it says so in a class where there is none. */
export function showPicture(image: HTMLImageElement, id: string, size: "thumbnail" | "preview"): void {
  image.addEventListener("error", () => image.classList.add("missing"));
  image.addEventListener("load", () => image.classList.add("loaded"));
  pictureUrl(id, size).then(
    (url) => (image.src = url),
    () => image.classList.add("missing"),
  );
}
