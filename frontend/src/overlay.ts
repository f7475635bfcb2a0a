// A picture laid over its footprint: its corners go where the corners lie, turned and sheared as needed.

import * as L from "leaflet";
import { showPicture, type Corner } from "./api";

export class PictureOverlay extends L.Layer {
  readonly image: HTMLImageElement;
  private map: L.Map | null = null;

  constructor(
    private readonly id: string,
    private readonly corners: Corner[],
  ) {
    super();
    this.image = document.createElement("img");
    this.image.className = "overlay leaflet-zoom-hide";
    this.image.alt = "";
    this.image.addEventListener("load", () => this.place());
  }

  override onAdd(map: L.Map): this {
    this.map = map;
    (map.getPane("pictures") ?? map.createPane("pictures")).append(this.image);
    map.on("zoomend viewreset moveend", this.place, this);
    this.place();
    return this;
  }

  override onRemove(map: L.Map): this {
    map.off("zoomend viewreset moveend", this.place, this);
    this.image.remove();
    this.map = null;
    return this;
  }

  /** Pixels of the screen along the upper edge. */
  size(map: L.Map): number {
    const [a, b] = this.corners.map(([x, y]) => map.latLngToLayerPoint([y, x]));
    return a!.distanceTo(b!);
  }

  private place(): void {
    if (!this.map) return;
    // Small ones are marked by a pin; their pictures are not even fetched.
    const shown = this.size(this.map) >= 24;
    this.image.hidden = !shown;
    if (!shown) return;
    if (!this.image.src) showPicture(this.image, this.id, "preview");
    const [a, b, , d] = this.corners.map(([x, y]) => this.map!.latLngToLayerPoint([y, x]));
    const [width, height] = [this.image.naturalWidth || 1, this.image.naturalHeight || 1];
    const across = b!.subtract(a!).divideBy(width);
    const down = d!.subtract(a!).divideBy(height);
    this.image.style.transform = `matrix(${across.x}, ${across.y}, ${down.x}, ${down.y}, ${a!.x}, ${a!.y})`;
  }
}
