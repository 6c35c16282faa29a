// The strings of the page in its language, and dates and numbers as that language writes them.

const catalogue = JSON.parse(document.getElementById("words").textContent);
const language = document.documentElement.lang;
const regional = navigator.languages.find((name) => name.split("-")[0] === language);
export const locale = regional ?? language;

const plurals = new Intl.PluralRules(language);
const numbers = new Intl.NumberFormat(locale);
const clock = new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit" });
const exact = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "medium" });
const weekday = new Intl.DateTimeFormat(locale, { weekday: "short" });
const dayOfYear = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long" });
const dayOfOtherYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "long", year: "numeric" });
const moment = new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });
const shortDay = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const shortDayOfOtherYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "numeric", year: "2-digit" });

/** The string of a key; `{name}` in it takes values.name, and values.count chooses the plural form. */
export function word(key, values = {}) {
  let text = catalogue[key];
  if (typeof text === "object") text = text[plurals.select(values.count)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? numbers.format(value) : value;
  });
}

/** Text of its own direction inside a sentence, between the marks of Unicode that isolate it. */
export const isolated = (text) => `\u2068${text}\u2069`;

/** The string of a key that comes from data, or `otherwise` when the catalogue has none. */
export function wordOr(key, otherwise) {
  return typeof catalogue[key] === "string" ? catalogue[key] : otherwise;
}

export const number = (value) => numbers.format(value);
export const timeOf = (date) => clock.format(date);
export const exactTimeOf = (date) => exact.format(date);

function daysAgo(date) {
  const start = (when) => new Date(when.getFullYear(), when.getMonth(), when.getDate());
  return Math.round((start(new Date()) - start(date)) / 86_400_000);
}

export function sameDay(one, other) {
  return one.toDateString() === other.toDateString();
}

/** A day as a separator names it. */
export function dayOf(date) {
  const days = daysAgo(date);
  if (days === 0) return word("day.today");
  if (days === 1) return word("day.yesterday");
  return date.getFullYear() === new Date().getFullYear() ? dayOfYear.format(date) : dayOfOtherYear.format(date);
}

/** A moment as the list shows it: the time today, else the shortest that is clear. */
export function shortTimeOf(date) {
  const days = daysAgo(date);
  if (days === 0) return clock.format(date);
  if (days === 1) return word("day.yesterday");
  if (days > 1 && days < 7) return weekday.format(date);
  return date.getFullYear() === new Date().getFullYear() ? shortDay.format(date) : shortDayOfOtherYear.format(date);
}

/** A moment with its time, past or to come. */
export function momentOf(date) {
  return daysAgo(date) === 0 ? clock.format(date) : moment.format(date);
}

/** A length of time in its two largest units. */
export function lengthOf(seconds) {
  const parts = [
    ["day", Math.floor(seconds / 86_400)],
    ["hour", Math.floor(seconds / 3600) % 24],
    ["minute", Math.floor(seconds / 60) % 60],
  ].filter(([, value]) => value > 0);
  const shown = parts.length ? parts.slice(0, 2) : [["second", Math.floor(seconds)]];
  const lengths = shown.map(([unit, value]) =>
    new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "long" }).format(value),
  );
  return new Intl.ListFormat(locale, { type: "unit", style: "long" }).format(lengths);
}
