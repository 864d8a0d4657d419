import { type Action, type ActionCall, defineAction } from '../core/action.ts';
import { WaymarkError } from '../core/error.ts';
import type { NewId } from '../core/id.ts';
import { createRegistry, type Registry } from '../core/registry.ts';
import type { Schema } from '../core/schema/schema.ts';
import type { Model, ModelRequest } from './model.ts';
import type { Prompt } from './prompt/prompt.ts';
import type { Resource } from './prompt/resource.ts';
import type { Tool } from './tool/tool.ts';
import { type ToolContext, unrecorded } from './tool/tool-context.ts';

/** The definitions by name, each kind with its own type. */
export interface Definitions {
  readonly models: Registry<Model>;
  readonly tools: Registry<Tool>;
  readonly prompts: Registry<Prompt>;
  readonly resources: Registry<Resource>;
  readonly schemas: Registry<Schema>;
}

/** No definitions yet. */
export function createDefinitions(): Definitions {
  return {
    models: createRegistry(),
    tools: createRegistry(),
    prompts: createRegistry(),
    resources: createRegistry(),
    schemas: createRegistry(),
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

/** A tool as an action. An interrupt fails, because there is no session in which it could be answered. */
export function toolAction(
  tool: Tool,
  { newId, extras }: { readonly newId: NewId; readonly extras: (ref: string) => object },
): Action {
  const { name, description, definition } = tool;
  const { inputSchema, outputSchema } = definition;
  const action = defineAction(
    { key: `/tool/${name}`, name, description, metadata: { type: 'tool' } },
    (input, call) => {
      const ref = newId();
      return tool.run(input, { ...standalone(name, ref, call), ...extras(ref) });
    },
  );
  // The tool checks its input itself, by the schema this JSON Schema was made from.
  const schemas = { inputSchema, ...(outputSchema && { outputSchema }) };
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

function standalone(name: string, ref: string, { signal, context, send }: ActionCall): ToolContext {
  return {
    signal,
    context,
    ref,
    resumed: undefined,
    interrupted: undefined,
    idempotencyKey: ref,
    checkpoint: unrecorded,
    stream: send,
    // The result of an action is its output alone.
    attach() {},
    interrupt() {
      throw new WaymarkError(
        'FAILED_PRECONDITION',
        `Tool "${name}" interrupts: run it inside a conversation, where it can be answered.`,
      );
    },
  };
}
