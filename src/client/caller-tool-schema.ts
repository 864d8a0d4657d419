import type { StandardJSONSchemaV1 } from '@standard-schema/spec';
import { invalid } from '../core/error.ts';
import type { JsonSchema, Schema } from '../core/schema/schema.ts';

/** The JSON Schema of a tool's input. The server checks it, so that no validator is part of the client. */
export function toToolSchema(schema: Schema): JsonSchema {
  // The schemas of arktype are functions.
  const standard = (schema as Partial<StandardJSONSchemaV1> | undefined)?.['~standard'];
  if (!standard) return schema as JsonSchema;
  if (standard.jsonSchema) return standard.jsonSchema.input({ target: 'draft-07' });
  throw invalid(
    `Schemas of ${standard.vendor} cannot be turned into JSON Schema here. Pass a JSON Schema.`,
  );
}
