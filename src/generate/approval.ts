import { WaymarkError } from '../core/error.ts';
import { isJsonObject, type Json } from '../core/json/json.ts';
import type { InterruptDeadline } from './interrupt-deadline.ts';
import type { ToolContext } from './tool-context.ts';

/**
 * Lets a call continue only if a person has approved it: interrupts it with `{ approval: { tool, input } }` the first time, and
 * refuses it with PERMISSION_DENIED when it was declined. Returns the context to continue with.
 */
export function approved<Context extends ToolContext>(
  { name, input = null }: { readonly name: string; readonly input?: Json | undefined },
  context: Context,
  deadline: InterruptDeadline = {},
): Context {
  const { resumed, interrupted } = context;
  // The tool was approved and ran, and has interrupted with its own question.
  if (resumed !== undefined && wasApproved(interrupted)) return asApproved(context);
  if (resumed === undefined) context.interrupt({ approval: { tool: name, input } }, deadline);
  const { isApproved, reason } = decision(resumed);
  if (isApproved) return asApproved(context);
  const because = reason === undefined ? '' : ` The reason: ${reason}`;
  throw new WaymarkError('PERMISSION_DENIED', `The user did not approve tool "${name}".${because}`);
}

function wasApproved(interrupted: Json | undefined): boolean {
  return isJsonObject(interrupted) && interrupted.approved === true;
}

/** The context with an interrupt that remembers the approval, so that an answer to it is not taken for one. */
function asApproved<Context extends ToolContext>(context: Context): Context {
  const interrupt: ToolContext['interrupt'] = (data, deadline) =>
    context.interrupt(isJsonObject(data) ? { ...data, approved: true } : data, deadline);
  return { ...context, interrupt };
}

// Only a clear yes is a yes.
function decision(resumed: Json | undefined): { isApproved: boolean; reason: string | undefined } {
  if (resumed === true) return { isApproved: true, reason: undefined };
  const { approved, reason } = isJsonObject(resumed) ? resumed : {};
  return { isApproved: approved === true, reason: typeof reason === 'string' ? reason : undefined };
}
