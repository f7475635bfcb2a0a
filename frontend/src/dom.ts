// The few helpers that the page needs to make elements.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function icon(path: string, viewBox = "0 0 24 24"): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", viewBox);
  svg.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(SVG, "path");
  shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}

export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

export function fileName(path: string): string {
  return path.split("/").pop() || path;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

export function day(time: string): string {
  return new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
}

export const ICONS = {
  answered: "M5 12.5l4.5 4.5L19 7.5",
  refined: "M5 9c2-3 5-3 7 0s5 3 7 0M5 16c2-3 5-3 7 0s5 3 7 0",
  abstained: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  unknown: "M12 7v6M12 17v.1",
  close: "M6 6l12 12M18 6L6 18",
  like: "M11 4a7 7 0 1 0 0 14a7 7 0 0 0 0-14M16 16l4.5 4.5M8 11h6M11 8v6",
  place: "M12 21s-6.5-6-6.5-11a6.5 6.5 0 0 1 13 0c0 5-6.5 11-6.5 11zM12 12a2 2 0 1 0 0-4a2 2 0 0 0 0 4",
} as const;
