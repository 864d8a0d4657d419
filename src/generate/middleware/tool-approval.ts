import { invalid } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';
import type { ToolRequest } from '../../protocol/message.ts';
import type { Tool } from '../tool/tool.ts';
import { type InterruptDeadline, requireApproval } from '../tool/tool-context.ts';
import type { Middleware } from './middleware.ts';

/** Which tools need an approval: names, or a test of each request and its tool. */
type ApprovalRule =
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
      const isHeld =
        typeof rule === 'function' ? await rule(request, tool) : rule.includes(request.name);
      if (isHeld) requireApproval(request, context, deadline);
      return next(step);
    },
  };
}

// A rule of another form would match no tool, and every tool would run without an approval.
function checkRule(rule: ApprovalRule): void {
  const isList = Array.isArray(rule) && rule.every((name) => typeof name === 'string');
  if (isList || typeof rule === 'function') return;
  throw invalid(
    "toolApproval() takes names of tools, such as toolApproval(['refund']), or a function of each request.",
  );
}
