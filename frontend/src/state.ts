// What is being looked for lives in the address, so that it can be shared, kept and gone back to.

import type { SearchRequest } from "./schema";

export type Mode = NonNullable<SearchRequest["mode"]>;

export interface State {
  q: string;
  item: string;
  /** Name of a picture that was dropped; its content is kept while the page lives. */
  image: string;
  top: number;
  mode: Mode;
  bbox: number[] | null;
  after: string;
  before: string;
  /** Whether the hits are ranked by what was marked. */
  marked: boolean;
  open: string;
  /** What the address says that cannot be meant, in words; it is left out. */
  wrong: string;
}

export const TOP = 24;
const MODES: readonly Mode[] = ["auto", "plain", "careful"];

export function readState(): State {
  const from = new URLSearchParams(location.search);
  const wrong: string[] = [];
  const read = <T>(name: string, otherwise: T, what: string, parse: (text: string) => T | null): T => {
    const text = from.get(name);
    if (!text) return otherwise;
    const found = parse(text);
    if (found === null) wrong.push(`The address says ${name}=${text.slice(0, 80)}, which is no ${what}. It was left out.`);
    return found ?? otherwise;
  };
  return {
    q: from.get("q") ?? "",
    item: from.get("item") ?? "",
    image: from.get("image") ?? "",
    top: read("top", TOP, "number of hits from 1 to 200", (text) => (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 200 ? Number(text) : null)),
    mode: read<Mode>("mode", "auto", `way to ask (${MODES.join(", ")})`, (text) => MODES.find((mode) => mode === text) ?? null),
    bbox: read<number[] | null>("bbox", null, "area (west,south,east,north in degrees)", box),
    after: from.get("after") ?? "",
    before: from.get("before") ?? "",
    marked: from.get("marked") === "1",
    open: from.get("open") ?? "",
    wrong: wrong.join(" "),
  };
}

function box(text: string): number[] | null {
  const edges = text.split(",").map((edge) => (edge.trim() ? Number(edge) : NaN));
  return edges.length === 4 && edges.every(Number.isFinite) ? edges : null;
}

export function address(state: State): string {
  const to = new URLSearchParams();
  if (state.q) to.set("q", state.q);
  if (state.item) to.set("item", state.item);
  if (state.image) to.set("image", state.image);
  if (state.top !== TOP) to.set("top", String(state.top));
  if (state.mode !== "auto") to.set("mode", state.mode);
  if (state.bbox) to.set("bbox", state.bbox.join(","));
  if (state.after) to.set("after", state.after);
  if (state.before) to.set("before", state.before);
  if (state.marked) to.set("marked", "1");
  if (state.open) to.set("open", state.open);
  const text = to.toString().replaceAll("%2C", ",");
  return text ? `?${text}` : location.pathname;
}

export function asksSomething(state: State): boolean {
  return Boolean(state.q || state.item || state.image);
}

/** Whether two states need the same answer; what is open does not matter. */
export function sameQuestion(one: State, other: State): boolean {
  return address({ ...one, open: "" }) === address({ ...other, open: "" });
}
