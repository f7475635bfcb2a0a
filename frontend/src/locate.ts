// Where in a picture the thing asked for is: a map of likeness laid over a hit's preview.

import { locate, Refusal, type Item, type Located, type LocateQuestion } from "./api";
import { h, icon } from "./dom";

const ICON = "M12 3v4M12 17v4M3 12h4M17 12h4M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8";
const COLOURS: readonly (readonly [number, readonly [number, number, number]])[] = [
  [0, [40, 20, 90]],
  [0.35, [170, 40, 110]],
  [0.7, [245, 125, 35]],
  [1, [255, 235, 100]],
];
const STRONGEST = 0.75;

/** Put a button over the picture in `frame` that lays the map over it and takes it off again; returns the line that says what it shows. */
export function locateControl(item: Item, frame: HTMLElement, question: LocateQuestion, failed: (error: unknown) => void): HTMLElement {
  const line = h("p", { class: "located", "aria-live": "polite", hidden: true });
  const button = h("button", { class: "plain show-map", type: "button", "aria-pressed": "false" });
  button.append(icon(ICON), "Where is it?");
  let drawn: HTMLCanvasElement | null = null;
  const show = (shown: boolean): void => {
    button.setAttribute("aria-pressed", String(shown));
    if (drawn) drawn.hidden = !shown;
    line.hidden = !shown;
  };
  const look = async (): Promise<void> => {
    button.setAttribute("aria-busy", "true");
    button.disabled = true;
    try {
      const found = await locate(item.id, question);
      drawn = canvasOf(found);
      frame.insertBefore(drawn, button);
      line.replaceChildren(h("strong", {}, `${found.headline}.`), ` ${found.explanation}`);
      show(true);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status === 401) return failed(error);
      line.replaceChildren(`This cannot be looked for here: ${error.message}`);
      line.hidden = false;
    } finally {
      button.removeAttribute("aria-busy");
      button.disabled = false;
    }
  };
  button.addEventListener("click", () => void (drawn ? show(button.getAttribute("aria-pressed") !== "true") : look()));
  frame.append(button);
  return line;
}

/** As large as the picture that was looked at, so that the same rules of style put it exactly over the preview. */
function canvasOf(found: Located): HTMLCanvasElement {
  const canvas = h("canvas", { class: "preview heat", width: found.width, height: found.height, role: "img", "aria-label": found.headline });
  canvas.dataset.finding = found.finding;
  const pen = canvas.getContext("2d")!;
  const { rows, columns, cell } = found.heat;
  pen.imageSmoothingEnabled = true;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(cells(found), 0, 0, columns, rows, 0, 0, columns * cell, rows * cell);
  for (const peak of found.peaks) ring(pen, peak.x, peak.y, Math.max(6, found.width / 40));
  return canvas;
}

function cells(found: Located): HTMLCanvasElement {
  const { rows, columns, values } = found.heat;
  const small = h("canvas", { width: columns, height: rows });
  const pen = small.getContext("2d")!;
  const pixels = pen.createImageData(columns, rows);
  const levels = atob(values);
  for (let place = 0; place < levels.length; place++) {
    const share = levels.charCodeAt(place) / 255;
    pixels.data.set([...colour(share), 255 * STRONGEST * share], 4 * place);
  }
  pen.putImageData(pixels, 0, 0);
  return small;
}

function colour(share: number): number[] {
  const above = Math.max(1, COLOURS.findIndex(([stop]) => stop >= share));
  const [from, low] = COLOURS[above - 1]!;
  const [to, high] = COLOURS[above]!;
  const part = (share - from) / (to - from);
  return low.map((value, band) => value + (high[band]! - value) * part);
}

function ring(pen: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  for (const [width, shade] of [[5, "#000"], [2.5, "#fff"]] as const) {
    pen.lineWidth = width;
    pen.strokeStyle = shade;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.stroke();
  }
}
