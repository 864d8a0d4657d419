import type { JsonObject } from '../../core/json/types.ts';

interface WithMetadata {
  readonly metadata?: JsonObject | undefined;
}

/** A part or message without one key of its metadata, and without metadata if there is no other key. */
export function withoutKey<Value extends WithMetadata>(value: Value, key: string): Value {
  if (value.metadata?.[key] === undefined) return value;
  const { [key]: _, ...metadata } = value.metadata;
  const { metadata: __, ...bare } = value;
  return (Object.keys(metadata).length === 0 ? bare : { ...bare, metadata }) as Value;
}

/** The key of a part's metadata under which the data of its provider is kept. */
export const providerMetadataKey = 'providerMetadata';

/** A part or message without the data of its provider. */
export function withoutProviderMetadata<Value extends WithMetadata>(value: Value): Value {
  return withoutKey(value, providerMetadataKey);
}
