import { isRecord, type Json, type JsonRecord } from './json.ts';

/** One field of a form, as a JSON Schema describes it. */
export interface FormField {
  readonly name: string;
  readonly label: string;
  readonly description?: string;
  readonly required: boolean;
  readonly kind: 'text' | 'long-text' | 'number' | 'integer' | 'flag' | 'choice' | 'json';
  readonly choices?: readonly Json[];
  readonly initial?: Json;
}

/** The fields of an object schema; `undefined` when it is no object, so that only JSON can be written. */
export function fieldsOf(schema: JsonRecord | undefined): readonly FormField[] | undefined {
  if (!schema || !isRecord(schema.properties)) return undefined;
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).map(([name, property]) =>
    toField(name, isRecord(property) ? property : {}, required.includes(name)),
  );
}

function toField(name: string, property: JsonRecord, required: boolean): FormField {
  const { title, description, default: initial } = property;
  const choices = Array.isArray(property.enum) ? property.enum : undefined;
  return {
    name,
    label: typeof title === 'string' ? title : words(name),
    ...(typeof description === 'string' && { description }),
    required,
    kind: choices ? 'choice' : kindOf(property),
    ...(choices && { choices }),
    ...(initial !== undefined && { initial }),
  };
}

function kindOf({ type, maxLength, format }: JsonRecord): FormField['kind'] {
  const [first] = Array.isArray(type) ? type.filter((each) => each !== 'null') : [type];
  switch (first) {
    case 'string':
      return format === undefined && typeof maxLength === 'number' && maxLength > 200
        ? 'long-text'
        : 'text';
    case 'number':
    case 'integer':
      return first;
    case 'boolean':
      return 'flag';
    default:
      return 'json';
  }
}

function words(name: string): string {
  const spaced = name.replace(/[_-]+/g, ' ').replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2');
  return spaced.charAt(0).toUpperCase() + spaced.slice(1).toLowerCase();
}

/** The texts of a form as JSON, or the fault of a field. */
export function readForm(
  fields: readonly FormField[],
  texts: Readonly<Record<string, string>>,
): { readonly value: JsonRecord } | { readonly field: string; readonly fault: string } {
  const value: Record<string, Json> = {};
  for (const field of fields) {
    const text = texts[field.name] ?? '';
    if (field.kind === 'flag') value[field.name] = text === 'true';
    else if (text.trim() === '') {
      if (field.required && field.kind !== 'text' && field.kind !== 'long-text') {
        return { field: field.name, fault: `${field.label} is required.` };
      }
      if (field.required) value[field.name] = '';
    } else {
      const read = readField(field, text);
      if ('fault' in read) return { field: field.name, fault: read.fault };
      value[field.name] = read.value;
    }
  }
  return { value };
}

function readField(
  { kind, label, choices = [] }: FormField,
  text: string,
): { readonly value: Json } | { readonly fault: string } {
  switch (kind) {
    case 'number':
    case 'integer': {
      const value = Number(text);
      const isGood = Number.isFinite(value) && (kind === 'number' || Number.isInteger(value));
      return isGood
        ? { value }
        : { fault: `${label} must be a ${kind === 'integer' ? 'whole ' : ''}number.` };
    }
    case 'choice':
      return { value: choices[Number(text)] ?? null };
    case 'json':
      return readJson(text, label);
    case 'flag':
    case 'text':
    case 'long-text':
      return { value: text };
  }
}

/** A text as JSON, or what is wrong with it. */
function readJson(
  text: string,
  label: string,
): { readonly value: Json } | { readonly fault: string } {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { fault: `${label} must be JSON: a text in quotes, a number, a list or an object.` };
  }
}
