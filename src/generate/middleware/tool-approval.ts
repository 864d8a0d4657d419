import { WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { checkOptions } from '../../core/options.ts';
import type { ToolRequest } from '../../protocol/message.ts';
import type { InterruptDeadline } from '../interrupt-deadline.ts';
import type { Tool, ToolContext } from '../tool.ts';
import type { Middleware, ToolStep } from './middleware.ts';

/** Which tools need an approval: names, or a test of each request and its tool. */
export type ApprovalRule =
  | readonly string[]
  | ((request: ToolRequest, tool: Tool) => boolean | Promise<boolean>);

/**
 * Interrupts tools before they run, with `{ approval: { tool, input } }`. A restart with `metadata.resumed` of `true` or
 * `{ approved: true }` runs the tool; `{ approved: false, reason? }` tells the model that it was declined. With a deadline, an
 * approval that comes too late is refused. Names must be those of tools that the agent has; a function can test any request.
 *
 * @example
 * app.defineAgent({ name: 'bank', system: 'Help.', tools: [transfer], use: [toolApproval(['transfer'])] });
 */
export function toolApproval(
  rule: ApprovalRule,
  deadline: Omit<InterruptDeadline, 'expiresAt'> = {},
): Middleware {
  checkRule(rule);
  checkOptions(deadline, { expiresIn: true, onExpiry: true }, 'toolApproval()');
  return {
    name: 'tool approval',
    ...(typeof rule !== 'function' && { tools: rule }),
    async tool(step, next) {
      const { request, context, tool } = step;
      if (!(await needsApproval(rule, request, tool))) return next(step);
      const { resumed, interrupted } = context;
      // The tool was approved and ran, and has interrupted with its own question.
      if (resumed !== undefined && wasApproved(interrupted)) return next(asApproved(step));
      if (resumed === undefined) {
        const { name, input = null } = request;
        context.interrupt({ approval: { tool: name, input } }, deadline);
      }
      const { approved, reason } = decision(resumed);
      if (approved) return next(asApproved(step));
      const because = reason === undefined ? '' : ` The reason: ${reason}`;
      throw new WaymarkError(
        'PERMISSION_DENIED',
        `The user did not approve tool "${request.name}".${because}`,
      );
    },
  };
}

// A rule of another form would match no tool, and every tool would run without an approval.
function checkRule(rule: ApprovalRule): void {
  const isList = Array.isArray(rule) && rule.every((name) => typeof name === 'string');
  if (isList || typeof rule === 'function') return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    "toolApproval() takes names of tools, such as toolApproval(['refund']), or a function of each request.",
  );
}

function wasApproved(interrupted: Json | undefined): boolean {
  return isJsonObject(interrupted) && interrupted.approved === true;
}

/** The step with an interrupt that remembers the approval, so that an answer to it is not taken for one. */
function asApproved(step: ToolStep): ToolStep {
  const interrupt: ToolContext['interrupt'] = (data, deadline) =>
    step.context.interrupt(isJsonObject(data) ? { ...data, approved: true } : data, deadline);
  return { ...step, context: { ...step.context, interrupt } };
}

async function needsApproval(
  rule: ApprovalRule,
  request: ToolRequest,
  tool: Tool,
): Promise<boolean> {
  return typeof rule === 'function' ? rule(request, tool) : rule.includes(request.name);
}

// Only a clear yes is a yes.
function decision(resumed: Json | undefined): { approved: boolean; reason: string | undefined } {
  if (resumed === true) return { approved: true, reason: undefined };
  const { approved, reason } = isJsonObject(resumed) ? resumed : {};
  return { approved: approved === true, reason: typeof reason === 'string' ? reason : undefined };
}
