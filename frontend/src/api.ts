// The server's interface, as far as the page uses it.

export type Verdict = "answered" | "refined" | "abstained";
export type Corner = [number, number];

export interface Hit {
  rank: number;
  id: string;
  score: number;
  kind: "image" | "tile" | "text";
  path: string;
  caption: string | null;
  width: number | null;
  height: number | null;
  window: { x: number; y: number; width: number; height: number } | null;
  corners: Corner[] | null;
  crs: string | null;
  acquired: string | null;
}

export interface Item extends Omit<Hit, "rank" | "score"> {
  captions: string[];
  size: number;
  sha256: string;
}

export interface Refinement {
  copies: number;
  entered: string[];
  left: string[];
  reordered: boolean;
  uncertainty_before: number;
}

export interface Answer {
  query: string;
  verdict: Verdict;
  headline: string;
  explanation: string;
  uncertainty: number;
  percentile: number | null;
  chance: number | null;
  chance_top: number | null;
  new_words: string[];
  ignored_words: string[];
  did_you_mean: string[];
  read_in_part: boolean;
  floor: number | null;
  faint: boolean;
  /** So many of the last hits the answer does not stand on; the line says why. */
  apart: number;
  apart_line: string | null;
  promise: string | null;
  searched: number;
  refinement: Refinement | null;
  timings_ms: Record<string, number>;
  hits: Hit[];
}

export interface Calibration {
  direction: "text" | "image";
  among: "images" | "texts";
  queries: number;
  refine_above: number;
  abstain_above: number;
}

export interface Gallery {
  rows: number;
  kinds: Record<string, number>;
  georeferenced: number;
  dated: number;
  bounds: [number, number, number, number] | null;
  first: string | null;
  last: string | null;
  model: string;
  calibrations: Calibration[];
  limits: { top: number; body_bytes: number; pixels: number };
}

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

export interface Question {
  text?: string;
  item?: string;
  image?: File;
  top: number;
  mode: string;
  bbox?: number[];
  after?: string;
  before?: string;
}

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
