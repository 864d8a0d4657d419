import { WaymarkError } from '../../core/error.ts';
import { oneLine } from '../text/safe.ts';
import { table } from '../text/table.ts';

/** Something that an id prefix can mean. */
export interface Candidate<Value> {
  readonly id: string;
  /** Columns that tell it from the others: its agent, its title. */
  readonly about: readonly string[];
  readonly value: Value;
}

const maxShown = 10;

/** The candidate whose id is, or starts with, `given`. An ambiguous prefix is an error that lists the candidates. */
export function matchPrefix<Value>(
  given: string,
  kind: 'session' | 'snapshot',
  candidates: readonly Candidate<Value>[],
): Value | undefined {
  const exact = candidates.filter(({ id }) => id === given);
  const matching =
    exact.length > 0 || given === '' ? exact : candidates.filter(({ id }) => id.startsWith(given));
  const [first, ...others] = matching;
  if (first === undefined || others.length === 0) return first?.value;
  throw ambiguous(given, kind, matching);
}

function ambiguous(
  given: string,
  kind: string,
  matching: readonly Candidate<unknown>[],
): WaymarkError {
  const rows = matching
    .slice(0, maxShown)
    .map(({ id, about }) => ['', oneLine(id, 64), ...about.map((text) => oneLine(text, 48))]);
  const more = matching.length > maxShown ? `\n  … and ${matching.length - maxShown} more` : '';
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `"${oneLine(given)}" matches ${matching.length} ${kind}s. Use more of the id, or --agent:\n${table(rows)}${more}`,
  );
}
