// The hits, as a grid that can be walked with the arrow keys.

import { showPicture, type Answer, type Hit } from "./api";
import { otherPlaces } from "./copies";
import { day, fileName, h, icon, ICONS } from "./dom";

export interface GridActions {
  open(id: string): void;
  like(id: string): void;
  point(id: string | null): void;
  /** What stands on a hit besides its picture and words. */
  extra?(hit: Hit): HTMLElement | null;
  /** What a key does to a hit; whether it does anything. */
  key?(key: string, id: string): boolean;
}

export function hitName(hit: Pick<Hit, "caption" | "path">): string {
  return hit.caption?.replace(/\s+\.$/, "") ?? fileName(hit.path);
}

/** Captions are written like sentences; the names of files are shown as they are. */
export function titleClass(hit: Pick<Hit, "caption">): string {
  return hit.caption === null ? "" : "sentence";
}

export function hitGrid(answer: Answer, actions: GridActions): HTMLElement {
  const entered = new Set(answer.refinement?.entered);
  const list = h("ol", { class: `grid ${answer.verdict}` });
  const apart = answer.hits.length - answer.apart;
  answer.hits.forEach((hit, place) => {
    if (place === apart) list.append(h("li", { class: "apart-line" }, answer.apart_line));
    list.append(cell(hit, entered.has(hit.id), place >= apart, actions));
  });
  list.addEventListener("keydown", (event) => walk(event, list, actions));
  const first = list.querySelector<HTMLElement>("button.hit");
  if (first) first.tabIndex = 0;
  return list;
}

/** Go to the hit where walking begins; whether there is one. */
export function enterGrid(): boolean {
  const hit = document.querySelector<HTMLElement>(".grid .hit[tabindex='0']");
  hit?.focus();
  return hit !== null;
}

function cell(hit: Hit, isNew: boolean, apart: boolean, actions: GridActions): HTMLElement {
  const name = hitName(hit);
  const button = h(
    "button",
    {
      class: "hit",
      type: "button",
      tabindex: -1,
      "data-id": hit.id,
      click: () => actions.open(hit.id),
      mouseenter: () => actions.point(hit.id),
      mouseleave: () => actions.point(null),
      focus: () => actions.point(hit.id),
      blur: () => actions.point(null),
    },
  );
  if (hit.kind === "text") {
    button.append(h("span", { class: `text ${titleClass(hit)}` }, name));
  } else {
    const image = h("img", { alt: "", loading: "lazy", decoding: "async" });
    showPicture(image, hit.id, "thumbnail");
    button.append(h("span", { class: "frame" }, image));
  }
  const where = [fileName(hit.path), hit.acquired && day(hit.acquired)].filter(Boolean).join(" · ");
  button.append(
    h("span", { class: "rank" }, h("span", { class: "spoken" }, "Hit "), String(hit.rank)),
    h("span", { class: "score", title: "Similarity (cosine) between query and hit" }, h("span", { class: "spoken" }, "score "), hit.score.toFixed(3)),
    ...(isNew ? [h("span", { class: "new" }, "new")] : []),
    h("span", { class: `name ${titleClass(hit)}` }, hit.kind === "text" ? "" : name),
    h("span", { class: "where" }, where),
  );
  const like = h("button", {
    class: "like",
    type: "button",
    tabindex: -1,
    "aria-label": `More like hit ${hit.rank}`,
    title: "More like this",
    click: () => actions.like(hit.id),
  });
  like.append(icon(ICONS.like));
  return h("li", { class: apart ? "apart" : "" }, button, like, actions.extra?.(hit) ?? null, otherPlaces(hit, actions.open));
}

function walk(event: KeyboardEvent, list: HTMLElement, actions: GridActions): void {
  const hits = [...list.querySelectorAll<HTMLElement>("button.hit")];
  const here = hits.indexOf(document.activeElement as HTMLElement);
  if (here < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "s") {
    event.preventDefault();
    actions.like(hits[here]!.dataset.id!);
    return;
  }
  if (actions.key?.(event.key, hits[here]!.dataset.id!)) {
    event.preventDefault();
    return;
  }
  const next = neighbour(hits, here, event.key);
  if (!next) return;
  event.preventDefault();
  for (const one of hits) one.tabIndex = one === next ? 0 : -1;
  next.focus();
}

/** The hit that a key leads to; up and down go to the nearest of the next row, which need not be a full one. */
function neighbour(hits: HTMLElement[], here: number, key: string): HTMLElement | undefined {
  if (key === "Home") return hits[0];
  if (key === "End") return hits.at(-1);
  if (key === "ArrowRight") return hits[here + 1];
  if (key === "ArrowLeft") return hits[here - 1];
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const [left, top] = [columnOf(hits[here]!), rowOf(hits[here]!)];
  const rows = hits.map(rowOf).filter((row) => (key === "ArrowDown" ? row > top + 4 : row < top - 4));
  const next = key === "ArrowDown" ? Math.min(...rows) : Math.max(...rows);
  const beside = hits.filter((one) => Math.abs(rowOf(one) - next) <= 4);
  return beside.sort((one, other) => Math.abs(columnOf(one) - left) - Math.abs(columnOf(other) - left))[0];
}

const rowOf = (hit: HTMLElement): number => hit.getBoundingClientRect().top;
const columnOf = (hit: HTMLElement): number => hit.getBoundingClientRect().left;
