import type { PostgresValue } from './statements.ts';

/** Named parameters of a long statement, so that text and values cannot come apart. */
export interface Parameters<Name extends string> {
  /** `$n::type` by name; a name gets its number when the text first uses it. */
  readonly in: Readonly<Record<Name, string>>;
  /** The values of those that were used, in the order of their numbers. */
  values(named: Readonly<Record<Name, PostgresValue>>): readonly PostgresValue[];
}

/** Parameters of these types. The text must be put together before values are. */
export function parameters<Name extends string>(
  types: Readonly<Record<Name, string>>,
): Parameters<Name> {
  const used: Name[] = [];
  const texts = {} as Record<Name, string>;
  for (const name of Object.keys(types) as Name[]) {
    Object.defineProperty(texts, name, {
      get(): string {
        if (!used.includes(name)) used.push(name);
        return `$${used.indexOf(name) + 1}::${types[name]}`;
      },
    });
  }
  return { in: texts, values: (named) => used.map((name) => named[name]) };
}
