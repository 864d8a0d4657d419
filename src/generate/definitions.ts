import { type Action, defineAction } from '../core/action.ts';
import { failedPrecondition } from '../core/error.ts';
import { defined } from '../core/json/json.ts';
import { createRegistry } from '../core/registry.ts';
import type { Schema } from '../core/schema/schema.ts';
import type { Model, ModelRequest } from './model.ts';
import type { Prompt } from './prompt/prompt.ts';
import type { Resource } from './resource.ts';
import { runToolOnce } from './tool/run-tool-once.ts';
import type { Tool } from './tool/tool.ts';

export type Definitions = ReturnType<typeof createDefinitions>;

export function createDefinitions() {
  return {
    models: createRegistry<Model>(),
    tools: createRegistry<Tool>(),
    prompts: createRegistry<Prompt>(),
    resources: createRegistry<Resource>(),
    schemas: createRegistry<Schema>(),
  };
}

/** A model as an action, which takes a request, streams chunks and gives a response. */
export function modelAction(model: Model): Action {
  const { name, description } = model;
  return defineAction(
    { key: `/model/${name}`, name, description, metadata: { type: 'model' } },
    (input, { signal, context, send }) => {
      // The request is written by hand; the model reports what it cannot read.
      const { tools = [], ...request } = input as Partial<ModelRequest>;
      return model.run({ messages: [], ...request, tools }, { signal, context, stream: send });
    },
  );
}

/** A tool as an action, whose result is its output alone. An interrupt fails: it could not be answered outside of a session. */
export function toolAction(
  tool: Tool,
  { newId, extras }: { readonly newId: () => string; readonly extras: (ref: string) => object },
): Action {
  const { name, description, definition } = tool;
  const { inputSchema, outputSchema } = definition;
  const action = defineAction(
    { key: `/tool/${name}`, name, description, metadata: { type: 'tool' } },
    async (input, { signal, context, send }) => {
      const ref = newId();
      const call = { ref, signal, context, extras: extras(ref), stream: send };
      const attempt = await runToolOnce(tool, input, call);
      if ('output' in attempt) return attempt.output;
      throw failedPrecondition(
        `Tool "${name}" interrupts: run it inside a conversation, where it can be answered.`,
      );
    },
  );
  // The tool checks its input itself, by the schema this JSON Schema was made from.
  const schemas = { inputSchema, ...defined({ outputSchema }) };
  return { ...action, descriptor: { ...action.descriptor, ...schemas } };
}

/** A prompt as an action, which takes the prompt's input and gives what it renders. */
export function promptAction(prompt: Prompt): Action {
  const { name, description, inputSchema } = prompt;
  const action = defineAction(
    { key: `/prompt/${name}`, name, description, metadata: { type: 'prompt' } },
    async (input, { context }) => {
      const { system, before, after } = await prompt.render(input, { context });
      const first = system ? [{ role: 'system', content: system }] : [];
      return { messages: [...first, ...before, ...after] };
    },
  );
  return inputSchema ? { ...action, descriptor: { ...action.descriptor, inputSchema } } : action;
}
