// Watermarks as people read them: the least number is none yet, the greatest the end of all events.

import { time } from "./format.js";

export const NONE = -(2 ** 63), ENDED = 2 ** 63 - 1;

export function told(watermark) {
  if (watermark === null || watermark === undefined) return "–";
  if (watermark <= NONE) return "none yet";
  if (watermark >= ENDED) return "the end";
  return watermark >= 0 && watermark < 8.64e15 ? time(watermark) || watermark : watermark;
}
