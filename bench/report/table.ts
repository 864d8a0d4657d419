/** A table to print, or to put into a document under its name. */
export interface Table {
  readonly name: string;
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** For a terminal. */
export function toText({ title, columns, rows }: Table): string {
  const lines = [columns, ...rows];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const pad = (line: readonly string[]): string =>
    line
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd();
  return `\n${title}\n${lines.map(pad).join('\n')}\n`;
}

/** For a document. */
export function toMarkdown({ columns, rows }: Table): string {
  const line = (cells: readonly string[]): string =>
    `| ${columns.map((_, at) => cells[at] ?? '').join(' | ')} |`;
  const rule = columns.map((_, at) => (at === 0 ? '---' : '---:'));
  return [line(columns), line(rule), ...rows.map(line)].join('\n');
}
