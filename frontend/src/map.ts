// Where the hits lie. No tiles are fetched from anywhere: a graticule, footprints and the archive's own pictures.

import * as L from "leaflet";
import { showPicture, type Hit, type Item } from "./api";
import { byId } from "./dom";
import { Graticule } from "./graticule";
import { hitName } from "./grid";
import { PictureOverlay } from "./overlay";

export interface MapActions {
  open(id: string): void;
  area(bbox: number[]): void;
}

/** Pins are wider than their places; degrees stand at the left and the lower edge, the zoom at the right. */
const EDGES: L.FitBoundsOptions = { paddingTopLeft: [56, 28], paddingBottomRight: [52, 40] };

type Place = Pick<Hit, "id" | "corners" | "caption" | "path">;

export class HitMap {
  private readonly map: L.Map;
  private readonly layers = L.layerGroup();
  private readonly area = L.layerGroup();
  private readonly pins = new Map<string, { pin: L.Marker; outline: L.Polygon; overlay: PictureOverlay }>();
  private readonly note = byId("map-note");

  constructor(private readonly actions: MapActions) {
    this.map = L.map("map", { attributionControl: false, worldCopyJump: true, zoomSnap: 0.5, minZoom: 1, maxZoom: 20, zoomControl: false });
    L.control.zoom({ position: "topright" }).addTo(this.map);
    this.map.setView([20, 0], 1);
    new Graticule().addTo(this.map);
    // Beside the map, where it covers nothing.
    byId("map-scale").append(L.control.scale({ imperial: false, maxWidth: 70 }).addTo(this.map).getContainer()!);
    this.layers.addTo(this.map);
    this.area.addTo(this.map);
    this.map.on("zoomend", () => this.choose());
    new ResizeObserver(() => this.map.invalidateSize()).observe(byId("map"));
    const draw = byId<HTMLButtonElement>("draw");
    draw.addEventListener("click", () => this.drawing(draw.getAttribute("aria-pressed") !== "true"));
    byId("view").addEventListener("click", () => actions.area(toBox(this.map.getBounds())));
    byId("fit").addEventListener("click", () => this.fit());
    this.listen();
  }

  /** Show these hits; `bounds` is what to look at when there are none. */
  show(hits: Hit[], bbox: number[] | null, bounds: number[] | null): void {
    this.layers.clearLayers();
    this.pins.clear();
    const placed = hits.filter((hit) => hit.corners);
    for (const hit of placed) this.add(hit, String(hit.rank));
    this.area.clearLayers();
    if (bbox) this.area.addLayer(L.rectangle(fromBox(bbox), { className: "area", interactive: false, weight: 2 }));
    byId("fit").hidden = !placed.length;
    const without = hits.length - placed.length;
    this.note.textContent = without ? `${without} of ${hits.length} hits do not know their place.` : !hits.length && bounds && !bbox ? "The archive lies here." : "";
    if (!hits.length && bounds) this.layers.addLayer(L.rectangle(fromBox(bounds), { className: "extent", interactive: false, weight: 1.5 }));
    if (placed.length) this.fit();
    else if (bbox ?? bounds) this.look(fromBox((bbox ?? bounds)!));
  }

  point(id: string | null): void {
    for (const [one, { pin, outline }] of this.pins) {
      pin.getElement()?.classList.toggle("pointed", one === id);
      outline.getElement()?.classList.toggle("pointed", one === id);
      pin.setZIndexOffset(one === id ? 1000 : 0);
    }
  }

  /** Show which hit is open, and bring it into view. */
  select(id: string): void {
    const place = this.pins.get(id);
    for (const [one, { pin }] of this.pins) pin.getElement()?.classList.toggle("open", one === id);
    if (place && !this.map.getBounds().pad(-0.1).contains(place.pin.getLatLng())) this.map.panTo(place.pin.getLatLng(), { animate: false });
  }

  /** Go to one item, which need not be a hit. */
  go(item: Item): void {
    if (!item.corners) return;
    if (!this.pins.has(item.id)) this.add(item, "");
    this.point(item.id);
    this.map.invalidateSize();
    this.look(L.latLngBounds(item.corners.map(([x, y]) => [y, x])).pad(0.25), 19, {});
  }

  private fit(): void {
    const all = [...this.pins.values()].map(({ outline }) => outline.getBounds());
    if (all.length) this.look(all.reduce((sum, one) => sum.extend(one), L.latLngBounds(all[0]!.getSouthWest(), all[0]!.getNorthEast())).pad(0.08));
  }

  private look(bounds: L.LatLngBounds, maxZoom = 17, edges: L.FitBoundsOptions = EDGES): void {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.map.fitBounds(bounds, { animate: !calm, maxZoom, ...edges });
    this.choose();
  }

  private add(place: Place, rank: string): void {
    const corners = place.corners!;
    const name = hitName(place);
    const outline = L.polygon(corners.map(([x, y]): L.LatLngTuple => [y, x]), { className: "footprint", weight: 2 });
    const overlay = new PictureOverlay(place.id, corners);
    const image = document.createElement("img");
    image.alt = "";
    showPicture(image, place.id, "thumbnail");
    const face = document.createElement("span");
    face.append(image, Object.assign(document.createElement("b"), { textContent: rank }));
    const pin = L.marker(outline.getBounds().getCenter(), { icon: L.divIcon({ className: "pin", html: face, iconSize: [40, 40] }), title: name });
    outline.bindTooltip(name, { sticky: true });
    for (const layer of [outline, pin]) layer.on("click", () => this.actions.open(place.id));
    pin.on("keypress", (event) => event.originalEvent.key === "Enter" && this.actions.open(place.id));
    this.pins.set(place.id, { pin, outline, overlay });
    for (const layer of [overlay, outline, pin]) this.layers.addLayer(layer);
    pin.getElement()?.setAttribute("aria-label", rank ? `Hit ${rank} on the map: ${name}` : `On the map: ${name}`);
  }

  /** Pins for footprints that are too small to see, pictures for the others. */
  private choose(): void {
    for (const { pin, overlay } of this.pins.values()) {
      pin.getElement()?.classList.toggle("small", overlay.size(this.map) > 70);
    }
  }

  private drawing(on: boolean): void {
    byId("draw").setAttribute("aria-pressed", String(on));
    byId("map").classList.toggle("drawing", on);
    this.map.dragging[on ? "disable" : "enable"]();
    this.note.textContent = on ? "Drag over the map to choose an area." : "";
  }

  private listen(): void {
    const place = byId("map");
    let start: L.LatLng | null = null;
    let shape: L.Rectangle | null = null;
    place.addEventListener("pointerdown", (event) => {
      if (!place.classList.contains("drawing") || event.button !== 0) return;
      event.stopPropagation();
      event.preventDefault();
      place.setPointerCapture(event.pointerId);
      start = this.map.mouseEventToLatLng(event);
      shape = L.rectangle(L.latLngBounds(start, start), { className: "area", interactive: false, weight: 2 }).addTo(this.area);
    }, { capture: true });
    place.addEventListener("pointermove", (event) => {
      if (start) shape?.setBounds(L.latLngBounds(start, this.map.mouseEventToLatLng(event)));
    });
    place.addEventListener("pointerup", (event) => {
      if (!start) return;
      const bounds = L.latLngBounds(start, this.map.mouseEventToLatLng(event));
      start = null;
      shape?.remove();
      this.drawing(false);
      const corner = this.map.latLngToLayerPoint(bounds.getNorthEast());
      if (corner.distanceTo(this.map.latLngToLayerPoint(bounds.getSouthWest())) > 6) this.actions.area(toBox(bounds));
    });
    addEventListener("keydown", (event) => event.key === "Escape" && place.classList.contains("drawing") && this.drawing(false));
  }
}

/** west, south, east, north; west is greater than east across the 180th meridian. */
function toBox(bounds: L.LatLngBounds): number[] {
  const round = (value: number): number => Math.round(value * 1e5) / 1e5;
  const turn = (x: number): number => round(((((x + 180) % 360) + 360) % 360) - 180);
  const [south, north] = [Math.max(bounds.getSouth(), -90), Math.min(bounds.getNorth(), 90)].map(round);
  if (bounds.getEast() - bounds.getWest() >= 360) return [-180, south!, 180, north!];
  return [turn(bounds.getWest()), south!, turn(bounds.getEast()), north!];
}

function fromBox([west, south, east, north]: number[]): L.LatLngBounds {
  return L.latLngBounds([south!, west!], [north!, east! < west! ? east! + 360 : east!]);
}
