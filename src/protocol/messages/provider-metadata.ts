import type { JsonObject } from '../../core/json/types.ts';

/** The key of a part's metadata under which the data of its provider is kept. */
export const providerMetadataKey = 'providerMetadata';

/** A part or message without the data of its provider. */
export function withoutProviderMetadata<
  Value extends { readonly metadata?: JsonObject | undefined },
>(value: Value): Value {
  if (value.metadata?.[providerMetadataKey] === undefined) return value;
  const { [providerMetadataKey]: _, ...metadata } = value.metadata;
  const { metadata: __, ...bare } = value;
  return (Object.keys(metadata).length === 0 ? bare : { ...bare, metadata }) as Value;
}
