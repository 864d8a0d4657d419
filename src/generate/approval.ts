import { WaymarkError } from '../core/error.ts';
import { isJsonObject, type Json } from '../core/json/json.ts';
import type { InterruptDeadline } from './interrupt-deadline.ts';
import type { ToolContext } from './tool-context.ts';

/** How far the approval of a call is: somebody was asked, or has given it. */
export type ApprovalState = 'asked' | 'given';

const progressKey = Symbol('approval');

interface ApprovalProgress {
  readonly state: ApprovalState | undefined;
  readonly set: (state: ApprovalState) => void;
}

/**
 * For the context of a call: how far its approval was when the call waited, and what keeps how far it gets. It is stored beside
 * what the tool interrupts with: the answer to a question of the tool is no approval, whatever the question contains.
 */
export function approvalProgress(progress: ApprovalProgress): object {
  return { [progressKey]: progress };
}

/**
 * Lets a call continue only if a person has approved it: interrupts it with `{ approval: { tool, input } }` the first time, and
 * refuses it with PERMISSION_DENIED when it was declined.
 */
export function requireApproval(
  { name, input = null }: { readonly name: string; readonly input?: Json | undefined },
  context: ToolContext,
  deadline: InterruptDeadline = {},
): void {
  const progress = (context as { readonly [progressKey]?: ApprovalProgress })[progressKey];
  const { state, set } = progress ?? { state: undefined, set() {} };
  // When it was given before, the tool ran, and has interrupted with its own question.
  if (state === undefined || (state === 'asked' && context.resumed === undefined)) {
    set('asked');
    context.interrupt({ approval: { tool: name, input } }, deadline);
  }
  const { isApproved, reason } = decision(context.resumed);
  if (state === 'given' || isApproved) {
    set('given');
    return;
  }
  const because = reason === undefined ? '' : ` The reason: ${reason}`;
  throw new WaymarkError('PERMISSION_DENIED', `The user did not approve tool "${name}".${because}`);
}

// Only a clear yes is a yes.
function decision(resumed: Json | undefined): { isApproved: boolean; reason: string | undefined } {
  if (resumed === true) return { isApproved: true, reason: undefined };
  const { approved, reason } = isJsonObject(resumed) ? resumed : {};
  return { isApproved: approved === true, reason: typeof reason === 'string' ? reason : undefined };
}
