import type { Json } from '../core/json/json.ts';
import type { Schema } from '../core/schema/schema.ts';
import type { InterruptDeadline } from './interrupt-deadline.ts';
import {
  type Tool,
  type ToolArgument,
  type ToolInput,
  type ToolOptions,
  type ToolResult,
  tool,
} from './tool.ts';

/** How an interrupt is declared: a tool without a function, whose answer comes from outside. */
export interface InterruptOptions<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
> extends Omit<ToolOptions<Input, Output>, 'state'>,
    Omit<InterruptDeadline, 'expiresAt'> {
  /**
   * Creates what the user sees from the model's input.
   * @default `true`: the user sees the request
   */
  readonly request?: (input: ToolInput<Input>) => Json | Promise<Json>;
}

/**
 * Creates a tool that always waits for the user's answer. The output schema checks the answer.
 *
 * @example
 * const confirm = interrupt({
 *   name: 'confirm',
 *   description: 'Asks the user to confirm.',
 *   output: z.object({ ok: z.boolean() }),
 * });
 */
export function interrupt<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
>(options: InterruptOptions<Input, Output>): Tool<ToolArgument<Input>, ToolResult<Output, Json>> {
  const { request, metadata, expiresIn, onExpiry, ...toolOptions } = options;
  const deadline = { ...(expiresIn !== undefined && { expiresIn }), ...(onExpiry && { onExpiry }) };
  return tool(
    // A form for the answer must know that the tool has no output schema.
    { ...toolOptions, metadata: { ...metadata, interrupt: true } },
    async (input, context): Promise<never> =>
      context.interrupt(request ? await request(input) : undefined, deadline),
  );
}
