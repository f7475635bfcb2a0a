// Hits that are marked right or wrong for the question that is shown: kept by the server, undone with a key.

import { getJson, postJson, Refusal, type Hit } from "./api";
import { byId, h, icon, ICONS, plural } from "./dom";
import type { MarkOut, MarksOut } from "./schema";

type Says = MarkOut["says"];

/** A question that can be marked: words, the like of an item, or both. */
export interface Marked {
  text?: string;
  item?: string;
}

export interface MarkActions {
  /** Show the hits ranked by the marks, or as without them. */
  rank(marked: boolean): void;
  failed(error: unknown): void;
}

export class Marks {
  private question: Marked | null = null;
  private held = new Map<string, Says>();
  private made: { id: string; before: Says | null }[] = [];
  private ranked = false;

  constructor(private readonly actions: MarkActions) {}

  /** Take up the marks of a question; none where it cannot be marked. */
  async begin(question: Marked | null): Promise<void> {
    if (JSON.stringify(question) === JSON.stringify(this.question)) return;
    this.question = question;
    this.made = [];
    this.held = new Map();
    byId("marks").hidden = true;
    if (!question) return;
    const given = Object.entries(question).filter(([, value]) => value) as [string, string][];
    try {
      const found = await getJson<MarksOut>(`marks?${new URLSearchParams(given)}`);
      if (this.question === question) this.take(found);
    } catch (error) {
      // Marks that cannot be read are no reason not to search.
      if (!(error instanceof Refusal) || error.status === 401) throw error;
      this.question = null;
    }
  }

  /** Ids of the hits that were marked, as a search takes them. */
  said(): { right: string[]; wrong: string[] } {
    const of = (says: Says): string[] => [...this.held].filter(([, one]) => one === says).map(([id]) => id).slice(-200);
    return { right: of("right"), wrong: of("wrong") };
  }

  /** The two buttons of a hit. */
  buttons(hit: Hit): HTMLElement | null {
    if (!this.question) return null;
    const group = h("div", { class: "marks", role: "group", "aria-label": `Is hit ${hit.rank} right?`, "data-marks": hit.id });
    for (const says of ["right", "wrong"] as const) {
      const button = h("button", { class: says, type: "button", tabindex: -1, "aria-label": `Hit ${hit.rank} is ${says}`, title: says === "right" ? "Right (r)" : "Wrong (w)", click: () => void this.toggle(hit.id, says) });
      button.append(icon(says === "right" ? ICONS.answered : ICONS.abstained));
      group.append(button);
    }
    return group;
  }

  /** What a key does to the hit it is pressed on; whether it does anything. */
  key(key: string, id: string): boolean {
    if (!this.question || !["r", "w", "u"].includes(key)) return false;
    void (key === "u" ? this.undo() : this.toggle(id, key === "r" ? "right" : "wrong"));
    return true;
  }

  /** Show what is marked on the hits that are there, and say it above them. */
  draw(ranked = this.ranked): void {
    this.ranked = ranked;
    for (const group of document.querySelectorAll<HTMLElement>("[data-marks]")) {
      const says = this.held.get(group.dataset.marks!);
      group.dataset.says = says ?? "";
      for (const button of group.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.classList.contains(says ?? "-")));
    }
    const { right, wrong } = this.said();
    const place = byId("marks");
    place.hidden = !this.question || (!right.length && !wrong.length && !this.made.length && !ranked);
    const again = ranked ? "Rank without them" : "Rank by them";
    place.replaceChildren(
      h("span", {}, `For this question ${plural(right.length, "hit")} marked right, ${wrong.length.toLocaleString("en")} wrong.`),
      ...(this.made.length ? [h("button", { class: "plain", type: "button", click: () => void this.undo() }, "Undo")] : []),
      ...(right.length || wrong.length || ranked ? [h("button", { class: "plain", type: "button", click: () => this.actions.rank(!ranked) }, again)] : []),
    );
  }

  private async toggle(id: string, says: Says): Promise<void> {
    const before = this.held.get(id) ?? null;
    if (await this.send(id, before === says ? null : says)) {
      this.made.push({ id, before });
      this.draw();
    }
  }

  private async undo(): Promise<void> {
    const last = this.made.pop();
    if (last && !(await this.send(last.id, last.before))) this.made.push(last);
    this.draw();
  }

  private async send(id: string, says: Says | null): Promise<boolean> {
    const question = this.question;
    try {
      const found = await postJson<MarksOut>("marks", { ...question, id, says });
      if (this.question === question) this.take(found);
      return true;
    } catch (error) {
      this.actions.failed(error);
      return false;
    }
  }

  private take(found: MarksOut): void {
    this.held = new Map(found.marks.map((mark) => [mark.id, mark.says]));
  }
}
