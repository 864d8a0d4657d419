import type { PostgresValue } from './statements.ts';

/** Named parameters of a long statement, each with its type, so that text and values cannot come apart. */
export interface Parameters<Name extends string> {
  /** `$n::type` by name. */
  readonly in: Readonly<Record<Name, string>>;
  /** The values in the order of their numbers. */
  values(named: Readonly<Record<Name, PostgresValue>>): readonly PostgresValue[];
}

/** Numbers parameters in the order in which they are declared. */
export function parameters<Name extends string>(
  types: Readonly<Record<Name, string>>,
): Parameters<Name> {
  const names = Object.keys(types) as Name[];
  const texts = names.map((name, place) => [name, `$${place + 1}::${types[name]}`]);
  return {
    // The entries are those of `types`, name by name.
    in: Object.fromEntries(texts) as Record<Name, string>,
    values: (named) => names.map((name) => named[name]),
  };
}
