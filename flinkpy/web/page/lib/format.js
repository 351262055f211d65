// Numbers, sizes and times as people read them. What is not known (missing, or Flink's -1) is a dash.

const DASH = "–";
const known = value => typeof value === "number" && Number.isFinite(value) && value >= 0;
const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const count = value => known(value) ? whole.format(Math.round(value)) : DASH;

export const rate = value => known(value) ? short.format(value < 10 ? Number(value.toPrecision(2)) : Math.round(value)) + "/s" : DASH;

export const percent = share => known(share) ? `${Math.round(Math.min(share, 1) * 100)} %` : DASH;

export function bytes(value) {
  if (!known(value)) return DASH;
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`;
}

export function duration(ms) {
  if (!known(ms)) return DASH;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (hours < 1) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  if (days < 1) return `${hours} h ${minutes % 60} min`;
  return `${days} d ${hours % 24} h`;
}

// 2026-11-23 22:01:05, in the reader's time zone
export const time = ms => known(ms) && ms > 0 ? new Date(ms).toLocaleString("sv-SE") : DASH;

const PRECISE = { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 };

export const clock = (ms, isPrecise = false) => known(ms) && ms > 0 ? new Date(ms).toLocaleTimeString("sv-SE", isPrecise ? PRECISE : undefined) : DASH;

// The operators of a vertex: "Source: a -> Map -> Sink: b" has three
export const operators = name => name.split(" -> ");

// A vertex in few words: its first and its last operator
export function shortName(name) {
  const parts = operators(name);
  return parts.length < 3 ? parts.join(" → ") : `${parts[0]} → … → ${parts[parts.length - 1]}`;
}
