import type { CallOptions } from '../../agent/contract/agent.ts';
import type { Json } from '../../core/json/json.ts';
import type { Part } from '../../protocol/message.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { Fields } from '../http/json-rpc.ts';
import { watchRun } from '../stream/feed.ts';
import { dataPart, textPart, toParts } from './shapes.ts';
import {
  agentMessage,
  artifactsOf,
  describeArtifact,
  describeTask,
  readTask,
  responseId,
  statusOf,
  type Task,
  type TaskView,
} from './task.ts';

/** The events of a task in the shape of 1.0: the task, then what happens until it ends or waits for input. */
export async function* taskEvents(
  task: Task,
  options: CallOptions & { readonly signal: AbortSignal },
  view: TaskView,
): AsyncGenerator<readonly Fields[]> {
  const { agent, root } = task;
  yield [{ task: await describeTask(task, options, view) }];
  const { signal: reader, owner } = options;
  const watching = { reader, owner };
  const run = new RunEvents(task);
  if (task.tip.status === 'pending' || task.tip.status === 'expired') {
    for await (const event of watchRun(agent, task.tip.snapshotId, watching)) {
      if (event.type === 'reset') run.reset();
      if (event.type !== 'chunk') continue;
      const events = run.see(event.chunk);
      if (events.length > 0) yield events;
    }
  }
  if (reader.aborted) return;
  const end = (await readTask(agent, root.snapshotId, options)) ?? task;
  yield [...(await run.missing(end)), run.update('statusUpdate', { status: await statusOf(end) })];
}

class RunEvents {
  readonly #task: Task;
  /** The text of the answer that clients have. */
  #text = '';
  /** Whether clients keep what they have of the answer. */
  #isContinued = false;
  #index: number | undefined;

  constructor(task: Task) {
    this.#task = task;
  }

  /** Another worker has taken over the run: what came since its last checkpoint comes again. */
  reset(): void {
    this.#isContinued = false;
  }

  see({ agent, modelChunk, artifact, status }: Chunk): Fields[] {
    // A sub-agent's own; what it gives its caller comes with the answer.
    if (agent !== undefined) return [];
    const events: Fields[] = [];
    if (modelChunk) {
      if (modelChunk.role === 'tool' || modelChunk.index !== this.#index) this.reset();
      this.#index = modelChunk.index;
      if (modelChunk.role !== 'tool') events.push(...this.#append(modelChunk.content));
    }
    if (artifact) {
      const shown = describeArtifact(artifact, 0);
      events.push(...shown.map((each) => this.#artifact(each, { append: false, lastChunk: true })));
    }
    if (status !== undefined) events.push(this.#working(status));
    return events;
  }

  /** The rest for a client that followed the stream: an answer that was not streamed, or not as it is. */
  async missing(end: Task): Promise<Fields[]> {
    const response = (await artifactsOf(end)).find(({ artifactId }) => artifactId === responseId);
    const parts = (response?.parts ?? []) as readonly Fields[];
    const text = parts.map((part) => (typeof part.text === 'string' ? part.text : '')).join('');
    const isComplete = text === this.#text && parts.every((part) => part.text !== undefined);
    if (!response || isComplete) return [];
    return [this.#artifact(response, { append: false, lastChunk: true })];
  }

  update(name: 'statusUpdate' | 'artifactUpdate', fields: Fields): Fields {
    const { snapshotId: taskId, sessionId: contextId } = this.#task.root;
    return { [name]: { taskId, contextId, ...fields } };
  }

  #append(content: readonly Part[]): Fields[] {
    const parts = toParts(content).filter(({ text }) => text !== undefined);
    if (parts.length === 0) return [];
    const text = parts.map((part) => String(part.text)).join('');
    const append = this.#isContinued;
    this.#text = append ? this.#text + text : text;
    this.#isContinued = true;
    const artifact = { artifactId: responseId, name: responseId, parts: [textPart(text)] };
    return [this.#artifact(artifact, { append, lastChunk: false })];
  }

  #artifact(
    artifact: Fields,
    how: { readonly append: boolean; readonly lastChunk: boolean },
  ): Fields {
    return this.update('artifactUpdate', { artifact, ...how });
  }

  #working(status: Json): Fields {
    const part = typeof status === 'string' ? textPart(status) : dataPart(status);
    const { root } = this.#task;
    const message = agentMessage(this.#task, `${root.snapshotId}:working`, [part]);
    return this.update('statusUpdate', { status: { state: 'TASK_STATE_WORKING', message } });
  }
}
