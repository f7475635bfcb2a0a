// A picture that lies in the archive several times is one hit; its other places unfold below it.

import type { Hit } from "./api";
import { h, plural } from "./dom";

/** What unfolds the other places of `hit`; nothing where there are none. */
export function otherPlaces(hit: Hit, open: (id: string) => void): HTMLElement | null {
  const places = hit.copies ?? [];
  if (!places.length) return null;
  const list = places.map((place) =>
    h("li", {}, h("button", { type: "button", title: place.path, click: () => open(place.id) }, place.path),
      h("span", { class: "quiet" }, place.exact ? "the same file" : "saved again or resized")));
  return h("details", { class: "copies" }, h("summary", {}, plural(places.length, "more place")), h("ul", {}, ...list));
}
