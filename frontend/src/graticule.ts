// Lines of latitude and longitude, as fine as the view asks for.

import * as L from "leaflet";

const STEPS = [30, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005];
const LINES = 5;
const LABEL = { x: 48, y: 18 };
const NORTHERNMOST = 85;

export class Graticule extends L.LayerGroup {
  private map: L.Map | null = null;

  override onAdd(map: L.Map): this {
    if (!map.getPane("graticule")) map.createPane("graticule");
    super.onAdd(map);
    this.map = map;
    map.on("moveend", this.draw, this);
    this.draw();
    return this;
  }

  override onRemove(map: L.Map): this {
    map.off("moveend", this.draw, this);
    this.map = null;
    return super.onRemove(map);
  }

  private draw(): void {
    if (!this.map) return;
    this.clearLayers();
    const view = this.map.getBounds().pad(0.05);
    const wide = Math.min(view.getEast() - view.getWest(), 360);
    const step = STEPS.find((one) => wide / one >= LINES) ?? STEPS.at(-1)!;
    const decimals = Math.max(0, Math.ceil(-Math.log10(step)));
    const [south, north] = [Math.max(view.getSouth(), -NORTHERNMOST), Math.min(view.getNorth(), NORTHERNMOST)];
    const inner = this.map.getBounds();
    const { x: width, y: height } = this.map.getSize();
    const pixel = (at: L.LatLngTuple): L.Point => this.map!.latLngToContainerPoint(at);
    const every = Math.ceil(LABEL.x / Math.max(pixel([0, step]).x - pixel([0, 0]).x, 1));
    for (let x = Math.ceil(view.getWest() / step) * step; x <= view.getEast(); x += step) {
      this.line([[south, x], [north, x]]);
      const turned = ((((x + 180) % 360) + 360) % 360) - 180;
      const left = pixel([south, x]).x;
      // Labels cover neither each other nor those at the left edge, and none is cut off.
      if (left < LABEL.x || left > width - LABEL.x || Math.round(x / step) % every) continue;
      this.label([inner.getSouth(), x], `${Math.abs(turned).toFixed(decimals)}°${turned < -1e-9 ? "W" : turned > 1e-9 ? "E" : ""}`, "below");
    }
    for (let y = Math.ceil(south / step) * step; y <= north; y += step) {
      this.line([[y, view.getWest()], [y, view.getEast()]]);
      const top = pixel([y, view.getWest()]).y;
      if (top > LABEL.y && top < height) this.label([y, inner.getWest()], `${Math.abs(y).toFixed(decimals)}°${y < -1e-9 ? "S" : y > 1e-9 ? "N" : ""}`, "beside");
    }
  }

  private line(points: L.LatLngTuple[]): void {
    this.addLayer(L.polyline(points, { className: "graticule", interactive: false, weight: 1, pane: "graticule" }));
  }

  private label(at: L.LatLngTuple, text: string, side: string): void {
    const icon = L.divIcon({ className: `degrees ${side}`, html: `<span aria-hidden="true">${text}</span>`, iconSize: [0, 0] });
    this.addLayer(L.marker(at, { icon, interactive: false, keyboard: false }));
  }
}
