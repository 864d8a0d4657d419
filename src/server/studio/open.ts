import { join } from 'node:path';
import type { Agent } from '../../agent/spec/agent.ts';
import { isWaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';
import { addSpanSink } from '../../core/trace.ts';
import type { HandlerOptions } from '../http/handler-options.ts';
import { describeError, type Log } from '../http/log.ts';
import type { ServedApp } from '../http/served-app.ts';
import { readStudioFiles } from './files.ts';
import { type MountStudio, mountStudio } from './mount.ts';
import type { Rerun } from './rerun.ts';
import { createSpanRecorder, type SpanRecorder } from './span-recorder.ts';
import { openTraceFile } from './trace-file.ts';

// Loaded with the first rerun: a server that only serves needs none of it.
const rerun: Rerun = async (agent, request, options) =>
  await (await import('../../replay/run/rerun.ts')).rerun(agent, request, options);

/** Reads the built studio and begins to record spans; `close` ends that. */
export async function openStudio(
  from: string | true,
  {
    app,
    clock,
    auth,
    log,
    data,
  }: {
    readonly app: ServedApp;
    readonly clock: Clock;
    readonly auth: HandlerOptions['auth'];
    readonly log: Log;
    /** The folder for recorded spans; in memory without it. */
    readonly data: string | undefined;
  },
): Promise<{ readonly studio: MountStudio; close(): Promise<void> }> {
  const files = await readStudioFiles(from);
  // The spans of several principals must not mix.
  if (auth) {
    return {
      studio: (router, context) => mountStudio(router, context, { files }),
      async close() {},
    };
  }
  const opened =
    data === undefined || isEncrypted(app)
      ? undefined
      : await openTraceFile(join(data, 'traces.jsonl'), {
          onProblem: (error) =>
            log({
              level: 'warn',
              time: clock.now(),
              msg: 'traces are no longer saved',
              error: describeError(error),
            }),
        });
  const spans = createSpanRecorder({
    clock,
    ...(opened && { log: opened.file, restored: opened.restored }),
  });
  const removeSink = addSpanSink(spans);
  const checked = opened === undefined ? undefined : dropDeleted(app, spans);
  return {
    studio: (router, context) =>
      mountStudio(router, context, { files, developer: { spans, rerun } }),
    async close() {
      removeSink();
      await checked;
      await opened?.file.close();
    },
  };
}

// What the store encrypts must not be on the disk in plain text.
function isEncrypted({ store = {} }: ServedApp): boolean {
  return 'encrypted' in store && store.encrypted === true;
}

// Another process, such as the CLI, may have deleted sessions meanwhile.
async function dropDeleted(app: ServedApp, spans: SpanRecorder): Promise<void> {
  const agents = new Map(app.agents().map((agent) => [agent.name, agent]));
  const deleted = new Set<string>();
  const existing = new Set<string>();
  for (const { sessionId, agent = '', owner } of spans.sessions()) {
    const isDeleted = await isGone(agents.get(agent), sessionId, owner);
    (isDeleted ? deleted : existing).add(sessionId);
  }
  // All at once, because each time the whole file is written. An id may be in use for several agents and owners.
  spans.dropRestored(new Set([...deleted].filter((sessionId) => !existing.has(sessionId))));
}

/** Whether a session is known not to exist: of an agent that is no longer served, it is not known. */
async function isGone(
  agent: Agent | undefined,
  sessionId: string,
  owner: string | undefined,
): Promise<boolean> {
  try {
    const page = await agent?.listSnapshots(sessionId, {
      limit: 1,
      includeOrphaned: true,
      ...(owner !== undefined && { owner }),
    });
    return page?.items.length === 0;
  } catch (error) {
    return isWaymarkError(error) && error.status === 'NOT_FOUND';
  }
}
