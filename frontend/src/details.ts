// The side panel: one item with its picture, what is known of it, where it lies and what is like it.

import { getJson, Refusal, showPicture, type Corner, type Hit, type Item, type LocateQuestion } from "./api";
import { byId, day, fileName, h, icon, ICONS } from "./dom";
import { hitName, titleClass } from "./grid";
import { locateControl } from "./locate";

export interface DetailActions {
  open(id: string): void;
  like(id: string): void;
  show(item: Item): void;
  close(): void;
  failed(error: unknown): void;
  /** What is being looked for, if anything is. */
  question(): LocateQuestion | null;
}

export class Details {
  private readonly panel = byId("details");
  private shown = "";

  constructor(private readonly actions: DetailActions) {}

  hide(): void {
    this.shown = "";
    this.panel.hidden = true;
    this.panel.replaceChildren();
    document.body.classList.remove("detailed");
  }

  async show(id: string): Promise<void> {
    if (id === this.shown) return;
    this.shown = id;
    try {
      const item = await getJson<Item>(`items/${encodeURIComponent(id)}`);
      if (this.shown !== id) return;
      this.draw(item);
      const { hits } = await getJson<{ hits: Hit[] }>(`items/${encodeURIComponent(id)}/neighbours?top=8`);
      if (this.shown === id) this.neighbours(hits);
    } catch (error) {
      if (this.shown !== id) return;
      if (error instanceof Refusal && error.status === 404) this.absent(error.message);
      else this.actions.failed(error);
    }
  }

  private open(...content: Node[]): void {
    this.panel.replaceChildren(...content);
    this.panel.hidden = false;
    this.panel.scrollTop = 0;
    document.body.classList.add("detailed");
    this.panel.focus({ preventScroll: true });
  }

  private head(title: string, titled = ""): HTMLElement {
    const close = h("button", { class: "icon-button", type: "button", "aria-label": "Close the details", click: () => this.actions.close() });
    close.append(icon(ICONS.close));
    return h("div", { class: "head" }, h("h2", { class: titled }, title), close);
  }

  private absent(message: string): void {
    this.open(this.head("Not there"), h("p", { class: "quiet" }, message));
  }

  private draw(item: Item): void {
    const content: Node[] = [this.head(hitName(item), titleClass(item))];
    const question = this.actions.question();
    if (item.kind !== "text") {
      const image = h("img", { class: "preview", alt: `Picture of ${fileName(item.path)}` });
      showPicture(image, item.id, "preview");
      const lost = h("p", { class: "lost" }, "The picture cannot be shown: its file is gone or has changed since it was indexed.");
      const frame = h("div", { class: "frame" }, image, lost);
      content.push(frame);
      if (question) content.push(locateControl(item, frame, question, this.actions.failed));
    }
    const buttons = h("div", { class: "buttons" });
    const like = h("button", { class: "plain", type: "button", click: () => this.actions.like(item.id) });
    like.append(icon(ICONS.like), "More like this");
    buttons.append(like);
    if (item.corners) {
      const place = h("button", { class: "plain", type: "button", click: () => this.actions.show(item) });
      place.append(icon(ICONS.place), "Show on the map");
      buttons.append(place);
    }
    content.push(buttons, facts(item));
    if (item.captions.length) {
      content.push(h("h3", {}, "Captions"), h("ul", { class: "captions" }, ...item.captions.map((text) => h("li", { class: "sentence" }, text.replace(/\s+\.$/, "")))));
    }
    content.push(h("h3", {}, "Most alike"), h("div", { id: "neighbours", "aria-busy": "true" }));
    this.open(...content);
  }

  private neighbours(hits: Hit[]): void {
    const list = h("ul", { class: "neighbours" });
    for (const hit of hits) {
      const image = h("img", { alt: "", loading: "lazy" });
      if (hit.kind !== "text") showPicture(image, hit.id, "thumbnail");
      const label = `${hitName(hit)}, similarity ${hit.score.toFixed(3)}`;
      list.append(h("li", {}, h("button", { type: "button", title: label, click: () => this.actions.open(hit.id) }, image, h("span", { class: "spoken" }, `${hitName(hit)}, similarity `), h("span", {}, hit.score.toFixed(3)))));
    }
    const place = byId("neighbours");
    place.removeAttribute("aria-busy");
    place.replaceChildren(hits.length ? list : h("p", { class: "quiet" }, "Nothing else is in the gallery."));
  }
}

function facts(item: Item): HTMLElement {
  const list = h("dl", { class: "facts" });
  const add = (name: string, value: string | null): void => {
    if (value) list.append(h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  };
  add("File", item.path);
  add("Taken", item.acquired && `${day(item.acquired)}, ${item.acquired.slice(11, 16)} UTC`);
  add("Pixels", item.width && item.height ? `${item.width} × ${item.height}` : null);
  add("Window", item.window && `at ${item.window.x}, ${item.window.y} of the scene`);
  if (item.corners) {
    add("Centre", centre(item.corners));
    add("Ground", ground(item.corners));
    add("Footprint", item.corners.map(([x, y]) => `${y.toFixed(4)}, ${x.toFixed(4)}`).join("  ·  "));
  }
  add("Projection", item.crs && item.crs.length < 40 ? item.crs : item.crs && "custom");
  add("Size", item.size ? bytes(item.size) : null);
  return list;
}

function centre(corners: Corner[]): string {
  const x = (Math.min(...corners.map((one) => one[0])) + Math.max(...corners.map((one) => one[0]))) / 2;
  const y = (Math.min(...corners.map((one) => one[1])) + Math.max(...corners.map((one) => one[1]))) / 2;
  return `${Math.abs(y).toFixed(4)}° ${y < 0 ? "S" : "N"}, ${Math.abs(x).toFixed(4)}° ${x < 0 ? "W" : "E"}`;
}

function ground(corners: Corner[]): string {
  const length = (a: Corner, b: Corner): number => {
    const scale = Math.cos((((a[1] + b[1]) / 2) * Math.PI) / 180);
    return 111_320 * Math.hypot((b[0] - a[0]) * scale, b[1] - a[1]);
  };
  const shown = (metres: number): string => (metres < 1000 ? `${metres.toFixed(0)} m` : `${(metres / 1000).toFixed(1)} km`);
  return `${shown(length(corners[0]!, corners[1]!))} × ${shown(length(corners[0]!, corners[3]!))}`;
}

function bytes(count: number): string {
  return count < 1e6 ? `${(count / 1e3).toFixed(0)} kB` : `${(count / 1e6).toFixed(1)} MB`;
}
