// Made by frontend/schema.py from the server's OpenAPI schema; do not edit.

export interface AnswerOut {
  query: string;
  verdict: "answered" | "refined" | "abstained";
  /** What the answer is worth; the weightiest reason decides. */
  standing: Level;
  /** The colour to show it in: that of an answer, a doubtful one, a refusal, or none. */
  tone: "answered" | "refined" | "abstained" | "unknown";
  /** What speaks against relying on it, the weightiest first. */
  reasons: Reason[];
  /** The standing for people, in a few words. */
  headline: string;
  /** The standing for people, in a sentence. */
  explanation: string;
  /** What that stands on, with its numbers, a sentence each. */
  details: string[];
  /** u = K/S: the share of belief that no evidence supports. */
  uncertainty: number;
  /** Share of the calibration's queries that were more certain. */
  percentile: number | null;
  /** That a right row is among the first `chance_top`, where it was learned. */
  chance: number | null;
  chance_top: number | null;
  /** Words of a question outside the model's domain; none for others. */
  new_words: string[];
  /** Words never taught, or hardly, of a question that is in domain. */
  ignored_words: string[];
  /** Words it was taught that are spelt nearly like these or those. */
  did_you_mean: string[];
  /** Slips of the pen that were read as what was probably meant. */
  mended: MendedOut[];
  /** Whether the question is longer than what the model reads. */
  read_in_part: boolean;
  /** Where even the best hit is no match: the least score that one has. */
  floor: number | null;
  /** Whether the best hit scores less than three of four right answers do. */
  faint: boolean;
  /** How many of the hits, the last ones, the answer does not stand on. */
  apart: number;
  /** Why these are set apart, in a sentence. */
  apart_line: string | null;
  calibrated: boolean;
  guarantee: string | null;
  /** Rows that passed the filters. */
  searched: number;
  /** That the gallery lacks rows since a repair, in a sentence. */
  lacking: string | null;
  refinement: RefinementOut | null;
  timings_ms: Record<string, number>;
  hits: HitOut[];
}

export interface BatchOut {
  answers: AnswerOut[];
}

export interface BatchRequest {
  /** How many hits; the server's limit is in /gallery. */
  top?: number;
  /** auto: ask again where uncertain; plain: never ask again; careful: always, unless the question is outside the model's domain. */
  mode?: "auto" | "plain" | "careful";
  /** Look among images (the default) or texts. */
  among?: "images" | "texts" | null;
  /** west, south, east, north in degrees; west > east crosses 180°. */
  bbox?: number[] | null;
  /** Taken at this time or later. */
  after?: string | null;
  /** Taken earlier than this. */
  before?: string | null;
  /** Matches the path, or its end. */
  glob?: string | null;
  /** Of this STAC collection. */
  collection?: string | null;
  /** Most clouds, in percent. */
  max_cloud?: number | null;
  /** What should not be there; best a kind of scene. */
  without?: string[];
  /** Show every copy of a picture; otherwise each picture once. */
  copies?: boolean;
  /** At most as many as /gallery says. */
  texts: string[];
}

export interface CalibrationOut {
  direction: "text" | "image";
  among: "images" | "texts";
  queries: number;
  score: string;
  refine_above: number;
  abstain_above: number;
  guarantee: string | null;
}

export type Finding = "found" | "perhaps" | "nothing" | "out_of_domain" | "unjudged" | "empty";

export interface GalleryOut {
  rows: number;
  version: number;
  kinds: Record<string, number>;
  georeferenced: number;
  dated: number;
  /** west, south, east, north; east may run past 180. */
  bounds: [number, number, number, number] | null;
  first: string | null;
  last: string | null;
  model: string;
  model_fingerprint: string;
  dim: number;
  calibrations: CalibrationOut[];
  limits: LimitsOut;
  /** Whether hits can be marked right or wrong. */
  marks?: boolean;
}

export interface HeatOut {
  rows: number;
  columns: number;
  /** Pixels a side. */
  cell: number;
  /** Row by row a byte a cell, 255 for the peak, as base64. */
  values: string;
}

export interface HitOut {
  id: string;
  kind: "image" | "tile" | "text";
  path: string;
  caption: string | null;
  width: number | null;
  height: number | null;
  window: WindowOut | null;
  /** GeoJSON geometry in WGS84. */
  footprint: Record<string, unknown> | null;
  /** Upper left, upper right, lower right, lower left. */
  corners: [number, number][] | null;
  crs: string | null;
  acquired: string | null;
  /** The STAC item that it comes from. */
  item?: string | null;
  collection?: string | null;
  /** Percent. */
  cloud_cover?: number | null;
  rank: number;
  score: number;
  /** Where else the same picture lies. */
  copies?: PlaceOut[];
}

export interface ItemOut {
  id: string;
  kind: "image" | "tile" | "text";
  path: string;
  caption: string | null;
  width: number | null;
  height: number | null;
  window: WindowOut | null;
  /** GeoJSON geometry in WGS84. */
  footprint: Record<string, unknown> | null;
  /** Upper left, upper right, lower right, lower left. */
  corners: [number, number][] | null;
  crs: string | null;
  acquired: string | null;
  /** The STAC item that it comes from. */
  item?: string | null;
  collection?: string | null;
  /** Percent. */
  cloud_cover?: number | null;
  captions: string[];
  /** Bytes of the file. */
  size: number;
  sha256: string;
}

export type Level = "empty" | "nothing_asked" | "out_of_domain" | "no_match" | "unsure" | "unjudged" | "look_twice" | "plausible" | "good";

export interface LimitsOut {
  top: number;
  batch: number;
  text: number;
  body_bytes: number;
  pixels: number;
}

export interface LocateRequest {
  /** The item to look in, from a hit. */
  item: string;
  /** What to look for, in words. */
  text?: string | null;
  /** Look for what is like this item. */
  like?: string | null;
}

export interface LocatedOut {
  query: string;
  scene: string;
  /** What came of looking; the map is flat where nothing was found. */
  finding: Finding;
  /** That for people, in a few words. */
  headline: string;
  /** That for people, in a sentence. */
  explanation: string;
  /** Of the picture that was looked at; a large one is looked at smaller. */
  width: number;
  height: number;
  /** How many were looked at. */
  windows: number;
  best_similarity: number | null;
  /** The least similarity of a match, where the model knows it. */
  floor: number | null;
  /** Likeness of the best place: the share of right answers that are less similar. */
  peak: number;
  new_words: string[];
  ignored_words: string[];
  peaks: PeakOut[];
  heat: HeatOut;
}

export interface MarkOut {
  id: string;
  says: "right" | "wrong";
}

export interface MarkRequest {
  /** The words of the question. */
  text?: string | null;
  /** The item whose like was looked for. */
  item?: string | null;
  /** Of the hit. */
  id: string;
  /** null takes back what was said before. */
  says: "right" | "wrong" | null;
}

export interface MarksOut {
  marks: MarkOut[];
}

export interface MendedOut {
  typed: string;
  read: string;
}

export interface NeighboursOut {
  id: string;
  hits: HitOut[];
}

export interface PeakOut {
  score: number;
  x: number;
  y: number;
  window: WindowOut;
  place: PointOut | null;
}

export interface PlaceOut {
  id: string;
  path: string;
  /** The very same content; otherwise encoded again or resized. */
  exact: boolean;
}

export interface PointOut {
  longitude: number;
  latitude: number;
}

export interface Problem {
  error: string;
}

export type Reason = "nothing_searched" | "nothing_asked" | "new_words" | "below_floor" | "little_evidence" | "beyond_guarantee" | "several_parts" | "not_calibrated" | "uncertain_at_first" | "ignored_words" | "negated" | "counted" | "state" | "read_in_part" | "few_alike" | "faint" | "others_surer";

export interface RefinementOut {
  copies: number;
  /** Ids of hits that were not there before. */
  entered: string[];
  /** Ids of hits that are gone. */
  left: string[];
  reordered: boolean;
  uncertainty_before: number;
}

export interface SearchRequest {
  /** How many hits; the server's limit is in /gallery. */
  top?: number;
  /** auto: ask again where uncertain; plain: never ask again; careful: always, unless the question is outside the model's domain. */
  mode?: "auto" | "plain" | "careful";
  /** Look among images (the default) or texts. */
  among?: "images" | "texts" | null;
  /** west, south, east, north in degrees; west > east crosses 180°. */
  bbox?: number[] | null;
  /** Taken at this time or later. */
  after?: string | null;
  /** Taken earlier than this. */
  before?: string | null;
  /** Matches the path, or its end. */
  glob?: string | null;
  /** Of this STAC collection. */
  collection?: string | null;
  /** Most clouds, in percent. */
  max_cloud?: number | null;
  /** What should not be there; best a kind of scene. */
  without?: string[];
  /** Show every copy of a picture; otherwise each picture once. */
  copies?: boolean;
  /** What to look for, in words. */
  text?: string | null;
  /** Look for what is like this item. */
  item?: string | null;
  /** Hits that are right: others like them move up. */
  right?: string[];
  /** Hits that are wrong: others like them move down. */
  wrong?: string[];
}

export interface StatusOut {
  status: string;
}

export interface WindowOut {
  x: number;
  y: number;
  width: number;
  height: number;
}
