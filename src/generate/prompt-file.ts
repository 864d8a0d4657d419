import * as v from 'valibot';
import { WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import { readTextFiles, type TextFile } from '../core/platform.ts';
import type { Schema } from '../core/schema/schema.ts';
import { jsonObject } from '../protocol/json-value.ts';
import { parseShape } from '../protocol/parse.ts';
import type { DotpromptEngine } from './dotprompt.ts';
import type { ModelConfig } from './model.ts';
import type { OutputFormatName } from './output/format.ts';
import type { PromptOptions } from './prompt.ts';

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

/** What a file declares; its schemas are known only when it is read. */
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
  const toSchema = async (schema: string | JsonObject): Promise<Schema> => {
    if (typeof schema === 'string' && /^\w+$/.test(schema) && !isType(schema))
      return findSchema(schema);
    try {
      return await engine.toJsonSchema(schema);
    } catch (cause) {
      if (cause instanceof WaymarkError) throw cause;
      const reason = cause instanceof Error ? `: ${cause.message}` : '';
      throw new WaymarkError('INVALID_ARGUMENT', `A schema in ${what} cannot be read${reason}`, {
        cause,
      });
    }
  };
  return {
    name: withoutEnding(file.path),
    messages: template,
    ...(description !== undefined && { description }),
    ...(model !== undefined && { model }),
    ...(config && { config: config as ModelConfig }),
    ...(tools && { tools }),
    ...(toolChoice && { toolChoice }),
    ...(maxTurns !== undefined && { maxTurns }),
    ...(input?.schema !== undefined && { input: await toSchema(input.schema) }),
    ...(input?.default && { defaultInput: input.default }),
    ...(output && {
      output: {
        ...(output.schema !== undefined && { schema: await toSchema(output.schema) }),
        ...(output.format && { format: output.format satisfies OutputFormatName }),
      },
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
