/** Several measurements of one thing. */
export interface Stats {
  readonly count: number;
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
  readonly min: number;
  readonly max: number;
}

/** The median and the spread of some measurements. */
export function statsOf(values: readonly number[]): Stats {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (quantile: number): number =>
    round(sorted[Math.round(quantile * (sorted.length - 1))] ?? Number.NaN);
  return {
    count: sorted.length,
    median: at(0.5),
    p10: at(0.1),
    p90: at(0.9),
    min: at(0),
    max: at(1),
  };
}

function round(value: number): number {
  return Number(value.toPrecision(5));
}
