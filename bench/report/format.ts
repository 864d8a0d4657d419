import type { Stats } from '../lib/stats.ts';

/** Three digits at most: more would only be noise. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(value < 0.1 ? 2 : 3)));
}

/** The median and, behind it, the spread from the 10th to the 90th percentile. */
export function spread(stats: Stats | undefined): string {
  if (stats === undefined) return '–';
  const { median, p10, p90, count } = stats;
  return count === 1 ? number(median) : `${number(median)} (${number(p10)}–${number(p90)})`;
}

export function times(value: number | undefined, base: number | undefined): string {
  if (value === undefined || base === undefined) return '–';
  return `${number(value / base)} ×`;
}

export function bytes(value: number | undefined): string {
  if (value === undefined) return '–';
  if (value < 1024) return `${Math.round(value)} B`;
  if (value < 1024 * 1024) return `${number(value / 1024)} KB`;
  return `${number(value / 1024 / 1024)} MB`;
}
