// How far to trust the answer, for people: a sentence, a gauge, and what asking again changed.

import { showPicture, type Answer, type Calibration, type Gallery } from "./api";
import { h, icon, ICONS, plural } from "./dom";

export function verdictCard(answer: Answer, gallery: Gallery | null, byPicture: boolean, open: (id: string) => void): HTMLElement {
  const card = h("div", { class: `verdict ${answer.tone}` });
  const words = h(
    "div",
    { class: "words" },
    h("h2", {}, answer.headline),
    h("p", {}, answer.explanation),
    answer.guarantee && h("p", { class: "guarantee" }, `Guarantee of the calibration: ${answer.guarantee}.`),
    why(answer, gallery, byPicture),
  );
  const badge = h("span", { class: "badge" });
  badge.append(icon(ICONS[answer.tone]));
  card.append(badge, words);
  if (answer.refinement) card.append(change(answer, open));
  return card;
}

/** What the verdict stands on, for those who unfold it. */
function why(answer: Answer, gallery: Gallery | null, byPicture: boolean): HTMLElement | null {
  if (!answer.details.length) return null;
  const list = h("ul", {}, ...answer.details.map((line) => h("li", {}, line)));
  const box = h("details", { class: "why" }, h("summary", {}, "What this stands on"), list);
  if (answer.percentile !== null) box.append(gauge(answer.percentile, marks(gallery, byPicture)));
  return box;
}

function marks(gallery: Gallery | null, byPicture: boolean): Calibration | null {
  const direction = byPicture ? "image" : "text";
  return gallery?.calibrations.find((one) => one.direction === direction && one.among === "images") ?? null;
}

/** Left is unsure, right is sure; the zones are those of the calibration. */
function gauge(percentile: number, calibration: Calibration | null): HTMLElement {
  const sure = Math.round(100 * (1 - percentile));
  const bar = h("div", {
    class: "bar",
    role: "meter",
    "aria-label": "Certainty",
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": sure,
    "aria-valuetext": `surer than ${sure} of 100 known questions`,
  });
  const abstain = calibration ? 100 * (1 - calibration.abstain_above) : 0;
  const refine = calibration ? Math.max(100 * (1 - calibration.refine_above), abstain) : 0;
  for (const [zone, from, to] of [["abstained", 0, abstain], ["refined", abstain, refine], ["answered", refine, 100]] as const) {
    const part = h("i", { class: zone });
    part.style.left = `${from}%`;
    part.style.width = `${Math.max(to - from, 0)}%`;
    bar.append(part);
  }
  const needle = h("b");
  needle.style.left = `${Math.min(Math.max(sure, 1), 99)}%`;
  bar.append(needle);
  const among = calibration ? plural(calibration.queries, "known question") : "the known questions";
  return h(
    "div",
    { class: "gauge" },
    bar,
    h("div", { class: "ends", "aria-hidden": "true" }, h("span", {}, "unsure"), h("span", {}, "sure")),
    h("p", {}, `Where it stands among ${among}.`), // how many were surer, the sentence beside it says
  );
}

function change(answer: Answer, open: (id: string) => void): HTMLElement {
  const what = answer.refinement!;
  const entered = what.entered.length;
  const moved = what.reordered && !entered ? "the order changed, the hits stayed" : "nothing changed";
  const summary = entered
    ? `${plural(entered, "hit")} came in (marked new), ${plural(what.left.length, "hit")} went out`
    : moved;
  const box = h(
    "div",
    { class: "change" },
    h("p", {}, h("strong", {}, "Asked again"), ` in ${what.copies} similar forms: ${summary}. `,
      h("span", { class: "quiet" }, `Uncertainty ${what.uncertainty_before.toPrecision(3)} before, ${answer.uncertainty.toPrecision(3)} after.`)),
  );
  if (what.left.length) {
    const strip = h("ul", { class: "strip", "aria-label": "Hits that went out" });
    for (const id of what.left.slice(0, 8)) {
      const image = h("img", { alt: "", width: 48, height: 48, loading: "lazy" });
      showPicture(image, id, "thumbnail");
      strip.append(h("li", {}, h("button", { type: "button", "aria-label": "Open a hit that went out", title: "Went out", click: () => open(id) }, image)));
    }
    box.append(strip);
  }
  return box;
}
