import type { FootprintCost } from '../measures/footprint.ts';
import type { Results, Row } from '../results.ts';
import type { Table } from './table.ts';

/** A row that has a result. */
export type Measured<Result> = Row<Result> & { readonly result: Result };

/** Whether a row has a result. */
export function isMeasured<Result>(row: Row<Result>): row is Measured<Result> {
  return row.result !== undefined;
}

/** Whether a system could be imported and weighed. */
export function isWeighed(row: Results['footprint'][number]): row is FootprintCost {
  return 'importMs' in row;
}

/** The lines of a table; one that could not be measured says why. */
export function linesOf<Result>(
  rows: readonly Row<Result>[],
  toCells: (row: Measured<Result>) => readonly string[],
): Table['rows'] {
  return rows.map((row) =>
    isMeasured(row) ? [row.title, ...toCells(row)] : failed(row.title, row.error),
  );
}

/** The line of something that could not be measured. */
export function failed(
  title: string,
  error = 'the session did not get that far',
): readonly string[] {
  // The first line says what it was; the stack is in the JSON.
  const reason = error.split('\n', 1)[0]?.replace(/\|/g, '/').slice(0, 100);
  return [title, `failed: ${reason}`];
}

/** What was found of one variant. */
export function resultOf<Result>(
  rows: readonly Row<Result>[],
  system: string,
  variant: string,
): Result | undefined {
  return rows.find((row) => row.system === system && row.variant === variant)?.result;
}

/** What was found of our own variant on the same kind of store. */
export function counterpart<Result>(
  rows: readonly Row<Result>[],
  { store }: Row<Result>,
): Result | undefined {
  return rows.find((row) => row.system === 'waymark' && row.store === store)?.result;
}
