import type { Init, Input } from '../../protocol/turn.ts';
import { ownerOf } from '../http/auth.ts';
import { checkBackgroundRuns } from '../http/background-runs.ts';
import type { OpenCall, ServerContext } from '../http/server-context.ts';
import { invokeOptions } from './turn.ts';

/**
 * Starts a turn in the background within the limits of its caller, and keeps the server's end waiting for it. The turn survives
 * this process.
 */
export async function startRun(
  serverContext: ServerContext,
  { agent, caller }: OpenCall,
  init: Init,
  input: Input,
): Promise<{ readonly id: string }> {
  await checkBackgroundRuns(serverContext, caller);
  const { requestId, ...rest } = input;
  const run = await agent.start(rest, {
    ...invokeOptions(init, caller),
    ...(requestId !== undefined && { requestId }),
  });
  serverContext.options.waitUntil?.(agent.wait(run.id, ownerOf(caller)).catch(() => {}));
  return run;
}
