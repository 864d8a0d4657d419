import type { Dotprompt } from 'dotprompt';
import * as v from 'valibot';
import { failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import { defined, isPlainObject, type JsonObject } from '../../core/json/json.ts';
import { readTextFiles, type TextFile } from '../../core/platform.ts';
import type { JsonSchema, Schema } from '../../core/schema/schema.ts';
import { jsonObject } from '../../protocol/json-value.ts';
import type { Message, Part } from '../../protocol/message.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { ModelConfig } from '../model.ts';
import { historyPlace, type TemplateEngine, type TemplateScope } from '../template.ts';
import type { PromptOptions } from './prompt.ts';

interface FrontMatter {
  readonly [field: string]: unknown;
}

/** The template engine for texts: Handlebars as dotprompt has it. The package is loaded when a text first needs it. */
export interface DotpromptEngine extends TemplateEngine {
  /** Makes a text usable in others as `{{> name}}`. */
  definePartial(name: string, source: string): void;
  parse(
    source: string,
    what: string,
  ): Promise<{ readonly front: FrontMatter; readonly template: string }>;
  /** The JSON Schema of a schema in dotprompt's short form; names in it are those of defined schemas. */
  toJsonSchema(schema: unknown): Promise<JsonSchema>;
}

type Package = typeof import('dotprompt');
type Compiled = (scope: TemplateScope) => Promise<readonly Message[]>;

// Handlebars keeps partials in one place for the whole process, so each engine's get a name of their own.
let engines = 0;

/** A new engine; `findSchema` returns the JSON Schema of a name. */
export function createDotpromptEngine(findSchema: (name: string) => JsonSchema): DotpromptEngine {
  const prefix = `waymark${++engines}_`;
  const partials = new Map<string, string>();
  const compiled = new Map<string, Promise<Compiled>>();
  let loading: Promise<{ readonly pkg: Package; readonly dotprompt: Dotprompt }> | undefined;

  const load = (): NonNullable<typeof loading> => {
    loading ??= loadPackage().then((pkg) => ({ pkg, dotprompt: new pkg.Dotprompt() }));
    return loading;
  };

  const compile = async (source: string): Promise<Compiled> => {
    const { dotprompt } = await load();
    for (const [name, text] of partials) {
      dotprompt.definePartial(prefix + name, ownPartials(text, prefix, partials));
    }
    const template = ownPartials(variablesFirst(source), prefix, partials);
    const render = await dotprompt.compile({ template });
    return async ({ input, state, context }) => {
      const rendered = await render({
        input: withoutMarkers(input ?? {}),
        context: { ...withoutMarkers(context), state: withoutMarkers(state) },
        messages: [historyPlace as never],
      });
      return rendered.messages.map(toMessage);
    };
  };

  return {
    definePartial(name, source) {
      partials.set(name, source);
      compiled.clear();
    },
    async render(source, scope) {
      const template = getOrMake(compiled, source, () => compile(source));
      try {
        return await (await template)(scope);
      } catch (cause) {
        throw badTemplate(source, cause);
      }
    },
    async parse(source, what) {
      const { dotprompt } = await load();
      const { template, raw } = dotprompt.parse(source);
      // On an error it only prints, and uses the whole file as the template.
      if (raw === undefined && /^---\s*\n/.test(source)) {
        throw invalid(`The front matter of ${what} is not valid YAML.`);
      }
      return { front: raw ?? {}, template };
    },
    async toJsonSchema(schema) {
      const { pkg } = await load();
      return pkg.picoschema(schema, { schemaResolver: findSchema }) as Promise<JsonSchema>;
    },
  };
}

async function loadPackage(): Promise<Package> {
  try {
    return await import('dotprompt');
  } catch (cause) {
    throw failedPrecondition(
      'Prompt files and texts with {{placeholders}} need the package "dotprompt". Install it (npm install dotprompt), or use a function as template.',
      { cause },
    );
  }
}

function ownPartials(
  source: string,
  prefix: string,
  partials: ReadonlyMap<string, string>,
): string {
  return source.replace(/(\{\{~?#?>\s*)([\w./-]+)/g, (_, open: string, name: string) => {
    if (partials.has(name)) return open + prefix + name;
    const known = [...partials.keys()].join(', ');
    throw new WaymarkError(
      'NOT_FOUND',
      `There is no partial "${name}". ${known === '' ? 'None is defined.' : `Defined: ${known}.`}`,
    );
  });
}

// `{{role}}` would be taken for the helper of that name, which is nothing without its argument: a variable is meant.
function variablesFirst(source: string): string {
  return source.replace(/(\{\{~?\{?\s*)(role|section|media|json)(?=\s*\}?~?\}\})/g, '$1this.$2');
}

const marker = '<<<dotprompt:';

// Dotprompt marks roles and media in the rendered text. What a user typed must not be taken for such a mark.
function withoutMarkers<T>(value: T): T {
  if (typeof value === 'string') {
    return (value.includes(marker) ? value.replaceAll(marker, '<<< dotprompt:') : value) as T;
  }
  if (Array.isArray(value)) {
    const items = value.map(withoutMarkers);
    return items.some((item, at) => item !== value[at]) ? (items as T) : value;
  }
  // An instance of a class, such as a client in the context, is none of our business.
  if (typeof value !== 'object' || value === null || !isPlainObject(value)) return value;
  const cleaned = Object.entries(value).map(
    ([key, inner]) => [key, withoutMarkers(inner)] as const,
  );
  const changed = cleaned.some(([key, inner]) => inner !== value[key]);
  return changed ? (Object.fromEntries(cleaned) as T) : value;
}

type Rendered = Awaited<ReturnType<Dotprompt['render']>>['messages'][number];

function toMessage({ role, content, metadata }: Rendered): Message {
  // A section is a place for other tools to fill; here it stays empty.
  const parts = content.filter((part) => !part.metadata?.pending) as Part[];
  return { role, content: parts, ...defined({ metadata }) };
}

function badTemplate(source: string, cause: unknown): WaymarkError {
  if (cause instanceof WaymarkError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  const shown = source.length > 80 ? `${source.slice(0, 80)}…` : source;
  return invalid(`The template ${JSON.stringify(shown)} cannot be rendered: ${reason}`, {
    cause,
    publicMessage: 'The prompt of this agent cannot be rendered.',
  });
}

const schemaLike = v.union([v.string(), jsonObject]);

const frontMatter = v.object({
  description: v.optional(v.string()),
  model: v.optional(v.string()),
  config: v.optional(jsonObject),
  tools: v.optional(v.array(v.string())),
  toolChoice: v.optional(v.picklist(['auto', 'required', 'none'])),
  maxTurns: v.optional(v.number()),
  input: v.optional(v.object({ schema: v.optional(schemaLike), default: v.optional(jsonObject) })),
  output: v.optional(
    v.object({
      schema: v.optional(schemaLike),
      format: v.optional(v.picklist(['text', 'json', 'array', 'enum', 'jsonl'])),
    }),
  ),
});

/** Reads the `.prompt` files of a directory and its folders: the partials go to the engine, the prompts are given back. */
export async function loadPromptFiles(
  directory: string,
  engine: DotpromptEngine,
  findSchema: (name: string) => Schema,
): Promise<readonly FilePrompt[]> {
  const files = await readTextFiles(directory, '.prompt');
  const prompts: TextFile[] = [];
  for (const file of files) {
    const partial = partialName(file);
    if (partial === undefined) prompts.push(file);
    else engine.definePartial(partial, file.source);
  }
  return Promise.all(prompts.map((file) => fromPromptFile(file, engine, findSchema)));
}

/** The options in a file; its schemas are known only when it is read. */
type FilePrompt = PromptOptions<Schema | undefined, Schema | undefined>;

// The name a partial has in templates; none for a file that is a prompt itself.
function partialName({ path }: TextFile): string | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return name.startsWith('_') ? withoutEnding(name.slice(1)) : undefined;
}

async function fromPromptFile(
  file: TextFile,
  engine: DotpromptEngine,
  findSchema: (name: string) => Schema,
): Promise<FilePrompt> {
  const what = `prompt file "${file.path}"`;
  const { front, template } = await engine.parse(file.source, what);
  const { description, model, config, tools, toolChoice, maxTurns, input, output } = parseShape(
    frontMatter,
    front,
    what,
  );
  const toSchema = async (schema?: string | JsonObject): Promise<Schema | undefined> => {
    if (schema === undefined) return undefined;
    if (typeof schema === 'string' && /^\w+$/.test(schema) && !isType(schema))
      return findSchema(schema);
    try {
      return await engine.toJsonSchema(schema);
    } catch (cause) {
      if (cause instanceof WaymarkError) throw cause;
      const reason = cause instanceof Error ? `: ${cause.message}` : '';
      throw invalid(`A schema in ${what} cannot be read${reason}`, {
        cause,
      });
    }
  };
  return {
    name: withoutEnding(file.path),
    messages: template,
    ...defined({
      description,
      model,
      config: config as ModelConfig | undefined,
      tools,
      toolChoice,
      maxTurns,
      input: await toSchema(input?.schema),
      defaultInput: input?.default,
      output: output && defined({ schema: await toSchema(output.schema), format: output.format }),
    }),
  };
}

function withoutEnding(path: string): string {
  return path.replace(/\.prompt$/, '');
}

// The words of dotprompt's short form; anything else is the name of a schema.
function isType(word: string): boolean {
  return ['string', 'number', 'integer', 'boolean', 'null', 'any'].includes(word);
}
