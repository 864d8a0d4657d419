/** A time in the local time zone, to the minute. */
export function when(iso: string): string {
  const date = new Date(iso);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Parses `30d`, `12h`, `90m` or `2w` to milliseconds; `undefined` for anything else. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(text.trim()) ?? [];
  return count === undefined ? undefined : Number(count) * units[unit as keyof typeof units];
}
