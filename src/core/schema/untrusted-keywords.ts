import { WaymarkError } from '../error.ts';
import {
  canonicalText,
  getOwn,
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEqual,
} from '../json/json.ts';

export interface Place {
  readonly parent?: Place;
  readonly step?: string | number;
}

interface Issue {
  readonly message: string;
  readonly at: Place;
}

/** The least and the most of something; what is not a number does not count. */
interface CountLimits {
  readonly least?: Json;
  readonly most?: Json;
}

/** Checks one keyword. It spends steps for everything that takes more than a moment, before it does it. */
type Keyword = (
  run: BoundedEvaluation,
  expected: Json,
  value: Json,
  at: Place,
  schema: JsonObject,
) => void;

/** The keyword needs what is not evaluated here, such as a regular expression. */
const notEvaluated: Keyword = (run) => run.skip();

/** The keywords that are evaluated, or that change the outcome if they are not. All others are annotations. */
const keywords: ReadonlyMap<string, Keyword> = new Map<string, Keyword>(
  Object.entries<Keyword>({
    $ref: (run, ref, value, at) => run.check(run.target(ref), value, at),
    $dynamicRef: notEvaluated,
    $recursiveRef: notEvaluated,
    pattern: (run, _, value) => typeof value === 'string' && run.skip(),
    patternProperties: (run, _, value) => isJsonObject(value) && run.skip(),
    unevaluatedProperties: (run, _, value) => isJsonObject(value) && run.skip(),
    unevaluatedItems: (run, _, value) => isJsonArray(value) && run.skip(),

    type(run, types, value, at) {
      const names = isJsonArray(types) ? types : [types];
      run.spend(names.length);
      if (names.some((name) => hasType(value, name))) return;
      run.fail(at, `Must be ${names.join(' or ')}, not ${typeOf(value)}.`);
    },
    const(run, expected, value, at) {
      if (!isSame(run, expected, value)) run.fail(at, `Must be ${shown(expected)}.`);
    },
    enum(run, values, value, at) {
      if (!isJsonArray(values) || values.some((each) => isSame(run, each, value))) return;
      run.fail(at, `Must be one of ${shown(values)}.`);
    },

    allOf(run, schemas, value, at) {
      for (const schema of listOf(schemas)) run.check(schema, value, at);
    },
    anyOf(run, schemas, value, at) {
      const tried: (readonly Issue[])[] = [];
      for (const schema of listOf(schemas)) {
        const issues = run.issuesOf(schema, value, at);
        if (issues.length === 0) return;
        tried.push(issues);
      }
      run.fail(at, 'Fits none of the alternatives.', tried.flat());
    },
    oneOf(run, schemas, value, at) {
      const tried = listOf(schemas).map((schema) => run.decide(schema, value, at));
      const fitting = tried.filter((issues) => issues?.length === 0).length;
      if (fitting === 1 || (fitting === 0 && tried.includes(undefined))) return;
      const inside = tried.flatMap((issues) => issues ?? []);
      run.fail(at, `Fits ${fitting} of the alternatives instead of exactly one.`, inside);
    },
    not(run, schema, value, at) {
      if (run.decide(schema, value, at)?.length === 0) {
        run.fail(at, 'Fits a schema that it must not fit.');
      }
    },
    if(run, condition, value, at, schema) {
      const issues = run.decide(condition, value, at);
      if (issues === undefined) return;
      run.check((issues.length === 0 ? schema.then : schema.else) ?? true, value, at);
    },

    properties(run, properties, value, at) {
      if (!isJsonObject(value) || !isJsonObject(properties)) return;
      for (const key of run.keysOf(value)) {
        const schema = getOwn(properties, key);
        if (schema !== undefined) run.check(schema, value[key] as Json, inside(at, key));
      }
    },
    additionalProperties(run, rest, value, at, { properties, patternProperties }) {
      // Which properties are additional depends on the patterns.
      if (!isJsonObject(value) || patternProperties !== undefined) return;
      const known = isJsonObject(properties) ? properties : {};
      for (const key of run.keysOf(value)) {
        if (!Object.hasOwn(known, key)) run.check(rest, value[key] as Json, inside(at, key));
      }
    },
    propertyNames(run, names, value, at) {
      if (!isJsonObject(value)) return;
      for (const key of run.keysOf(value)) run.check(names, key, inside(at, key));
    },
    required(run, names, value, at) {
      if (!isJsonObject(value)) return;
      for (const name of listOf(names)) {
        run.spendFor(name);
        if (typeof name === 'string' && !Object.hasOwn(value, name)) {
          run.fail(at, `The property ${shown(name)} is missing.`);
        }
      }
    },
    minProperties: (run, least, value, at) =>
      isJsonObject(value) && run.compare(at, run.keysOf(value).length, { least }, 'properties'),
    maxProperties: (run, most, value, at) =>
      isJsonObject(value) && run.compare(at, run.keysOf(value).length, { most }, 'properties'),
    dependentRequired: dependent,
    dependentSchemas: dependent,
    dependencies: dependent,

    prefixItems: eachItem,
    items(run, items, value, at, { prefixItems }) {
      if (isJsonArray(items)) eachItem(run, items, value, at);
      else restOfItems(run, items, value, at, isJsonArray(prefixItems) ? prefixItems.length : 0);
    },
    additionalItems(run, rest, value, at, { items }) {
      if (isJsonArray(items)) restOfItems(run, rest, value, at, items.length);
    },
    contains(run, schema, value, at, { minContains = 1, maxContains }) {
      if (!isJsonArray(value)) return;
      const tried = value.map((item, index) => run.decide(schema, item, inside(at, index)));
      const unknown = tried.filter((issues) => issues === undefined).length;
      const fitting = tried.filter((issues) => issues?.length === 0).length;
      const what = 'items that fit `contains`';
      run.compare(at, fitting + unknown, { least: minContains }, what);
      if (maxContains !== undefined) run.compare(at, fitting, { most: maxContains }, what);
    },
    minItems: (run, least, value, at) =>
      isJsonArray(value) && run.compare(at, value.length, { least }, 'items'),
    maxItems: (run, most, value, at) =>
      isJsonArray(value) && run.compare(at, value.length, { most }, 'items'),
    uniqueItems(run, expected, value, at) {
      if (expected !== true || !isJsonArray(value)) return;
      const seen = new Set<string>();
      for (const item of value) {
        run.spendFor(item);
        seen.add(canonicalText(item));
      }
      if (seen.size < value.length) run.fail(at, 'Has the same item twice.');
    },

    minimum(run, least, value, at, { exclusiveMinimum }) {
      if (typeof value !== 'number' || typeof least !== 'number') return;
      const isBelow = exclusiveMinimum === true ? value <= least : value < least;
      if (isBelow) run.fail(at, `Is less than allowed: the minimum is ${least}.`);
    },
    maximum(run, most, value, at, { exclusiveMaximum }) {
      if (typeof value !== 'number' || typeof most !== 'number') return;
      const isAbove = exclusiveMaximum === true ? value >= most : value > most;
      if (isAbove) run.fail(at, `Is more than allowed: the maximum is ${most}.`);
    },
    exclusiveMinimum(run, limit, value, at) {
      if (typeof value !== 'number' || typeof limit !== 'number' || value > limit) return;
      run.fail(at, `Must be more than ${limit}.`);
    },
    exclusiveMaximum(run, limit, value, at) {
      if (typeof value !== 'number' || typeof limit !== 'number' || value < limit) return;
      run.fail(at, `Must be less than ${limit}.`);
    },
    multipleOf(run, divisor, value, at) {
      if (typeof value !== 'number' || typeof divisor !== 'number' || divisor <= 0) return;
      const times = value / divisor;
      // 0.3 / 0.1 is not quite 3.
      if (Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times))) return;
      run.fail(at, `Is not a multiple of ${divisor}.`);
    },
    minLength(run, least, value, at) {
      if (typeof value !== 'string' || typeof least !== 'number') return;
      // A character has one or two units.
      if (value.length < least * 2) run.compare(at, lengthOf(run, value), { least }, 'characters');
    },
    maxLength(run, most, value, at) {
      if (typeof value !== 'string' || typeof most !== 'number') return;
      if (value.length > most) run.compare(at, lengthOf(run, value), { most }, 'characters');
    },
  }),
);

function dependent(run: BoundedEvaluation, dependents: Json, value: Json, at: Place): void {
  if (!isJsonObject(value) || !isJsonObject(dependents)) return;
  for (const key of run.keysOf(dependents)) {
    if (!Object.hasOwn(value, key)) continue;
    const needed = dependents[key] as Json;
    run.check(isJsonArray(needed) ? { required: needed } : needed, value, at);
  }
}

function eachItem(run: BoundedEvaluation, schemas: Json, value: Json, at: Place): void {
  if (!isJsonArray(value)) return;
  for (const [index, schema] of listOf(schemas).slice(0, value.length).entries()) {
    run.check(schema, value[index] as Json, inside(at, index));
  }
}

function restOfItems(
  run: BoundedEvaluation,
  schema: Json,
  value: Json,
  at: Place,
  from: number,
): void {
  if (!isJsonArray(value)) return;
  for (let index = from; index < value.length; index++) {
    run.check(schema, value[index] as Json, inside(at, index));
  }
}

function inside(parent: Place, step: string | number): Place {
  return { parent, step };
}

function listOf(value: Json): readonly Json[] {
  return isJsonArray(value) ? value : [];
}

function isSame(run: BoundedEvaluation, expected: Json, value: Json): boolean {
  run.spendFor(expected);
  return jsonEqual(expected, value);
}

function lengthOf(run: BoundedEvaluation, text: string): number {
  run.spendFor(text);
  let length = 0;
  for (const _ of text) length++;
  return length;
}

function hasType(value: Json, type: Json): boolean {
  return type === typeOf(value) || (type === 'integer' && Number.isInteger(value));
}

function typeOf(value: Json): string {
  if (value === null) return 'null';
  return isJsonArray(value) ? 'array' : typeof value;
}

function shown(value: Json): string {
  return JSON.stringify(value).slice(0, 200);
}

/** How many schemas may be evaluated within each other, such as a `$ref` that leads to a `$ref`. */
const maxNesting = 500;

const maxIssues = 20;

/** A keyword that is not evaluated would decide. */
const undecided = Symbol('undecided');

/** The evaluation of one value, in a limited number of steps. */
export class BoundedEvaluation {
  readonly #refs: ReadonlyMap<string, Json>;
  #left: number;
  #nesting = 0;
  #issues: Issue[] = [];
  /** Whether "not evaluated" must not count as "fits", as within `not`. */
  #isExact = false;

  constructor(refs: ReadonlyMap<string, Json>, steps: number) {
    this.#refs = refs;
    this.#left = steps;
  }

  /** Checks a value against a schema, and notes its issues. */
  check(schema: Json, value: Json, at: Place): void {
    this.spend(1);
    if (schema === false) this.fail(at, 'Nothing is allowed here.');
    if (!isJsonObject(schema)) return;
    if (++this.#nesting > maxNesting) throw tooCostly();
    for (const keyword of this.keysOf(schema)) {
      if (this.#issues.length >= (this.#isExact ? 1 : maxIssues)) break;
      keywords.get(keyword)?.(this, schema[keyword] as Json, value, at, schema);
    }
    this.#nesting--;
  }

  /** The issues of a value; they do not count as issues of the whole. */
  issuesOf(schema: Json, value: Json, at: Place): readonly Issue[] {
    const outer = this.#issues;
    this.#issues = [];
    try {
      this.check(schema, value, at);
      return this.#issues;
    } finally {
      this.#issues = outer;
    }
  }

  /** An issue of a value, or none if it fits; `undefined` if that depends on a keyword that is not evaluated. */
  decide(schema: Json, value: Json, at: Place): readonly Issue[] | undefined {
    if (this.#isExact) return this.issuesOf(schema, value, at);
    const nesting = this.#nesting;
    this.#isExact = true;
    try {
      return this.issuesOf(schema, value, at);
    } catch (error) {
      if (error !== undecided) throw error;
      this.#nesting = nesting;
      return undefined;
    } finally {
      this.#isExact = false;
    }
  }

  /** Leaves out a keyword. */
  skip(): void {
    // After an issue, the keyword cannot change the outcome.
    if (this.#isExact && this.#issues.length === 0) throw undecided;
  }

  fail(at: Place, message: string, inside: readonly Issue[] = []): void {
    this.#issues.push({ message, at }, ...inside.slice(0, maxIssues));
  }

  /** Notes an issue if a count is not within its limits. */
  compare(at: Place, count: number, { least, most }: CountLimits, what: string): void {
    if (typeof least === 'number' && count < least) {
      this.fail(at, `Has ${count} ${what}, of at least ${least}.`);
    }
    if (typeof most === 'number' && count > most) {
      this.fail(at, `Has ${count} ${what}, of at most ${most}.`);
    }
  }

  /** The schema that a reference leads to. */
  target(ref: Json): Json {
    return this.#refs.get(String(ref)) ?? true;
  }

  keysOf(object: JsonObject): readonly string[] {
    const keys = Object.keys(object);
    this.spend(keys.length);
    return keys;
  }

  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw tooCostly();
  }

  /** Spends the steps for reading a whole value. */
  spendFor(value: Json): void {
    this.spend(typeof value === 'string' ? 1 + (value.length >> 6) : 1);
    if (typeof value !== 'object' || value === null) return;
    for (const key in value) {
      this.spend(key.length >> 6);
      this.spendFor((value as JsonObject)[key] as Json);
    }
  }
}

function tooCostly(): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    'Checking the value against its JSON Schema takes too many steps. Use a simpler schema, or fewer nested alternatives and references.',
  );
}
