// The hits, as a grid that can be walked with the arrow keys.

import { showPicture, type Answer, type Hit } from "./api";
import { day, fileName, h, icon, ICONS } from "./dom";

export interface GridActions {
  open(id: string): void;
  like(id: string): void;
  point(id: string | null): void;
}

export function hitName(hit: Pick<Hit, "caption" | "path">): string {
  return hit.caption?.replace(/\s+\.$/, "") ?? fileName(hit.path);
}

export function hitGrid(answer: Answer, actions: GridActions): HTMLElement {
  const entered = new Set(answer.refinement?.entered);
  const list = h("ol", { class: `grid ${answer.verdict}` });
  for (const hit of answer.hits) list.append(cell(hit, entered.has(hit.id), actions));
  list.addEventListener("keydown", (event) => walk(event, list, actions));
  const first = list.querySelector<HTMLElement>("button.hit");
  if (first) first.tabIndex = 0;
  return list;
}

function cell(hit: Hit, isNew: boolean, actions: GridActions): HTMLElement {
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
    button.append(h("span", { class: "text" }, name));
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
    h("span", { class: "name" }, hit.kind === "text" ? "" : name),
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
  return h("li", {}, button, like);
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
  const top = hits[0]!.getBoundingClientRect().top;
  const columns = Math.max(hits.findIndex((one) => one.getBoundingClientRect().top > top + 4), 1);
  const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  const target = event.key === "Home" ? 0 : event.key === "End" ? hits.length - 1 : here + (steps[event.key] ?? NaN);
  const next = hits[target];
  if (!next) return;
  event.preventDefault();
  for (const one of hits) one.tabIndex = one === next ? 0 : -1;
  next.focus();
}
