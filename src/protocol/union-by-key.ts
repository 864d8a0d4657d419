import * as v from 'valibot';

/** An object schema that one of its required keys tells from the others. */
type ObjectOption = v.ObjectSchema<v.ObjectEntries, undefined>;

/**
 * A union of object schemas in which the keys of a value say which options can fit: each option is tried only when the
 * value has the option's first key. A plain union tries all of them, and builds an issue for each that does not fit.
 */
export function unionByKey<const Options extends readonly ObjectOption[]>(
  options: Options,
  message: string,
): v.UnionSchema<Options, string> {
  const union = v.union(options, message);
  const tryAll = union['~run'].bind(union);
  const keyed = options.map((option) => ({ option, key: Object.keys(option.entries)[0] ?? '' }));
  const run: (typeof union)['~run'] = (dataset, config) => {
    const { value } = dataset;
    if (typeof value !== 'object' || value === null) return tryAll(dataset, config);
    let only: ReturnType<typeof run> | undefined;
    let tried = 0;
    for (const { option, key } of keyed) {
      if (!(key in value)) continue;
      const result = option['~run']({ value }, config) as ReturnType<typeof run>;
      if (result.issues === undefined) return result;
      only = result;
      tried++;
    }
    // With one candidate its own issue says most.
    return tried === 1 && only ? only : tryAll(dataset, config);
  };
  return Object.defineProperty(union, '~run', { value: run });
}
