type MaybeUndefined<Fields, Name extends keyof Fields> = undefined extends Fields[Name]
  ? Name
  : never;

/** An object type without `undefined`: fields that could be undefined are optional. */
type Defined<Fields> = {
  [Name in keyof Fields as Exclude<Name, MaybeUndefined<Fields, Name>>]: Fields[Name];
} & {
  [Name in keyof Fields as MaybeUndefined<Fields, Name>]?: Exclude<Fields[Name], undefined>;
};

/** The fields that are not undefined, for data that is stored, sent or compared. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const left: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) left[name] = value;
  return left as Defined<Fields>;
}
