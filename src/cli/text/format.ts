import type { Style } from '../terminal.ts';

/**
 * Makes text safe for a terminal. Text of models, tools and users can contain control sequences that move the cursor, change
 * the title or paste into the shell. Only newlines and tabs are kept.
 */
export function safe(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this function removes them.
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => (character === '\r' ? '' : '\ufffd'),
  );
}

/** The beginning of a text on one line. */
export function oneLine(text: string, length = 60): string {
  const line = safe(text).replace(/\s+/g, ' ').trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

/** A value as JSON on one line, shortened. */
export function shortJson(value: unknown, length = 200): string {
  return oneLine(JSON.stringify(value) ?? '', length);
}

/** A number with its noun: `1 session`, `2 sessions`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Aligns rows in columns, each as wide as its widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  return rows
    .map((row) =>
      row
        .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Texts under their titles; those without lines are left out. */
export function sections(
  parts: readonly (readonly [title: string, lines: readonly string[]])[],
  style: Style,
): string {
  return parts
    .filter(([, lines]) => lines.length > 0)
    .map(([title, lines]) => [style.bold(title), ...lines].join('\n'))
    .join('\n\n');
}

/** A time in the local time zone, to the minute. */
export function when(iso: string): string {
  const date = new Date(iso);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

const width = 20;

/** Progress as text: with a bar where it is known how much there is in all. */
export function progressBar(what: string, done: number, total: number | undefined): string {
  if (total === undefined) return `${what} … ${done}`;
  // Turns may add to what there was at the start.
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.floor(share * width);
  const bar = `${'#'.repeat(filled)}${'-'.repeat(width - filled)}`;
  return `${what} … [${bar}] ${Math.floor(share * 100)} %`;
}
