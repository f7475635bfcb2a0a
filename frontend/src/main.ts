// The page: what the address asks is searched for and shown.

import { getJson, isAlive, Lost, Refusal, search, setToken, showPicture, type Answer, type Gallery } from "./api";
import { Details } from "./details";
import { byId, h, plural } from "./dom";
import { drawFilters } from "./filters";
import { enterGrid, hitGrid } from "./grid";
import { HitMap } from "./map";
import { Marks } from "./marks";
import { address, asksSomething, readState, sameQuestion, type State } from "./state";
import { verdictCard } from "./verdict";

const EXAMPLES = ["planes beside a terminal", "a river between fields", "ships in a harbour", "dense houses in rows"];
const uploads = new Map<string, File>();
const results = byId("results");
const words = byId<HTMLInputElement>("words");

let state = readState();
let gallery: Gallery | null = null;
let asked: State | null = null;
let asking: AbortController | null = null;
let map: HitMap | null = null;

const details = new Details({
  open: (id) => move({ open: id }),
  like: (id) => likeThis(id),
  show: (item) => {
    showMap();
    if (matchMedia("(max-width: 1079px)").matches) {
      move({ open: "" });
      byId("map-side").scrollIntoView();
    }
    map?.go(item);
  },
  close: () => move({ open: "" }),
  failed: (error) => fail(error),
  question: () => {
    const image = uploads.get(state.image);
    if (state.image) return image ? { image } : null;
    if (state.item) return { like: state.item };
    return state.q ? { text: state.q } : null;
  },
});

const marks = new Marks({
  rank: (marked) => {
    asked = null;
    move({ marked });
  },
  failed: (error) => (error instanceof Refusal && error.status !== 401 ? say(`The mark was not kept: ${error.message}`) : fail(error)),
});

/** Change what is asked for; the address follows, and what it says is shown. */
function move(change: Partial<State>): void {
  const next = { ...state, wrong: "", ...change };
  if (address(next) === address(state) && !("image" in change)) return;
  const only = sameQuestion(next, state);
  // Looking at one hit after another is no history worth keeping.
  history[only && state.open && next.open ? "replaceState" : "pushState"](null, "", address(next));
  state = next;
  void show();
}

function likeThis(id: string): void {
  words.value = "";
  move({ q: "", item: id, image: "", open: "", marked: false });
  scrollTo({ top: 0 });
}

function searchWith(file: File | undefined): void {
  if (!file) return;
  const name = `${file.name || "picture"}`;
  uploads.set(name, file);
  asked = null;
  words.value = "";
  move({ q: "", item: "", image: name, open: "", marked: false });
}

async function show(): Promise<void> {
  document.body.classList.toggle("start", !asksSomething(state));
  drawQuery();
  drawFilters(state, gallery, move);
  if (state.wrong) say(state.wrong);
  if (state.open) void details.show(state.open).then(() => map?.select(state.open));
  else closeDetails();
  if (asked && sameQuestion(asked, state)) return;
  if (asksSomething(state)) await ask();
  else drawStart();
}

function closeDetails(): void {
  const last = document.querySelector<HTMLElement>(".hit.open");
  const inside = byId("details").contains(document.activeElement);
  details.hide();
  last?.classList.remove("open");
  if (inside) (last ?? words).focus();
}

async function ask(): Promise<void> {
  asking?.abort();
  const mine = (asking = new AbortController());
  const wanted = state;
  const image = uploads.get(wanted.image);
  document.title = `${[wanted.image, wanted.q].filter(Boolean).join(" + ") || "More like this"} · evidex`;
  if (wanted.image && !image) {
    say("The picture itself is not kept in the address. Drop it again to repeat this search.");
    clearAnswer();
    return;
  }
  results.setAttribute("aria-busy", "true");
  try {
    await marks.begin(gallery?.marks && !wanted.image ? { text: wanted.q || undefined, item: wanted.item || undefined } : null);
    const answer = await search(
      {
        text: wanted.q || undefined,
        item: wanted.item || undefined,
        ...(wanted.marked && !image ? marks.said() : {}),
        image,
        top: wanted.top,
        mode: wanted.mode,
        bbox: wanted.bbox ?? undefined,
        after: wanted.after || undefined,
        before: wanted.before || undefined,
      },
      mine.signal,
    );
    asked = wanted;
    if (!wanted.wrong) quiet();
    drawAnswer(answer);
  } catch (error) {
    if (mine.signal.aborted) return;
    if (!asked || !sameQuestion(asked, wanted)) clearAnswer(); // which was another question's
    asked = null;
    fail(error);
  } finally {
    if (asking === mine) results.removeAttribute("aria-busy");
  }
}

function drawAnswer(answer: Answer): void {
  const byPicture = Boolean(state.image || state.item);
  byId("verdict").replaceChildren(verdictCard(answer, gallery, byPicture, (id) => move({ open: id })));
  const among = answer.searched === gallery?.rows ? "" : ` of ${plural(gallery?.rows ?? 0, "row")}`;
  const took = `${plural(answer.searched, "row")}${among} searched in ${Math.max(1, Math.round(answer.timings_ms.total ?? 0))} ms`;
  const noAnswer = answer.tone === "abstained" && answer.standing !== "unsure"; // those may be right
  const title = noAnswer && answer.hits.length ? "The nearest things, not an answer" : plural(answer.hits.length, "hit");
  byId("hits").replaceChildren(
    h("div", { class: "line" }, h("h3", {}, title), h("p", { class: "quiet" }, took)),
    hitGrid(answer, { open: (id) => openHit(id), like: likeThis, point: (id) => map?.point(id), extra: (hit) => marks.buttons(hit), key: (key, id) => marks.key(key, id) }),
  );
  marks.draw(state.marked);
  if (!answer.hits.length) byId("hits").append(nothingFound());
  const placed = answer.hits.some((hit) => hit.corners);
  if (placed || state.bbox) showMap();
  else byId("map-side").hidden = !gallery?.georeferenced;
  map?.show(answer.hits, state.bbox, gallery?.bounds ?? null);
}

function openHit(id: string): void {
  document.querySelector(".hit.open")?.classList.remove("open");
  document.querySelector(`.hit[data-id="${CSS.escape(id)}"]`)?.classList.add("open");
  move({ open: id });
}

function nothingFound(): HTMLElement {
  const filtered = state.bbox || state.after || state.before;
  if (gallery?.rows === 0) return emptyGallery();
  return h("p", { class: "hint" }, filtered ? "No image of the archive passes these filters. Widen the area or the time." : "The archive holds no images.");
}

function emptyGallery(): HTMLElement {
  return h("div", { class: "hint" },
    h("h2", {}, "This gallery is empty"),
    h("p", {}, "Put something into it; it appears here by itself:"),
    h("pre", {}, h("code", {}, "evidex index PATH --gallery DIR")));
}

function drawStart(): void {
  asking?.abort();
  asked = null;
  document.title = "evidex";
  byId("verdict").replaceChildren();
  void marks.begin(null);
  if (gallery?.rows === 0) {
    byId("hits").replaceChildren(emptyGallery());
    setTimeout(() => gallery?.rows === 0 && void loadGallery().then(show), 3000);
    return;
  }
  const examples = EXAMPLES.map((text) => h("li", {}, h("button", { type: "button", click: () => move({ q: text }) }, text)));
  byId("hits").replaceChildren(
    h("div", { class: "welcome" },
      h("h1", {}, "What are you looking for?"),
      h("p", {}, gallery ? `Ask ${plural(gallery.rows, "picture")} in words or with an example, and be told how far to trust the answer.` : "Ask in words or with an example, and be told how far to trust the answer."),
      h("ul", { class: "examples", "aria-label": "Examples" }, ...examples)),
  );
  if (gallery?.georeferenced) {
    showMap();
    map?.show([], state.bbox, gallery.bounds);
  }
}

function showMap(): void {
  byId("map-side").hidden = false;
  map ??= new HitMap({ open: openHit, area: (bbox) => move({ bbox }) });
}

const PLACEHOLDER = words.placeholder;
let drawn = (words.value = state.q);

function drawQuery(): void {
  // What was typed meanwhile stays: a slow server must not wipe it when it answers.
  if (state.q !== drawn) words.value = drawn = state.q;
  const place = byId("query-picture");
  place.hidden = !state.image && !state.item;
  words.placeholder = place.hidden ? PLACEHOLDER : "Add words: with snow, or -clouds";
  place.replaceChildren();
  if (place.hidden) return;
  const image = h("img", { alt: "" });
  const file = uploads.get(state.image);
  if (state.item) showPicture(image, state.item, "thumbnail");
  else if (file) {
    image.src = URL.createObjectURL(file);
    image.addEventListener("error", () => image.remove());
  }
  const label = state.item ? "Like this hit" : state.image;
  place.append(image, h("span", {}, label), h("button", { type: "button", "aria-label": "Remove the picture from the query", click: () => { move({ item: "", image: "" }); words.focus(); } }, "×"));
}

function say(text: string, action?: HTMLElement): void {
  const place = byId("notice");
  place.replaceChildren(h("p", {}, text), ...(action ? [action] : []));
  place.hidden = false;
}

function quiet(): void {
  byId("notice").hidden = true;
}

function clearAnswer(): void {
  byId("verdict").replaceChildren();
  byId("hits").replaceChildren();
}

function fail(error: unknown): void {
  if (error instanceof Refusal && error.status === 401) {
    enter(error.message);
  } else if (error instanceof Refusal) {
    const upload = state.image && [413, 415].includes(error.status);
    if (upload) uploads.delete(state.image);
    say(upload ? `This picture cannot be used: ${error.message}` : `The search was refused: ${error.message}`);
    clearAnswer();
  } else if (error instanceof Lost) {
    say(error.message, h("button", { class: "plain", type: "button", click: () => void again() }, "Try again"));
    waitForServer();
  } else {
    say("The page failed on this; load it again.");
    throw error;
  }
}

let waiting = 0;

function waitForServer(): void {
  clearTimeout(waiting);
  waiting = setTimeout(() => void isAlive().then((alive) => (alive ? again() : waitForServer())), 2000);
}

async function again(): Promise<void> {
  clearTimeout(waiting);
  quiet();
  asked = null;
  if (await loadGallery()) await show();
}

function enter(why: string): void {
  const dialog = byId<HTMLDialogElement>("entry");
  const field = byId<HTMLInputElement>("token");
  byId("entry-note").textContent = field.value ? why : "";
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("form")!.onsubmit = () => {
    setToken(field.value);
    void again();
  };
}

async function loadGallery(): Promise<boolean> {
  try {
    gallery = await getJson<Gallery>("gallery");
  } catch (error) {
    fail(error);
    return false;
  }
  const kinds = Object.entries(gallery.kinds).map(([kind, count]) => plural(count, kind));
  const parts = [kinds.join(", ") || "empty", gallery.georeferenced ? `${gallery.georeferenced.toLocaleString("en")} with a place` : "", gallery.calibrations.length ? "calibrated" : "not calibrated"];
  byId("about").textContent = parts.filter(Boolean).join(" · ");
  return true;
}

function listen(): void {
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = words.value.trim();
    if (!text && !state.item && !state.image) {
      words.focus();
      return;
    }
    // Words join the picture that is there; one that was refused does not count.
    const image = uploads.has(state.image) ? state.image : "";
    if (text === state.q && image === state.image) {
      asked = null;
      void show();
    } else move({ q: text, image, open: "", marked: false });
    results.focus({ preventScroll: true });
  });
  const file = byId<HTMLInputElement>("file");
  file.addEventListener("change", () => {
    searchWith(file.files?.[0]);
    file.value = "";
  });
  addEventListener("popstate", () => {
    state = readState();
    void show();
  });
  document.querySelector(".to-map")!.addEventListener("click", (event) => {
    event.preventDefault();
    byId("map-side").scrollIntoView();
    byId("map-side").focus({ preventScroll: true });
  });
  document.querySelector(".brand")!.addEventListener("click", (event) => {
    event.preventDefault();
    words.value = "";
    move({ q: "", item: "", image: "", open: "", bbox: null, after: "", before: "", marked: false });
    words.focus();
  });
  byId("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("evidex-theme", dark ? "light" : "dark");
  });
  byId("help").addEventListener("click", () => byId<HTMLDialogElement>("keys").showModal());
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && state.open && !document.querySelector("dialog[open]")) move({ open: "" });
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      words.focus();
      words.select();
    } else if (event.key === "ArrowRight" || event.key === "ArrowDown") {
      // Where nothing else has the focus, as after a search, the arrows go to the hits.
      const free = event.target === document.body || event.target === results;
      if (free && !document.querySelector("dialog[open]") && enterGrid()) event.preventDefault();
    } else if (event.key === "?") byId<HTMLDialogElement>("keys").showModal();
  });
  addEventListener("paste", (event) => searchWith([...(event.clipboardData?.files ?? [])].find((one) => one.type.startsWith("image/"))));
  listenToDrops();
}

function listenToDrops(): void {
  const veil = byId("drop");
  let depth = 0;
  const holdsFile = (event: DragEvent): boolean => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", (event) => holdsFile(event) && (veil.hidden = ++depth === 0));
  addEventListener("dragleave", (event) => holdsFile(event) && (veil.hidden = --depth <= 0));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    veil.hidden = true;
    searchWith(event.dataTransfer?.files[0]);
  });
}

listen();
void loadGallery().then((known) => (known ? show() : undefined));
