import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';

/** A form for a person, and how its content becomes a value. */
export interface Form {
  /** An object of plain fields: all that MCP lets a server ask for. */
  readonly schema: JsonObject;
  /** The value that was filled in. */
  read(content: JsonObject): Json | undefined;
}

/** A form whose value fits a schema: field by field where MCP can express it, as one field, or as JSON. */
export function formFor(schema: JsonObject | undefined): Form {
  if (schema === undefined) return oneField({ type: 'string', title: 'Answer' }, (text) => text);
  if (isPlainObject(schema)) {
    const { properties, required } = schema;
    return {
      schema: { type: 'object', properties: properties ?? {}, ...(required && { required }) },
      read: (content) => content,
    };
  }
  if (isField(schema)) return oneField({ title: 'Answer', ...schema }, (value) => value);
  const description = `JSON that fits ${JSON.stringify(schema).slice(0, 1000)}`;
  return oneField({ type: 'string', title: 'Answer', description }, parsed);
}

function oneField(field: JsonObject, read: (value: Json) => Json | undefined): Form {
  return {
    schema: { type: 'object', properties: { answer: field }, required: ['answer'] },
    read: ({ answer }) => (answer === undefined ? undefined : read(answer)),
  };
}

function isPlainObject({ type, properties = {} }: JsonObject): boolean {
  return (
    type === 'object' &&
    isJsonObject(properties) &&
    Object.values(properties).every((field) => isJsonObject(field) && isField(field))
  );
}

function isField({ type, enum: values, items }: JsonObject): boolean {
  switch (type) {
    case 'string':
      return values === undefined || areTexts(values);
    case 'number':
    case 'integer':
    case 'boolean':
      return values === undefined;
    case 'array':
      return isJsonObject(items) && items.type === 'string' && areTexts(items.enum);
    default:
      return false;
  }
}

function areTexts(values: Json | undefined): boolean {
  return Array.isArray(values) && values.every((value) => typeof value === 'string');
}

function parsed(value: Json): Json | undefined {
  try {
    return typeof value === 'string' ? JSON.parse(value) : value;
  } catch {
    return undefined;
  }
}
