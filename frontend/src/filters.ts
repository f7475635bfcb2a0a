// The row under the search box: area, time, how to search and how many hits.

import type { Gallery } from "./api";
import { byId, h, icon, ICONS } from "./dom";
import { TOP, type Mode, type State } from "./state";

export type Change = (change: Partial<State>) => void;

export function drawFilters(state: State, gallery: Gallery | null, change: Change): void {
  const place = byId("filters");
  const focused = document.activeElement instanceof HTMLElement && place.contains(document.activeElement) ? document.activeElement.id : "";
  const opened = place.querySelector<HTMLDetailsElement>("details.area")?.open ?? false;
  const parts: Node[] = [];
  if (gallery?.georeferenced) parts.push(area(state, change, opened));
  if (gallery?.dated) {
    const range = { min: gallery.first?.slice(0, 10), max: gallery.last?.slice(0, 10) };
    parts.push(date("Taken from", "after", state.after, range, change), date("until", "before", state.before, range, change));
  }
  parts.push(
    choice("Asking", "mode", state.mode, [["auto", "again when unsure"], ["plain", "once"], ["careful", "always again"]], (value) => change({ mode: value as Mode })),
    choice("Hits", "top", String(state.top), [12, TOP, 48, 96].map((n) => [String(n), String(n)]), (value) => change({ top: Number(value) })),
  );
  if (state.bbox || state.after || state.before) {
    parts.push(h("button", { class: "clear", id: "clear", type: "button", click: () => change({ bbox: null, after: "", before: "" }) }, "Clear filters"));
  }
  place.replaceChildren(...parts);
  if (focused) document.getElementById(focused)?.focus();
}

function area(state: State, change: Change, opened: boolean): HTMLElement {
  const names = ["West", "South", "East", "North"];
  const fields = names.map((name, i) =>
    h("label", {}, name, h("input", { id: `area-${name}`, type: "number", step: "any", min: i % 2 ? -90 : -180, max: i % 2 ? 90 : 180, value: state.bbox?.[i] ?? "", required: true })),
  );
  const form = h("form", {
    submit: (event) => {
      event.preventDefault();
      change({ bbox: fields.map((field) => Number(field.querySelector("input")!.value)) });
    },
  }, ...fields, h("button", { class: "plain", type: "submit" }, "Search there"));
  const box = h("details", { class: state.bbox ? "area on" : "area", open: opened },
    h("summary", { id: "area" }, state.bbox ? `Area ${state.bbox.map((value) => value.toFixed(2)).join(", ")}` : "Area"),
    h("div", { class: "pop" }, h("p", { class: "quiet" }, "Draw it on the map, or write its edges in degrees."), form));
  if (!state.bbox) return box;
  const drop = h("button", { class: "drop", id: "area-drop", type: "button", "aria-label": "Remove the area", click: () => change({ bbox: null }) });
  drop.append(icon(ICONS.close));
  return h("span", { class: "pair" }, box, drop);
}

function date(label: string, name: "after" | "before", value: string, range: { min?: string; max?: string }, change: Change): HTMLElement {
  const input = h("input", { id: name, type: "date", value: value.slice(0, 10), ...range });
  // Browsers tell of every keystroke in a date; only whole ones count.
  input.addEventListener("change", () => (input.value || !input.validity.badInput) && change({ [name]: input.value }));
  return h("label", { class: value ? "on" : "" }, label, input);
}

function choice(label: string, id: string, value: string, options: string[][], pick: (value: string) => void): HTMLElement {
  const known = options.some(([one]) => one === value) ? options : [...options, [value, value]];
  const select = h("select", { id, change: (event) => pick((event.target as HTMLSelectElement).value) },
    ...known.map(([one, words]) => h("option", { value: one!, selected: one === value }, words!)));
  return h("label", {}, label, select);
}
