// What is being looked for lives in the address, so that it can be shared, kept and gone back to.

export interface State {
  q: string;
  item: string;
  /** Name of a picture that was dropped; its content is kept while the page lives. */
  image: string;
  top: number;
  mode: string;
  bbox: number[] | null;
  after: string;
  before: string;
  open: string;
}

export const TOP = 24;
const MODES = ["auto", "plain", "careful"];

export function readState(): State {
  const from = new URLSearchParams(location.search);
  const bbox = (from.get("bbox") ?? "").split(",").map(Number);
  const top = Number(from.get("top"));
  return {
    q: from.get("q") ?? "",
    item: from.get("item") ?? "",
    image: from.get("image") ?? "",
    top: Number.isInteger(top) && top >= 1 && top <= 200 ? top : TOP,
    mode: MODES.includes(from.get("mode") ?? "") ? (from.get("mode") as string) : "auto",
    bbox: bbox.length === 4 && bbox.every(Number.isFinite) ? bbox : null,
    after: from.get("after") ?? "",
    before: from.get("before") ?? "",
    open: from.get("open") ?? "",
  };
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
